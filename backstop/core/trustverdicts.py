"""The verdicts of a whole run: one pass over the graph, and the least work after a change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final

from backstop.core.checkpoint import Checkpoint, StepKind
from backstop.core.trust import (
    STRUCTURAL,
    Badness,
    OutsideFacts,
    OwnChecks,
    Reason,
    State,
    Verdict,
    World,
    outside_facts,
)
from backstop.core.trustgraph import Node, TrustGraph

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

    def __init__(self, graph: TrustGraph, world: World) -> None:
        self.graph = graph
        self.world = world
        self._own = OwnChecks(world)
        self._facts: list[OutsideFacts] = []
        self._table: list[Verdict | None] = []
        self._judge_all()

    def __getitem__(self, step: str) -> Verdict:
        """The verdict of a recorded step. Raises `KeyError`."""
        verdict = self._table[self.graph.node(step).index]
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
        first = [self.graph.node(step) for step in touched if step in self.graph]
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
            for below in node.below.values():
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
        outsides = self.graph.outsides
        self._facts += [outside_facts(one, self.world) for one in outsides[len(self._facts) :]]
        self._table += [None] * (self.graph.size - len(self._table))

    def _judge(self, node: Node) -> Verdict:
        checkpoint, outside = node.checkpoint, node.outside
        assert checkpoint is not None  # noqa: S101 - the order holds recorded steps only
        assert outside is not None  # noqa: S101
        if node.conflict:
            return _blocked(Reason.DUPLICATE, node.step)
        facts = self._facts[outside.index]
        fault, horizon = self._own.of(checkpoint, facts)
        if fault is not None:
            return self._faulty(node, checkpoint, fault)
        return self._derived(node, checkpoint, facts, horizon)

    def _faulty(self, node: Node, checkpoint: Checkpoint, fault: Reason) -> Verdict:
        """The verdict on a step with a fault of its own, which hides none that is worse."""
        if fault not in STRUCTURAL:
            missing = next((above for above, _ in node.above if above.checkpoint is None), None)
            if missing is not None:
                return _blocked(Reason.MISSING_DEP, missing.step)
        if fault is Reason.LEGACY:
            return Verdict(State.UNKNOWN, fault, _UNKNOWN, _UNKNOWN, -inf, node.step)
        mended = fault not in STRUCTURAL and checkpoint.rerunnable
        own = _REPAIRABLE if mended else _HARD
        passed_on = max(
            (self._at(above).badness for above, _ in node.above if above.checkpoint), default=own
        )
        state = State.BLOCKED if fault in STRUCTURAL else State.INVALIDATED
        return Verdict(state, fault, max(own, passed_on), own, -inf, node.step)

    def _derived(
        self, node: Node, checkpoint: Checkpoint, facts: OutsideFacts, horizon: float
    ) -> Verdict:
        """The verdict that the inputs of a step without a fault pass on.

        Where it is the same as an input's, it is that very value: a million steps share a few.
        """
        bad, why, culprit = _CLEAN, Reason.OK, None
        same = _EVER
        for above, read in node.above:
            record = above.checkpoint
            if record is None:
                return _blocked(Reason.MISSING_DEP, above.step)
            verdict = self._at(above)
            if verdict.badness:
                if verdict.badness > bad:
                    bad, why, culprit, same = (
                        verdict.badness,
                        Reason.INPUT_STATE,
                        verdict.culprit,
                        verdict,
                    )
            elif record.output != read:
                if bad < _REPAIRABLE:
                    bad, why, culprit = _REPAIRABLE, Reason.INPUT_DIGEST, above.step
            elif verdict.horizon < horizon and not bad:
                horizon, same = verdict.horizon, verdict
        if facts.moved is not None and bad < _REPAIRABLE:
            bad, why, culprit = _REPAIRABLE, Reason.PIN, f"{facts.moved.kind}:{facts.moved.ref}"
        if bad:
            return _inherited(checkpoint, bad, why, culprit, same)
        if same.horizon == horizon:
            return same
        return Verdict(State.VERIFIED, Reason.OK, _CLEAN, _CLEAN, horizon)

    def _at(self, node: Node) -> Verdict:
        verdict = self._table[node.index]
        assert verdict is not None  # noqa: S101 - judged before what was made from it
        return verdict


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
