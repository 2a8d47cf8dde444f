"""The claim lifecycle of one effect, as a table. What is not in the table is illegal.

Theory of operation: a key starts ABSENT and has one record (I1). Whoever wants to run the
effect claims it, which raises the fence (I2); only the holder of the current fence may
settle it (I3). COMMITTED and FAILED are ends: nothing leads out of them but, of the first, a
deliberate repeat, whose reason is on record (ADR 0019). A claim that ended without a known
outcome is IN_DOUBT; no claim leads out of it, only its late owner, or whoever may resolve it:
a person, a probe, a provider that acts once on our key (I5). A cursor may pass COMMITTED and
FAILED only (I4, `decided`).

Stores ask `advance` before they write, and `ledger verify` asks `Lives` about what was
written, so both follow the same table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final, TypeAlias

from backstop.core.events import (
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectInDoubt,
    EffectResolved,
    Event,
)


class Phase(StrEnum):
    """Where an effect stands."""

    ABSENT = "absent"
    CLAIMED = "claimed"
    """Reserved, not started: something waits before the start, an approval say."""
    EXECUTING = "executing"
    RETRYABLE = "retryable"
    """Certainly did not happen this time, and may be tried again."""
    IN_DOUBT = "in doubt"
    REOPENED = "reopened"
    """A person decided that it may run again."""
    COMMITTED = "committed"
    FAILED = "failed"


class Move(StrEnum):
    """What can be done to an effect's record."""

    RESERVE = "reserve"
    START = "start"
    CLAIM = "claim"
    REPEAT = "repeat on purpose"
    COMMIT = "commit"
    FAIL = "fail"
    FAIL_FOR_NOW = "fail for now"
    DOUBT = "doubt"
    RESOLVE_COMMITTED = "resolve as committed"
    RESOLVE_FAILED = "resolve as failed"
    REOPEN = "reopen"


TRANSITIONS: Final[Mapping[tuple[Phase, Move], Phase]] = {
    (Phase.ABSENT, Move.RESERVE): Phase.CLAIMED,
    (Phase.RETRYABLE, Move.RESERVE): Phase.CLAIMED,
    (Phase.REOPENED, Move.RESERVE): Phase.CLAIMED,
    (Phase.CLAIMED, Move.RESERVE): Phase.CLAIMED,  # it lapsed, and never started
    (Phase.CLAIMED, Move.START): Phase.EXECUTING,
    (Phase.ABSENT, Move.CLAIM): Phase.EXECUTING,
    (Phase.CLAIMED, Move.CLAIM): Phase.EXECUTING,
    (Phase.RETRYABLE, Move.CLAIM): Phase.EXECUTING,
    (Phase.REOPENED, Move.CLAIM): Phase.EXECUTING,
    (Phase.EXECUTING, Move.CLAIM): Phase.EXECUTING,  # keyed or probed takeover: its owner is gone
    (Phase.COMMITTED, Move.REPEAT): Phase.EXECUTING,
    (Phase.EXECUTING, Move.COMMIT): Phase.COMMITTED,
    (Phase.EXECUTING, Move.FAIL): Phase.FAILED,
    (Phase.EXECUTING, Move.FAIL_FOR_NOW): Phase.RETRYABLE,
    (Phase.EXECUTING, Move.DOUBT): Phase.IN_DOUBT,
    (Phase.IN_DOUBT, Move.DOUBT): Phase.IN_DOUBT,  # its body went on, until its owner was gone
    (Phase.IN_DOUBT, Move.COMMIT): Phase.COMMITTED,  # the late owner, or a probe, knows
    (Phase.IN_DOUBT, Move.RESOLVE_COMMITTED): Phase.COMMITTED,
    (Phase.IN_DOUBT, Move.RESOLVE_FAILED): Phase.FAILED,
    (Phase.IN_DOUBT, Move.REOPEN): Phase.REOPENED,
    (Phase.REOPENED, Move.DOUBT): Phase.IN_DOUBT,  # its provider was to know our key, and cannot
}

RAISES_FENCE: Final = frozenset({Move.RESERVE, Move.CLAIM, Move.REPEAT, Move.REOPEN})
"""Moves that need a higher fence than the record's; all others need the record's own."""

