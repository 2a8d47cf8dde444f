"""Which agents a change concerns: in doubt, every one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstop.gate.touched import Checkout, Footprint, touched, within_reach

FILES = {
    "backstop.yaml": "1",
    "README.md": "1",
    "docs/how.md": "1",
    "requirements.txt": "1",
    "shared/tax.py": "1",
    "shared/prompt.md": "1",
    "agents/a/agent.py": "1",
    "agents/a/README.md": "1",
    "agents/b/agent.py": "1",
    "agents/b/requirements.txt": "1",
    "ledgers/a.jsonl": "1",
    "ledgers/b.jsonl": "1",
}


def agent(name: str, **other: object) -> Footprint:
    """An agent in a folder of its own."""
    stated = {"folder": f"agents/{name}", "ledger": f"ledgers/{name}.jsonl", "stated": name}
    return Footprint(**{**stated, **other})  # type: ignore[arg-type]  # the three fields


BASE = Checkout(files=FILES, agents={"a": agent("a"), "b": agent("b")}, config="backstop.yaml")


def changed(*paths: str) -> Checkout:
    """The same checkout with other files at these paths."""
    return replace(BASE, files={**FILES, **dict.fromkeys(paths, "2")})


@pytest.mark.parametrize(
    ("path", "concerned"),
    [
        ("agents/a/agent.py", {"a"}),
        ("agents/a/new.py", {"a"}),
        ("agents/a/README.md", {"a"}),
        ("ledgers/a.jsonl", {"a"}),
        ("agents/b/agent.py", {"b"}),
        ("shared/tax.py", {"a", "b"}),
        ("shared/prompt.md", {"a", "b"}),
        ("PROMPT.md", {"a", "b"}),
        ("requirements.txt", {"a", "b"}),
        ("agents/b/requirements.txt", {"a", "b"}),
        ("agents/b/requirements-dev.in", {"a", "b"}),
        ("agents/b/uv.lock", {"a", "b"}),
        ("agents/b/pyproject.toml", {"a", "b"}),
        ("agents/b/Dockerfile", {"a", "b"}),
        ("agents/abc/agent.py", {"a", "b"}),
        ("backstop-waivers.yaml", {"a", "b"}),
        (".github/workflows/gate.yml", {"a", "b"}),
        ("README.md", set()),
        ("LICENSE", set()),
        ("docs/how.md", set()),
        ("docs/deep/new.md", set()),
        ("docs/conf.py", {"a", "b"}),
        ("backstop.yaml", set()),
    ],
)
def test_g09_a_file_concerns_those_who_may_read_it(path: str, concerned: set[str]) -> None:
    """G09: a change of A's folder leaves B alone; a lock file or shared code leaves nobody."""
    assert touched(BASE, changed(path)).keys() == concerned


def test_g20_a_change_of_nothing_concerns_nobody() -> None:
    """G20: the gate ends at once, and says that it does not apply."""
    assert touched(BASE, BASE) == {}


def test_a_file_that_goes_concerns_as_one_that_changes() -> None:
    gone = {path: seen for path, seen in FILES.items() if path != "agents/a/agent.py"}
    assert touched(BASE, replace(BASE, files=gone)) == {"a": "agents/a/agent.py changed"}


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (agent("a", stated="other tools"), "what the configuration says of it changed"),
        (agent("a", folder="agents/b"), "what the configuration says of it changed"),
        (agent("a", ledger=None), "what the configuration says of it changed"),
    ],
)
def test_what_the_configuration_says_of_an_agent_concerns_it(other: Footprint, why: str) -> None:
    head = replace(BASE, agents={**BASE.agents, "a": other})
    assert touched(BASE, head) == {"a": why}


def test_an_agent_that_is_new_or_outside_of_the_checkout_is_always_concerned() -> None:
    outside = {"a": agent("a", folder=None), "b": agent("b")}
    base = replace(BASE, agents=outside)
    assert touched(base, replace(base, agents={**outside, "c": agent("c")})) == {
        "a": "it lies outside of the checkout",
        "c": "it is new",
    }


def test_a_file_in_two_agents_folders_concerns_both() -> None:
    nested = {"a": agent("a", folder="agents"), "b": agent("b")}
    base = replace(BASE, agents=nested)
    head = replace(base, files=changed("agents/b/agent.py").files)
    assert touched(base, head).keys() == {"a", "b"}
    top = replace(BASE, agents={"a": agent("a", folder="."), "b": agent("b")})
    assert "a" in touched(top, replace(top, files=changed("README.md").files))


def test_what_lies_around_an_agent_is_shared_code_even_if_it_is_another_s() -> None:
    """The folder above is where it imports from."""
    for above in ("agents", "."):
        base = replace(BASE, agents={"a": agent("a", folder=above), "b": agent("b")})
        for path in ("agents/common.py", "agents/a/agent.py"):
            head = replace(base, files=changed(path).files)
            assert touched(base, head).keys() == {"a", "b"}


def test_a_folder_that_moves_into_another_agent_s_is_seen_from_both_sides() -> None:
    """What was shared before it became an agent's own may still be imported by others."""
    head = replace(
        changed("shared/tax.py"), agents={**BASE.agents, "c": agent("c", folder="shared")}
    )
    assert touched(BASE, head).keys() == {"a", "b", "c"}


paths = st.sampled_from([*FILES, "agents/a/x.py", "agents/b/x.lock", "lib/x.py", "docs/x.md"])


@given(st.sets(paths), st.sets(paths))
def test_more_changes_never_concern_fewer(some: set[str], others: set[str]) -> None:
    few, many = touched(BASE, changed(*some)), touched(BASE, changed(*some, *others))
    assert few.keys() <= many.keys()


def test_what_is_within_reach_is_all_but_documentation_elsewhere() -> None:
    assert FILES.keys() - within_reach(FILES, folder="agents/a").keys() == {
        "README.md",
        "docs/how.md",
    }
    assert within_reach(FILES, folder=".") == FILES
