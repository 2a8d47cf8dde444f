"""What came out otherwise in another replay, in words."""

from __future__ import annotations

from dataclasses import replace

from backstop.core.stability import UnstableField
from backstop.core.verdict import Decision, Verdict
from backstop.reports.body import State, state_of
from backstop.reports.terminal import render
from backstop.reports.unsteady import unsteady
from tests.verdicts import agent_verdict

PASSED = agent_verdict(decision=Decision.PASS)


def fields(number: int) -> tuple[UnstableField, ...]:
    return tuple(
        UnstableField(tool="mail", path=f"/{at}", run="r1", step="s1") for at in range(number)
    )


def test_one_replay_says_nothing_of_chance() -> None:
    assert unsteady(PASSED) == []


def test_replays_that_agree_are_said_to() -> None:
    (line,) = unsteady(replace(PASSED, replays=3))
    assert line == "replayed 3 times, each with another clock and chance: all alike"


def test_of_many_arguments_the_first_are_named_and_the_rest_counted() -> None:
    told = unsteady(replace(PASSED, replays=2, unstable=fields(27)))
    assert len(told) == 26
    assert told[-1] == "unstable: 2 more arguments; --format json names all of them"


def test_a_pass_over_an_unstable_argument_is_one_with_warnings() -> None:
    """Nothing that is only chance may be green in silence."""
    steady = Verdict(agents=(replace(PASSED, replays=2),))
    shaky = Verdict(agents=(replace(PASSED, replays=2, unstable=fields(1)),))
    assert (state_of(steady), state_of(shaky)) == (State.PASSED, State.WARNED)
    assert "PASS with warnings" in render(shaky)
    assert "PASS with warnings" not in render(steady)
