"""Judging a whole run, taking one record in, and the blast radius, by the number of steps.

    python -m benchmarks.mesh.bench_verdicts [STEPS ...]

The run has 100 layers (fewer where it is small); each step reads three of the layer before.
"""

from __future__ import annotations

import gc
import random
import statistics
import sys
import tracemalloc
from collections.abc import Callable
from time import process_time
from typing import Final

import msgspec

from backstop.core.checkpoint import Checkpoint, Dep, DepKind, StepKind, Usage
from backstop.core.trust import World
from backstop.core.trustgraph import TrustGraph
from backstop.core.trustverdicts import Verdicts

SIZES: Final = (1_000, 10_000, 100_000)
ROUNDS: Final = 5
RULE: Final = Dep(DepKind.POLICY, "rule", "1")
WORLD: Final = World(now=1.0, pins={(RULE.kind, RULE.ref): "1"}, producers=frozenset({"recorder"}))


def run(steps: int) -> TrustGraph:
    """A run in layers."""
    chance = random.Random(3)
    width = max(steps // 100, 10)
    graph = TrustGraph()
    for number in range(steps):
        layer = number // width
        above = {(layer - 1) * width + chance.randrange(width) for _ in range(3 if layer else 0)}
        graph.put(
            Checkpoint(
                run="r",
                step=f"s{number}",
                kind=StepKind.MODEL if layer else StepKind.INPUT,
                deps=(*(Dep(DepKind.UPSTREAM, f"s{n}", f"d{n}") for n in above), RULE),
                output=f"d{number}",
                producer="recorder",
                observed_at=0.0,
                usage=Usage(calls=1, input_tokens=400),
            )
        )
    return graph


def median(work: Callable[[], object]) -> float:
    """Median CPU seconds of some rounds."""
    spent = []
    for _ in range(ROUNDS):
        gc.collect()
        start = process_time()
        work()
        spent.append(process_time() - start)
    return statistics.median(spent)


def main() -> int:
    """Print a line for each size."""
    sizes = [int(word) for word in sys.argv[1:]] or SIZES
    for steps in sizes:
        graph = run(steps)
        whole = median(lambda graph=graph: Verdicts(graph, WORLD))
        tracemalloc.start()
        verdicts = Verdicts(graph, WORLD)
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        print(
            f"{steps:>9,} steps: all {whole:8.4f} s, {1e6 * whole / steps:5.2f} µs a step, "
            f"{size / steps:4.0f} bytes of verdicts a step"
        )
        for place, number in (("late", steps * 97 // 100), ("early", 1)):
            step = f"s{number}"

            def take(step: str = step, verdicts: Verdicts = verdicts) -> None:
                known = verdicts.graph[step]
                ttl = None if known.ttl else 0.5
                verdicts.graph.put(msgspec.structs.replace(known, gen=known.gen + 1, ttl=ttl))
                verdicts.update({step})

            reached = len(graph.blast({step}))
            print(
                f"            {place:>5}: one record in {1e3 * median(take):8.3f} ms, blast of "
                f"{reached:,} in {1e3 * median(lambda s=step, g=graph: g.blast({s})):8.3f} ms"
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
