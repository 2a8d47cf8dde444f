"""Which attempts at a step are under way, for all that a worker can see.

One attempt at a time runs the agent: a model that is asked twice may answer twice differently,
and its effects would have different keys. Whoever dies leaves an attempt that never ends, so
its process is looked up; where nobody can see it, a worker waits for as long as a lease,
counted by its own clock from when it first met the attempt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeAlias

from backstop.core.events import AttemptStarted
from backstop.guard.claims.safety import LEASE_S
from backstop.guard.journal import Attempt
from backstop.ports import Clock, Liveness

_Place: TypeAlias = tuple[str, str, int]


@dataclass(slots=True, kw_only=True)
class Attendance:
    """`process` names this one; `liveness` says what can be seen of one by its name."""

    process: str
    liveness: Callable[[str], Liveness]
    clock: Clock
    lease_s: float = LEASE_S
    _own: set[_Place] = field(default_factory=set)
    _met: dict[_Place, datetime] = field(default_factory=dict)

    def begins(self, attempt: Attempt) -> None:
        """This process is at it now."""
        self._own.add((attempt.run, attempt.step, attempt.number))

    def ends(self, attempt: Attempt) -> None:
        """This process is at it no more."""
        self._own.discard((attempt.run, attempt.step, attempt.number))

    def is_under_way(self, attempt: AttemptStarted) -> bool:
        """Whether somebody is at an attempt that has not ended."""
        place = attempt.run, attempt.step, attempt.attempt
        if attempt.owner == self.process:
            return place in self._own
        match self.liveness(attempt.owner):
            case Liveness.ALIVE:
                return True
            case Liveness.GONE:
                return False
            case Liveness.UNKNOWN:
                now = self.clock.now()
                met = self._met.setdefault(place, now)
                return now - met < timedelta(seconds=self.lease_s)
