"""The effect gate of the mesh: what must hold at the instant at which a claim is granted.

A store keeps one `Control`: the trust breaks, what each has frozen, and the epoch, which every
break raises. A claim may come with a `Precondition`, made from a verdict; the store asks
`withheld` in the transaction that writes the claim. So a break is either before a claim, which
is then withheld, or after it, and the effect is suspect (`backstop.core.effecttrust`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, TypeAlias

import msgspec

from backstop.core.trust import State, Verdict
from backstop.core.trustbreak import Steps, TrustBreak
from backstop.errors import BackstopError

SKEW_S: Final = 2.0
"""Seconds by which a clock may lag behind the latest time that a store has seen."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where in the mesh an effect stands: its run, its step, its agent, and what it was made from.

    `upstream` are the steps whose outputs it read.
    """

    run: str
    step: str = ""
    agent: str = ""
    upstream: tuple[str, ...] = ()


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """What a trust break reaches: steps and agents of a run, or `everything` in it.

    Without a `run` every run is meant. One that names nothing reaches nothing.
    """

    run: str = ""
    steps: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()
    everything: bool = False

    def covers(self, place: Place) -> bool:
        """Is the effect at this place reached, by itself or by what it was made from?"""
        if self.run not in {"", place.run}:
            return False
        return (
            self.everything
            or place.step in self.steps
            or place.agent in self.agents
            or not self.steps.isdisjoint(place.upstream)
        )


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The right to recover a run: who holds it, and under which fence.

    Whoever takes it over gets a higher fence, and what the former holder still writes is refused.
    """

    run: str
    holder: str
    fence: int


class Precondition(msgspec.Struct, frozen=True, kw_only=True):
    """What must hold when a claim is granted, as somebody judged it who saw a VERIFIED verdict.

    `epoch` is the one that was judged in, `horizon` until when the verdict holds, in Unix
    seconds. `lease` is that of the recovery that asks, if one does. `undo` names the function
    that takes the effect back, if one is declared; `undoes` is the key of the effect that this
    one takes back: what is frozen may be mended.
    """

    place: Place
    epoch: int
    horizon: float = inf
    lease: Lease | None = None
    undo: str = ""
    undoes: str = ""


class Frozen(msgspec.Struct, frozen=True, kw_only=True):
    """A trust break reaches the effect, and nobody has recovered from it yet."""

    broken: str
    reason: str


class StaleEpoch(msgspec.Struct, frozen=True, kw_only=True):
    """Trust broke after the verdict was made: it has to be judged anew."""

    judged: int
    epoch: int


