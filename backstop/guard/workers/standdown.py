"""Who lost one effect of a step starts no other of it.

An agent that is told "held" may go on all the same, to the next call of the same step: it
would act on what is not done yet, ahead of the attempt that is doing it (W05).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from backstop.core.effectgate import Precondition
from backstop.core.events import CallAnswered, EffectClaimed, EffectInDoubt, Event, Header
from backstop.guard.journal import Attempt
from backstop.ports import Answer, Claim, Held, Records, Settlement, Standing

_Place: TypeAlias = tuple[str, str, int]
"""Run, step and number of an attempt."""

_LOSSES: Final = frozenset({"held", "in_doubt", "withheld"})


class StandDown:
    """A store as the attempts of one process see it: an attempt with a loss is granted no more.

    The effect that was lost may still be asked for: its tool may know what became of it.
    """

    def __init__(self, store: Records) -> None:
        self._store = store
        self._lost: dict[_Place, str] = {}
        self._granted: dict[tuple[str, str], _Place] = {}

    @property
    def header(self) -> Header:
        """That of the store."""
        return self._store.header

    @property
    def blocking(self) -> bool:
        """As the store does."""
        return self._store.blocking

    def append(self, event: Event) -> bool:
        """Add a fact; an answer in place of an effect that is not decided is a loss."""
        if isinstance(event, CallAnswered) and event.how in _LOSSES:
            self._lost.setdefault((event.run, event.step, event.attempt), event.key)
        return self._store.append(event)

    def claim(
        self, intent: EffectClaimed, precondition: Precondition | None = None
    ) -> Claim | Answer:
        """Ask the store, unless the attempt has lost another effect."""
        place = intent.run, intent.step, intent.attempt
        lost = self._lost.get(place)
        if lost not in {None, intent.key}:
            return Held(owner=f"whoever is at {lost[:12] if lost else ''}…, which comes first")
        answer = self._store.claim(intent, precondition)
        if isinstance(answer, Claim):
            self._granted[intent.run, intent.key] = place
        return answer

    def settle(self, settlement: Settlement, *, claim: Claim | None = None) -> None:
        """Settle; an effect that is left in doubt is lost."""
        place = self._granted.pop((settlement.run, settlement.key), None)
        if place is not None and isinstance(settlement, EffectInDoubt):
            self._lost.setdefault(place, settlement.key)
        self._store.settle(settlement, claim=claim)

    def read(self, run: str | None = None) -> Iterator[Event]:
        """The events of one run, or of all."""
        return self._store.read(run)

    def standings(self, key: str | None = None) -> Iterator[Standing]:
        """What is not decided, or the effect of `key`."""
        return self._store.standings(key)

    def over(self, attempt: Attempt) -> None:
        """Forget an attempt that has ended."""
        self._lost.pop((attempt.run, attempt.step, attempt.number), None)
