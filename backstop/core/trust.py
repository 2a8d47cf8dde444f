"""Which checkpoints can be trusted: own checks, and the least fixpoint over what they read.

A verdict is a pure function of the records and of a `World` that does not come from the
store: that a record exists is no reason to trust it. Own faults come first (integrity,
provenance, policy, freshness; the first failure wins, and a checker that raises blocks),
then what the inputs pass on. A step is VERIFIED only if it can be derived from steps that
are: a cycle cannot vouch for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from math import inf
from typing import Final, TypeAlias

import msgspec

from backstop.core.checkpoint import CHECKPOINT_SCHEMA, Checkpoint, DepKind
from backstop.core.trustbreak import Steps, TrustBreak


class State(StrEnum):
    """What code may do with a step. `UNKNOWN` is one from before checkpoints were kept (M10)."""

    VERIFIED = "VERIFIED"
    INVALIDATED = "INVALIDATED"
    RECOMPUTE = "RECOMPUTE"
    BLOCKED = "BLOCKED"
    UNKNOWN = "UNKNOWN"


class Badness(IntEnum):
    """What a step passes on to those made from it; the worst input counts."""

    CLEAN = 0
    UNKNOWN = 1
    REPAIRABLE = 2
    HARD = 3


class Reason(StrEnum):
    """Why a verdict is what it is."""

    OK = "ok"
    LEGACY = "legacy"
    SCHEMA = "schema"
    DUPLICATE = "duplicate"
    CYCLE = "cycle"
    MISSING_DEP = "missing dependency"
    CHECK_ERROR = "check error"
    BODY_DIGEST = "body digest"
    BLOB_MISSING = "output missing"
    BLOB_DIGEST = "output digest"
    LOG = "log"
    UNSTEADY_READ = "unsteady read"
    UNSIGNED = "unsigned"
    BAD_SIGNATURE = "bad signature"
    REVOKED_KEY = "revoked key"
    WRONG_PRODUCER = "wrong producer"
    UNPROVEN = "unproven result"
    REVOKED = "revoked"
    BROKEN = "trust break"
    OUTPUT_SCHEMA = "output schema"
    POLICY_DENY = "policy denies"
    POLICY_STALE = "policy changed"
    CLOCK = "clock turned back"
    FUTURE = "from the future"
    STALE = "stale"
    INPUT_STATE = "input not verified"
    INPUT_DIGEST = "input changed"
    PIN = "definition changed"


STRUCTURAL: Final = frozenset(
    {
        Reason.SCHEMA,
        Reason.DUPLICATE,
        Reason.CYCLE,
        Reason.MISSING_DEP,
        Reason.CHECK_ERROR,
        Reason.LOG,
        Reason.CLOCK,
        Reason.POLICY_DENY,
    }
)
"""Own faults that running the step again does not mend: BLOCKED."""

Checker: TypeAlias = Callable[[Checkpoint], Reason | None]
"""A check of the runtime's own (bytes, signature, output schema, policy); None where it holds."""

MUST_BE_PINNED: Final = frozenset({DepKind.POLICY, DepKind.CODE})
"""Inputs that are missing where the world has no pin for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What is trusted without the store. Times are Unix seconds.

    `high_water` is the latest recorder's time that was ever seen, `skew` how far clocks may be
    apart. `pins` say which digest an input has now, by kind and name; a policy or code that is
    not pinned is missing. `revoked` are digests known to be bad, `witnessed` those of tool
    results that the ledger saw (None: not asked). `producers` are the recorders that may vouch.
    """

    now: float
    skew: float = 0.0
    high_water: float = 0.0
    pins: Mapping[tuple[DepKind, str], str] = field(default_factory=dict)
    revoked: frozenset[str] = frozenset()
    witnessed: frozenset[str] | None = None
    producers: frozenset[str] = frozenset()
    revoked_producers: frozenset[str] = frozenset()
    breaks: tuple[TrustBreak, ...] = ()
    integrity: Checker | None = None
    provenance: Checker | None = None
    policy: Checker | None = None


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """What holds for a step.

    `badness` is what it passes on, `own` what of that it caused itself. `horizon` is until when
    the verdict holds: before all inputs of a VERIFIED step are past their time. `culprit` names
    where the fault lies: a step, or ``kind:name`` of an input from outside.
    """

    state: State
    reason: Reason
    badness: Badness
    own: Badness
    horizon: float
    culprit: str | None = None


def _producer(producer: str, world: World) -> Reason | None:
    if producer in world.revoked_producers:
        return Reason.REVOKED_KEY
    return None if producer in world.producers else Reason.WRONG_PRODUCER


