"""From a call to a ledger row: its key, what is claimed of it, and what is written of it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Final

import msgspec

from backstop.adk.flow import CONFIRM
from backstop.core.canon import NotCanonical, canonical
from backstop.core.declaration import Declaration, Namespace
from backstop.core.effectgate import Frozen, LeaseLost, PastHorizon, StaleEpoch, Unverified
from backstop.core.events import CallBlocked, EffectClaimed, Failure, ToolRead
from backstop.core.identity import Identified, identify, identify_read
from backstop.core.redaction import NO_KEY, NoRedactionKey, Redaction
from backstop.errors import IdentityError
from backstop.guard.claims.desk import NotKept, Produced
from backstop.guard.claims.safety import NO_SAFETY, Safety
from backstop.guard.journal import Attempt, Journal, raw
from backstop.ports import Answer, Held, InDoubt


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A call with its final arguments, as canonical JSON, and its place in the run."""

    attempt: Attempt
    tool: str
    declaration: Declaration
    named: Identified
    args: msgspec.Raw
    agent: str = ""
    id: str = ""
    trace: str = ""
    span: str = ""
    within: str = ""


_WITHIN: Final[ContextVar[str]] = ContextVar("backstop_within", default="")


def within() -> str:
    """The key of the call in whose body this runs; empty outside of any."""
    return _WITHIN.get()


class inside:  # noqa: N801 - reads as the `with` block that it makes; a class, as it is on the path of every call
    """What is asked for in this block is asked by the body of `call`."""

    __slots__ = ("_key", "_token")

    def __init__(self, call: Call) -> None:
        self._key = call.named.key

    def __enter__(self) -> None:
        self._token = _WITHIN.set(self._key)

    def __exit__(self, *_: object) -> None:
        _WITHIN.reset(self._token)


_FIXED: Final = frozenset({str, int, float, bool, type(None)})


def apart(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, in a copy that nobody else can change."""
    if _FIXED.issuperset(map(type, arguments.values())):
        return dict(arguments)
    return copy.deepcopy(dict(arguments))


def name_call(
    tool: str, arguments: Mapping[str, Any], declaration: Declaration, *, attempt: Attempt,
    namespace: Namespace, redaction: Redaction = NO_KEY, **about: str,
) -> Call | str:  # fmt: skip
    """The call with its key; or why it cannot have one, in words for the agent.

    What is declared `redact` is a token from here on, in the key as in the row.
    """
    try:
        arguments = redaction.arguments(arguments, declaration)
        named = (identify if declaration.effect else identify_read)(
            arguments, declaration, namespace=namespace, run=attempt.run, step=attempt.step
        )
    except (NotCanonical, IdentityError) as error:
        return str(error)
    except NoRedactionKey as error:
        return f"{error} [{error.slug}]"
    return Call(
        attempt=attempt,
        tool=tool,
        declaration=declaration,
        named=named,
        args=msgspec.Raw(named.passed.encode()),
        **about,
    )


def intent_of(call: Call, journal: Journal, safety: Safety = NO_SAFETY) -> EffectClaimed:
    """What is to be claimed. The owner is a token of this one attempt."""
    attempt = call.attempt
    return EffectClaimed(
        run=attempt.run,
        at="",
        v=journal.version,
        step=attempt.step,
        tool=call.tool,
        key=call.named.key,
        fingerprint=call.named.fingerprint,
        attempt=attempt.number,
        agent=call.agent,
        call=call.id,
        decl=call.declaration.digest,
        args=call.args,
        owner=f"{journal.owner}/{attempt.step}.{attempt.number}",
        lease_s=safety.lease_s,
        trace=call.trace,
        span=call.span,
        override=None if call.named.override is None else canonical(call.named.override),
        within=call.within,
    )


def read_of(
    call: Call, journal: Journal, produced: Produced, error: Exception | None = None
) -> ToolRead:
    """The row of a call that changes nothing outside."""
    return ToolRead(
        run=call.attempt.run,
        at="",
        v=journal.version,
        step=call.attempt.step,
        tool=call.tool,
        key=call.named.key,
        attempt=call.attempt.number,
        agent=call.agent,
        call=call.id,
        decl=call.declaration.digest,
        args=call.args,
        result=produced.result,
        error=None if error is None else Failure(type=type(error).__name__, message=str(error)),
        state_delta=produced.state_delta,
        actions=produced.actions,
        within=call.within,
        trace=call.trace,
        span=call.span,
    )


def blocked(call: Call, journal: Journal, *, by: str) -> CallBlocked:
    """The row of a call that `by` kept from its tool."""
    return CallBlocked(
        run=call.attempt.run,
        at="",
        v=journal.version,
        step=call.attempt.step,
        tool=call.tool,
        key=call.named.key,
        by=by,
        attempt=call.attempt.number,
        agent=call.agent,
        call=call.id,
        decl=call.declaration.digest,
        args=call.args,
        fingerprint=call.named.fingerprint,
        trace=call.trace,
        span=call.span,
    )


def produced(
    result: object,
    state_delta: Mapping[str, Any],
    *,
    tool: str,
    actions: Mapping[str, Any] | None = None,
) -> Produced:
    """What a call gave, serialised; `actions` is what its body did to the flow of the run.

    Raises `NotKept` (``result-not-canonical``): for an effect that is in doubt then,
    since what it did cannot be told a second time.
    """
    try:
        done = dict(actions or {})
        asked = done.get(CONFIRM)
        return Produced(
            result=raw(result),
            state_delta=raw(dict(state_delta) or None),
            actions=raw(done or None),
            asked=None if asked is None else str(asked["hint"] or ""),
        )
    except NotCanonical as error:
        raise NotKept(
            f"{tool} gave something that cannot be kept: {error}; return JSON values"
        ) from error


def undecided(call: Call) -> str:
    """Why the cursor may not pass a call that has no outcome."""
    return f"{call.tool} {call.named.key[:12]}… is not decided"


def unfinished(answer: Answer, call: Call) -> str | None:
    """Why the cursor may not pass this call; None if it is decided."""
    match answer:
        case Held() | InDoubt():
            return undecided(call)
        case Frozen() | StaleEpoch() | PastHorizon() | Unverified() | LeaseLost():
            return undecided(call)
        case _:
            return None
