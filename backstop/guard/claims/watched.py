"""A store, looked at for the length of one call: which fence it granted, and whether it may rule.

Where the guard only observes, what it would have done instead of a call is written down as
such: the call runs all the same. Where there is a mesh, the call is claimed only with what its
judge says must hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from backstop.core.effectgate import Precondition, StaleEpoch, Unverified
from backstop.core.events import OBSERVED, CallAnswered, EffectClaimed, Event, Header
from backstop.core.trust import Reason, State
from backstop.errors import BackstopError
from backstop.ports import Answer, Claim, Judge, LedgerStore, Settlement

_ROUNDS: Final = 3
"""How often a claim is judged anew whose verdict a trust break overtook."""


class Watched:
    """A `LedgerStore` for one call. `fence` is that of the claim it was granted, 0 if none was.

    `override` is what the store granted it for, if the store said so itself. A `judge` is asked
    about claims on `key`; all others only take keys out of reach.
    """

    __slots__ = ("_judge", "_observing", "_store", "fence", "key", "override")

    def __init__(
        self,
        store: LedgerStore,
        *,
        observing: bool = False,
        judge: Judge | None = None,
        key: str = "",
    ) -> None:
        self._store = store
        self._observing = observing
        self._judge = judge
        self.key = key
        self.fence = 0
        self.override: str | None = None

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

    def claim(
        self, intent: EffectClaimed, precondition: Precondition | None = None
    ) -> Claim | Answer:
        """Ask the judge, if there is one, and the store; remember the fence."""
        if self._judge is None or intent.key != self.key:
            answer = self._store.claim(intent, precondition)
        else:
            answer = self._judged(intent, self._judge)
        if isinstance(answer, Claim):
            self.fence, self.override = answer.fence, answer.override
        return answer

    def _judged(self, intent: EffectClaimed, judge: Judge) -> Claim | Answer:
        answer: Claim | Answer = StaleEpoch(judged=0, epoch=0)
        for _ in range(_ROUNDS):
            try:
                asked = judge.judge(intent)
            except BackstopError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it raises, nobody has looked
                return Unverified(
                    state=State.BLOCKED, reason=Reason.CHECK_ERROR, culprit=type(error).__name__
                )
            if isinstance(asked, Unverified):
                return asked
            answer = self._store.claim(intent, asked)
            if not isinstance(answer, StaleEpoch):
                break
        return answer

    def settle(self, settlement: Settlement, *, claim: Claim | None = None) -> None:
        """Settle."""
        self._store.settle(settlement, claim=claim)

    def read(self, run: str | None = None) -> Iterator[Event]:
        """The events of one run, or of all."""
        return self._store.read(run)
