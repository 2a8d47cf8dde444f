"""What drift adds to a replay: CPU seconds of an unchanged version and of one that drifts.

    python -m benchmarks.replay.bench_drift [--large]

The same code is replayed against the same ledger three ways, in turn: as it was recorded, with
the whole history in view; with every recorded request under another instruction, so that each
answer drifts and all is assumed; and as it was recorded with the bounded view, which a version
that drifts cannot have (ADR 0016). Starting a harness is measured apart and taken off.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from backstop.core.events import Event, ModelAnswered
from backstop.core.ledgerfile import Ledger, read
from backstop.core.sealing import seal_lines
from backstop.replay.window import RECENT
from benchmarks.replay import workload
from benchmarks.replay.bench_replay import LEDGER, SPECIMEN, sample_of
from benchmarks.replay.measuring import measured, start_only

ROUNDS: Final = 3
GOAL: Final = 1.10


def main() -> int:
    """Print the table."""
    runs, events = (8, 600) if "--large" in sys.argv else (2, 240)
    print(f"load average {os.getloadavg()[0]:.1f}, {len(os.sched_getaffinity(0))} cores")
    specimen = read(LEDGER.read_bytes(), name=LEDGER.name)
    sample = sample_of("forgetful")
    made = workload.ledger("forgetful", runs=runs, events=events)
    made = workload.with_requests(made, sample, whole=False)
    cases = {
        f"specimen, v3: {len(specimen.events):,} events": (specimen, SPECIMEN),
        f"{runs} runs of {events} events": (made, workload.AGENTS / "forgetful"),
    }
    for name, (ledger, agent) in cases.items():
        started = statistics.median(start_only(agent) for _ in range(ROUNDS))
        ways = {
            "unchanged": (ledger, "none", 0),
            "drifted in every step": (reworded(ledger), "drifted", 0),
            "unchanged, bounded view": (ledger, "none", RECENT),
        }
        spent: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(ROUNDS):
            for way, (recorded, drift, recent) in ways.items():
                cost = measured(recorded, agent, drift=drift, recent=recent)[1].cpu
                spent[way].append(cost - started)
        print(f"\n{name}; medians of {ROUNDS} rounds; a start of {started:.2f} CPU s is taken off")
        medians = {way: statistics.median(costs) for way, costs in spent.items()}
        for way, median in medians.items():
            ratio = median / medians["unchanged"]
            print(f"  {way:26} {median:6.2f} CPU s  {ratio:5.2f} x")
        met = medians["drifted in every step"] / medians["unchanged"] <= GOAL
        print(f"  drift adds at most {GOAL - 1:.0%}: {'met' if met else 'missed'}")
    return 0


def reworded(ledger: Ledger) -> Ledger:
    """The ledger as if each model had been asked under another instruction."""
    lines = b"".join(seal_lines(ledger.header, list(_reworded(ledger))))
    return read(lines, name="reworded.jsonl")


def _reworded(ledger: Ledger) -> Iterator[Event]:
    for event in ledger.events:
        if isinstance(event, ModelAnswered) and event.request is not None:
            asked = replace(event.request, instruction="0" * len(event.request.instruction))
            yield replace(event, request=asked)
        else:
            yield event


if __name__ == "__main__":
    raise SystemExit(main())
