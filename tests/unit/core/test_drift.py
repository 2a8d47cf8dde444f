"""Drift in numbers and words."""

from __future__ import annotations

import pytest

from backstop.core.covering import cover
from backstop.core.drift import by_part, changes
from backstop.core.intents import RunReplayed


@pytest.mark.parametrize(
    ("drifted", "words"),
    [
        ({}, ""),
        ({"a": ("tools",)}, "tools changed in 1 agent"),
        (
            {"a": ("tools", "instruction"), "b": ("instruction",), "c": ("instruction",)},
            "instruction changed in 3 agents, tools in 1",
        ),
        ({"a": ("settings",), "b": ("contents",)}, "contents changed in 1 agent, settings in 1"),
        ({"a": ()}, ""),
    ],
    ids=["none", "one", "several", "the-others", "unnamed"],
)
def test_drift_is_said_by_the_parts_of_requests(
    drifted: dict[str, tuple[str, ...]], words: str
) -> None:
    assert changes(drifted) == words


def test_parts_that_did_not_change_are_left_out() -> None:
    assert by_part({"a": ("tools",), "b": ("tools", "contents")}) == {"tools": 2, "contents": 1}


def test_steps_that_are_assumed_or_of_a_run_that_broke_are_not_covered() -> None:
    """D2: each step counts once, as covered, assumed or lost."""
    runs = {
        "r1": RunReplayed(run="r1", steps_total=5, steps_assumed=2, drift="drifted"),
        "r2": RunReplayed(run="r2", steps_total=4, steps_assumed=1, not_replayable="it raised"),
        "r3": RunReplayed(run="r3", steps_total=3),
    }
    found = cover(runs, ["r1", "r2", "r3"])
    assert (found.steps_total, found.steps_assumed, found.steps_lost) == (12, 3, 3)
    assert found.steps_covered == 6
