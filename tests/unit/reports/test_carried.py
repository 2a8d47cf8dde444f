"""What one comment remembers for the next: read strictly, shown as old, never counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstop.core.verdict import Decision
from backstop.reports.carried import Carried, carry_forward, remembered, state_line
from backstop.reports.comment import render_comment, render_not_applicable
from tests.unit.reports.hostile import TEXT, verdict_of
from tests.unit.reports.scenes import CONTEXT, EARLIER, SCENES, SEVERAL, UNTOUCHED
from tests.verdicts import AGREED, BLOCKED, agent_verdict

AGENT = "vendor-onboarding"
HEAD = "<!-- backstop-gate:x -->\n"


def line(carried: Carried) -> str:
    return state_line(carried)


@pytest.mark.parametrize("agent", ["vendor-onboarding", "airline", "billing", "desk"])
def test_a_comment_remembers_its_agents(agent: str) -> None:
    found = carry_forward(SCENES["several"], agent)
    assert found is not None
    assert found.agent == agent
    judged = {one.agent: one for one in SEVERAL.agents}
    if agent == "desk":
        assert found == EARLIER  # carried once more, as of then
    else:
        assert found.decision is judged[agent].decision
        assert found.head == CONTEXT.head


def test_what_is_carried_survives_a_comment_in_which_nothing_was_judged() -> None:
    assert carry_forward(render_not_applicable(UNTOUCHED), "desk") == EARLIER
    assert carry_forward(SCENES["several"].replace("\n", "\r\n"), "desk") == EARLIER


@given(TEXT)
def test_whatever_an_agent_is_called_its_line_is_read_back_or_not_at_all(text: str) -> None:
    told = remembered(verdict_of(text).agents[0], head="abc", show_values=True)
    body = f"{HEAD}{state_line(told)}\n\nbody"
    assert state_line(told).count("\n") == 0
    assert state_line(told).index("-->") == len(state_line(told)) - 3
    assert carry_forward(body, told.agent) == told


def test_nothing_is_carried_from_a_comment_that_is_not_ours() -> None:
    old = SCENES["several"]
    assert carry_forward(old.partition("\n")[2], AGENT) is None
    assert carry_forward("", AGENT) is None
    assert carry_forward("LGTM", AGENT) is None
    assert carry_forward(old, "nobody") is None


@pytest.mark.parametrize(
    "forged",
    [
        lambda real: real.replace('"decision":"BLOCK"', '"decision":"GREEN"'),
        lambda real: real.replace('"findings":8', '"findings":-8'),
        lambda real: real.replace('"findings":8', '"findings":8,"findings":9'),
        lambda real: real.replace('"findings":8', '"findings":8,"html":"<b>"'),
        lambda real: real.replace('"findings":8', '"findings":1e3'),
        lambda real: real.replace('"head":"abc"', '"head":"](https://x)"'),
        lambda real: real.replace('"tool":"order"', '"tool":"' + "x" * 61 + '"'),
        lambda real: real.replace('"tool":"order"', '"tool":"<img>"'),
        lambda real: real.replace(" -->", ""),
        lambda real: real.replace('"rows":[', '"rows":[' + "{}," * 3),
        lambda real: real.replace("{", "{ ", 1),
        lambda real: f"{real}\n{real}",
        lambda real: f" {real}",
        lambda real: real[:60] + "\n" + real[60:],
    ],
)
def test_a_line_in_another_form_than_ours_is_not_believed(
    forged: Callable[[str], str],
) -> None:
    real = line(remembered(BLOCKED.agents[0], head="abc", show_values=False))
    assert carry_forward(f"{HEAD}{real}\n\nx", AGENT) is not None
    other = forged(real)
    assert other != real
    assert carry_forward(f"{HEAD}{other}\n\nx", AGENT) is None


def test_a_line_below_the_hidden_ones_is_text() -> None:
    """What an agent has said stands in the body, and could only forge a line there."""
    real = line(remembered(BLOCKED.agents[0], head="abc", show_values=False))
    assert carry_forward(f"{HEAD}\n\n{real}", AGENT) is None


def test_a_forged_memory_changes_no_decision() -> None:
    """An edited comment can make an old section say anything, and nothing more."""
    forged = Carried(
        agent="desk", decision=Decision.PASS, head="abc", compared=9, total=9, findings=0
    )
    with_it = render_comment(BLOCKED, replace(CONTEXT, untouched=("desk",), carried=(forged,)))
    without = render_comment(BLOCKED, replace(CONTEXT, untouched=("desk",)))
    assert [text.partition("\n\n## ")[2].partition("\n")[0] for text in (with_it, without)] == [
        "⛔ Backstop: deploy blocked"
    ] * 2
    assert "Compared **7 of 7 runs**" in with_it


def test_few_findings_are_remembered_and_all_are_counted() -> None:
    told = remembered(
        agent_verdict(*(judged.divergence for judged in BLOCKED.agents[0].judged * 5)),
        head="not a commit",
        show_values=False,
    )
    assert (len(told.rows), told.findings, told.head) == (10, 40, "")
    assert len(line(told)) < 6_000


@given(st.binary(max_size=300))
def test_no_body_makes_it_raise(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    for body in (text, HEAD + text, f"{HEAD}<!-- backstop-agent: {text} -->"):
        carry_forward(body, AGENT)


def test_what_a_person_accepted_is_carried_and_a_line_without_it_is_read_as_before() -> None:
    told = remembered(AGREED.agents[0], head="abc", show_values=False)
    assert told.accepted == 1
    assert carry_forward(f"{HEAD}{state_line(told)}\n\nbody", told.agent) == told
    without = remembered(BLOCKED.agents[0], head="abc", show_values=False)
    assert "accepted" not in state_line(without)
