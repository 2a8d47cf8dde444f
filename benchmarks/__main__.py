"""All benchmarks, one after another: ``python -m benchmarks [--large]``, or ``make bench``."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

BENCHES: Final = (
    ("benchmarks.ledger.bench_load", (), ()),
    ("benchmarks.gate.bench_verdict", (), ()),
    ("benchmarks.ledger.bench_million", ("100000", "300000"), ()),
    ("benchmarks.importing.bench_sessions", ("20000",), ()),
    ("benchmarks.replay.bench_replay", (), ("--large",)),
    ("benchmarks.replay.bench_drift", (), ("--large",)),
    ("benchmarks.mesh.bench_gate", (), ("2000",)),
    ("benchmarks.mesh.bench_audit", ("100000",), ("1000000",)),
)
"""Each with what it is told by default, and with `--large`."""


def main() -> int:
    """Run each in a process of its own; 1 if one fails."""
    large = "--large" in sys.argv
    failed = False
    for module, usual, all_of_it in BENCHES:
        print(f"\n== {module}", flush=True)
        options = all_of_it if large else usual
        failed |= (
            subprocess.run([sys.executable, "-m", module, *options], check=False).returncode != 0
        )
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
