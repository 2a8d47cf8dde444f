"""The hammer: does an effect go out twice, or not at all, under kill -9 and SIGSTOP?

Exit 0 if nothing was sent twice, skipped or left unfinished; 1 if anything was.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Iterator

from backstop.adapters.emulators import emulators_missing, firestore_emulator
from benchmarks.hammer.broker import Report
from benchmarks.hammer.plan import Kept, Run, control, long, short
from benchmarks.hammer.stores import load
from benchmarks.hammer.strike import Count, strike

_EMULATOR = "FIRESTORE_EMULATOR_HOST"


def main() -> int:
    """Parse, hammer, print; the last line is the count."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hammer", description=__doc__)
    parser.add_argument("size", choices=("short", "long", "naive"))
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--store", choices=("all", *(kept.value for kept in Kept)), default="all")
    asked = parser.parse_args()
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"  # channels are opened in children only
    counts: list[Count] = []
    left_out = False
    for kept in [Kept.SQLITE] if asked.size == "naive" else list(Kept):
        if asked.store not in {"all", kept.value}:
            continue
        if (why := _missing(kept)) is not None:
            print(f"{kept.value} left out: {why}")
            left_out = asked.store != "all"
            continue
        load(kept)
        with _served(kept):
            counts += [_struck(run) for run in _runs(asked.size, kept, asked.seed)]
    duplicates = sum(count.duplicates for count in counts)
    skips = sum(count.skips for count in counts)
    unfinished = sum(count.unfinished for count in counts)
    print(f"duplicates {duplicates}, silent skips {skips}, unfinished keys {unfinished}")
    return 1 if left_out or not all(count.right for count in counts) else 0


def _missing(kept: Kept) -> str | None:
    named = kept is Kept.SQLITE or os.environ.get(_EMULATOR)
    return None if named else emulators_missing()


def _runs(size: str, kept: Kept, seed: int) -> list[Run]:
    match size:
        case "short":
            return short(kept, seed)
        case "long":
            return long(kept, seed)
        case _:
            return control(seed)


@contextlib.contextmanager
def _served(kept: Kept) -> Iterator[None]:
    """Firestore's emulator, unless one is named already."""
    if kept is not Kept.FIRESTORE or os.environ.get(_EMULATOR):
        yield
        return
    with firestore_emulator() as host:
        os.environ[_EMULATOR] = host
        try:
            yield
        finally:
            del os.environ[_EMULATOR]


def _struck(run: Run) -> Count:
    began = time.monotonic()
    count = strike(run, _progress(run))
    report = count.report
    print(
        f"{'ok  ' if count.right else 'BAD '} {run.name}: {run.ticks} keys, "
        f"{report.deliveries} deliveries, {report.kills} kills, {report.stops} stops, "
        f"{count.effects} effects; duplicates {count.duplicates}, skips {count.skips}, "
        f"unfinished {count.unfinished}; in doubt {count.in_doubt} (unlisted {count.unlisted}), "
        f"by hand {count.by_hand}, fenced {count.fenced}, illegal {count.illegal}, "
        f"blows not dealt {count.unhit}; "
        f"{time.monotonic() - began:.1f} s",
        flush=True,
    )
    return count


class _progress:  # noqa: N801 - called like a function, and keeps the time
    """Tells on a terminal how far a run is, a few times a second."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._next = 0.0
        self._shown = sys.stderr.isatty()

    def __call__(self, report: Report) -> None:
        now = time.monotonic()
        if not self._shown or now < self._next:
            return
        self._next = now + 0.2
        done = len(report.acknowledged | report.doubted)
        print(
            f"\r{self._run.name}: {done} of {self._run.ticks} keys, {report.kills} kills\x1b[K\r",
            end="",
            file=sys.stderr,
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
