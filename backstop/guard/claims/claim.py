"""Claim, execute, settle: how a side effect goes out at most once.

The store decides who may run; nothing here looks first and acts later. An error that the
caller has not declared as "certainly no effect" leaves the effect in doubt, cancellation
included. What is in doubt never runs again by itself, unless the tool's capability makes that
safe (`backstop.guard.claims.capability`).
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from backstop.core.events import EffectClaimed
from backstop.errors import BackstopError
from backstop.guard.claims.capability import (
    Capability,
    Found,
    Unknown,
    claimed_with,
    probing,
)
from backstop.guard.claims.desk import Desk, NoEffectOn, Produced
from backstop.guard.claims.offloop import uncut, waited
from backstop.ports import Answer, Claim, InDoubt, LedgerStore

_log: Final = logging.getLogger("backstop")

_ROUNDS: Final = 3
"""How often a doubt that others resolve at the same time is looked at anew."""

_NO_ARGUMENTS: Final[Mapping[str, Any]] = MappingProxyType({})


async def perform(
    store: LedgerStore,
    intent: EffectClaimed,
    call: Callable[[], Awaitable[Produced]],
    *,
    no_effect_on: NoEffectOn = (),
    capability: Capability | None = None,
    arguments: Mapping[str, Any] = _NO_ARGUMENTS,
    bars: Sequence[EffectClaimed] = (),
) -> Answer:
    """Run `call` if the store grants the claim on `intent`; say how the effect stands.

    A declared no-effect error is settled as failed, may be tried again, and is raised on;
    any other `Exception` is settled and answered as in doubt; a cancellation is settled as
    in doubt and raised on. What is in doubt is resolved as far as the tool's `capability`
    allows; a probe is handed `arguments`. `bars` are claims on the keys that other rules give
    the call: nobody may run it under them meanwhile.
    """
    desk = Desk(
        store=store,
        intent=claimed_with(intent, capability),
        no_effect_on=no_effect_on,
        bars=bars,
    )
    claim = await _claimed(desk, capability, arguments)
    if not isinstance(claim, Claim):
        return await waited(store, lambda: desk.answered(claim))
    try:
        produced = await call()
    except BaseException as error:  # noqa: BLE001 - settled first; what must be seen is raised on
        fallen = error  # the name of an except clause is gone after it
        return await waited(store, lambda: desk.fell(claim, fallen))
    return await waited(store, lambda: desk.settled(claim, produced))


def perform_now(
    store: LedgerStore,
    intent: EffectClaimed,
    call: Callable[[], Produced],
    *,
    no_effect_on: NoEffectOn = (),
    capability: Capability | None = None,
    arguments: Mapping[str, Any] = _NO_ARGUMENTS,
    bars: Sequence[EffectClaimed] = (),
) -> Answer:
    """`perform` for a call that does not wait."""
    desk = Desk(
        store=store,
        intent=claimed_with(intent, capability),
        no_effect_on=no_effect_on,
        bars=bars,
    )
    claim = _claimed_now(desk, capability, arguments)
    if not isinstance(claim, Claim):
        return desk.answered(claim)
    try:
        produced = call()
    except BaseException as error:  # noqa: BLE001 - settled first; what must be seen is raised on
        return desk.fell(claim, error)
    return desk.settled(claim, produced)


async def _claimed(
    desk: Desk, capability: Capability | None, arguments: Mapping[str, Any]
) -> Claim | Answer:
    if not desk.store.blocking and (capability is None or probing(capability) is None):
        return _claimed_now(desk, capability, arguments)  # nothing in it waits
    answer: Claim | Answer = await _claim(desk)
    for _ in range(_ROUNDS):
        if capability is None or not isinstance(answer, InDoubt):
            break
        found: Found = Unknown()
        if (ask := probing(capability)) is not None:
            found = await _probed(ask, desk.intent.key, arguments)
        ruled = await waited(desk.store, partial(desk.resolved, capability, answer, found))
        if ruled is not None:
            return ruled
        answer = await _claim(desk)
    return answer


def _claimed_now(
    desk: Desk, capability: Capability | None, arguments: Mapping[str, Any]
) -> Claim | Answer:
    answer: Claim | Answer = desk.claim()
    for _ in range(_ROUNDS):
        if capability is None or not isinstance(answer, InDoubt):
            break
        found: Found = Unknown()
        if (ask := probing(capability)) is not None:
            found = _probed_now(ask, desk.intent.key, arguments)
        if (ruled := desk.resolved(capability, answer, found)) is not None:
            return ruled
        answer = desk.claim()
    return answer


async def _probed(ask: Callable[..., Any], key: str, arguments: Mapping[str, Any]) -> Found:
    """What the lookup says; one that fails, or says anything else, does not know."""
    try:
        if inspect.iscoroutinefunction(ask):
            found = await ask(key, arguments)
        else:
            found = await asyncio.to_thread(ask, key, arguments)
            if inspect.isawaitable(found):
                found = await found
    except Exception as error:  # noqa: BLE001 - a lookup that fails knows nothing
        return _knows_nothing(key, f"it raised {type(error).__name__}: {error}")
    return _told(key, found)


def _probed_now(ask: Callable[..., Any], key: str, arguments: Mapping[str, Any]) -> Found:
    try:
        found = ask(key, arguments)
    except Exception as error:  # noqa: BLE001 - a lookup that fails knows nothing
        return _knows_nothing(key, f"it raised {type(error).__name__}: {error}")
    if inspect.iscoroutine(found):
        found.close()  # nobody can wait here: what is in doubt stays so
    return _told(key, found)


def _told(key: str, found: object) -> Found:
    if isinstance(found, Found):
        return found
    return _knows_nothing(
        key, f"it gave a {type(found).__name__}, not Happened, DidNotHappen or Unknown"
    )


def _knows_nothing(key: str, why: str) -> Unknown:
    """What a broken lookup comes to; its author would look for the reason in vain."""
    _log.warning("backstop learned nothing from the probe of effect %s: %s", key[:12], why)
    return Unknown()


async def _claim(desk: Desk) -> Claim | Answer:
    """Claim; a claim that was granted to a caller who is cancelled meanwhile is given back."""
    answer, cut = await uncut(desk.store, desk.claim)
    if cut is None:
        return answer
    if isinstance(answer, Claim):
        # If it cannot be given back, it is in doubt as soon as its owner is gone.
        with suppress(BackstopError):
            await uncut(desk.store, lambda: desk.unstarted(answer))
    raise cut
