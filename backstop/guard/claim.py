"""Claim, execute, settle: how a side effect goes out at most once.

The store decides who may run; nothing here looks first and acts later. An error that the
caller has not declared as "certainly no effect" leaves the effect in doubt, cancellation
included, and what is in doubt never runs again by itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import msgspec

from backstop.core.events import (
    BY_AGENT,
    NOTHING,
    CallAnswered,
    CallBlocked,
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectInDoubt,
    Failure,
)
from backstop.ports import (
    Answer,
    Claim,
    Conflict,
    Held,
    InDoubt,
    LedgerStore,
    Recorded,
    Refused,
)

NoEffectOn: TypeAlias = tuple[type[Exception], ...]
"""Exceptions of which the tool vouches that nothing happened."""

ASKS_FIRST: Final = "ConfirmationRequested"
"""Names the failure of a call that asked a person in place of acting."""


class Produced(msgspec.Struct, frozen=True, kw_only=True):
    """What a call gave, serialised: this, never the live object, is handed on.

    `actions` is what its body did to the flow of the run. `asked` is the question that it put
    to a person in place of acting: nothing has happened then.
    """

    result: msgspec.Raw = NOTHING
    state_delta: msgspec.Raw = NOTHING
    actions: msgspec.Raw = NOTHING
    asked: str | None = None


async def perform(
    store: LedgerStore,
    intent: EffectClaimed,
    call: Callable[[], Awaitable[Produced]],
    *,
    no_effect_on: NoEffectOn = (),
) -> Answer:
    """Run `call` if the store grants the claim on `intent`; say how the effect stands.

    A declared no-effect error is settled as failed, may be tried again, and is raised on;
    any other `Exception` is settled and answered as in doubt; a cancellation is settled as
    in doubt and raised on.
    """
    claim = _claim(store, intent)
    if not isinstance(claim, Claim):
        return claim
    try:
        produced = await call()
    except BaseException as error:  # noqa: BLE001 - settled first; what must be seen is raised on
        return _fell(store, intent, claim, error, no_effect_on)
    return _settled(store, intent, claim, produced)


def perform_now(
    store: LedgerStore,
    intent: EffectClaimed,
    call: Callable[[], Produced],
    *,
    no_effect_on: NoEffectOn = (),
) -> Answer:
    """`perform` for a call that does not wait."""
    claim = _claim(store, intent)
    if not isinstance(claim, Claim):
        return claim
    try:
        produced = call()
    except BaseException as error:  # noqa: BLE001 - settled first; what must be seen is raised on
        return _fell(store, intent, claim, error, no_effect_on)
    return _settled(store, intent, claim, produced)


def _claim(store: LedgerStore, intent: EffectClaimed) -> Claim | Answer:
    """The claim, or the answer in its place, which is then on record."""
    answer = store.claim(intent)
    if not isinstance(answer, Claim):
        store.append(
            CallAnswered(
                run=intent.run,
                at="",
                v=intent.v,
                step=intent.step,
                tool=intent.tool,
                key=intent.key,
                how=how(answer),
                attempt=intent.attempt,
                agent=intent.agent,
                call=intent.call,
                fingerprint=intent.fingerprint,
            )
        )
    return answer


def how(answer: Answer) -> str:
    """The word for `answer` in a `CallAnswered` row; a failure is as recorded as a success."""
    match answer:
        case Recorded() | Refused():
            return "recorded"
        case Held():
            return "held"
        case InDoubt():
            return "in_doubt"
        case Conflict():
            return "conflict"


def _fell(
    store: LedgerStore,
    intent: EffectClaimed,
    claim: Claim,
    error: BaseException,
    no_effect_on: NoEffectOn,
) -> Answer:
    """Settle a call that raised; hand the error on where the caller has to see it."""
    if isinstance(error, no_effect_on):
        failure = Failure(type=type(error).__name__, message=str(error))
        store.settle(
            EffectFailed(
                run=claim.run,
                at="",
                v=intent.v,
                key=claim.key,
                error=failure,
                fence=claim.fence,
                final=False,
            ),
            claim=claim,
        )
        raise error
    reason = f"{type(error).__name__}: {error}".removesuffix(": ")
    store.settle(
        EffectInDoubt(
            run=claim.run, at="", v=intent.v, key=claim.key, reason=reason, fence=claim.fence
        ),
        claim=claim,
    )
    if isinstance(error, Exception):
        return InDoubt(reason=reason)
    raise error


def _settled(
    store: LedgerStore, intent: EffectClaimed, claim: Claim, produced: Produced
) -> Recorded:
    given = Recorded(
        result=produced.result, state_delta=produced.state_delta, actions=produced.actions
    )
    if produced.asked is None:
        store.settle(
            EffectCommitted(
                run=claim.run,
                at="",
                v=intent.v,
                key=claim.key,
                fence=claim.fence,
                result=given.result,
                state_delta=given.state_delta,
                actions=given.actions,
            ),
            claim=claim,
        )
    else:
        _ask_first(store, intent, claim, given, produced.asked)
    return given


def _ask_first(
    store: LedgerStore, intent: EffectClaimed, claim: Claim, given: Recorded, question: str
) -> None:
    """The tool waits for a person: the call is free to be made once there is an answer."""
    store.settle(
        EffectFailed(
            run=claim.run,
            at="",
            v=intent.v,
            key=claim.key,
            error=Failure(type=ASKS_FIRST, message=question),
            fence=claim.fence,
            final=False,
            result=given.result,
            state_delta=given.state_delta,
            actions=given.actions,
        ),
        claim=claim,
    )
    store.append(
        CallBlocked(
            run=intent.run,
            at="",
            v=intent.v,
            step=intent.step,
            tool=intent.tool,
            key=intent.key,
            by=BY_AGENT,
            attempt=intent.attempt,
            agent=intent.agent,
            call=intent.call,
            decl=intent.decl,
            args=intent.args,
            fingerprint=intent.fingerprint,
            reason=question,
        )
    )
