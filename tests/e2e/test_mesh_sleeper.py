"""A worker sleeps past its lease in the middle of a rerun, and wakes when another is done."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from threading import Thread

import pytest

from backstop.errors import BackstopError
from backstop.mesh.books import RECOVERING
from backstop.mesh.recovering import Recovery
from examples.evidence_mesh import opening
from examples.evidence_mesh.desk import Desk
from tests.e2e.mesh.desking import Floor, attempts, recovered, states

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")

STATISTICIAN = "s0/desk/statistician#0"
TAKEN_OVER_S = 70
"""A worker's lease is over by then, and what it read is fresh."""


class Unfenced(Desk):
    """Records what it makes again whoever holds the recovery."""

    async def rerun(self, run: str, step: str, given: Mapping[str, str]) -> None:
        """As ever, but nobody asks for the lease."""
        RECOVERING.set(None)
        await super().rerun(run, step, given)


@pytest.fixture
def floor(tmp_path: Path) -> Floor:
    made = Floor(folder=tmp_path)
    made.stale()
    made.world.history = opening.OTHERWISE
    return made


def sleeps(floor: Floor) -> list[Recovery]:
    """Whoever asks the statistician next sleeps there, until another worker has recovered."""
    done: list[Recovery] = []

    def meanwhile() -> None:
        floor.world.clock.wait(TAKEN_OVER_S)
        floor.world.says["statistician"] = "rate 0.64, says who was asked by the other"
        other = Thread(target=lambda: done.append(recovered(floor.desk("worker-2"))))
        other.start()
        other.join()
        del floor.world.says["statistician"]

    floor.world.meanwhile["statistician"] = meanwhile
    return done


def test_what_a_worker_makes_that_slept_past_its_lease_is_not_put_on_record(floor: Floor) -> None:
    done = sleeps(floor)
    with pytest.raises(BackstopError, match="taken over") as caught:
        recovered(floor.desk("worker-1"))
    assert caught.value.slug == "stale-lease"
    assert [one.stopped for one in done] == [""]
    desk = floor.desk("worker-3")
    assert set(states(desk).values()) == {"V"}
    assert len({one.id for one in attempts(desk, STATISTICIAN)}) == 2  # the first, and worker-2's
    assert len(floor.world.published) == 1


def test_without_the_fence_two_bodies_of_one_attempt_would_block_the_step(floor: Floor) -> None:
    sleeps(floor)
    with pytest.raises(BackstopError, match="taken over"):
        recovered(Unfenced(**vars(floor.desk("worker-1"))))
    desk = floor.desk("worker-3")
    assert len({one.id for one in attempts(desk, STATISTICIAN)}) == 3
    assert states(desk)["statistician"] == "B"
