"""An archive in a SQLite file of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from backstop.adapters.archives.rows import COLUMNS, entry_from
from backstop.adapters.sqlite.backlog import transaction
from backstop.adapters.sqlite.file import BUSY_S, trouble
from backstop.core.auditlog import ORIGIN, Entry, Tip, unwritten
from backstop.errors import BackstopError

_FORM: Final = 1
_APPLICATION: Final = 0x426B7361  # "Bksa": tells archives from stores and from other databases
_SCHEMA: Final = (
    """CREATE TABLE entries (
        seq INTEGER PRIMARY KEY, prev TEXT NOT NULL, hash TEXT NOT NULL, day TEXT NOT NULL,
        kind TEXT NOT NULL, how TEXT NOT NULL, run TEXT NOT NULL, at TEXT NOT NULL,
        tool TEXT NOT NULL, key TEXT NOT NULL, spent INTEGER NOT NULL, avoided INTEGER NOT NULL,
        line BLOB NOT NULL) STRICT""",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_FORM}",
)
_NAMES: Final = ", ".join(COLUMNS)
_ADD: Final = f"INSERT INTO entries ({_NAMES}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608
_READ: Final = f"SELECT {_NAMES} FROM entries WHERE seq BETWEEN ? AND ? ORDER BY seq"  # noqa: S608
_LAST: Final = "SELECT seq, hash FROM entries ORDER BY seq DESC LIMIT 1"
_NO_END: Final = 2**63 - 1


class SqliteArchive:
    """An `Archive` in the file `path`, made if there is none and `create` says so.

    Raises `BackstopError` (``store-missing``, ``store-schema``, and those of SQLite's troubles)
    where the file cannot be used.
    """

    def __init__(self, path: Path, *, create: bool) -> None:
        self._path = path
        self._name = f"sqlite:///{path}"
        if create:
            with self._open(create=True) as db, transaction(db):
                if _application(db) == (0, 0, 0):
                    for statement in _SCHEMA:
                        db.execute(statement)
        with self._open() as db:
            self._check(db)

    def append(self, entries: Sequence[Entry]) -> Tip:
        """Add entries, all of them or none; they are on the disk then."""
        with self._open() as db, transaction(db):
            new = unwritten(
                entries,
                _tip(db),
                lambda first, last: self._entries(db, first, last),
                name=self._name,
            )
            rows = ([getattr(entry, name) for name in COLUMNS] for entry in new)
            db.executemany(_ADD, rows)
            return _tip(db)

    def read(self, after: int = 0) -> Iterator[Entry]:
        """The entries numbered higher than `after`."""
        with self._open() as db:
            yield from self._entries(db, after + 1, _NO_END)

    def head(self) -> Tip:
        """How far it reaches."""
        with self._open() as db:
            return _tip(db)

    def close(self) -> None:
        """Nothing is held open."""

    def _entries(self, db: sqlite3.Connection, first: int, last: int) -> Iterator[Entry]:
        for row in db.execute(_READ, (first, last)):
            yield entry_from(row, name=self._name)

    @contextmanager
    def _open(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        if not create and not self._path.exists():
            raise BackstopError(
                f"{self._name}: there is no such file; restore it, or name the archive that was "
                "filled",
                slug="store-missing",
            )
        try:
            with closing(sqlite3.connect(self._path, timeout=BUSY_S, isolation_level=None)) as db:
                db.execute("PRAGMA synchronous = EXTRA")
                yield db
        except sqlite3.Error as error:
            raise trouble(self._path, error) from error

    def _check(self, db: sqlite3.Connection) -> None:
        application, form, _ = _application(db)
        if (application, form) != (_APPLICATION, _FORM):
            raise BackstopError(
                f"{self._name}: no archive that this Backstop reads; an archive has a file of its "
                "own, apart from the store",
                slug="store-schema",
            )


def is_archive(path: Path) -> bool:
    """Whether a file is there, and is an archive, of whatever form. Raises `BackstopError`."""
    if not path.is_file():
        return False
    try:
        with closing(sqlite3.connect(path, timeout=BUSY_S)) as db:
            return _application(db)[0] == _APPLICATION
    except sqlite3.Error as error:
        raise trouble(path, error) from error


def _application(db: sqlite3.Connection) -> tuple[int, int, int]:
    """Whose database it is, its form, and how many tables it has."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (form,) = db.execute("PRAGMA user_version").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return application, form, tables


def _tip(db: sqlite3.Connection) -> Tip:
    found = db.execute(_LAST).fetchone()
    return ORIGIN if found is None else Tip(seq=found[0], hash=str(found[1]))
