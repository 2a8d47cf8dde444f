"""What passes interception, for a person: a table of 80 columns, or JSON.

Pure. Every text comes from an agent's code, and is escaped.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from backstop.reports.escape import plain
from backstop.reports.explain import count_of

WIDTH: Final = 80
_CELL: Final = 300
_QUIET: Final = "seen in replays, behind their walls, and not seen to reach outside"


class Found(Protocol):
    """A way past interception, as it is told."""

    @property
    def way(self) -> str:
        """Its name."""

    @property
    def where(self) -> str:
        """The agent, tool or function."""

    @property
    def detail(self) -> str:
        """What was seen."""

    @property
    def at(self) -> str:
        """``file:line``, or empty."""

    @property
    def counts(self) -> bool:
        """Does it make coverage incomplete?"""

    @property
    def quiet(self) -> bool:
        """Was nothing seen that reaches outside?"""

    @property
    def means(self) -> str:
        """What is wrong with it."""

    @property
    def remedy(self) -> str:
        """What to do."""


class Told(Protocol):
    """One agent, and what passes interception in it."""

    @property
    def name(self) -> str:
        """The agent's name."""

    @property
    def folder(self) -> str:
        """Where it lies."""

    @property
    def findings(self) -> Sequence[Found]:
        """What was found."""

    @property
    def lack(self) -> str:
        """Why it could not be loaded; empty if it could."""


def table(told: Sequence[Told], *, width: int = WIDTH) -> str:
    """All agents as text: what counts, what is noted, and what each lacks."""
    out = io.StringIO()
    console = Console(
        file=out, width=width, color_system=None, markup=False, highlight=False, emoji=False
    )
    for number, agent in enumerate(told):
        if number:
            console.print()
        for part in _agent(agent):
            console.print(part)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def document(told: Sequence[Told], *, config: str | None, exit_code: int) -> str:
    """The same as JSON: every agent with all findings, the exit code, and what was configured."""
    agents = [
        {
            "agent": agent.name,
            "folder": agent.folder,
            "loaded": not agent.lack,
            "lack": agent.lack or None,
            "findings": [_finding(found) for found in agent.findings],
        }
        for agent in told
    ]
    whole = {"version": 1, "exit_code": exit_code, "config": config, "agents": agents}
    return json.dumps(whole, indent=2) + "\n"


def _finding(found: Found) -> dict[str, object]:
    return {
        "way": found.way,
        "counts": found.counts,
        "quiet": found.quiet,
        "where": found.where,
        "at": found.at or None,
        "detail": found.detail,
        "means": found.means,
        "remedy": found.remedy,
    }


def _agent(agent: Told) -> Iterator[Text | Table]:
    name = plain(agent.name, limit=60)
    if agent.lack:
        yield Text(f"{name}: cannot be loaded: {plain(agent.lack, limit=_CELL)}")
        return
    counting = [found for found in agent.findings if found.counts]
    noted = [found for found in agent.findings if not found.counts]
    if not counting:
        yield Text(f"{name}: nothing passes interception, as far as its code and objects show")
    else:
        ways = count_of(len(counting), "place")
        yield Text(f"{name}: not covered in {ways}: no replay and no guard sees what happens there")
        yield _table(counting)
    for found in noted:
        if not found.quiet:
            yield Text(f"- noted: {_noted(found)}")
    if quiet := [found for found in noted if found.quiet]:
        yield Text(f"- {_QUIET}: {', '.join(map(_place, quiet))}")


def _table(found: Sequence[Found]) -> Table:
    made = Table(box=SIMPLE_HEAD, padding=(0, 1), expand=True, pad_edge=False)
    made.add_column("way", no_wrap=True)
    made.add_column("in", ratio=1, overflow="fold")
    made.add_column("what is seen there, and what to do", ratio=3, overflow="fold")
    for one in found:
        where = "\n".join(plain(part, limit=_CELL) for part in (one.where, one.at) if part)
        said = one.means + (f": {plain(one.detail, limit=_CELL)}" if one.detail else "")
        made.add_row(plain(one.way, limit=40), Text(where), Text(f"{said}\n> {one.remedy}"))
    return made


def _noted(found: Found) -> str:
    what = f" ({plain(found.detail, limit=_CELL)})" if found.detail else ""
    return f"{_place(found)} {found.means}{what}"


def _place(found: Found) -> str:
    at = f" ({plain(found.at, limit=_CELL)})" if found.at else ""
    return f"{plain(found.where, limit=60)}{at}"
