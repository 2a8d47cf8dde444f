"""Blast radius and recovery plan in the realistic fleet, beside peers; judging, updating, memory.

    python -m benchmarks.mesh.bench_radius [RUNS] [ROUNDS]

A hundred thousand runs of ten steps each, where nobody says otherwise. Every contender holds
the whole fleet in a process of its own. Each round asks all of them, one after another, about
the same steps, which were not asked about before, and begins with another one. An answer that
is not the radius by its definition ends the bench, and so does a plan in an impossible order.
Peers live in `.venv-bench-mesh` (`make bench-mesh`).
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.mesh.fleet import STEPS, reads

PEERS_PYTHON: Final = Path(".venv-bench-mesh/bin/python")
OURS: Final = "backstop"
NAMES: Final = (OURS, "rustworkx", "networkx", "sqlite")
BESIDE: Final = "rustworkx"
RUNS: Final = 100_000
ROUNDS: Final = 15
ASKED: Final = 200


@dataclass(slots=True, kw_only=True)
class Host:
    """A contender that has built its fleet."""

    name: str
    process: subprocess.Popen[str]
    told: dict[str, Any]

    def ask(self, question: str, steps: Sequence[int]) -> tuple[list[float], list[list[int]]]:
        """Microseconds for each step, and what was found."""
        print(json.dumps([question, steps]), file=self.process.stdin, flush=True)
        told = _line(self.process, self.name)
        return [each / 1000 for each in told["ns"]], told["found"]


def _line(process: subprocess.Popen[str], name: str) -> dict[str, Any]:
    line = process.stdout.readline() if process.stdout else ""
    if not line:
        sys.exit(f"{name} ended with exit code {process.wait()}; see above")
    told: dict[str, Any] = json.loads(line)
    return told


@contextmanager
def hosted(name: str, runs: int) -> Iterator[Host]:
    """Start a contender, and wait until it has built its fleet."""
    python = sys.executable if name == OURS else str(PEERS_PYTHON)
    command = [python, "-m", "benchmarks.mesh.contender", name, str(runs)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Host(name=name, process=process, told=_line(process, name))
        finally:
            process.kill()


def radius_of(step: int) -> set[int]:
    """The step and all that was made from it, by the definition."""
    run, at = divmod(step, STEPS)
    found = {at}
    for below, above in enumerate(reads(run)):
        if found & set(above):
            found.add(below)
    return {run * STEPS + one for one in found}


def check(question: str, name: str, step: int, found: Sequence[int]) -> None:
    """End the bench if an answer is wrong."""
    wanted = radius_of(step)
    if len(found) != len(wanted) or set(found) != wanted:
        sys.exit(f"{name}, {question} of {step}: {sorted(found)} and not {sorted(wanted)}")
    if question == "plan":
        place = {one: number for number, one in enumerate(found)}
        for one in found:
            run, at = divmod(one, STEPS)
            above = [run * STEPS + other for other in reads(run)[at]]
            if any(place.get(other, -1) > place[one] for other in above):
                sys.exit(f"{name}, plan of {step}: {one} stands before what it reads: {found}")


def side_by_side(hosts: Sequence[Host], question: str, rounds: int, steps: Iterator[int]) -> None:
    """Ask all the same, and print a row for each."""
    spent: dict[str, list[list[float]]] = {host.name: [] for host in hosts}
    for number in range(rounds):
        asked = [next(steps) for _ in range(ASKED)]
        first = number % len(hosts)
        for host in (*hosts[first:], *hosts[:first]):
            took, found = host.ask(question, asked)
            for step, one in zip(asked, found, strict=True):
                check(question, host.name, step, one)
            spent[host.name].append(took)
    medians = {name: [statistics.median(one) for one in took] for name, took in spent.items()}
    for name, took in spent.items():
        each = [one for rounded in took for one in rounded]
        ratio = statistics.median(
            ours / theirs for ours, theirs in zip(medians[OURS], medians[name], strict=True)
        )
        print(
            f"| {question} | {name} | {statistics.median(each):.1f} | {min(each):.1f} | "
            f"{statistics.quantiles(each, n=100)[98]:.1f} | {ratio:.2f}x |"
        )


def alone(host: Host, question: str, steps: Sequence[int], wanted: str) -> None:
    """Ask what only we answer, and print a row."""
    took, found = host.ask(question, steps)
    for step, one in zip(steps, found, strict=True):
        check(question, host.name, step, one)
    print(f"| {wanted} | {statistics.median(took):.1f} | {min(took):.1f} | {max(took):.1f} |")


def main() -> None:
    """Print the tables."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else ROUNDS
    if not PEERS_PYTHON.exists():
        sys.exit(f"{PEERS_PYTHON} is not there: `make bench-mesh` makes it")
    order = list(range(runs * STEPS))
    random.Random(11).shuffle(order)
    steps = iter(order)
    with ExitStack() as stack:
        hosts = [stack.enter_context(hosted(name, runs)) for name in NAMES]
        ours = hosts[0]
        print(f"{runs:,} runs of {STEPS} steps; {rounds} rounds of {ASKED} steps each, µs\n")
        print("| asked | contender | median | least | p99 | ours / theirs |")
        print("| --- | --- | --- | --- | --- | --- |")
        for question in ("blast", "plan"):
            side_by_side(hosts, question, rounds, steps)
        print("\n| asked of Backstop alone | median µs | least | most |")
        print("| --- | --- | --- | --- |")
        last = [step // STEPS * STEPS for step in (next(steps) for _ in range(ASKED))]
        alone(ours, "update", list(dict.fromkeys(last)), "a later attempt, radius of ten")
        inputs = [next(steps) // STEPS * STEPS for _ in range(5)]
        alone(ours, "everywhere", inputs, "shared evidence, all runs looked through")
        print("\n| contender | bytes a step | built in s |")
        print("| --- | --- | --- |")
        for host in hosts:
            size = host.told["bytes"] / (runs * STEPS)
            print(f"| {host.name} | {size:.0f} | {host.told['built_s']:.1f} |")
    judged = ours.told["judged_us"]
    print(
        f"\nBackstop beside the records; a record taken in {ours.told['put_us']:.2f} µs, "
        f"all judged in {statistics.median(judged):.2f} µs a step, {min(judged):.2f} at least"
    )


if __name__ == "__main__":
    main()
