"""What every store rules about a claim that comes with a precondition: the stores only keep it.

Beside the record of a key stands what passed the gate with it (`Gated`). A store reads both and
its control state, asks `gated_ruling` what is right, and writes the answer on condition that
none of them changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isinf
from typing import Final, TypeGuard

import msgspec

from backstop.adapters.records import (
    COMPENSATED,
    Granted,
    Record,
    Ruling,
    granted_anew,
    ruling,
)
from backstop.core.canon import canonical
from backstop.core.effectgate import Break, Control, Lease, Precondition
from backstop.core.effecttrust import BY_PERSON, Act, Gated, Ruled, Trust, acted, trust_in
from backstop.core.events import EffectClaimed, TrustBroken
from backstop.core.lifecycle import Phase
from backstop.errors import BackstopError
from backstop.ports import Conflict, Held, Liveness, Recorded

CONTROL: Final = msgspec.json.Decoder(Control)
GATED: Final = msgspec.json.Decoder(Gated)

_TO_TAKE_BACK: Final = frozenset({Trust.SUSPECT, Trust.COMPENSATION_REQUIRED})


class Passed(msgspec.Struct, frozen=True, kw_only=True):
    """What a store has to do with a claim that may pass; `gated` is what to keep beside it."""

    ruled: Ruling
    gated: Gated | None = None


def spelled_control(control: Control) -> bytes:
    """The control state as a store keeps it: equal states are equal bytes."""
    return msgspec.json.encode(control, order="deterministic")


def gated_ruling(
    record: Record | None,
    gated: Gated | None,
    intent: EffectClaimed,
    asked: Precondition,
    control: Control,
    *,
    owner: Callable[[], Liveness],
    now: Callable[[], float],
) -> Passed:
    """What a store has to do with a claim on `intent` whose precondition holds."""
    trust = None if gated is None else trust_in(gated, control)
    if gated is not None and trust is Trust.COMPENSATED and _is_out(record):
        again = {COMPENSATED: gated.note, "fence": record.life.fence}
        intent = msgspec.structs.replace(intent, override=canonical(again))
        return Passed(ruled=granted_anew(record, intent), gated=let_through(asked, control))
    ruled = ruling(record, intent, owner=owner, now=now)
    match ruled:
        case Granted():
            return Passed(ruled=ruled, gated=let_through(asked, control))
        case Recorded():
            return Passed(ruled=ruled, gated=_replayed(gated, intent.key, asked, control))
        case Conflict() if gated is not None and trust in _TO_TAKE_BACK:
            if trust is Trust.SUSPECT:
                required = Ruled(key=intent.key, act=Act.REQUIRE, note=intent.fingerprint)
                gated = acted(gated, required, control)
            return Passed(ruled=msgspec.structs.replace(ruled, compensate=True), gated=gated)
        case _:
            return Passed(ruled=ruled)


def _is_out(record: Record | None) -> TypeGuard[Record]:
    return record is not None and record.life.phase is Phase.COMMITTED


def claimed_override(granted: Granted, intent: EffectClaimed) -> str | None:
    """The override that the store gave a claim; None if it is as it was asked for."""
    return None if granted.event.override == intent.override else granted.event.override


def let_through(asked: Precondition, control: Control) -> Gated | None:
    """What is kept of a claim; of one that takes another effect back, nothing can be suspect."""
    if asked.undoes:
        return None
    return Gated(
        place=asked.place,
        epoch=control.epoch,
        horizon=None if isinf(asked.horizon) else asked.horizon,
        undo=asked.undo,
        decided=control.epoch,
    )


def _replayed(gated: Gated | None, key: str, asked: Precondition, control: Control) -> Gated | None:
    """What is kept of an effect whose outcome is told again to somebody who is VERIFIED."""
    if gated is None:
        return let_through(asked, control)  # it went out before there was a mesh: known from now on
    if trust_in(gated, control) in _TO_TAKE_BACK:
        again = acted(gated, Ruled(key=key, act=Act.REAFFIRM), control)
        # From now on it stands where the branch stands that asked for it again.
        return msgspec.structs.replace(again, place=asked.place, undo=asked.undo or gated.undo)
    return None


def ruled_upon(gated: Gated | None, ruled: Ruled, control: Control, *, lease: bool) -> Gated:
    """The effect after what a recovery, or without a `lease` a person, says of it.

    Raises `BackstopError` (``effect-trust``, ``stale-lease``).
    """
    if not lease and ruled.act not in BY_PERSON:
        raise stale_lease(f"nobody holds the recovery that would {ruled.act} {ruled.key[:12]}…")
    return acted(gated, ruled, control)


def stale_lease(why: str) -> BackstopError:
    """Somebody else recovers: what was to be written is refused."""
    return BackstopError(
        f"{why}; nothing was written: leave the run to whoever holds it", slug="stale-lease"
    )


def check_lease(lease: Lease, fence: int) -> None:
    """Raises `BackstopError` (``stale-lease``) where `fence` is in force, not the lease's own."""
    if lease.fence != fence:
        raise stale_lease(
            f"the recovery of run {lease.run} by {lease.holder} was taken over (fence "
            f"{lease.fence} against {fence})"
        )


class Leased(msgspec.Struct, frozen=True, kw_only=True):
    """A run's recovery as a store keeps it; `until_s` is when it lapses, by the store's time."""

    holder: str = ""
    fence: int = 0
    until_s: float = 0


def leasing(
    known: Leased, holder: str, *, lease_s: float, held: Lease | None, now: float
) -> Leased | Held:
    """Who holds a recovery from now on; or who holds it, so that `holder` may not."""
    if held is not None:
        if held.fence != known.fence or not known.holder:
            return Held(owner=known.holder or "nobody")
        return Leased(holder=holder, fence=known.fence, until_s=now + lease_s)
    if known.holder not in {"", holder} and now < known.until_s:
        return Held(owner=known.holder)
    return Leased(holder=holder, fence=known.fence + 1, until_s=now + lease_s)


def in_force(known: Leased, run: str, *, now: float) -> Lease | None:
    """The lease on a run, if it is held and has not lapsed."""
    if not known.holder or now >= known.until_s:
        return None
    return Lease(run=run, holder=known.holder, fence=known.fence)


def released(known: Leased, lease: Lease) -> Leased | None:
    """The recovery after it was given back; None if it is another's by now."""
    if known.fence != lease.fence:
        return None
    return Leased(holder="", fence=known.fence)


def event_of_break(one: Break) -> TrustBroken:
    """A break as an event of its run."""
    body = msgspec.json.encode(one, order="deterministic")
    return TrustBroken(run=one.run, at="", body=msgspec.Raw(body))