def _content(checkpoint: Checkpoint, world: World) -> Reason | None:
    if not world.revoked and world.witnessed is None:
        return None
    outside = checkpoint.outside
    if any(dep.digest in world.revoked for dep in outside):
        return Reason.REVOKED
    seen = world.witnessed
    unproven = seen is not None and any(
        dep.kind is DepKind.TOOL and dep.digest not in seen for dep in outside
    )
    return Reason.UNPROVEN if unproven else None


def _policy(checkpoint: Checkpoint, world: World) -> Reason | None:
    """What is missing comes before what is old: running the step again does not mend it."""
    stale = None
    for dep in checkpoint.deps:
        if dep.kind in MUST_BE_PINNED:
            pinned = world.pins.get((dep.kind, dep.ref))
            if pinned is None:
                return Reason.MISSING_DEP
            if dep.kind is DepKind.POLICY and pinned != dep.digest:
                stale = Reason.POLICY_STALE
    return stale


class OwnChecks:
    """The own checks of one world, in their order: integrity, provenance, policy, freshness."""

    __slots__ = ("_broken_before", "_latest", "_other_breaks", "_turned_back", "_world", "plain")

    def __init__(self, world: World) -> None:
        self._world = world
        now = max(world.now, world.high_water)
        self._latest = now + world.skew
        self._turned_back = world.now + world.skew < world.high_water
        self._broken_before: dict[str, int] = {}
        self._other_breaks = [one for one in world.breaks if not isinstance(one.selector, Steps)]
        for one in world.breaks:
            if isinstance(one.selector, Steps):
                for step in one.selector.steps:
                    self._broken_before[step] = max(one.seq, self._broken_before.get(step, 0))
        self.plain: Final = not (
            world.integrity
            or world.provenance
            or world.policy
            or self._other_breaks
            or world.revoked
            or world.witnessed is not None
            or self._turned_back
        )
        """Is nothing asked of a record but what `sound_until` asks, and its inputs and pins?"""

    def sound_until(self, checkpoint: Checkpoint) -> float | None:
        """Until when a record holds by itself in a plain world, its inputs apart; None if not."""
        world = self._world
        producer, seen = checkpoint.producer, checkpoint.observed_at
        horizon = inf if checkpoint.ttl is None else seen + checkpoint.ttl
        return (
            horizon
            if seen <= self._latest < horizon
            and checkpoint.schema == CHECKPOINT_SCHEMA
            and checkpoint.output
            and producer in world.producers
            and producer not in world.revoked_producers
            and not checkpoint.seq < self._broken_before.get(checkpoint.step, 0)
            else None
        )

    def of(self, checkpoint: Checkpoint, *, unsteady: bool) -> tuple[Reason | None, float]:
        """The first own fault, and until when the record is fresh.

        `unsteady` says whether an input of the step changed while it ran (`Checkpoint.unsteady`).

        Later checks read only what earlier ones have vouched for. A checker that raises is a
        fault (`Reason.CHECK_ERROR`): nothing is trusted because nobody could look.
        """
        try:
            fault = self._fault(checkpoint, unsteady=unsteady)
        except Exception:  # noqa: BLE001 - whatever a checker raises, nobody has looked
            fault = Reason.CHECK_ERROR
        return (fault, -inf) if fault is not None else self._fresh(checkpoint)

    def _fault(self, checkpoint: Checkpoint, *, unsteady: bool) -> Reason | None:
        world = self._world
        if checkpoint.schema != CHECKPOINT_SCHEMA:
            return Reason.SCHEMA
        if not checkpoint.output:
            return Reason.LEGACY
        return (
            (world.integrity and world.integrity(checkpoint))
            or (unsteady and Reason.UNSTEADY_READ)
            or _producer(checkpoint.producer, world)
            or (world.provenance and world.provenance(checkpoint))
            or (checkpoint.output in world.revoked and Reason.REVOKED)
            or _content(checkpoint, world)
            or (self._is_broken(checkpoint) and Reason.BROKEN)
            or _policy(checkpoint, world)
            or (world.policy and world.policy(checkpoint))
            or (self._turned_back and Reason.CLOCK)
            or None
        )

    def _is_broken(self, checkpoint: Checkpoint) -> bool:
        if checkpoint.seq < self._broken_before.get(checkpoint.step, 0):
            return True
        return any(one.covers(checkpoint) for one in self._other_breaks)

    def _fresh(self, checkpoint: Checkpoint) -> tuple[Reason | None, float]:
        # Asked so that a time which is no number fails, too.
        if not checkpoint.observed_at <= self._latest:
            return Reason.FUTURE, -inf
        if checkpoint.ttl is None:
            return None, inf
        horizon = checkpoint.observed_at + checkpoint.ttl
        return (None if self._latest < horizon else Reason.STALE), horizon
