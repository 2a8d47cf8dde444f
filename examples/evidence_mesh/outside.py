"""The world around the desk: its clock, what there is to be seen of it, and what it was told."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

ANSWERS_IN_S: Final = 20
"""Seconds that a model takes."""
USAGE: Final = {
    "scout": (423, 61),
    "statistician": (402, 48),
    "skeptic": (468, 73),
    "orchestrator": (488, 39),
}


class Clock:
    """Stands still at `start`, but where somebody waits."""

    def __init__(self, start: datetime = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)) -> None:
        self._now = start

    def now(self) -> datetime:
        """The instant at which it stands."""
        return self._now

    def wait(self, seconds: float) -> None:
        """So many seconds pass."""
        self._now += timedelta(seconds=seconds)


@dataclass(kw_only=True)
class World:
    """What evidence says today, how late models are, and what was really published.

    `meanwhile` happens once, while an agent's model is asked; `says` are words that it says in
    place of its script, and `usage` the tokens that it says it read and wrote. `asked` are the
    agents whose models were asked, in order.
    """

    clock: Clock = field(default_factory=Clock)
    feed: str = "line 4 runs 2.1 K hot"
    history: str = "312 shifts, rate=0.71"
    meanwhile: dict[str, Callable[[], None]] = field(default_factory=dict)
    says: dict[str, str] = field(default_factory=dict)
    usage: dict[str, tuple[int, int]] = field(default_factory=lambda: dict(USAGE))
    asked: list[str] = field(default_factory=list)
    published: list[str] = field(default_factory=list)

    def answers(self, agent: str) -> None:
        """An agent's model was asked, and takes its time."""
        self.asked.append(agent)
        self.clock.wait(ANSWERS_IN_S)
        self.meanwhile.pop(agent, lambda: None)()


WORLD: Final[ContextVar[World]] = ContextVar("evidence_mesh_world")
"""The world that the agents are in."""
