"""How near our readers come to the floor: reading, hashing and decoding the same bytes.

    python -m benchmarks.ledger.bench_load [LEDGER]

All contenders take turns in one process, so that a busy machine slows all of them alike.
"""

from __future__ import annotations

import hashlib
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Final

import msgspec

from backstop.adapters.files import chunks, read_bytes, write_atomic
from backstop.core.events import Line
from backstop.core.ledgerfile import read, read_batches, seal_lines, verify
from benchmarks.ledger.workload import HEADER, events

SPECIMEN: Final = Path("ledgers/vendor-onboarding.jsonl")
EVENTS: Final = 1_094
ROUNDS: Final = 60


def floor(path: Path) -> object:
    """The least that a reader has to do: no header, no seal, no check of anything."""
    data = path.read_bytes()
    hashlib.sha256(data).hexdigest()
    return LINES.decode_lines(data)


LINES: Final = msgspec.json.Decoder(Line)

CONTENDERS: Final[dict[str, Callable[[Path], object]]] = {
    "floor: read + sha256 + msgspec decode": floor,
    "read": lambda path: read(read_bytes(path), name=path.name),
    "read_batches": lambda path: list(read_batches(chunks(path), name=path.name)),
    "verify": lambda path: verify(chunks(path), name=path.name),
}


def measure(path: Path) -> dict[str, float]:
    """Median CPU milliseconds of each contender."""
    times: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for _ in range(ROUNDS):
        for name, contender in CONTENDERS.items():
            contender(path)  # the garbage of whoever came before is not this one's to sweep
            start = process_time()
            contender(path)
            times[name].append((process_time() - start) * 1000)
    return {name: statistics.median(values) for name, values in times.items()}


def report(path: Path, title: str) -> None:
    """Print the table of one ledger."""
    summary = verify(chunks(path), name=path.name)
    size = path.stat().st_size
    print(f"{title}: {summary.events:,} events, {size / summary.events:.0f} bytes an event")
    medians = measure(path)
    least = medians[next(iter(CONTENDERS))]
    for name, median in medians.items():
        print(f"  {name:40} {median:8.3f} CPU ms  {median / least:6.2f} x floor")


def main() -> None:
    """Measure the ledger that is named, the specimen where there is one, and a made-up one."""
    named = Path(sys.argv[1]) if len(sys.argv) > 1 else SPECIMEN
    if named.exists():
        report(named, str(named))
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.jsonl"
        write_atomic(made, seal_lines(HEADER, events(EVENTS)))
        report(made, "made up")


if __name__ == "__main__":
    main()
