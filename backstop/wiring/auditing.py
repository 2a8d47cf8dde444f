"""Answers an audit's questions of a ledger, a store or an archive, once it was held to be whole."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final, TypeAlias

from backstop.adapters.files import chunks
from backstop.auditports import Archive, Reckoner
from backstop.core.auditlog import ORIGIN, Entry, entry_of, tip_at
from backstop.core.auditwalk import ArchiveMark, Walk, ended, hold_to_mark
from backstop.core.ledgerfile import Summary, verify
from backstop.core.reckoning import Audit, Day, reckon, total
from backstop.errors import BackstopError, LedgerError
from backstop.ports import Store
from backstop.wiring.archiving import ledger_lines
from backstop.wiring.pulling import pull

_HELD: Final = "numbers, links and hashes hold"
_SEEN: Final = "numbers, links and hashes hold, and so does its mark"

_Answered: TypeAlias = tuple[list[Day], str]
"""The days, and whose they are."""


def audit_file(path: Path, *, source: str, agent: str | None, kind: str = "ledger") -> Audit:
    """The answers of a sealed ledger. Raises `LedgerError` for one that does not hold."""
    found = verify(chunks(path, kind="ledger"), name=source, expect_agent=agent)
    days = reckon(_entries(path, found, source))
    return Audit(
        place=source,
        kind=kind,
        agent=found.header.agent,
        held="keys, links and seal hold, no silent skip",
        open_end=False,
        days=tuple(days),
        total=total(days),
    )


def audit_store(store: Store, *, url: str, agent: str, now: datetime) -> Audit:
    """The answers of a store's ledger as it was at the last instant before `now`.

    Raises as `pulling.pull` does.
    """
    with tempfile.TemporaryDirectory(prefix="backstop-") as folder:
        out = Path(folder) / "ledger.jsonl"
        pull(store, url=url, agent=agent, out=out, at=None, now=now)
        return audit_file(out, source=url, agent=agent, kind="store")


def audit_archive(
    archive: Archive, *, name: str, agent: str | None = None, mark: ArchiveMark | None = None
) -> Audit:
    """The answers of an archive, worked out where it lies if it can be asked there.

    `mark` is how far it was seen to reach; without one nobody can tell whether its last ledgers
    were taken away. Raises `LedgerError` for one that does not hold, or is not of `agent`.
    """
    if isinstance(archive, Reckoner):
        days, of = _asked(archive, archive, mark, name)
    else:
        days, of = _read(archive, mark, name)
    if agent not in {None, of}:
        raise LedgerError(
            f"{name}: the archive of agent {of!r}, not of {agent!r}. Name the right place.",
            slug="archive-foreign",
        )
    return Audit(
        place=name,
        kind="archive",
        agent=of,
        held=_HELD if mark is None else _SEEN,
        open_end=mark is None,
        days=tuple(days),
        total=total(days),
    )


def _read(archive: Archive, mark: ArchiveMark | None, name: str) -> _Answered:
    """The days of an archive whose entries come here, each held to the one before."""
    walk = Walk(name, mark=mark)
    days = reckon(walk.each(archive.read()))
    walk.close()
    return days, walk.agent


def _asked(archive: Archive, asked: Reckoner, mark: ArchiveMark | None, name: str) -> _Answered:
    """The days of an archive that checks itself: only what it ends in comes here."""
    tip = asked.check()
    days = list(asked.days())
    last = next(archive.read(tip.seq - 1), None) if tip.seq else None
    seen = None if mark is None else next(archive.read(mark.seq - 1), None)
    if archive.head() != tip:
        raise BackstopError(
            f"{name}: it grew while it was asked. Ask again.",
            slug="store-busy",
        )
    if mark is not None:
        hold_to_mark(seen, mark, name=name)
    note = ended(last, events=total(days).events, name=name)
    return days, note.agent


def _entries(path: Path, found: Summary, source: str) -> Iterator[Entry]:
    after = ORIGIN
    for line, said in ledger_lines(path, found, source=source):
        entry = entry_of(said, line, after=after)
        after = tip_at(entry)
        yield entry
