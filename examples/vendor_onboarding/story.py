"""What happened in these six weeks: when the ticks came, and what went wrong."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto

START = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)
"""The first tick of the first vendor; a Monday."""

WEEK = (0, 1, 2, 3)
"""Ticks come from Monday to Thursday."""

REDELIVERED_AFTER = timedelta(minutes=10)
APPROVED_AFTER = timedelta(days=4, hours=3, minutes=24)
RESOLVED_AFTER = timedelta(hours=19)


class Incident(Enum):
    """What goes wrong while a tick is tried for the first time."""

    REFUSED = auto()
    """The effect's service refuses the connection once: nothing happened, it is tried again."""
    LOOKUP_REFUSED = auto()
    """The same at a register, which only answers questions."""
    TIMED_OUT = auto()
    """The effect went out, but its answer did not come."""
    REDELIVERED = auto()
    """The same tick is delivered a second time while the effect is on its way."""
    DIED_BEFORE_CLAIM = auto()
    DIED_AFTER_CLAIM = auto()
    DIED_AFTER_COMMIT = auto()


@dataclass(frozen=True)
class Vendor:
    """A vendor's run: when its ticks come, what goes wrong at which, how many until today."""

    key: str
    minutes: int
    incidents: dict[int, Incident]
    first_week: int = 0
    ticks: int | None = None

    @property
    def run(self) -> str:
        """The run's id."""
        return f"{self.key}-2026"


VENDORS = (
    Vendor("acme", 0, {10: Incident.DIED_BEFORE_CLAIM}),
    Vendor("mueller", 4, {5: Incident.REFUSED, 9: Incident.DIED_AFTER_COMMIT}),
    Vendor("lodz", 8, {0: Incident.REFUSED, 8: Incident.REDELIVERED}),
    Vendor("sato", 12, {9: Incident.LOOKUP_REFUSED, 12: Incident.TIMED_OUT}),
    Vendor("caetano", 16, {3: Incident.LOOKUP_REFUSED, 8: Incident.DIED_AFTER_CLAIM}),
    Vendor("najm", 20, {2: Incident.REDELIVERED}),
    Vendor("boreal", 24, {7: Incident.DIED_AFTER_COMMIT}, first_week=3, ticks=11),
)
"""The last one came later and is still open."""


def ticks(vendor: Vendor) -> list[datetime]:
    """The times of one vendor's ticks, week after week."""
    first = START + timedelta(weeks=vendor.first_week, minutes=vendor.minutes)
    return [first + timedelta(weeks=week, days=day) for week in range(8) for day in WEEK]
