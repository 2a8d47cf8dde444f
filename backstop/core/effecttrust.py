"""Whether an effect that is out can be stood by: SUSPECT, REAFFIRMED, to be taken back, taken back.

What a person or a recovery decided is stored, with the epoch it was decided in. That an effect
is SUSPECT is not: it follows from the breaks after that epoch. So a break writes no effect's
record, and none can be missed, not even one whose claim was on its way.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from backstop.core.effectgate import Control, Place
from backstop.errors import BackstopError


class Trust(StrEnum):
    """How far an effect that is out can be stood by."""

    CLEAN = "CLEAN"
    SUSPECT = "SUSPECT"
    """Trust broke in what it was made from."""
    REAFFIRMED = "REAFFIRMED"
    """The recovered branch asked for the very same, or a person stands by it."""
    COMPENSATION_REQUIRED = "COMPENSATION_REQUIRED"
    """The recovered branch asked for something else under its key."""
    COMPENSATED = "COMPENSATED"
    """It was taken back."""
    ESCALATED = "ESCALATED"
    """It cannot be taken back by itself: a person decides."""


class Act(StrEnum):
    """What can be done about an effect in which trust broke."""

    REAFFIRM = "reaffirm"
    REQUIRE = "require compensation of"
    COMPENSATE = "compensate"
    ESCALATE = "escalate"
    KEEP = "keep"
    TAKE_BACK = "take back by hand"


ACTS: Final[Mapping[tuple[Trust, Act], Trust]] = {
    (Trust.SUSPECT, Act.REAFFIRM): Trust.REAFFIRMED,
    (Trust.COMPENSATION_REQUIRED, Act.REAFFIRM): Trust.REAFFIRMED,
    (Trust.SUSPECT, Act.REQUIRE): Trust.COMPENSATION_REQUIRED,
    (Trust.SUSPECT, Act.COMPENSATE): Trust.COMPENSATED,
    (Trust.COMPENSATION_REQUIRED, Act.COMPENSATE): Trust.COMPENSATED,
    (Trust.SUSPECT, Act.ESCALATE): Trust.ESCALATED,
    (Trust.COMPENSATION_REQUIRED, Act.ESCALATE): Trust.ESCALATED,
    (Trust.SUSPECT, Act.KEEP): Trust.REAFFIRMED,
    (Trust.COMPENSATION_REQUIRED, Act.KEEP): Trust.REAFFIRMED,
    (Trust.ESCALATED, Act.KEEP): Trust.REAFFIRMED,
    (Trust.SUSPECT, Act.TAKE_BACK): Trust.COMPENSATED,
    (Trust.COMPENSATION_REQUIRED, Act.TAKE_BACK): Trust.COMPENSATED,
    (Trust.ESCALATED, Act.TAKE_BACK): Trust.COMPENSATED,
}

BY_PERSON: Final = frozenset({Act.KEEP, Act.TAKE_BACK})
"""What a person may do without holding the run's recovery."""

UNSETTLED: Final = frozenset({Trust.SUSPECT, Trust.COMPENSATION_REQUIRED, Trust.ESCALATED})
"""What somebody has yet to see to."""

_STANDS: Final = frozenset({Trust.CLEAN, Trust.REAFFIRMED})


class Gated(msgspec.Struct, frozen=True, kw_only=True):
    """What a store keeps of an effect that passed the gate.

    `epoch` is the one its claim was granted in, `horizon` until when its verdict held: logged,
    and never asked again. `undo` names the function that takes it back. `trust` was decided in
    the epoch `decided`; `note` says why, or is the key of the effect that took it back.
    """

    place: Place
    epoch: int
    horizon: float | None = None
    undo: str = ""
    trust: Trust = Trust.CLEAN
    decided: int = 0
    note: str = ""


class Ruled(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done about the effect of `key`, and why."""

    key: str
    act: Act
    note: str = ""


def trust_in(gated: Gated, control: Control) -> Trust:
    """How far the effect can be stood by today."""
    if gated.trust in _STANDS and control.breaks_trust_in(gated.place, since=gated.decided):
        return Trust.SUSPECT
    return gated.trust


def acted(gated: Gated | None, ruled: Ruled, control: Control) -> Gated:
    """The effect after the act. One that is done again changes nothing.

    Raises `BackstopError` (``effect-trust``) for what cannot be done where the effect stands.
    """
    now = None if gated is None else trust_in(gated, control)
    if gated is not None and now is not None:
        after = ACTS.get((now, ruled.act))
        if after is not None:
            return msgspec.structs.replace(
                gated, trust=after, decided=control.epoch, note=ruled.note
            )
        if (now, gated.note) in {(ACTS[key], ruled.note) for key in ACTS if key[1] is ruled.act}:
            return gated
    raise BackstopError(
        f"cannot {ruled.act} effect {ruled.key[:12]}…: "
        + (f"it is {now}" if now else "it never passed the gate")
        + "; list where it stands before trying again",
        slug="effect-trust",
    )
