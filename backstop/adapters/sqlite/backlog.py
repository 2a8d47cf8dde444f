"""Rows of a SQLite store that may wait for the next write, so that they cost no write of their own.

Which rows those are is the store's affair (ADR 0023). They are written before anything that
their process writes or shows, and when it ends. A crash loses them if nothing followed them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, TypeAlias

Row: TypeAlias = tuple[str, tuple[object, ...]]
"""A statement, and what it says."""

_LONG: Final = 256
_AT_LAST_MS: Final = 1000


class Backlog:
    """What one process has yet to write. Whoever writes holds the store's lock."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._db: sqlite3.Connection | None = None

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def is_long(self) -> bool:
        """Is it time to write, though nothing has followed?"""
        return len(self._rows) >= _LONG

    def add(self, statement: str, said: tuple[object, ...]) -> None:
        """Let one row wait."""
        self._rows.append((statement, said))

    def opened(self, db: sqlite3.Connection) -> None:
        """This is where to write, should the process end."""
        self._db = db

    def write(self, db: sqlite3.Connection) -> None:
        """Write all that waits, or nothing; raises what SQLite raises, and it waits on then."""
        rows = tuple(self._rows)  # others may go on adding
        with transaction(db):
            for statement, said in rows:
                db.execute(statement, said)
        del self._rows[: len(rows)]

    def drop(self) -> None:
        """In a forked child: what waits is its parent's."""
        self._rows, self._db = [], None

    def finish(self) -> None:
        """Write what waits as the store is left behind: there is no next write to go with."""
        if self._rows and self._db is not None:
            with suppress(sqlite3.Error):  # nobody is left who could be told
                self._db.execute(f"PRAGMA busy_timeout = {_AT_LAST_MS}")
                self.write(self._db)


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """What is read in it stays as it is until what is written in it is there as a whole."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk may have ended it
            db.execute("ROLLBACK")
        raise
