"""One contender in a process of its own, in its own environment: ``python -m ... NAME RUNS``.

It builds the fleet in its own form, says what that took, and then answers questions, one a
line: how long it took for each step, in nanoseconds, and what it found, as numbers.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from time import perf_counter, perf_counter_ns
from typing import Any, Final

from benchmarks.mesh.measuring import resident
from benchmarks.mesh.peers import Networkx, Rustworkx, Sqlite


def _ours(runs: int) -> object:
    from benchmarks.mesh.ours import Ours  # where the project is installed, and nowhere else

    return Ours(runs)


CONTENDERS: Final[dict[str, Callable[[int], object]]] = {
    "backstop": _ours,
    "rustworkx": Rustworkx,
    "networkx": Networkx,
    "sqlite": Sqlite,
}
LIBRARIES: Final = ("networkx", "rustworkx")


def main() -> None:
    """Serve until standard input ends."""
    name, runs = sys.argv[1], int(sys.argv[2])
    if name in LIBRARIES:
        __import__(name)  # its code is not what the fleet needs
    before, start = resident(), perf_counter()
    contender: Any = CONTENDERS[name](runs)
    told = {"built_s": perf_counter() - start, "bytes": resident() - before}
    print(json.dumps(told | getattr(contender, "told", {})), flush=True)
    gc.freeze()  # a collection does not look through it while it is asked
    for line in sys.stdin:
        question, steps = json.loads(line)
        act = getattr(contender, question)
        spent, found = [], []
        for key in [contender.key(step) for step in steps]:
            start_ns = perf_counter_ns()
            answer = act(key)
            spent.append(perf_counter_ns() - start_ns)
            found.append(answer)
        numbers = [contender.numbers(answer) for answer in found]
        print(json.dumps({"ns": spent, "found": numbers}), flush=True)


if __name__ == "__main__":
    main()
