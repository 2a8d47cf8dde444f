"""An archive in a collection of its own, on the emulator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
import pytest

from backstop.adapters.firestore.archive import FirestoreArchive
from backstop.adapters.firestore.messages import Range, Write
from backstop.adapters.firestore.wire import Database
from backstop.core.auditlog import Entry
from tests.contract.archives.bench import ArchiveBench
from tests.emulators import firestore, fresh_name

MARKS: tuple[pytest.MarkDecorator, ...] = (pytest.mark.emulator,)

NOWHERE = "127.0.0.1:9"


@contextmanager
def bench(request: pytest.FixtureRequest) -> Iterator[ArchiveBench]:
    host, collection = [firestore()], fresh_name()
    raw = Database(project="p", name="(default)", emulator=host[0], patience_s=30)
    opened: list[FirestoreArchive] = []

    def reopen() -> FirestoreArchive:
        # Patient, since the machines that test are busy; who is not there shall not be waited for.
        archive = FirestoreArchive(
            project="p",
            database="(default)",
            collection=collection,
            emulator=host[0],
            patience_s=0.3 if host[0] == NOWHERE else 30,
        )
        opened.append(archive)
        return archive

    def put(entries: Sequence[Entry]) -> None:
        there = [one.path for one in raw.query(Range(collection=collection))]
        writes = [Write(path=path, fields={}, gone=True) for path in there]
        # A document bears its number, so of two entries under one the later is there.
        for number, entry in {entry.seq: entry for entry in entries}.items():
            fields = {**msgspec.structs.asdict(entry), "line": entry.line.decode()}
            fields.pop("seq")
            writes.append(Write(path=f"{collection}/{number:016}", fields=fields))
        for write in writes:
            raw.commit([write], raw.patience())

    def down() -> None:
        host[0] = NOWHERE

    yield ArchiveBench(archive=reopen(), reopen=reopen, put=put, down=down)
    raw.close()
    for each in opened:
        each.close()
