"""Takes a ledger into an archive: what is new of it, after both were verified."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from backstop.adapters.files import chunks
from backstop.auditports import Archive
from backstop.core.auditlog import Entry, Sealed, entry_of
from backstop.core.auditwalk import ArchiveMark, Walk, note_of, unarchived
from backstop.core.events import Event, Header
from backstop.core.ledgerfile import Summary, verify
from backstop.core.sealing import each_line, kind_of, open_event, open_header
from backstop.errors import LedgerError
from backstop.ports import Store
from backstop.wiring.pulling import pull

_ENTRIES: Final = 50_000
_BYTES: Final = 32 << 20
"""What goes in at once: a file, where archives are made of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """What an archive took in: entries, and events among them; how far it reaches now."""

    agent: str
    entries: int
    events: int
    mark: ArchiveMark


def archive_store(
    store: Store,
    archive: Archive,
    *,
    url: str,
    agent: str,
    name: str,
    now: datetime,
    mark: ArchiveMark | None = None,
) -> Archived:
    """Take in what is new of a store's ledger, as it was at the last instant before `now`.

    Raises as `pulling.pull` and `archive_file` do.
    """
    with tempfile.TemporaryDirectory(prefix="backstop-") as folder:
        out = Path(folder) / "ledger.jsonl"
        pull(store, url=url, agent=agent, out=out, at=None, now=now)
        return archive_file(out, archive, name=name, source=url, agent=agent, mark=mark)


def archive_file(
    path: Path,
    archive: Archive,
    *,
    name: str,
    source: str,
    agent: str | None = None,
    mark: ArchiveMark | None = None,
) -> Archived:
    """Take in what is new of a sealed ledger; `name` and `source` are how errors call the two.

    Each run goes on where the archive has it end. What is cut off is taken up by doing it again.
    Raises `LedgerError` before anything is written: for an archive or a ledger that does not
    hold, and ``archive-fork`` where the ledger lacks what the archive has of a run.
    """
    walk = Walk(name, mark=mark)
    for entry in archive.read():
        walk.take(entry)
    walk.reached()
    links = frozenset(walk.heads.values())
    found = verify(
        chunks(path, kind="ledger"),
        name=source,
        expect_agent=walk.agent or agent,
        marked=links,
    )
    if lost := [run for run, link in walk.heads.items() if link not in found.marked]:
        raise LedgerError(
            f"{source}: run {min(lost)!r}, for one, does not hold what {name} has of it: the "
            "ledger is older, was cut, erased in, or is another. Find out which, and archive it "
            "in another place if it is the true one.",
            slug="archive-fork",
        )
    return _Taking(archive, walk).take(path, found, source=source)


@dataclass(slots=True)
class _Taking:
    """One way of a ledger into an archive."""

    archive: Archive
    walk: Walk
    batch: list[Entry] = field(default_factory=list)
    size: int = 0
    entries: int = 0

    def take(self, path: Path, found: Summary, *, source: str) -> Archived:
        before = self.walk.events
        lines = ledger_lines(path, found, source=source)
        line, header = next(lines)
        if line != self.walk.header:
            self._put(header, line)
        events = ((line, event) for line, event in lines if not isinstance(event, Header))
        for line, event in unarchived(events, dict(self.walk.heads)):
            self._put(event, line)
        if self.walk.sealed is None:
            note = note_of(self.walk, digest=found.digest, signature=found.seal.signature)
            self._put(note, msgspec.json.encode(note))
        self._flush()
        return Archived(
            agent=self.walk.agent,
            entries=self.entries,
            events=self.walk.events - before,
            mark=self.walk.mark(),
        )

    def _put(self, said: Header | Event | Sealed, line: bytes) -> None:
        entry = entry_of(said, line, after=self.walk.tip)
        self.walk.take(entry)
        self.batch.append(entry)
        self.size += len(line)
        if len(self.batch) >= _ENTRIES or self.size >= _BYTES:
            self._flush()

    def _flush(self) -> None:
        self.archive.append(self.batch)
        self.entries += len(self.batch)
        self.batch, self.size = [], 0


def ledger_lines(
    path: Path, found: Summary, *, source: str
) -> Iterator[tuple[bytes, Header | Event]]:
    """The lines of a ledger that was verified, its header first, each with what it says.

    Raises `LedgerError` (``ledger-tampered``) at the end if it is no longer the same file.
    """
    digest = hashlib.sha256()
    for number, line in enumerate(each_line(chunks(path, kind="ledger"), name=source), 1):
        if kind_of(line) == "seal":
            break
        digest.update(line + b"\n")
        if number == 1:
            yield line, open_header(line, name=source)
        else:
            yield line, open_event(line, name=source, number=number)
    if digest.hexdigest() != found.digest:
        raise LedgerError(
            f"{source}: the file changed while it was read. Do it again.", slug="ledger-tampered"
        )
