"""An archive in a SQLite file of the test's own."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from backstop.adapters.archives.rows import COLUMNS
from backstop.adapters.archives.sqlite import SqliteArchive
from backstop.core.auditlog import Entry
from tests.contract.archives.bench import ArchiveBench

MARKS: tuple[pytest.MarkDecorator, ...] = ()


@contextmanager
def bench(request: pytest.FixtureRequest) -> Iterator[ArchiveBench]:
    path: Path = request.getfixturevalue("tmp_path") / "archive.db"

    def put(entries: Sequence[Entry]) -> None:
        with closing(sqlite3.connect(path)) as db, db:
            # Whoever changes a file is not held to its keys: rows come as they are told.
            db.execute("DROP TABLE entries")
            db.execute(f"CREATE TABLE entries ({', '.join(COLUMNS)})")
            holes = ", ".join("?" * len(COLUMNS))
            for entry in entries:
                row = [getattr(entry, name) for name in COLUMNS]
                db.execute(f"INSERT INTO entries VALUES ({holes})", row)  # noqa: S608

    yield ArchiveBench(
        archive=SqliteArchive(path, create=True),
        reopen=lambda: SqliteArchive(path, create=False),
        put=put,
        down=path.unlink,
    )
