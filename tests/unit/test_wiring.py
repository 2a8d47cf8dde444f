"""What the composition root works out by itself."""

from __future__ import annotations

import pytest

from backstop.wiring import workers


@pytest.mark.parametrize(
    ("events", "cores", "cpus", "processes"),
    [
        (100_000, 8, None, 8),
        (100_000, 8, 3, 3),
        (100_000, 8, 2.5, 3),
        (100_000, 8, 0.5, 1),
        (100_000, 2, 64, 2),
        (10, 8, None, 1),
        (0, 1, None, 1),
    ],
)
def test_a_replay_takes_the_cores_that_it_may_have_and_can_use(
    events: int, cores: int, cpus: float | None, processes: int
) -> None:
    assert workers(events, cores=cores, cpus=cpus) == processes
