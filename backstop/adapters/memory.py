"""A ledger store in memory: the reference for every other store, and good for one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from threading import RLock
from typing import Final

import msgspec

from backstop.core.events import (
    NOTHING,
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectInDoubt,
    EffectResolved,
    Event,
    Failure,
)
from backstop.core.lifecycle import UNBORN, Illegal, Life, Phase, advance, move_of
from backstop.errors import BackstopError, StaleClaim
from backstop.ports import (
    Answer,
    Claim,
    Clock,
    Conflict,
    Held,
    InDoubt,
    Recorded,
    Refused,
    Settlement,
)

_UNKNOWN_FAILURE: Final = Failure(type="Unknown")


class _Record(msgspec.Struct):
    """The one record of a key (I1)."""

    claimed: EffectClaimed
    life: Life = UNBORN
    result: msgspec.Raw = NOTHING
    state_delta: msgspec.Raw = NOTHING
    actions: msgspec.Raw = NOTHING
    error: Failure = _UNKNOWN_FAILURE
    reason: str = ""


def timestamp(instant: datetime) -> str:
    """RFC 3339 text in UTC, with milliseconds and a trailing ``Z``."""
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class MemoryStore:
    """A `LedgerStore` that forgets at the end of the process.

    `is_alive` tells whether the owner of a claim still runs; a dead owner's claim becomes in
    doubt at the next one. By default owners live as long as the store.
    """

    def __init__(self, *, clock: Clock, is_alive: Callable[[str], bool] = lambda _: True) -> None:
        self._clock = clock
        self._is_alive = is_alive
        self._events: list[Event] = []
        self._records: dict[str, _Record] = {}
        self._lock = RLock()

    def append(self, event: Event) -> None:
        """Add a fact that is not about an effect's record."""
        if move_of(event) is not None:
            raise BackstopError(
                f"{type(event).__name__} cannot be appended: claim or settle the effect",
                slug="illegal-move",
            )
        with self._lock:
            self._write(event)

    def claim(self, intent: EffectClaimed) -> Claim | Answer:
        """Take the right to run `intent`, or say why not."""
        with self._lock:
            record = self._records.get(intent.key)
            if record is None:
                record = self._records[intent.key] = _Record(claimed=intent)
            else:
                answer = self._answer(record, intent)
                if answer is not None:
                    return answer
            claimed = msgspec.structs.replace(intent, fence=record.life.fence + 1)
            self._move(record, claimed)
            record.claimed = claimed
            return Claim(run=claimed.run, key=claimed.key, owner=claimed.owner, fence=claimed.fence)

    def settle(self, settlement: Settlement, *, claim: Claim | None = None) -> None:
        """Say what became of an effect."""
        with self._lock:
            record = self._records.get(settlement.key)
            if record is None:
                raise BackstopError(
                    f"{settlement.key[:12]}… was never claimed, so it cannot be settled",
                    slug="illegal-move",
                )
            if not isinstance(settlement, EffectResolved):
                _check_owner(record, claim)
            self._move(record, settlement)
            match settlement:
                case EffectCommitted(result=result, state_delta=state_delta, actions=actions):
                    record.result, record.state_delta = result, state_delta
                    record.actions = actions
                case EffectFailed(error=error):
                    record.error = error
                case EffectInDoubt(reason=reason):
                    record.reason = reason
                case EffectResolved(result=result, reason=reason):
                    record.result = result
                    record.error = Failure(type="Resolved", message=reason)

    def read(self, run: str | None = None) -> Iterator[Event]:
        """The events of one run, or of all, in the order in which they happened."""
        with self._lock:
            events = tuple(self._events)
        return (event for event in events if run is None or event.run == run)

    def _answer(self, record: _Record, intent: EffectClaimed) -> Answer | None:
        """What to say instead of granting a claim; None if it may be granted."""
        if record.claimed.fingerprint != intent.fingerprint:
            return Conflict(fingerprint=record.claimed.fingerprint, args=record.claimed.args)
        match record.life.phase:
            case Phase.COMMITTED:
                return Recorded(
                    result=record.result, state_delta=record.state_delta, actions=record.actions
                )
            case Phase.FAILED:
                return Refused(error=record.error)
            case Phase.IN_DOUBT:
                return InDoubt(reason=record.reason)
            case Phase.EXECUTING if self._is_alive(record.claimed.owner):
                return Held(owner=record.claimed.owner)
            case Phase.EXECUTING:
                return self._doubt(record)
            case _:
                return None

    def _doubt(self, record: _Record) -> InDoubt:
        record.reason = f"{record.claimed.owner} is gone and left no outcome"
        doubt = EffectInDoubt(
            run=record.claimed.run,
            at="",
            v=record.claimed.v,
            key=record.claimed.key,
            reason=record.reason,
            fence=record.life.fence,
        )
        self._move(record, doubt)
        return InDoubt(reason=record.reason)

    def _move(self, record: _Record, event: EffectClaimed | Settlement) -> None:
        moved = move_of(event)
        if moved is None:  # claims and settlements all move a record
            return
        _, move, fence = moved
        after = advance(record.life, move, fence=fence)
        if isinstance(after, Illegal):
            raise BackstopError(
                f"{event.key[:12]}…: {after.reason}; list where it stands before trying again",
                slug="illegal-move",
            )
        self._write(event)
        record.life = after

    def _write(self, event: Event) -> None:
        at = timestamp(self._clock.now())
        self._events.append(msgspec.structs.replace(event, at=at))


def _check_owner(record: _Record, claim: Claim | None) -> None:
    """Only the holder of the current claim may settle it (I3)."""
    held = record.claimed
    if claim is not None and (claim.owner, claim.fence) == (held.owner, record.life.fence):
        return
    fence = 0 if claim is None else claim.fence
    raise StaleClaim(
        f"the claim on {held.key[:12]}… was superseded (fence {fence} against "
        f"{record.life.fence}): another took over or decided; discard this outcome"
    )
