"""The ledger that an agent is judged by: the base's, so that no change rewrites its own history.

A committed file is read from the base checkout, a store is pulled at one instant into a sealed
snapshot. Both are verified before anybody believes them.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, TypeAlias

from backstop.adapters.files import read_bytes
from backstop.config import Agent, Config, anchored
from backstop.core import ledgerfile
from backstop.core.ledgerfile import Ledger
from backstop.gate.request import Ancestors
from backstop.wiring.jobs import Job
from backstop.wiring.pulling import pull
from backstop.wiring.stores import find_store


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A verified ledger, and where it was taken from.

    `notes` are part of what is judged: what the change itself did to the ledger.
    """

    ledger: Ledger
    origin: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NoLedger:
    """Why there is nothing to be judged by.

    `is_new`: neither had the base anything. `vanished`: it had, and the change took it away,
    which nothing makes a pass.
    """

    why: str
    is_new: bool = False
    vanished: bool = False


Found: TypeAlias = Snapshot | NoLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """A ledger that is named to be a file; `name` is how a verdict speaks of it anywhere."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def exists(self) -> bool:
        return self.path.exists()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Store:
    """A ledger that is named to be in a store: only asking the one at `url` tells whether it is."""

    name: str
    url: str
    exists: bool = True


_Place: TypeAlias = _File | _Store


_NONE: Final = (
    "it has no ledger: import a record (`backstop ledger import`), or let the guard write one, and "
    "name it by `ledger:` in its configuration"
)


def snapshot(
    job: Job, *, now: datetime, allow_empty: bool = False, ancestors: Ancestors | None = None
) -> Found:
    """The ledger that `job` is judged by; a store's is that of the last instant before `now`.

    `allow_empty` lets the ledger that a change brings along stand in for one that the base
    names and lacks. Raises `BackstopError` for a ledger that cannot be had or believed.
    """
    head = _place(job.agent, job.config)
    base = None if job.base_agent is None else _place(job.base_agent, job.ruling)
    if job.base_config is None:
        if head is None:
            return NoLedger(why=_NONE)
        return _taken(job.agent, head, now)
    if base is None:
        return _brought(job, head, now)
    if head is None or (base.exists and not head.exists):
        return NoLedger(why="its ledger vanished", vanished=True)
    if base.exists:
        found = _taken(job.base_agent or job.agent, base, now, whose="the base's ")
        return _noting(found, *_differences(head, base))
    return _elsewhere(job, head, base, now, ancestors, allow_empty=allow_empty)


def _place(agent: Agent, config: Config) -> _Place | None:
    named = agent.ledger
    if named is None:
        return None
    if "://" in named:
        return _Store(name=named, url=anchored(named, Path(config.file).parent))
    return _File(path=Path(named))


def _brought(job: Job, head: _Place | None, now: datetime) -> Found:
    """Of an agent whose base names no ledger: the one that the change brings, if it does (D5)."""
    if head is None or not head.exists:
        if job.base_agent is None:
            return NoLedger(why="NEW: the base does not have this agent", is_new=True)
        return NoLedger(why=_NONE)
    note = "its ledger comes with this change: the base has none to hold against it"
    return _noting(_taken(job.agent, head, now, whose="this change's "), note)


def _elsewhere(
    job: Job,
    head: _Place,
    base: _Place,
    now: datetime,
    ancestors: Ancestors | None,
    *,
    allow_empty: bool,
) -> Found:
    """G07: the base names a ledger file, and its commit has none."""
    found = ancestors(base.path) if ancestors is not None and isinstance(base, _File) else None
    if found is not None:
        note = (
            f"the base's commit has no {base.name}: judged by that of {found.commit[:12]}, the "
            "nearest ancestor that has one"
        )
        ledger = _read(found.file, job.agent.name)
        return Snapshot(
            ledger=ledger, origin=f"{base.name} of commit {found.commit}", notes=(note,)
        )
    if allow_empty and head.exists:
        return _brought(job, head, now)
    return NoLedger(
        why=f"the base names the ledger {base.name}, and neither its commit nor an ancestor at "
        "hand has that file: nothing to compare with; commit one to the base branch"
    )


def _differences(head: _Place, base: _Place) -> list[str]:
    """What a change does to the ledger, to be told: it is judged by the base's all the same."""
    match head, base:
        case _File(), _File():
            return [] if _is_same(head.path, base.path) else [_told("edits its ledger")]
        case _Store(), _Store():
            return [] if head.name == base.name else [_told("names another ledger")]
        case _:
            return [_told("names another ledger")]


def _is_same(head: Path, base: Path) -> bool:
    # A change may put anything there: what is no file is not opened, what is larger not read.
    if not head.is_file() or not base.is_file():
        return False
    if head.samefile(base):
        return True
    same_size = head.stat().st_size == base.stat().st_size
    return same_size and head.read_bytes() == base.read_bytes()


def _told(what: str) -> str:
    return f"this change {what}; it was judged by the base's"


def _noting(found: Snapshot, *notes: str) -> Snapshot:
    return Snapshot(ledger=found.ledger, origin=found.origin, notes=(*found.notes, *notes))


def _taken(agent: Agent, place: _Place, now: datetime, *, whose: str = "") -> Snapshot:
    match place:
        case _Store():
            return _pulled(agent, place, now)
        case _File():
            return Snapshot(ledger=_read(place.path, agent.name), origin=f"{whose}{place.name}")


def _pulled(agent: Agent, place: _Store, now: datetime) -> Snapshot:
    """Pull a store into a file of its own, verified there, and gone once it was read."""
    store = find_store(place.url, agent=agent.name)
    with tempfile.TemporaryDirectory(prefix="backstop-") as folder:
        out = Path(folder) / "ledger.jsonl"
        pulled = pull(store, url=place.url, agent=agent.name, out=out, at=None, now=now)
        ledger = _read(out, agent.name)
    return Snapshot(ledger=ledger, origin=f"{place.name} as of {pulled.at}")


def _read(file: Path, agent: str) -> Ledger:
    data = read_bytes(file, kind="ledger")
    # A replay takes seconds: the strict reader, which also finds silent skips, is affordable.
    ledgerfile.verify((data,), name=str(file), expect_agent=agent)
    return ledgerfile.read(data, name=str(file), expect_agent=agent)
