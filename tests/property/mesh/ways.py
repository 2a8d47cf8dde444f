"""The law of the two ways: what is judged the short way is what the long way says of it.

Where nothing is asked of records but what anybody can see in them, a step is judged at one
look. A check that finds nothing makes the very same world go the long way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan
from typing import Final

import msgspec
from hypothesis import strategies as st

from backstop.core.checkpoint import Checkpoint, Dep, DepKind, StepKind
from backstop.core.trust import World
from backstop.core.trustbreak import Steps, TrustBreak
from backstop.core.trustgraph import TrustGraph
from tests.property.mesh.fleet import NOW, RULE, Fleet, name, records, world
from tests.property.mesh.planting import Core

CHANGES: Final[Mapping[str, Mapping[str, object]]] = {
    "stale": {"ttl": NOW / 2},
    "fresh": {"ttl": NOW * 2},
    "until now": {"ttl": NOW},
    "never fresh": {"ttl": nan},
    "from the future": {"observed_at": NOW * 2},
    "nothing left": {"output": ""},
    "other output": {"output": "other"},
    "unknown form": {"schema": 9},
    "unknown recorder": {"producer": "stranger"},
    "revoked recorder": {"producer": "revoked"},
    "not to be run again": {"rerunnable": False},
    "effect": {"kind": StepKind.EFFECT},
}
INPUTS: Final[Mapping[str, tuple[Dep, ...]]] = {
    "pinned": (Dep(DepKind.CODE, "agents", "c1"),),
    "code that moved": (Dep(DepKind.CODE, "agents", "c0"),),
    "code that nobody pins": (Dep(DepKind.CODE, "others", "c1"),),
    "rule that moved": (Dep(DepKind.POLICY, "rule-2", "old"),),
    "rule that nobody pins": (Dep(DepKind.POLICY, "rule-3", "x"),),
    "tool that moved": (Dep(DepKind.TOOL, "agents", "t0"),),
    "evidence": (Dep(DepKind.EVIDENCE, "e", "1"),),
    "evidence that changed": (Dep(DepKind.EVIDENCE, "e", "1"), Dep(DepKind.EVIDENCE, "e", "2")),
    "input that is not there": (Dep(DepKind.UPSTREAM, "nobody", "x"),),
    "two that are not there, and evidence that changed": (
        Dep(DepKind.UPSTREAM, "nobody", "x"),
        Dep(DepKind.UPSTREAM, "missing", "x"),
        Dep(DepKind.EVIDENCE, "e", "1"),
        Dep(DepKind.EVIDENCE, "e", "2"),
    ),
    "own output": (Dep(DepKind.UPSTREAM, "s0", "x"),),
}
PINS: Final = {
    (RULE.kind, RULE.ref): RULE.digest,
    (DepKind.CODE, "agents"): "c1",
    (DepKind.TOOL, "agents"): "t1",
    (DepKind.POLICY, "rule-2"): "new",
}

Odd = tuple[int, str]
odds: Final = st.lists(
    st.tuples(st.integers(0, 8), st.sampled_from((*CHANGES, *INPUTS, "broken"))), max_size=5
)


def odd(record: Checkpoint, what: str) -> Checkpoint:
    """The record with something odd about it."""
    if what in INPUTS:
        deps = (*record.deps, *INPUTS[what])
        return msgspec.structs.replace(record, deps=deps)
    return msgspec.structs.replace(record, **CHANGES.get(what, {}))


def plain_world(broken: tuple[str, ...]) -> World:
    """A world without checks, in which these steps are broken."""
    found = TrustBreak(
        id="b", seq=5, epoch=1, detector="d", reason="r", selector=Steps(steps=broken)
    )
    return replace(
        world(),
        pins=PINS,
        producers=frozenset({"recorder", "revoked"}),
        revoked_producers=frozenset({"revoked"}),
        breaks=(found,) if broken else (),
    )


def a_check_that_finds_nothing_changes_nothing(
    core: Core, fleet: Fleet, changes: Sequence[Odd]
) -> None:
    """Whatever is odd about records: the short way to a verdict ends where the long one does."""
    graph, short = _drawn(core, fleet, changes)
    long = replace(short, integrity=_nothing_wrong)
    assert dict(core.Verdicts(graph, short).items()) == dict(core.Verdicts(graph, long).items())


def the_order_of_reading_is_none(core: Core, fleet: Fleet, changes: Sequence[Odd]) -> None:
    """In whatever order a step read its inputs: one verdict, and one culprit."""
    graph, seen = _drawn(core, fleet, changes)
    other = core.TrustGraph()
    for step in graph:
        record = graph[step]
        other.put(msgspec.structs.replace(record, deps=record.deps[::-1]))
    assert dict(core.Verdicts(graph, seen).items()) == dict(core.Verdicts(other, seen).items())


def _drawn(core: Core, fleet: Fleet, changes: Sequence[Odd]) -> tuple[TrustGraph, World]:
    told = records(fleet)
    broken: list[str] = []
    for at, what in changes:
        step = at % len(fleet)
        told[step] = odd(told[step], what)
        broken += [name(step)] if what == "broken" else []
    graph: TrustGraph = core.TrustGraph()
    for record in told:
        graph.put(record)
    return graph, plain_world(tuple(broken))


def _nothing_wrong(_: Checkpoint) -> None:
    return None
