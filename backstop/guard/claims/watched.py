"""A store, looked at for the length of one call: which fence it granted, and whether it may rule.

Where the guard only observes, what it would have done instead of a call is written down as
such: the call runs all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from backstop.core.events import CallAnswered, EffectClaimed, Event, Header
from backstop.ports import Answer, Claim, LedgerStore, Settlement

OBSERVED: Final = "observed_"
"""Begins the word for what a guard that only observes would have done."""


class Watched:
    """A `LedgerStore` for one call. `fence` is that of the claim it was granted, 0 if none was."""

    __slots__ = ("_observing", "_store", "fence")

    def __init__(self, store: LedgerStore, *, observing: bool = False) -> None:
        self._store = store
        self._observing = observing
        self.fence = 0

    @property
    def header(self) -> Header:
        """That of the store."""
        return self._store.header

    @property
    def blocking(self) -> bool:
        """As the store does."""
        return self._store.blocking

    def append(self, event: Event) -> bool:
        """Add a fact; where the guard only observes, an answer is one that was not given."""
        if self._observing and isinstance(event, CallAnswered):
            event = msgspec.structs.replace(event, how=f"{OBSERVED}{event.how}")
        return self._store.append(event)

    def claim(self, intent: EffectClaimed) -> Claim | Answer:
        """Ask the store, and remember the fence."""
        answer = self._store.claim(intent)
        if isinstance(answer, Claim):
            self.fence = answer.fence
        return answer

    def settle(self, settlement: Settlement, *, claim: Claim | None = None) -> None:
        """Settle."""
        self._store.settle(settlement, claim=claim)

    def read(self, run: str | None = None) -> Iterator[Event]:
        """The events of one run, or of all."""
        return self._store.read(run)
