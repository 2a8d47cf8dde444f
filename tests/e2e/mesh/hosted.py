"""A run of the desk on whatever host this is; prints what is on record of it, by digest."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path

from examples.evidence_mesh.opening import quiet
from tests.e2e.mesh.desking import Floor, pins


def recorded(folder: Path) -> dict[str, str]:
    """Each definition and each record, by name."""
    floor = Floor(folder=folder)
    desk = floor.desk()
    asyncio.run(desk.begin())
    graph = desk.seen().graph
    told = {f"{kind.value}:{ref}": digest for (kind, ref), digest in pins().items()}
    return told | {step: graph[step].id for step in graph}


if __name__ == "__main__":
    quiet()
    with tempfile.TemporaryDirectory() as folder:
        json.dump(recorded(Path(folder)), sys.stdout)
