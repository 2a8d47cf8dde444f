"""A worker that recovers a run in a process of its own, and is killed at one point of it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from backstop.mesh.recovering import Point
from tests.e2e.mesh.rerunning import opened

LEASE_S = 0.5
"""Soon over: whoever takes over waits for it."""


def main(folder: str, point: str, holder: str = "worker-1") -> None:
    """Recover, and die at the point."""
    fleet = opened(Path(folder))
    fleet.history, fleet.key = "h2", "another"

    def dies(at: Point, _: str) -> None:
        if at.value == point:
            os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(fleet.recovers(holder=holder, lease_s=LEASE_S, watch=dies))


if __name__ == "__main__":
    main(*sys.argv[1:])
