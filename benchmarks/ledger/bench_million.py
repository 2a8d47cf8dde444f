"""A million events, sealed from a generator and read as streams: time, memory, linearity.

    python -m benchmarks.ledger.bench_million [EVENTS ...]

Each step runs in a process of its own, whose peak memory is its own.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from time import process_time
from typing import Final

from backstop.adapters.files import chunks, write_atomic
from backstop.cli import run
from backstop.core.ledgerfile import read_batches, seal_lines, verify
from benchmarks.ledger.workload import HEADER, events

SIZES: Final = (100_000, 300_000, 1_000_000)
STEPS: Final = ("seal", "read_batches", "verify", "diff")
LIMIT_MB: Final = 300


def run_step(step: str, path: Path, total: int) -> None:
    """Do one step and print its CPU seconds and its peak memory in MB."""
    start = process_time()
    if step == "seal":
        write_atomic(path, seal_lines(HEADER, events(total)))
    elif step == "read_batches":
        seen = sum(
            len(b) for b in read_batches(chunks(path), name=path.name) if isinstance(b, list)
        )
        _expect(seen, total)
    elif step == "verify":
        _expect(verify(chunks(path), name=path.name).events, total)
    else:
        # Against itself: two ledgers of this size, and every call of one has its match.
        with redirect_stdout(StringIO()):
            code = run(["diff", str(path), str(path), "--format", "json"])
        _expect(code, 0)
    seconds = process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(seconds, peak)


def _expect(seen: int, total: int) -> None:
    if seen != total:
        sys.exit(f"got {seen}, not {total}")


def main(sizes: tuple[int, ...]) -> None:
    """Print a row for each size and step."""
    print(f"{'events':>10} {'step':14} {'CPU s':>8} {'us/event':>9} {'peak MB':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for total in sizes:
            path = Path(folder) / f"{total}.jsonl"
            for step in STEPS:
                command = [sys.executable, "-m", __spec__.name, step, str(path), str(total)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                seconds, peak = map(float, done.stdout.split())
                each = seconds / total * 1e6
                verdict = "" if peak <= LIMIT_MB else f"  over {LIMIT_MB} MB"
                print(f"{total:>10,} {step:14} {seconds:8.1f} {each:9.1f} {peak:8.0f}{verdict}")
            path.unlink()


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in STEPS:
        run_step(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
    else:
        main(tuple(map(int, sys.argv[1:])) or SIZES)
