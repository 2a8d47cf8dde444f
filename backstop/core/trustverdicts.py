"""The verdicts of a whole run: one pass over the graph, and the least work after a change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final

from backstop.core.checkpoint import Checkpoint, Dep, DepKind, StepKind
from backstop.core.trust import (
    MUST_BE_PINNED,
    STRUCTURAL,
    Badness,
    OwnChecks,
    Reason,
    State,
    Verdict,
    World,
)
from backstop.core.trustgraph import Node, TrustGraph

_UPSTREAM: Final = DepKind.UPSTREAM
_CLEAN, _UNKNOWN, _REPAIRABLE, _HARD = Badness
_EVER: Final = Verdict(State.VERIFIED, Reason.OK, _CLEAN, _CLEAN, inf)
_INHERITED: Final = {
    _UNKNOWN: State.UNKNOWN,
    _REPAIRABLE: State.RECOMPUTE,
    _HARD: State.BLOCKED,
}


class Verdicts:
    """The verdict of each step of `graph` in one world, kept up as records come in.

    As a mapping it goes from step to verdict. What `update` leaves is what a new `Verdicts` of
    the same graph and world would say.
    """

    __slots__ = ("_nodes", "_own", "_pins", "_table", "graph", "world")

    def __init__(self, graph: TrustGraph, world: World) -> None:
        self.graph = graph
        self.world = world
        self._own = OwnChecks(world)
        self._nodes = graph.nodes
        self._pins = world.pins
        self._table: list[Verdict | None] = []
        self._judge_all()

    def __getitem__(self, step: str) -> Verdict:
        """The verdict of a recorded step. Raises `KeyError`."""
        verdict = self._table[self._nodes[step].index]
        if verdict is None:
            raise KeyError(step)
        return verdict

    def __iter__(self) -> Iterator[str]:
        return iter(self.graph)

    def __len__(self) -> int:
        return len(self.graph)

    def items(self) -> Iterator[tuple[str, Verdict]]:
        """Steps and verdicts."""
        return ((step, self[step]) for step in self)

    def update(self, touched: Iterable[str]) -> set[str]:
        """Judge anew what records of these steps came in for; the steps whose verdict changed.

        Goes on only behind steps whose verdict or output changed. Steps that are not recorded
        are passed over.
        """
        order, cyclic = self.graph.order()
        self._grow()
        if cyclic:
            before = list(self._table)
            self._judge_all()
            return {n.step for n in (*order, *cyclic) if self._table[n.index] != before[n.index]}
        changed: set[str] = set()
        first = [self._nodes[step] for step in touched if step in self.graph]
        moved = {node.step for node in first}
        due = {node.place: node for node in first}
        places = list(due)
        heapify(places)
        while places:
            node = due.pop(heappop(places))
            verdict = self._judge(node)
            if verdict != self._table[node.index]:
                self._table[node.index] = verdict
                changed.add(node.step)
            elif node.step not in moved:
                continue
            for below in node.below:
                if below.place not in due:
                    due[below.place] = below
                    heappush(places, below.place)
        return changed

    def _judge_all(self) -> None:
        order, cyclic = self.graph.order()
        self._grow()
        table = self._table
        for node in order:
            table[node.index] = self._judge(node)
        for node in cyclic:
            table[node.index] = _blocked(Reason.CYCLE, node.step)

    def _grow(self) -> None:
        self._table += [None] * (self.graph.size - len(self._table))

    def _judge(self, node: Node) -> Verdict:
        checkpoint, own = node.checkpoint, self._own
        assert checkpoint is not None  # noqa: S101 - the order holds recorded steps only
        if node.conflict:
            return _blocked(Reason.DUPLICATE, node.step)
        if own.plain and not node.unsteady:
            horizon = own.sound_until(checkpoint)
            verdict = None if horizon is None else self._derived(checkpoint, horizon)
            if verdict is not None:
                return verdict
        fault, until = own.of(checkpoint, unsteady=node.unsteady)
        if fault is not None:
            return self._faulty(checkpoint, fault)
        verdict = self._derived(checkpoint, until)
        assert verdict is not None  # noqa: S101 - what is not pinned was found to be a fault
        return verdict

    def _faulty(self, checkpoint: Checkpoint, fault: Reason) -> Verdict:
        """The verdict on a step with a fault of its own, which hides none that is worse."""
        above = [dep.ref for dep in checkpoint.deps if dep.kind is _UPSTREAM]
        missing = [ref for ref in above if ref not in self.graph]
        if missing and fault not in STRUCTURAL:
            return _blocked(Reason.MISSING_DEP, min(missing))
        if fault is Reason.LEGACY:
            return Verdict(State.UNKNOWN, fault, _UNKNOWN, _UNKNOWN, -inf, checkpoint.step)
        mended = fault not in STRUCTURAL and checkpoint.rerunnable
        own = _REPAIRABLE if mended else _HARD
        passed_on = max((self[ref].badness for ref in above if ref not in missing), default=own)
        state = State.BLOCKED if fault in STRUCTURAL else State.INVALIDATED
        return Verdict(state, fault, max(own, passed_on), own, -inf, checkpoint.step)

    def _derived(self, checkpoint: Checkpoint, horizon: float) -> Verdict | None:
        """The verdict that the inputs of a step without a fault pass on.

        None where a pin shows an own fault. Looks at each input once, and closely only at those
        that do not simply hold: mostly there are none.
        """
        nodes, table, pins = self._nodes, self._table, self._pins
        odd: list[Dep] = []
        for dep in checkpoint.deps:
            kind = dep.kind
            if kind is _UPSTREAM:
                above = nodes[dep.ref]
                record = above.checkpoint
                if table[above.index] is not _EVER or not record or record.output != dep.digest:
                    odd.append(dep)
            else:
                pinned = pins.get((kind, dep.ref))
                if pinned != dep.digest and (pinned is not None or kind in MUST_BE_PINNED):
                    if pinned is None or kind is DepKind.POLICY:
                        return None
                    odd.append(dep)
        return self._weighed(checkpoint, odd, horizon) if odd or horizon != inf else _EVER

    def _weighed(self, checkpoint: Checkpoint, odd: list[Dep], horizon: float) -> Verdict:
        """The verdict that these inputs pass on: the worst counts, and of those the first by name.

        Where it is the same as an input's, it is that very value: a million steps share a few.
        """
        bad, why, culprit = _CLEAN, Reason.OK, None
        same = _EVER
        for dep in sorted(odd, key=_upstream_first):
            if dep.kind is not _UPSTREAM:
                if bad < _REPAIRABLE:
                    bad, why, culprit = _REPAIRABLE, Reason.PIN, f"{dep.kind}:{dep.ref}"
                continue
            above = self._nodes[dep.ref]
            record, verdict = above.checkpoint, self._table[above.index]
            if record is None or verdict is None:
                return _blocked(Reason.MISSING_DEP, dep.ref)
            if verdict.badness:
                if verdict.badness > bad:
                    bad, why, culprit, same = (
                        verdict.badness,
                        Reason.INPUT_STATE,
                        verdict.culprit,
                        verdict,
                    )
            elif record.output != dep.digest:
                if bad < _REPAIRABLE:
                    bad, why, culprit = _REPAIRABLE, Reason.INPUT_DIGEST, dep.ref
            elif verdict.horizon < horizon and not bad:
                horizon, same = verdict.horizon, verdict
        if bad:
            return _inherited(checkpoint, bad, why, culprit, same)
        if same.horizon == horizon:
            return same
        return Verdict(State.VERIFIED, Reason.OK, _CLEAN, _CLEAN, horizon)


def _upstream_first(dep: Dep) -> tuple[bool, Dep]:
    return dep.kind is not _UPSTREAM, dep


def _blocked(reason: Reason, culprit: str) -> Verdict:
    return Verdict(State.BLOCKED, reason, _HARD, _HARD, -inf, culprit)


def _inherited(
    checkpoint: Checkpoint, bad: Badness, why: Reason, culprit: str | None, same: Verdict
) -> Verdict:
    if checkpoint.kind is StepKind.EFFECT:
        state = State.BLOCKED  # whatever is wrong before it, it does not go out
    else:
        if bad is _REPAIRABLE and not checkpoint.rerunnable:
            bad = _HARD
        state = _INHERITED[bad]
    if (state, why, bad, culprit) == (same.state, same.reason, same.badness, same.culprit):
        return same
    return Verdict(state, why, bad, _CLEAN, -inf, culprit)