_DECIDED: Final = frozenset({Phase.COMMITTED, Phase.FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One record's phase and fence. The fence of an absent record is 0."""

    phase: Phase = Phase.ABSENT
    fence: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Illegal:
    """A move that the table, or the fence, does not allow; `reason` says why."""

    reason: str


Advanced: TypeAlias = Life | Illegal

UNBORN: Final = Life()


@lru_cache(maxsize=1024)  # a ledger has few distinct lives and very many effects
def _life(phase: Phase, fence: int) -> Life:
    return Life(phase=phase, fence=fence)


def decided(phase: Phase) -> bool:
    """Whether a cursor may pass an effect in this phase (I4)."""
    return phase in _DECIDED


def advance(life: Life, move: Move, *, fence: int) -> Advanced:
    """The life after `move` under `fence`, or why it is illegal (I2, I3, I5)."""
    target = TRANSITIONS.get((life.phase, move))
    if target is None:
        return Illegal(reason=f"cannot {move.value} an effect that is {life.phase.value}")
    if move in RAISES_FENCE:
        if fence <= life.fence:
            return Illegal(reason=f"its fence {fence} does not rise above {life.fence}")
    elif fence != life.fence:
        return Illegal(reason=f"its fence {fence} is not the current one, {life.fence}")
    return _life(target, fence)


_RESOLUTIONS: Final[Mapping[str, Move]] = {
    "committed": Move.RESOLVE_COMMITTED,
    "failed": Move.RESOLVE_FAILED,
    "reopened": Move.REOPEN,
}


def repeats(event: Event, phase: Phase) -> bool:
    """Whether this claim deliberately does again what is committed: it says "yes, again"."""
    return (
        phase is Phase.COMMITTED and isinstance(event, EffectClaimed) and event.override is not None
    )


def move_of(event: Event) -> tuple[str, Move, int] | None:
    """Key, move and fence of an event that changes an effect's record; None for any other.

    Raises `ValueError` for a resolution that is none.
    """
    match event:
        case EffectClaimed(key=key, fence=fence):
            return key, Move.CLAIM, fence
        case EffectCommitted(key=key, fence=fence):
            return key, Move.COMMIT, fence
        case EffectFailed(key=key, fence=fence, final=final):
            return key, Move.FAIL if final else Move.FAIL_FOR_NOW, fence
        case EffectInDoubt(key=key, fence=fence):
            return key, Move.DOUBT, fence
        case EffectResolved(key=key, to=to, fence=fence):
            if to not in _RESOLUTIONS:
                raise ValueError(f"resolved to {to!r}: only {', '.join(_RESOLUTIONS)} are known")
            return key, _RESOLUTIONS[to], fence
        case _:
            return None


class Lives:
    """The life of every key of a ledger, followed event by event.

    Where a guard stood, the table holds as it is. Where none stood (imported rows), nothing
    kept a key from going out again (semantics.md G8): a further claim begins a further life,
    several may be open at once, and fences mean nothing. A settlement still needs a claim.
    """

    def __init__(self, *, guarded: bool) -> None:
        self._guarded = guarded
        self._lives: dict[str, Life] = {}
        self._also_open: dict[str, int] = {}

    def phase(self, key: str) -> Phase:
        """Where the effect stands after the events followed so far."""
        return self._lives.get(key, UNBORN).phase

    def follow(self, event: Event) -> Illegal | None:
        """Take one event into account; say why if it is illegal, and then ignore it."""
        try:
            moved = move_of(event)
        except ValueError as exc:
            return Illegal(reason=str(exc))
        if moved is None:
            return None
        key, move, fence = moved
        life = self._lives.get(key, UNBORN)
        if not self._guarded:
            life, fence = self._unfenced(key, life, move)
        elif move is Move.CLAIM and repeats(event, life.phase):
            move = Move.REPEAT
        after = advance(life, move, fence=fence)
        if isinstance(after, Illegal):
            return after
        if not self._guarded and move is not Move.CLAIM and self._also_open.get(key):
            self._also_open[key] -= 1  # another copy of the same call is still out
            return None
        self._lives[key] = after
        return None

    def in_doubt(self) -> int:
        """How many effects are in doubt."""
        return sum(life.phase is Phase.IN_DOUBT for life in self._lives.values())

    def _unfenced(self, key: str, life: Life, move: Move) -> tuple[Life, int]:
        if move is not Move.CLAIM:
            return life, life.fence + (move is Move.REOPEN)
        if life.phase is Phase.EXECUTING:
            self._also_open[key] = self._also_open.get(key, 0) + 1
        return UNBORN, 1