class PastHorizon(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict's time is over, or nobody can tell whether it is: the clock was turned back.

    `now` is the store's clock, `seen` the latest time that it has seen; Unix seconds.
    """

    horizon: float
    now: float
    seen: float


class Unverified(msgspec.Struct, frozen=True, kw_only=True):
    """What the effect rests on is not VERIFIED: its verdict, and where the fault lies."""

    state: str
    reason: str
    culprit: str = ""


class LeaseLost(msgspec.Struct, frozen=True, kw_only=True):
    """The recovery that asks has been taken over by another worker."""

    fence: int


Withheld: TypeAlias = Frozen | StaleEpoch | PastHorizon | Unverified | LeaseLost
"""Why an effect may not go out. Nothing was done, and nothing was written."""


class Break(msgspec.Struct, frozen=True, kw_only=True):
    """A trust break as a store keeps it: what it reached, and what of that is `frozen` yet."""

    broken: TrustBreak
    run: str
    reach: tuple[Reach, ...] = ()
    frozen: tuple[Reach, ...] = ()


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """The control state of one ledger's mesh: every break there was, in order of epochs."""

    epoch: int = 0
    breaks: tuple[Break, ...] = ()

    def freezing(self, place: Place) -> Break | None:
        """The first break that still freezes this place; None if none does."""
        return next((one for one in self.breaks if _covers(one.frozen, place)), None)

    def breaks_trust_in(self, place: Place, *, since: int) -> bool:
        """Has trust in what stands at this place been broken after the epoch `since`?"""
        return any(
            one.broken.epoch > since and _covers(one.reach, place) for one in reversed(self.breaks)
        )

    def known(self, broken: str) -> Break | None:
        """The break of this id."""
        return next((one for one in self.breaks if one.broken.id == broken), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The store's clock, and the latest time that it has seen; Unix seconds."""

    now: float
    seen: float = 0.0


def judged(
    verdict: Verdict, place: Place, *, epoch: int, undo: str = ""
) -> Precondition | Unverified:
    """What a claim must come with, as of this verdict on the effect's step in `epoch`."""
    if verdict.state is not State.VERIFIED:
        return Unverified(
            state=verdict.state, reason=verdict.reason, culprit=verdict.culprit or place.step
        )
    return Precondition(place=place, epoch=epoch, horizon=verdict.horizon, undo=undo)


def withheld(
    control: Control, asked: Precondition, times: Times, *, fence: int = 0
) -> Withheld | None:
    """Why a claim may not be granted; None if all holds. `fence` is that of the lease in force."""
    if asked.lease is not None and asked.lease.fence != fence:
        return LeaseLost(fence=fence)
    turned_back = times.now + SKEW_S < times.seen and asked.horizon < inf
    # Asked so that a time which is no number fails, too.
    if turned_back or not max(times.now, times.seen) < asked.horizon:
        return PastHorizon(horizon=asked.horizon, now=times.now, seen=times.seen)
    if asked.epoch != control.epoch:
        return StaleEpoch(judged=asked.epoch, epoch=control.epoch)
    frozen = None if asked.undoes else control.freezing(asked.place)
    if frozen is not None:
        return Frozen(broken=frozen.broken.id, reason=frozen.broken.reason)
    return None


def broken(
    control: Control, found: TrustBreak, *, run: str, reach: Sequence[Reach]
) -> tuple[Control, Break]:
    """The control state once trust is broken: a further epoch, and all that is reached is frozen.

    One that is told again, by its id, changes nothing. Raises `BackstopError` (``trust-break``)
    for one that has no id, or names nothing.
    """
    if not found.id or (isinstance(found.selector, Steps) and not found.selector.steps):
        raise BackstopError(
            f"the trust break {found.id!r} of {found.detector or 'nobody'} has no id, or names no "
            "steps: nothing was broken; name what turned out to be bad",
            slug="trust-break",
        )
    if (known := control.known(found.id)) is not None:
        return control, known
    epoch = control.epoch + 1
    one = Break(
        broken=msgspec.structs.replace(found, epoch=epoch),
        run=run,
        reach=tuple(reach),
        frozen=tuple(reach),
    )
    return Control(epoch=epoch, breaks=(*control.breaks, one)), one


def thawed(control: Control, reach: Iterable[Reach], *, epoch: int) -> Control | None:
    """The control state once these steps were recovered; None if trust broke after `epoch`.

    What a later break froze too is not for this recovery to let go.
    """
    if control.epoch != epoch:
        return None
    breaks = control.breaks
    for part in reach:
        breaks = tuple(
            msgspec.structs.replace(one, frozen=tuple(_left(one.frozen, part))) for one in breaks
        )
    return msgspec.structs.replace(control, breaks=breaks)


def _covers(reach: Iterable[Reach], place: Place) -> bool:
    return any(part.covers(place) for part in reach)


def _left(frozen: Iterable[Reach], part: Reach) -> Iterable[Reach]:
    """What stays frozen where `part` is let go: of a run that is frozen whole, only all at once."""
    for one in frozen:
        if one.run != part.run:
            yield one
        elif not part.everything:
            left = msgspec.structs.replace(
                one, steps=one.steps - part.steps, agents=one.agents - part.agents
            )
            if left.everything or left.steps or left.agents:
                yield left
