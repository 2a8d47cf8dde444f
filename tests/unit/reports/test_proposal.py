"""What `backstop init` writes and shows: read back as it was meant, whatever the names are."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstop.config import loads
from backstop.core.declaration import Namespace
from backstop.core.identity import IdentityRefused, identify
from backstop.core.proposing import Proposal, Seen, propose
from backstop.reports.proposal import (
    WIDTH,
    WORKFLOW,
    ProposedAgent,
    ProposedTool,
    config_text,
    in_quotes,
    quoted,
    table,
)

NAMES = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from(list("#:{}[]&*!|>'\"%@`-, \n\t\0")),
    min_size=1,
    max_size=20,
)
EFFECT = Proposal(effect=True, why="it acts")


def agent(*tools: ProposedTool, **said: object) -> ProposedAgent:
    told = {"name": "a", "folder": "a", **said}
    return ProposedAgent(tools=tools, **told)  # type: ignore[arg-type]


@given(NAMES, NAMES, st.text(max_size=300))
def test_any_name_and_any_reason_are_read_back_as_they_were_meant(
    name: str, argument: str, why: str
) -> None:
    value = argument.replace("\0", "")  # no environment holds one
    said = Proposal(effect=True, why=why, identity=(argument,), why_identity=why, hints=(why,))
    tools = [ProposedTool(name=name, proposal=said)]
    made = ProposedAgent(name="a", folder=f"x/{name}", tools=tools, lack=why, unlisted=(why,))
    text = config_text([made], python=f"p {name}", env={"A": value})
    read = loads(text, name="b", root=Path("/r"))
    [one] = read.agents.values()
    assert {tool: said.identity for tool, said in one.declarations.items()} == {name: (argument,)}
    assert one.path == Path("/r") / f"x/{name}"
    assert read.sandbox.env == {"A": value}
    assert all(line.isprintable() for line in text.split("\n"))


@given(NAMES, st.text(max_size=300))
def test_what_is_shown_fits_and_is_safe(name: str, why: str) -> None:
    tool = ProposedTool(name=name, proposal=Proposal(effect=True, why=why, identity=(name,)))
    made = agent(tool, folder=name, lack=why, unlisted=(why,), notes=(why,))
    for line in table([made]):
        assert len(line) <= WIDTH
        assert line.isprintable()


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("send_mail", "send_mail"),
        ("true", '"true"'),
        ("No", '"No"'),
        ("1", '"1"'),
        ("a b", '"a b"'),
        ('"\\', '"\\"\\\\"'),
        ("ü", '"ü"'),
        ("\n", '"\\U0000000a"'),
    ],
)
def test_only_words_stand_without_quotes(text: str, spelled: str) -> None:
    assert quoted(text) == spelled
    assert in_quotes(text).startswith('"')


def test_each_kind_of_declaration_has_its_line_and_its_reason() -> None:
    tools = [
        ProposedTool(name="get_x", proposal=Proposal(effect=False, why="it reads")),
        ProposedTool(name="do_x", proposal=EFFECT),
        ProposedTool(name="pay", proposal=Proposal(effect=True, why="y", key=("k",))),
        ProposedTool(
            name="cancel",
            proposal=propose(Seen(name="cancel_x", parameters={"x_id": {"type": "string"}})),
        ),
    ]
    lines = config_text([agent(*tools)], python=None, env={}).splitlines()
    assert "      # read: it reads" in lines
    assert "      get_x: {effect: false}" in lines
    assert "      do_x: {effect: true}" in lines
    assert "      pay: {key: [k]}" in lines
    assert "      # identity: x_id (an id)" in lines
    assert "      cancel: {identity: [x_id]}" in lines
    assert not any("sandbox" in line for line in lines)


def test_a_call_without_arguments_has_a_key_under_what_is_written_for_its_tool() -> None:
    def key(proposal: Proposal) -> str:
        tools = [ProposedTool(name="restart", proposal=proposal)]
        read = loads(config_text([agent(*tools)], python=None, env={}), name="b", root=Path("/r"))
        declared = read.agents["a"].declarations["restart"]
        return identify({}, declared, namespace=Namespace(agent="a"), run="r", step="s").key

    assert key(propose(Seen(name="restart", parameters={})))
    with pytest.raises(IdentityRefused, match="no argument names its target"):
        key(EFFECT)


def test_an_agent_without_tools_says_so() -> None:
    assert "  no tools were found" in list(table([agent()]))
    assert "tools:" not in config_text([agent()], python=None, env={})


def test_the_workflow_is_the_one_that_the_examples_show() -> None:
    assert Path("examples/workflow.yml").read_text(encoding="utf-8") == WORKFLOW
