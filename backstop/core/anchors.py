"""What trust is anchored in: whom a person allows, and which definitions hold today.

Nothing of it comes from the store that keeps the records. A rule that was made stricter holds
for every run at once; one that was made looser holds for new runs only, and a rule of which
nobody says which it was counts as stricter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from backstop.core.checkpoint import Checkpoint, DepKind
from backstop.core.trust import Checker, World
from backstop.core.trustbreak import TrustBreak

NO_SHAPES: Final[Mapping[str, Mapping[str, object]]] = {}


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A policy rule: its digest of today, and those of older wordings that it only loosens."""

    digest: str
    loosens: frozenset[str] = frozenset()


class Anchors(msgspec.Struct, frozen=True, kw_only=True):
    """What a person vouches for, outside of any store.

    `producers` may vouch for records; `pins` are the digests of today by kind and name, policies
    apart, which are `rules`. `skew_s` is how far clocks may be apart, in seconds. `shapes` are
    the forms that outputs must have (`backstop.core.shapes`), by name of the tool or agent.
    """

    producers: frozenset[str] = frozenset()
    pins: Mapping[tuple[DepKind, str], str] = {}
    rules: Mapping[str, Rule] = {}
    revoked: frozenset[str] = frozenset()
    revoked_producers: frozenset[str] = frozenset()
    skew_s: float = 2.0
    shapes: Mapping[str, Mapping[str, object]] = NO_SHAPES


def pins_of(anchors: Anchors, records: Iterable[Checkpoint]) -> Mapping[tuple[DepKind, str], str]:
    """The pins for a run with these records: a rule that was only loosened is the run's own.

    A run that was judged by several wordings of a rule is held to the one of today.
    """
    pins = dict(anchors.pins)
    judged: dict[str, set[str]] = {}
    for record in records:
        for dep in record.deps:
            if dep.kind is DepKind.POLICY:
                judged.setdefault(dep.ref, set()).add(dep.digest)
    for name, rule in anchors.rules.items():
        by = judged.get(name, set())
        loosened = len(by) == 1 and by <= rule.loosens
        pins[DepKind.POLICY, name] = next(iter(by)) if loosened else rule.digest
    return pins


def world_of(
    anchors: Anchors,
    records: Iterable[Checkpoint],
    *,
    now: float,
    high_water: float,
    breaks: tuple[TrustBreak, ...],
    integrity: Checker | None = None,
    policy: Checker | None = None,
) -> World:
    """The world that a run's records are judged in. Times are Unix seconds."""
    return World(
        now=now,
        skew=anchors.skew_s,
        high_water=high_water,
        pins=pins_of(anchors, records),
        revoked=anchors.revoked,
        producers=anchors.producers,
        revoked_producers=anchors.revoked_producers,
        breaks=breaks,
        integrity=integrity,
        policy=policy,
    )
