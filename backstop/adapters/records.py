"""The one record of a key, and what every store rules about it: the stores only keep it.

A store reads the record, asks `ruling`, `settling` or `undecided` what is right, and writes the
answer on condition that nobody else wrote meanwhile. Times are seconds of the store's own
clock, which is asked only where an answer depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import msgspec

from backstop.core.events import (
    CursorAdvanced,
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectInDoubt,
    EffectResolved,
    Failure,
)
from backstop.core.lifecycle import (
    UNBORN,
    Illegal,
    Life,
    Move,
    Phase,
    advance,
    decided,
    move_of,
    repeats,
)
from backstop.errors import BackstopError, StaleClaim
from backstop.ports import (
    Answer,
    Claim,
    Conflict,
    Held,
    InDoubt,
    Liveness,
    Recorded,
    Refused,
    Settlement,
    Standing,
)


class Record(msgspec.Struct, kw_only=True):
    """Where the effect of a key stands.

    `claimed` is the claim in force, `settled` what settled it, None while it runs. A deliberate
    repeat begins a further life: `done` is then what committed the life before, `overrides` are
    those that the lives before were granted, each good for one. The store fills in `since`, when
    this life's first claim was written, and `moved`, when the record last changed.
    """

    claimed: EffectClaimed
    life: Life = UNBORN
    settled: Settlement | None = None
    since: float = 0
    moved: float = 0
    overrides: tuple[str, ...] = ()
    done: Settlement | None = None


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """The claim may be written: as this event, which makes this record."""

    event: EffectClaimed
    record: Record


class Doubtful(msgspec.Struct, frozen=True, kw_only=True):
    """The claim in force has no owner any more: write this first, and rule again."""

    event: EffectInDoubt
    record: Record


Ruling: TypeAlias = Granted | Doubtful | Answer


def ruling(
    record: Record | None,
    intent: EffectClaimed,
    *,
    owner: Callable[[], Liveness],
    now: Callable[[], float],
) -> Ruling:
    """What a store has to do with a claim on `intent`. `owner` is that of the claim in force."""
    if record is None:
        return granted_anew(None, intent)
    if record.done is not None:
        intent = of_the_life_after(record, intent)
    if record.claimed.fingerprint != intent.fingerprint and not _is_free(record):
        return Conflict(fingerprint=record.claimed.fingerprint, args=record.claimed.args)
    if record.done is not None and _asked_before(record, intent.override):
        return _recorded(record.done)
    match record.life.phase:
        case Phase.COMMITTED if intent.override in {None, record.claimed.override}:
            return _recorded(record.settled)
        case Phase.FAILED:
            return Refused(error=_error(record))
        case Phase.IN_DOUBT:
            return _left_in_doubt(record, intent, owner(), now)
        case Phase.EXECUTING:
            return _executing(record, owner(), now)
        case Phase.REOPENED if not _is_recognised(record, intent, now):
            return _doubtful(record, "its provider cannot be relied on to know our key any more")
        case _:
            return granted_anew(record, intent)


COMPENSATED: Final = "$compensated"
"""The override of what is done once more, since the one before was taken back: how that was."""


_AFTER_IT: Final = f'{{"{COMPENSATED}":'


def of_the_life_after(record: Record, intent: EffectClaimed) -> EffectClaimed:
    """The claim as it is meant where what went out before was taken back: nobody asks for that."""
    said = record.claimed.override
    if said is None or intent.override is not None or not said.startswith(_AFTER_IT):
        return intent
    return msgspec.structs.replace(intent, override=said)


def _is_free(record: Record) -> bool:
    # Nothing has happened under this key: whoever corrects the arguments is not in conflict
    # with a call that its tool turned away.
    return record.life.phase is Phase.RETRYABLE and record.done is None


_KEYED: Final = "keyed"
"""Who reopens what may have happened, because a provider acts once on our key."""


def _is_recognised(record: Record, intent: EffectClaimed, now: Callable[[], float]) -> bool:
    # What a person or a lookup reopened did not happen. What a provider's memory reopened may
    # have: it runs again with the same key, and while it is remembered, or not at all.
    said, claimed = record.settled, record.claimed
    if not isinstance(said, EffectResolved) or said.by != _KEYED:
        return True
    same_key = intent.capability == _KEYED and intent.override == claimed.override
    return same_key and now() - record.since < min(intent.retention_s, claimed.retention_s)


def _executing(record: Record, owner: Liveness, now: Callable[[], float]) -> Held | Doubtful:
    lapses = owner is Liveness.UNKNOWN and now() - record.moved >= record.claimed.lease_s
    running = record.claimed.owner
    if lapses:
        why = f"the lease of {running} is over, and whether it still runs cannot be seen here"
        return _doubtful(record, why, running=True)
    if owner is Liveness.GONE:
        return _doubtful(record, f"{running} is gone and left no outcome")
    return Held(owner=record.claimed.owner)


def _asked_before(record: Record, override: str | None) -> bool:
    # What an earlier life did stays done, whatever becomes of a later repeat.
    return override != record.claimed.override and (
        override is None or override in record.overrides
    )


def granted_anew(record: Record | None, intent: EffectClaimed) -> Granted:
    """The claim that may be written over `record`, whoever decided that it may."""
    life = UNBORN if record is None else record.life
    move = Move.REPEAT if repeats(intent, life.phase) else Move.CLAIM
    event = msgspec.structs.replace(intent, fence=life.fence + 1)
    after = Record(claimed=event, life=_moved(life, move, event.fence, event.key))
    if record is not None and move is Move.REPEAT:
        said = record.claimed.override
        after.overrides = record.overrides if said is None else (*record.overrides, said)
        after.done = record.settled
    elif record is not None:
        after.overrides, after.done = record.overrides, record.done
        after.since = record.since
    return Granted(event=event, record=after)


def _recorded(settled: Settlement | None) -> Recorded:
    match settled:
        case EffectCommitted() as done:
            return Recorded(result=done.result, state_delta=done.state_delta, actions=done.actions)
        case EffectResolved() as said:
            return Recorded(result=said.result)
        case _:
            return Recorded()


_UNKNOWN_FAILURE: Final = Failure(type="Unknown")


def _error(record: Record) -> Failure:
    match record.settled:
        case EffectFailed(error=error):
            return error
        case EffectResolved(reason=reason):
            return Failure(type="Resolved", message=reason)
        case _:
            return _UNKNOWN_FAILURE


def _left_in_doubt(
    record: Record, intent: EffectClaimed, owner: Liveness, now: Callable[[], float]
) -> InDoubt | Doubtful:
    # A body that outlived its call may have acted until its owner ended, which is seen only
    # now: whoever waits for the effect to show waits from here on.
    said = record.settled
    if isinstance(said, EffectInDoubt) and said.running and owner is Liveness.GONE:
        why = f"{said.reason}; its body may have gone on, until {record.claimed.owner} was gone"
        return _doubtful(record, why)
    return _in_doubt(record, intent, owner, now)


def _in_doubt(
    record: Record, intent: EffectClaimed, owner: Liveness, now: Callable[[], float]
) -> InDoubt:
    claimed, doubt = record.claimed, record.settled
    said = doubt if isinstance(doubt, EffectInDoubt) else None
    # An owner that settled its own doubt has given up, unless it was cancelled and its body
    # may go on without it.
    gave_up = said is not None and not said.running and owner is not Liveness.UNKNOWN
    # How long ago decides only what a tool's capability may do about it: the one that it was
    # claimed with, or that the tool has been given since.
    at = now() if claimed.capability or intent.capability else record.moved
    return InDoubt(
        reason="" if said is None else said.reason,
        fence=record.life.fence,
        capability=claimed.capability,
        retention_s=claimed.retention_s,
        settle_s=claimed.settle_s,
        age_s=max(0.0, at - record.moved),
        claim_age_s=max(0.0, at - record.since),
        gone=gave_up or owner is Liveness.GONE,
        override=claimed.override,
        repeats=record.done is not None,
    )


def _doubtful(record: Record, reason: str, *, running: bool = False) -> Doubtful:
    claimed = record.claimed
    event = EffectInDoubt(
        run=claimed.run,
        at="",
        v=claimed.v,
        key=claimed.key,
        reason=reason,
        fence=record.life.fence,
        running=running,
        trace=claimed.trace,
        span=claimed.span,
    )
    return Doubtful(event=event, record=settling(record, event))


def settling(record: Record | None, settlement: Settlement) -> Record:
    """The record after `settlement`, whoever says it: `check_owner` asks who.

    Raises `BackstopError` (``illegal-move``).
    """
    if record is None:
        raise BackstopError(
            f"{settlement.key[:12]}… was never claimed, so it cannot be settled",
            slug="illegal-move",
        )
    moved = move_of(settlement)
    assert moved is not None, "every settlement moves a record"  # noqa: S101 - for the type checker
    _, move, fence = moved
    return Record(
        claimed=record.claimed,
        life=_moved(record.life, move, fence, settlement.key),
        settled=settlement,
        since=record.since,
        overrides=record.overrides,
        done=record.done,
    )


def check_owner(record: Record | None, settlement: Settlement, claim: Claim | None) -> None:
    """Only the holder of the claim in force settles it (I3); anybody may resolve a doubt.

    Raises `StaleClaim`, also for an outcome of what was resolved as failed meanwhile.
    """
    if record is None or isinstance(settlement, EffectResolved):
        return
    held, fence = record.claimed, record.life.fence
    denied = record.life.phase is Phase.FAILED and isinstance(record.settled, EffectResolved)
    if claim is not None and (claim.owner, claim.fence) == (held.owner, fence) and not denied:
        return
    theirs = 0 if claim is None else claim.fence
    raise StaleClaim(
        f"the claim on {held.key[:12]}… was superseded (fence {theirs} against {fence}): "
        "another took over or decided; discard this outcome"
    )


def standing(record: Record, *, owner: Liveness, now: float) -> Standing:
    """What a person is shown of a record."""
    return Standing(
        claimed=record.claimed,
        phase=record.life.phase,
        fence=record.life.fence,
        owner=owner,
        since_s=max(0.0, now - record.moved),
        settled=record.settled,
    )


def concerns(record: Record, key: str | None) -> bool:
    """Whether a listing shows this record: all that is not decided, or what begins with `key`."""
    if key is not None:
        return record.claimed.key.startswith(key)
    return not decided(record.life.phase)


def undecided(
    event: CursorAdvanced, of_step: Iterable[tuple[str, Phase]], named: Iterable[tuple[str, Phase]]
) -> None:
    """Hold a cursor over what is not decided (I4).

    `of_step` are the keys claimed in the step that is passed, `named` those that the event
    vouches for, each with its phase. Raises `BackstopError` (``cursor-held``).
    """
    # A call that asked a person first is free to be made: it failed for now, and may stay so.
    held = [
        key
        for key, phase in (*of_step, *named)
        if not decided(phase) and phase is not Phase.RETRYABLE
    ]
    if held:
        raise BackstopError(
            f"run {event.run}, step {event.step}: effect {held[0][:12]}… is not decided; the "
            "cursor stays until it is committed or has failed for good",
            slug="cursor-held",
        )


def _moved(life: Life, move: Move, fence: int, key: str) -> Life:
    after = advance(life, move, fence=fence)
    if isinstance(after, Illegal):
        raise BackstopError(
            f"{key[:12]}…: {after.reason}; list where it stands before trying again",
            slug="illegal-move",
        )
    return after
