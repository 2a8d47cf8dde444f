"""Rewrites the lines of one ledger in a SQLite store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final

import msgspec

from backstop.ports import Rewriting

_COLUMNS: Final = (
    ("events", "line", "run, stamp, tie"),
    ("effects", "claimed", "id"),
    ("effects", "settled", "id"),
    ("effects", "done", "id"),
)
"""Every place where an event is stored, and what names its row."""


def rewrite(db: sqlite3.Connection, ledger: int, rewriting: Rewriting) -> None:
    """Show every line of a ledger, and put others in the place of those that change.

    Within a transaction, which makes it all or nothing.
    """
    for table, column, row in _COLUMNS:
        for line, *_ in _lines(db, ledger, table, column, row):
            rewriting.look(line)
    for table, column, row in _COLUMNS:
        changes = [
            (msgspec.json.encode(members), ledger, *names)
            for line, *names in _lines(db, ledger, table, column, row)
            if (members := rewriting.erased(line)) is not None
        ]
        named = " AND ".join(f"{name} = ?" for name in row.split(", "))
        db.executemany(
            f"UPDATE {table} SET {column} = ? WHERE ledger = ? AND {named}",  # noqa: S608 - of constants
            changes,
        )


def _lines(
    db: sqlite3.Connection, ledger: int, table: str, column: str, row: str
) -> Iterator[tuple[bytes, *tuple[object, ...]]]:
    return db.execute(
        f"SELECT {column}, {row} FROM {table} WHERE ledger = ? AND {column} IS NOT NULL",  # noqa: S608 - of constants
        (ledger,),
    )


def scrub(db: sqlite3.Connection) -> None:
    """Leave nothing of what was there in the file's free pages, nor in its log."""
    db.execute("VACUUM")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
