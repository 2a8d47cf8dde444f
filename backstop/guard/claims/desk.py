"""What the guard writes of one call: its claim, what became of it, or what was done instead."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, TypeAlias

import msgspec

from backstop.core.effectgate import Frozen, LeaseLost, PastHorizon, StaleEpoch, Unverified
from backstop.core.events import (
    BY_AGENT,
    NOTHING,
    RECORDED,
    WITHHELD,
    CallAnswered,
    CallBlocked,
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectFenced,
    EffectInDoubt,
    EffectResolved,
    Failure,
)
from backstop.errors import BackstopError, StaleClaim
from backstop.guard.claims.capability import BY_KEYED, Capability, Found, resolution
from backstop.ports import (
    Answer,
    Claim,
    Conflict,
    Held,
    InDoubt,
    LedgerStore,
    Recorded,
    Refused,
    Settlement,
)

NoEffectOn: TypeAlias = tuple[type[Exception], ...]
"""Exceptions of which the tool vouches that nothing happened."""

MOVED: Final = "KeptUnderAnotherKey"
"""Names the failure of a key that was barred: the message is the key that holds its effect."""

TURNED_AWAY: Final = "CallTurnedAway"
"""Names the failure of a call whose tool never began: what it was told stands beside it."""

ASKS_FIRST: Final = "ConfirmationRequested"
"""Names the failure of a call that asked a person in place of acting."""

_OVERTAKEN: Final = frozenset({"illegal-move", StaleClaim.slug})
"""How a store says that somebody else decided meanwhile: what they said stands."""


class NotKept(BackstopError):
    """A call was made, and what it gave cannot be put on record: no vouching is about that."""

    slug = "result-not-canonical"


class Produced(msgspec.Struct, frozen=True, kw_only=True):
    """What a call gave, serialised: this, never the live object, is handed on.

    `actions` is what its body did to the flow of the run. `asked` is the question that it put
    to a person in place of acting; `turned_away` says that its body never began, since the
    framework took no liking to its arguments: nothing has happened then.
    """

    result: msgspec.Raw = NOTHING
    state_delta: msgspec.Raw = NOTHING
    actions: msgspec.Raw = NOTHING
    asked: str | None = None
    turned_away: bool = False


_REOPENED_AT_FIRST: Final = 2
"""The fence of the first reopening of all: no claim up to it follows one."""

_ELSEWHERE: Final = Held(owner="a version with another key rule for this tool")


class Desk(msgspec.Struct, frozen=True, kw_only=True):
    """What is written of one call: its claim, and what became of it.

    `bars` are claims on the keys that other rules give the call: nobody may run it under them.
    """

    store: LedgerStore
    intent: EffectClaimed
    no_effect_on: NoEffectOn
    bars: Sequence[EffectClaimed] = ()

    def claim(self) -> Claim | Answer:
        """Ask the store; a claim that another version's holds stands against is given back."""
        answer = self.store.claim(self.intent)
        match answer:
            case Refused(error=Failure(type=kind)) if kind == MOVED:
                return _ELSEWHERE
            case Claim() if not self._all_barred(answer):
                self.unstarted(answer)
                self._blocked(_ELSEWHERE.owner)
                return _ELSEWHERE
            case _:
                return answer

    def _all_barred(self, claim: Claim) -> bool:
        try:
            return all(self._barred(bar, claim) for bar in self.bars)
        except BackstopError:
            # Nobody will run it under this claim: left as it is, it would hold all others.
            with suppress(BackstopError):
                self.unstarted(claim)
            raise

    def _barred(self, bar: EffectClaimed, claim: Claim) -> bool:
        """Take a key out of everybody's reach; False if somebody got there first."""
        other = self.store.claim(bar)
        if isinstance(other, Claim) and not self._is_sure(other):
            self._says(self._doubt(other, "asked for under another key rule"), other)
            return False
        if isinstance(other, Claim):
            moved = Failure(type=MOVED, message=claim.key)
            self._failed(other, moved, final=True)
            return True
        if isinstance(other, Refused):  # barred already, for the key that is claimed now
            return (other.error.type, other.error.message) == (MOVED, claim.key)
        # Taken by what is another effect today: whoever asks for this one there is refused.
        return isinstance(other, Conflict)

    def answered(self, answer: Answer) -> Answer:
        """Put on record what the guard did in place of the call."""
        intent = self.intent
        self.store.append(
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
                trace=intent.trace,
                span=intent.span,
            )
        )
        return answer

    def resolved(self, capability: Capability, doubt: InDoubt, found: Found) -> Answer | None:
        """Resolve a doubt; the answer to give, or None if the claim is to be tried again."""
        said = resolution(capability, self.intent, doubt, found)
        if said is None:
            return doubt
        if isinstance(said, Held):
            return said
        self._says(said)
        return None

    def unstarted(self, claim: Claim) -> None:
        """Give back a claim whose call never began."""
        self._failed(claim, Failure(type="CancelledError", message="before the call began"))

    def fell(self, claim: Claim, error: BaseException) -> Answer:
        """Settle a call that raised; hand the error on where the caller has to see it."""
        if isinstance(error, self.no_effect_on) and not isinstance(error, NotKept):
            self._failed(claim, Failure(type=type(error).__name__, message=str(error)))
            raise error
        reason = f"{type(error).__name__}: {error}".removesuffix(": ")
        running = isinstance(error, asyncio.CancelledError)
        doubt = self._doubt(claim, reason, running=running)
        if isinstance(error, Exception):
            self._says(doubt, claim)
            return InDoubt(reason=reason, fence=claim.fence)
        # A cancellation goes on whatever the store says: without an outcome its claim is in
        # doubt as soon as its owner is gone.
        with suppress(BackstopError):
            self._says(doubt, claim)
        raise error

    def settled(self, claim: Claim, produced: Produced) -> Answer:
        """Put on record what the call gave; that, not the live object, is handed on."""
        given = Recorded(
            result=produced.result, state_delta=produced.state_delta, actions=produced.actions
        )
        if produced.asked is not None:
            return self._asks_first(claim, given, produced.asked)
        if produced.turned_away:
            return self._turned_away(claim, given)
        committed = EffectCommitted(
            run=claim.run,
            at="",
            v=self.intent.v,
            key=claim.key,
            fence=claim.fence,
            result=given.result,
            state_delta=given.state_delta,
            actions=given.actions,
            trace=self.intent.trace,
            span=self.intent.span,
        )
        overtaken = self._says(committed, claim)
        if overtaken is None:
            return given
        if overtaken.slug == StaleClaim.slug:
            return self._fenced(claim, given, overtaken)
        # Somebody who had looked said meanwhile that it happened. So it did, once: the answer
        # is what is on record, for this call as for each that follows.
        answer = self.claim()
        assert not isinstance(answer, Claim), "committed is an end"  # noqa: S101 - for the type checker
        return answer

    def _doubt(self, claim: Claim, reason: str, *, running: bool = False) -> EffectInDoubt:
        return EffectInDoubt(
            run=claim.run,
            at="",
            v=self.intent.v,
            key=claim.key,
            reason=reason,
            fence=claim.fence,
            running=running,
            trace=self.intent.trace,
            span=self.intent.span,
        )

    def _is_sure(self, claim: Claim) -> bool:
        """Whether what became of every earlier claim is known: none may have happened.

        What a provider's memory reopened may have, until somebody decides it otherwise. Fences
        that the run does not explain are another run's, of which nothing is known here.
        """
        if claim.fence <= _REOPENED_AT_FIRST:
            return True
        sure, explained = True, set[int]()
        for event in self.store.read(claim.run):
            match event:
                case EffectResolved(key=claim.key, to=to, by=by, fence=fence):
                    sure = by != BY_KEYED or to != "reopened"
                    explained.add(fence)
                case EffectClaimed(key=claim.key, fence=fence):
                    explained.add(fence)
                case EffectCommitted(key=claim.key):
                    sure = True
                case _:
                    pass
        return sure and explained >= set(range(1, claim.fence + 1))

    def _says(self, settlement: Settlement, claim: Claim | None = None) -> BackstopError | None:
        """Settle; the store's refusal if somebody else decided meanwhile."""
        try:
            self.store.settle(settlement, claim=claim)
        except BackstopError as error:
            if error.slug not in _OVERTAKEN:
                raise
            return error
        return None

    def _fenced(self, claim: Claim, given: Recorded, stale: BackstopError) -> InDoubt:
        """The effect happened under a claim that was superseded: never hide a duplicate."""
        self.store.append(
            EffectFenced(
                run=claim.run,
                at="",
                v=self.intent.v,
                key=claim.key,
                fence=claim.fence,
                result=given.result,
                trace=self.intent.trace,
                span=self.intent.span,
            )
        )
        return InDoubt(reason=f"{stale}; this call did happen, so it may be out twice")

    def _failed(
        self,
        claim: Claim,
        failure: Failure,
        given: Recorded | None = None,
        *,
        final: bool = False,
    ) -> BackstopError | None:
        """The effect certainly did not happen, and may be tried again unless that is `final`."""
        if self.intent.capability == BY_KEYED and not final and not self._is_sure(claim):
            # This call did nothing; one before it may have, which only its provider knows.
            return self._says(self._doubt(claim, f"{failure.type} after an earlier doubt"), claim)
        told = given or Recorded()
        return self._says(
            EffectFailed(
                run=claim.run,
                at="",
                v=self.intent.v,
                key=claim.key,
                error=failure,
                fence=claim.fence,
                final=final,
                result=told.result,
                state_delta=told.state_delta,
                actions=told.actions,
                trace=self.intent.trace,
                span=self.intent.span,
            ),
            claim,
        )

    def _turned_away(self, claim: Claim, given: Recorded) -> Answer:
        """The tool never began: the call is free to be made with other arguments."""
        never = Failure(type=TURNED_AWAY, message="its function was not called")
        return self._unmade(claim, given, never, late="this call was turned away and did nothing")

    def _asks_first(self, claim: Claim, given: Recorded, question: str) -> Answer:
        """The tool waits for a person: the call is free to be made once there is an answer."""
        asks = Failure(type=ASKS_FIRST, message=question)
        return self._unmade(claim, given, asks, late="this call asked a person and did nothing")

    def _unmade(self, claim: Claim, given: Recorded, failure: Failure, *, late: str) -> Answer:
        """Nothing was done, and nobody has to see to it: the run may go on without the call."""
        overtaken = self._failed(claim, failure, given)
        if overtaken is not None:
            return InDoubt(reason=f"{overtaken}; {late}")
        self._blocked(failure.message)
        return given

    def _blocked(self, reason: str) -> None:
        """Say that the call was kept from its tool, and vouches for no effect."""
        intent = self.intent
        self.store.append(
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
                reason=reason,
                trace=intent.trace,
                span=intent.span,
            )
        )


def how(answer: Answer) -> str:
    """The word for `answer` in a `CallAnswered` row; a failure is as recorded as a success."""
    match answer:
        case Recorded() | Refused():
            return RECORDED
        case Held():
            return "held"
        case InDoubt():
            return "in_doubt"
        case Conflict():
            return "conflict"
        case Frozen() | StaleEpoch() | PastHorizon() | Unverified() | LeaseLost():
            return WITHHELD
