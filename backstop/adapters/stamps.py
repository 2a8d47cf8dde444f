"""Stamps: instants in microseconds that never fall, whatever the clock does.

A stamp is a hybrid logical time. It follows the clock where that moves on, and goes one
further than the latest stamp seen where it does not: what was written in the knowledge of
something else is stamped later.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from backstop.adapters.memory import timestamp
from backstop.ports import Clock

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNIT: Final = timedelta(microseconds=1)
_PER_SECOND: Final = 1_000_000


class Stamps:
    """Gives one store's stamps out. For one thread at a time: the store sees to that."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._latest = 0

    def next(self, floor: int | None = None) -> int:
        """The stamp of something that happens now, later than `floor` and all stamps seen."""
        latest = self._latest if floor is None or floor < self._latest else floor
        now = micros(self._clock.now())
        self._latest = now if now > latest else latest + 1
        return self._latest

    def seen(self, *stamps: int | None) -> None:
        """Others gave these out."""
        for stamp in stamps:
            if stamp is not None and stamp > self._latest:
                self._latest = stamp

    def now(self) -> int:
        """How late it is; not earlier than anything seen."""
        return max(micros(self._clock.now()), self._latest)


def micros(instant: datetime) -> int:
    """An instant as a stamp."""
    return (instant - _EPOCH) // _UNIT


def seconds(stamp: int) -> float:
    """A stamp in seconds."""
    return stamp / _PER_SECOND


def written(stamp: int) -> str:
    """A stamp as the `at` of an event."""
    return timestamp(_EPOCH + stamp * _UNIT)
