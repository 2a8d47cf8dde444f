"""What ways past interception come to in a verdict (D7)."""

from __future__ import annotations

import pytest

from backstop.adk.escapes import Way
from backstop.core.intents import Escaped
from backstop.core.verdict import Policy
from backstop.gate.escaping import not_covered, noted
from backstop.replay.code import Exercised, Reached
from backstop.replay.escapes import RULES, Ruling, escaped, findings, offline
from backstop.replay.wire import EscapeSeen, Ready, ToolsetSeen

CALL = EscapeSeen(
    kind=Way.CALLBACK, where="clerk", detail="calls smtplib.SMTP", at="agent.py:9", block=4
)
LOOP = EscapeSeen(kind=Way.OWN_LOOP, where="far", detail="ManagedAgent")
SEARCH = EscapeSeen(kind=Way.SERVER_SIDE_TOOL, where="clerk", detail="google_search")
QUIET = EscapeSeen(kind=Way.CALLBACK, where="clerk", at="agent.py:3", quiet=True)


def ready(*escapes: EscapeSeen, toolsets: tuple[ToolsetSeen, ...] = ()) -> Ready:
    return Ready(
        id=1,
        protocol=1,
        adk="2.13.0",
        python="3.11",
        app="desk",
        agents=[],
        tools=[],
        escapes=list(escapes),
        toolsets=list(toolsets),
    )


def said(
    *escapes: EscapeSeen,
    base: Ready | None = None,
    reached: frozenset[tuple[str, int]] = frozenset(),
) -> list[Escaped]:
    exercised = Exercised(reached=Reached(blocks=reached))
    return list(escaped(ready(*escapes), base=base, exercised=exercised))


def test_d7_what_reaches_outside_and_no_run_reached_counts_and_is_named() -> None:
    """D7: the place, and what it calls."""
    assert said(CALL) == [
        Escaped(
            way="callback",
            told="clerk reaches outside in a callback, which is no tool call "
            "(calls smtplib.SMTP, agent.py:9), and no run reached it",
        )
    ]


@pytest.mark.parametrize(
    ("base", "reached"),
    [
        (None, frozenset({("agent.py", 4)})),
        (ready(CALL), frozenset()),
    ],
)
def test_d7_it_is_noted_where_a_run_reached_it_or_the_base_has_it(
    base: Ready | None, reached: frozenset[tuple[str, int]]
) -> None:
    """D7: behind the walls every attempt is named by itself; an old branch is no change."""
    [found] = said(CALL, base=base, reached=reached)
    assert not found.counts
    assert ("and no run reached it" in found.told) is (not reached)


def test_d7_a_tools_body_is_never_reached() -> None:
    body = EscapeSeen(kind=Way.TOOL_TO_TOOL, where="settle", at="agent.py:9", block=4, body=True)
    [found] = said(body, reached=frozenset({("agent.py", 4)}))
    assert found.counts


def test_d7_what_no_replay_sees_counts_whatever_the_base_has() -> None:
    [found] = said(LOOP, base=ready(LOOP))
    assert found == Escaped(
        way="own-loop", told="far runs its own loop, out of sight (ManagedAgent)"
    )


def test_a16_a_tool_of_the_models_service_is_said_and_counts_nowhere() -> None:
    """A16: not observable, and nothing is claimed of it."""
    [found] = said(SEARCH)
    assert not found.counts
    assert "is not observable" in found.told
    assert not_covered([found], Policy()) == ()
    assert noted([found], Policy()) == (f"not covered, and not counted: {found.told}",)


def test_quiet_code_is_no_matter_of_a_verdict() -> None:
    assert said(QUIET) == []


def test_a_kind_that_nobody_knows_counts() -> None:
    [found] = said(EscapeSeen(kind="time-travel", where="clerk"))
    assert found.counts


def test_what_a_policy_accepts_is_said_and_stands_against_no_pass() -> None:
    found = said(CALL, LOOP)
    accepting = Policy(accepts=frozenset({"callback"}))
    assert not_covered(found, Policy()) == tuple(one.told for one in found)
    assert not_covered(found, accepting) == (found[1].told,)
    assert noted(found, accepting) == (
        f"not covered, and accepted by gate.accepts: {found[0].told}",
    )


def test_many_are_counted_and_what_is_not_listed_is_not_accepted() -> None:
    many = [EscapeSeen(kind=Way.OWN_LOOP, where=f"a{n}") for n in range(40)]
    found = said(SEARCH, *many)
    assert len(found) == 26
    assert found[-1].told.startswith("16 more ways past interception")
    everything = Policy(accepts=frozenset(Way))
    assert not_covered(found, everything) == (found[-1].told,)


def test_what_counts_comes_first() -> None:
    told = findings([QUIET, SEARCH, CALL])
    assert [(one.way, one.counts) for one in told] == [
        ("callback", True),
        ("callback", False),
        ("server-side-tool", False),
    ]


def test_a_toolset_that_listed_its_tools_behind_the_walls_is_no_finding() -> None:
    toolset = EscapeSeen(kind=Way.TOOLSET, where="clerk", detail="OpenAPIToolset")
    alone = ToolsetSeen(
        key="clerk/OpenAPIToolset/0", agent="clerk", kind="OpenAPIToolset", alone=True
    )
    asking = ToolsetSeen(key="clerk/McpToolset/0", agent="clerk", kind="McpToolset")
    assert offline(ready(toolset, toolsets=(alone,))) == []
    [found] = offline(ready(toolset, CALL, toolsets=(alone, asking)))[1:]
    assert (found.kind, found.detail) == (Way.TOOLSET, "McpToolset")


def test_every_ruling_is_used() -> None:
    assert {rule.ruling for rule in RULES.values()} == set(Ruling)
