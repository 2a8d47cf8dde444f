"""The example's desk, opened for tests: as one worker has it, or as another one does."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from backstop.core.checkpoint import Checkpoint
from backstop.core.events import CallAnswered, Checkpointed, Event
from backstop.core.trustbreak import Steps, TrustBreak
from backstop.mesh.recovering import Recovery
from backstop.mesh.standing import reach_of
from backstop.ports import Held
from examples.evidence_mesh.desk import RUN, Desk, Pins, pins_of_today
from examples.evidence_mesh.opening import opened
from examples.evidence_mesh.outside import World


@functools.cache
def pins() -> Pins:
    """What a person allows: the definitions as they stand here."""
    return asyncio.run(pins_of_today())


@dataclass(kw_only=True)
class Floor:
    """A folder with the desk's store, and the world that its workers share."""

    folder: Path
    world: World = field(default_factory=World)

    def desk(self, holder: str = "worker-1", **said: Any) -> Desk:
        desk = opened(self.folder, self.world, pins())
        for name, value in {"holder": holder, **said}.items():
            setattr(desk, name, value)
        return desk

    def begun(self, meanwhile: Callable[[], None] | None = None, **said: Any) -> Desk:
        """The run after its first attempt; `meanwhile` happens while the orchestrator thinks."""
        desk = self.desk(**said)
        if meanwhile is not None:
            self.world.meanwhile["orchestrator"] = meanwhile
        asyncio.run(desk.begin())
        return desk

    def late(self) -> None:
        """So much time passes that what history said is stale."""
        self.world.clock.wait(600)

    def stale(self, **said: Any) -> Desk:
        """The run in which the history snapshot went stale before the action."""
        desk = self.begun(self.late, **said)
        self.world.asked.clear()
        return desk


def recovered(desk: Desk, **said: Any) -> Recovery:
    done = asyncio.run(desk.recover(**said))
    assert not isinstance(done, Held)
    return done


def states(desk: Desk) -> dict[str, str]:
    """The first letter of each step's state, by the last part of its name."""
    verdicts = desk.seen().verdicts.items()
    return {
        step.rpartition("/")[2].partition("#")[0]: verdict.state[0] for step, verdict in verdicts
    }


def broken(desk: Desk, *steps: str, reason: str = "it is poisoned") -> None:
    """A person says that these steps are not to be trusted."""
    control = desk.store.control()
    found = TrustBreak(
        id=f"person:{control.epoch}",
        seq=0,
        epoch=0,
        detector="person:ada",
        reason=reason,
        selector=Steps(steps=steps),
    )
    desk.store.break_trust(found, run=RUN, reach=[reach_of(desk.seen(), found)])


def rows(desk: Desk, kind: type[Event]) -> list[Any]:
    return [event for event in desk.store.read() if isinstance(event, kind)]


def answers(desk: Desk) -> list[str]:
    """What became of each time the action was asked for."""
    return [event.how for event in rows(desk, CallAnswered) if event.tool == "publish_action"]


def attempts(desk: Desk, step: str) -> list[Checkpoint]:
    """Every record of a step, in order."""
    made = [event for event in rows(desk, Checkpointed) if event.step == step]
    return [msgspec.json.decode(event.body, type=Checkpoint) for event in made]
