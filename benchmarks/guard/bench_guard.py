"""What a guarded call costs, beside the peers that do the same, and what the guard adds to ADK.

    python -m benchmarks.guard.bench_guard [speed] [incidents] [adk] [--rounds N] [--keys N]

Contenders of like durability take turns, so that a busy machine and its disk slow all of them
alike; each sits in a process of its own. Peers live in `.venv-bench` (`make bench-guard`).
"""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks.guard import adk_turn, incidents, speed
from benchmarks.guard.disk import filesystem, sync_ms, warn_if_forgetful
from benchmarks.guard.hosts import PEERS_PYTHON
from benchmarks.guard.servers import Servers

PARTS: Final = ("speed", "incidents", "adk")
FOLDER: Final = Path("out/bench-guard")


def main() -> int:
    """Print all tables; 2 where the peers are not installed."""
    asked = _arguments()
    if not PEERS_PYTHON.exists():
        print("the peers are not installed: run `make bench-guard`", file=sys.stderr)
        return 2
    FOLDER.mkdir(parents=True, exist_ok=True)
    _about(FOLDER)
    parts = asked.parts or PARTS
    with tempfile.TemporaryDirectory(dir=FOLDER) as name, ExitStack() as stack:
        folder = Path(name)
        servers = Servers(stack, python=PEERS_PYTHON)
        if "speed" in parts:
            speed.report(folder, servers, rounds=asked.rounds)
        if "adk" in parts:
            adk_turn.report(folder, rounds=asked.rounds)
        if "incidents" in parts:
            incidents.report(folder, servers, keys=asked.keys)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench_guard")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--keys", type=int, default=1)
    return parser.parse_args()


def _about(folder: Path) -> None:
    warn_if_forgetful(folder)
    print(
        f"{len(os.sched_getaffinity(0))} cores, load average {os.getloadavg()[0]:.1f}, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}; databases on "
        f"{filesystem(folder)}, fdatasync p50 {sync_ms(folder):.2f} ms"
    )


if __name__ == "__main__":
    raise SystemExit(main())
