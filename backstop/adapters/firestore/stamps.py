"""The order of a ledger that many machines write: hybrid logical time, in microseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Final

from backstop.ports import Clock

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TICK: Final = timedelta(microseconds=1)


def micros(instant: datetime) -> int:
    """Microseconds since 1970."""
    return (instant - _EPOCH) // _TICK


def instant_of(stamp: int) -> datetime:
    """The instant that a stamp stands for, in UTC."""
    return _EPOCH + stamp * _TICK


class Stamps:
    """Gives each event a stamp above all that this process has given or seen.

    What is read is seen: so stamps never fall along cause and effect, though every machine has
    a clock of its own, and though clocks are put back.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0
        self._lock = Lock()

    def next(self) -> int:
        """A new stamp; the clock is looked at once."""
        now = micros(self._clock.now())
        with self._lock:
            self._last = max(now, self._last + 1)
            return self._last

    def saw(self, stamp: int) -> None:
        """Remember a stamp of somebody else's."""
        with self._lock:
            self._last = max(self._last, stamp)
