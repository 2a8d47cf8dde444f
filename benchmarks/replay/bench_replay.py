"""What a replay through the real Runner costs, and how it grows: CPU seconds, side by side.

    python -m benchmarks.replay.bench_replay [--large]

Starting a harness, which imports the framework and the candidate, is measured apart and taken
off. `--large` adds 20,000 events with the turn at hand, and 5,000 with the whole
conversation, which is the framework's own square and takes many minutes.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Final

from backstop.core.events import RequestDigests
from backstop.core.ledgerfile import Ledger, read
from benchmarks.replay import workload
from benchmarks.replay.measuring import (
    Measured,
    measured,
    sampled_bundle,
    start_only,
    stock_bundle,
)

SPECIMEN: Final = Path("examples/vendor_onboarding/v3")
LEDGER: Final = Path("ledgers/vendor-onboarding.jsonl")
ROUNDS: Final = 3
SAMPLE_EVENTS: Final = 40


def main() -> int:
    """Print all tables."""
    large = "--large" in sys.argv
    print(f"load average {os.getloadavg()[0]:.1f}, {len(os.sched_getaffinity(0))} cores")
    started = statistics.median(start_only(SPECIMEN) for _ in range(ROUNDS))
    print(f"start of a harness: {started:.2f} CPU s (taken off below)")
    specimen(started)
    turn_at_hand(started, (1_100, 5_000, 20_000) if large else (1_100, 5_000))
    whole_conversation((1_100, 5_000) if large else (1_100,))
    workers()
    memory()
    return 0


def specimen(started: float) -> None:
    """The committed ledger with full request digests, beside the stock sessions."""
    ledger = read(LEDGER.read_bytes(), name=LEDGER.name)
    print(f"\nspecimen, v3: {len(ledger.events):,} events, 7 runs, handover; {ROUNDS} rounds")
    bundles = {"replay": None, "stock InMemorySessionService": stock_bundle}
    times: dict[str, list[float]] = {name: [] for name in bundles}
    for _ in range(ROUNDS):
        for name, bundle in bundles.items():
            options = {} if bundle is None else {"bundle": bundle}
            times[name].append(measured(ledger, SPECIMEN, **options)[1].cpu - started)
    medians = {name: statistics.median(spent) for name, spent in times.items()}
    for name, median in medians.items():
        print(f"  {name:30} {median:7.2f} CPU s  {median / medians['replay']:5.2f} x")


def turn_at_hand(started: float, sizes: tuple[int, ...]) -> None:
    """One session whose model sees the turn at hand only: linear, beside the stock sessions."""
    print("\none session, include_contents='none', events in the session:")
    sample = sample_of("forgetful")
    for events in sizes:
        ledger = _recorded("forgetful", events, sample)
        _, spent = measured(ledger, workload.AGENTS / "forgetful")
        _row("replay", events, spent, started)
    least = sizes[0]
    ledger = _recorded("forgetful", least, sample)
    _, spent = measured(ledger, workload.AGENTS / "forgetful", bundle=stock_bundle)
    _row("stock", least, spent, started)


def whole_conversation(sizes: tuple[int, ...]) -> None:
    """One session whose model sees all of it: the framework's own time beside ours."""
    print("\none session, the whole conversation in each request (sampled inside the run):")
    print("  events  contents s  framework s  loop s  harness s  driver s  ours / contents")
    sample = sample_of("mindful")
    for events in sizes:
        ledger = _recorded("mindful", events, sample)
        _, spent = measured(ledger, workload.AGENTS / "mindful", bundle=sampled_bundle)
        shares = spent.shares
        ours = shares["harness"] + spent.driver
        print(
            f"  {events:6,} {shares['contents']:11.2f} {shares['framework']:12.2f} "
            f"{shares['loop']:7.2f} {shares['harness']:10.2f} {spent.driver:9.2f} "
            f"{ours / shares['contents']:16.1%}"
        )


def workers() -> None:
    """Runs on one process and on two."""
    ledger = workload.ledger("forgetful", runs=8, events=240)
    sample = sample_of("forgetful")
    ledger = workload.with_requests(ledger, sample, whole=False)
    print("\n8 runs of 240 events, by number of processes (starts included):")
    for number in (1, 2):
        _, spent = measured(ledger, workload.AGENTS / "forgetful", workers=number)
        print(f"  {number}: {spent.wall:6.2f} s wall {spent.cpu:7.2f} CPU s")


def memory() -> None:
    """Peak memory of a gate on the specimen: of its own process, and of the largest child."""
    command = [sys.executable, "-m", __spec__.name, "--gate"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    own, _ = map(int, done.stdout.split()[-2:])
    print(f"\ngate on the specimen, peak memory: {own} MB")


def _gate() -> int:
    from backstop.cli import run

    run(["gate", "--agent", "vendor-onboarding", "--candidate", str(SPECIMEN), "--quiet"])
    print(
        *(
            resource.getrusage(who).ru_maxrss // 1024
            for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
    )
    return 0


def sample_of(agent: str) -> RequestDigests:
    """A request of the agent: all but its contents is the same in each."""
    ledger = workload.ledger(agent, events=SAMPLE_EVENTS)
    done, _ = measured(ledger, workload.AGENTS / agent, is_control=True)
    return next(iter(done.requests.values()))


def _recorded(agent: str, events: int, sample: RequestDigests) -> Ledger:
    ledger = workload.ledger(agent, events=events)
    return workload.with_requests(ledger, sample, whole=agent == "mindful")


def _row(name: str, events: int, spent: Measured, started: float) -> None:
    seconds = spent.cpu - started
    each = 1000 * seconds / events
    print(f"  {name:8} {events:7,} {seconds:8.2f} CPU s  {each:6.2f} ms an event")


if __name__ == "__main__":
    raise SystemExit(_gate() if "--gate" in sys.argv else main())
