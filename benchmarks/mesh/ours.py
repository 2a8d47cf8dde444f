"""Backstop's own core over the fleet: a graph for each run, and what holds in it."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from dataclasses import replace
from time import process_time
from typing import Final, TypeAlias

import msgspec

from backstop.core.checkpoint import Checkpoint, DepKind
from backstop.core.recovery import plan
from backstop.core.trust import Badness
from backstop.core.trustbreak import Inputs, Selector, Steps, TrustBreak
from backstop.core.trustgraph import TrustGraph
from backstop.core.trustverdicts import Verdicts
from benchmarks.mesh.fleet import STEPS, evidence_of, name_of, number_of, records_of, run_of, world
from benchmarks.mesh.measuring import resident

PASSES: Final = 3

Key: TypeAlias = tuple[str, str]
"""A run and a step of it."""


def graph_of(records: Iterable[Checkpoint]) -> TrustGraph:
    """The graph of a run."""
    graph = TrustGraph()
    for record in records:
        graph.put(record)
    return graph


class Ours:
    """A fleet that is judged, and asked. `told` is what that took beside the records."""

    def __init__(self, runs: int) -> None:
        records = [records_of(run) for run in range(runs)]
        gc.collect()
        gc.freeze()
        before = resident()
        self._world = world()
        self._last = runs * STEPS + 1
        start = process_time()
        self._graphs = {told[0].run: graph_of(told) for told in records}
        put = process_time() - start
        passes = [self._judge() for _ in range(PASSES)]
        self.told = {
            "bytes": resident() - before,
            "put_us": 1e6 * put / (runs * STEPS),
            "judged_us": [1e6 * one / (runs * STEPS) for one in passes],
        }

    def _judge(self) -> float:
        self._verdicts: dict[str, Verdicts] = {}
        gc.collect()
        start = process_time()
        self._verdicts = {run: Verdicts(graph, self._world) for run, graph in self._graphs.items()}
        return process_time() - start

    @staticmethod
    def key(step: int) -> Key:
        """What the step is called."""
        return run_of(step // STEPS), name_of(step % STEPS)

    @staticmethod
    def numbers(told: tuple[str, Iterable[str]]) -> list[int]:
        """The steps of a run as numbers."""
        run, steps = told
        return [number_of(run, step) for step in steps]

    def blast(self, key: Key) -> tuple[str, Iterable[str]]:
        """The step and all that was made from it."""
        run, step = key
        return run, self._graphs[run].blast((step,))

    def plan(self, key: Key) -> tuple[str, Iterable[str]]:
        """What has to be run again or held, after trust in the step broke: all verdicts anew."""
        run, step = key
        seen = replace(self._world, breaks=(self._broken(Steps(steps=(step,))),))
        planned = plan(Verdicts(self._graphs[run], seen))
        return run, planned.rerun + planned.hold

    def update(self, key: Key) -> tuple[str, Iterable[str]]:
        """Take in a later attempt at the step, whose output is another one; what that changed."""
        run, step = key
        graph, verdicts = self._graphs[run], self._verdicts[run]
        known = graph[step]
        graph.put(msgspec.structs.replace(known, gen=known.gen + 1, output="another"))
        verdicts.update((step,))
        behind = [one for one, verdict in verdicts.items() if verdict.badness > Badness.CLEAN]
        return run, [step, *behind]

    def everywhere(self, key: Key) -> tuple[str, Iterable[str]]:
        """What of all runs the evidence reaches that the run read; the run's own part of it."""
        run, _ = key
        found = self._broken(Inputs(kind=DepKind.EVIDENCE, ref=evidence_of(run)))
        reached = {
            one: graph.blast(named)
            for one, graph in self._graphs.items()
            if (named := graph.selected(found))
        }
        return run, reached[run]

    def _broken(self, selector: Selector) -> TrustBreak:
        return TrustBreak(
            id="b", seq=self._last, epoch=1, detector="d", reason="r", selector=selector
        )
