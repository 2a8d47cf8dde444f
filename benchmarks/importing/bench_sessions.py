"""Importing a session database: events a second and peak memory, beside the floor.

    python -m benchmarks.importing.bench_sessions [EVENTS ...]

Each import is the whole command in a process of its own; what Python takes to start and to
import is told apart. The floor reads the same rows in the same order and decodes their JSON,
and does nothing with it.
"""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from time import perf_counter, process_time
from typing import Final

from benchmarks.importing.store import PER_SESSION, write

GOAL: Final = 20_000
SIZES: Final = (20_000, 100_000, 200_000)
ROUNDS: Final = 3
CONFIG: Final = """\
version: 1
agents:
  desk: {path: desk, ledger: desk.jsonl, tools: {pay: {identity: [order]}}}
"""
_INSIDE: Final = "--inside"
_FLOOR: Final = (
    "SELECT event_data FROM events ORDER BY app_name, user_id, session_id, timestamp, rowid"
)


def floor(store: Path) -> float:
    """CPU seconds of the least that a reader has to do."""
    start = process_time()
    with closing(sqlite3.connect(store)) as source:
        for (data,) in source.execute(_FLOOR):
            json.loads(data)
    return process_time() - start


def inside(store: str, folder: str) -> None:
    """One import; prints CPU seconds of start and import, seconds of wall time, and peak KiB."""
    from backstop.cli.importing import import_ledger

    started, begun = process_time(), perf_counter()
    import_ledger(
        store,
        kind="adk-session",
        out=Path(folder) / "desk.jsonl",
        config=Path(folder) / "backstop.yaml",
        agent=None,
        where=[],
        run_field=None,
        at="2026-01-01T00:00:00Z",
    )
    taken, wall = process_time() - started, perf_counter() - begun
    # Not what `getrusage` says: that remembers the process which started this one.
    found = re.search(r"^VmHWM:\s+(\d+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    peak = int(found[1]) if found else 0
    print(f"MEASURED {started} {taken} {wall} {peak}")


def measured(store: Path, folder: Path) -> tuple[float, ...]:
    """The four figures of `inside`."""
    module = "benchmarks.importing.bench_sessions"
    ran = subprocess.run(
        [sys.executable, "-m", module, _INSIDE, str(store), str(folder)],
        check=True,
        capture_output=True,
        text=True,
    )
    found = re.search(r"^MEASURED (.*)$", ran.stdout, re.MULTILINE)
    if found is None:
        raise RuntimeError(ran.stdout)
    return tuple(float(figure) for figure in found[1].split())


def report(events: int, folder: Path) -> float:
    """Print the figures of one size; events a CPU second."""
    store = folder / f"{events}.db"
    write(store, events // PER_SESSION)
    rounds = []
    for _ in range(ROUNDS):
        least = floor(store)
        rounds.append((*measured(store, folder), least))
    started, taken, wall, peak, least = (min(figures) for figures in zip(*rounds, strict=True))
    speed = events / taken
    print(
        f"{events:>8,} events  {speed:>8,.0f} /CPU s  {events / wall:>8,.0f} /s  "
        f"peak {peak / 1024:>4.0f} MiB  floor {events / least:>8,.0f} /CPU s "
        f"({taken / least:.1f} x)  start {started:.2f} CPU s",
        flush=True,
    )
    store.unlink()
    return speed


def main() -> None:
    """Measure stores of the sizes that are named, or of three."""
    sizes = [int(size) for size in sys.argv[1:]] or SIZES
    print(f"best of {ROUNDS}; sessions of {PER_SESSION} events, a call and its answer in four")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "backstop.yaml").write_text(CONFIG)
        speeds = [report(size, folder) for size in sizes]
    met = "met" if min(speeds) >= GOAL else "missed"
    print(f"goal of {GOAL:,} events a second: {met}")


if __name__ == "__main__":
    if sys.argv[1:2] == [_INSIDE]:
        inside(*sys.argv[2:])
    else:
        main()
