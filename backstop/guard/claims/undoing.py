"""Runs the undo that a tool's decoration declares: once, as a claimed effect of its own."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from backstop.core.canon import NotCanonical, parse
from backstop.core.effectgate import Precondition
from backstop.core.erasure import is_erased
from backstop.core.events import (
    NOTHING,
    CallAnswered,
    EffectClaimed,
    EffectCommitted,
    EffectResolved,
    Event,
    Header,
)
from backstop.core.redaction import is_token
from backstop.errors import BackstopError
from backstop.guard.calls import produced
from backstop.guard.claims.claim import perform
from backstop.guard.claims.desk import NotKept, Produced
from backstop.guard.effect import Declared, declarations, passing
from backstop.meshports import OutEffect
from backstop.ports import Answer, Claim, LedgerStore, Settlement, Standing

RESULT: Final = "result"
"""The parameter in which an undo is handed what the effect gave."""


class Undos:
    """Takes effects back by what `@effect(undo=...)` names.

    An undo is called with the effect's arguments that it has parameters for, and in `RESULT` with
    what the effect gave. Whatever it raises, nobody knows what it did: it is in doubt then.
    """

    def __init__(
        self, store: LedgerStore, *, known: Callable[[], Iterable[Declared]] = declarations
    ) -> None:
        self._store = store
        self._known = known

    async def undo(self, effect: OutEffect, intent: EffectClaimed, asked: Precondition) -> Answer:
        """Run the effect's undo once, as `intent`.

        Raises `BackstopError` (``undo-missing``), and what the store raises.
        """
        function = self._function(effect)
        given = _arguments(function, effect.standing)

        async def call() -> Produced:
            with passing(function):
                if inspect.iscoroutinefunction(function):
                    result = await function(**given)
                else:
                    result = await asyncio.to_thread(function, **given)
            try:
                return produced(result, {}, tool=intent.tool)
            except NotKept:
                return Produced()  # that it was taken back counts, not what that gave

        return await perform(_Asking(self._store, asked), intent, call)

    def _function(self, effect: OutEffect) -> Callable[..., Any]:
        wanted = effect.gated.undo
        found = next((one.undo for one in self._known() if one.undo_name == wanted), None)
        if found is None or not wanted:
            raise _missing(f"this process does not have its undo {wanted or '(none is declared)'}")
        return found


class _Asking:
    """A store that is asked with one precondition, and told of no answer: no agent asked."""

    def __init__(self, store: LedgerStore, asked: Precondition) -> None:
        self._store = store
        self._asked = asked

    @property
    def header(self) -> Header:
        return self._store.header

    @property
    def blocking(self) -> bool:
        return self._store.blocking

    def append(self, event: Event) -> bool:
        return isinstance(event, CallAnswered) or self._store.append(event)

    def claim(
        self, intent: EffectClaimed, precondition: Precondition | None = None
    ) -> Claim | Answer:
        return self._store.claim(intent, precondition or self._asked)

    def settle(self, settlement: Settlement, *, claim: Claim | None = None) -> None:
        self._store.settle(settlement, claim=claim)

    def read(self, run: str | None = None) -> Iterator[Event]:
        return self._store.read(run)


def _arguments(function: Callable[..., Any], standing: Standing) -> dict[str, Any]:
    """What the undo is called with. Raises `BackstopError` (``undo-missing``)."""
    claimed = standing.claimed
    if is_erased(claimed.args):
        raise _missing("the arguments of the effect were erased")
    settled = standing.settled
    gave = settled.result if isinstance(settled, EffectCommitted | EffectResolved) else NOTHING
    try:
        known = parse(bytes(claimed.args))
        given = {**known, RESULT: parse(bytes(gave))} if isinstance(known, dict) else {}
    except NotCanonical as error:
        raise _missing(f"what is on record of the effect cannot be read ({error.slug})") from error
    parameters = inspect.signature(function).parameters.values()
    if not any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters):
        names = {one.name for one in parameters}
        given = {name: value for name, value in given.items() if name in names}
    hidden = next((name for name, value in given.items() if is_token(value)), None)
    if hidden is not None:
        raise _missing(f"its argument {hidden!r} is redacted on record")
    try:
        inspect.signature(function).bind(**given)
    except TypeError as error:
        raise _missing(f"its undo cannot be called with what is on record: {error}") from error
    return given


def _missing(why: str) -> BackstopError:
    return BackstopError(f"it cannot be taken back by itself: {why}", slug="undo-missing")
