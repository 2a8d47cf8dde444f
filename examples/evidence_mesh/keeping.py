"""Leaves the run in a folder as the fault left it, for a person to look at and to recover.

What ``backstop mesh`` is asked there is judged by today's clock. So the run is one that ended just
now, and whoever runs its steps again has no time to wait.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from backstop.clock import SystemClock
from backstop.core.canon import digest
from backstop.errors import UsageError
from backstop.wiring.mesh import anchors_text
from examples.evidence_mesh.agents import AGENTS
from examples.evidence_mesh.desk import ACTION, AGENT, RULE, Desk, pins_of_today
from examples.evidence_mesh.opening import LATE_S, OTHERWISE, opened, quiet
from examples.evidence_mesh.outside import ANSWERS_IN_S, Clock, World

_CONFIG: Final = f"""\
version: 1
agents:
  {AGENT}:
    store: sqlite:///desk.db
"""
_RECOVERY: Final = """\
\"\"\"Runs steps of the run in this folder again: backstop mesh apply --with recovery:fleet\"\"\"

import sys

sys.path.insert(0, {root!r})

from examples.evidence_mesh.keeping import fleet

__all__ = ["fleet"]
"""
_ROOT: Final = Path(__file__).resolve().parents[2]


class Now(Clock):
    """The real time, in which nobody waits."""

    def now(self) -> datetime:
        """The current instant."""
        return SystemClock().now()

    def wait(self, seconds: float) -> None:
        """Models answer at once."""


def keep(folder: Path) -> str:
    """Make the run, and all that the commands need; the text that says how to go on.

    Raises `UsageError` for a folder that has something in it.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: has something in it; name a folder that is not there yet")
    folder.mkdir(parents=True, exist_ok=True)
    took = timedelta(seconds=len(AGENTS) * ANSWERS_IN_S + LATE_S)
    world = World(clock=Clock(SystemClock().now() - took))
    world.meanwhile["orchestrator"] = lambda: world.clock.wait(LATE_S)
    pins = asyncio.run(pins_of_today())
    asyncio.run(opened(folder, world, pins).begin())
    said = anchors_text(
        pins, producers=["recorder"], payloads="payloads", rules={RULE: digest("p1")}
    )
    for name, text in {
        "backstop.yaml": _CONFIG,
        "backstop-mesh.yaml": said,
        "recovery.py": _RECOVERY.format(root=str(_ROOT)),
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    return (
        f"{folder} holds a run in which trust broke: {ACTION.rpartition('/')[2]} is BLOCKED.\n"
        "Go there, and ask: backstop mesh status\n"
    )


def fleet() -> Desk:
    """Whoever runs the steps of the run in this folder again; history says something else by now.

    Called where no event loop runs.
    """
    quiet()
    world = World(clock=Now(), history=OTHERWISE)
    return opened(Path.cwd(), world, asyncio.run(pins_of_today()))
