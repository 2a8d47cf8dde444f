"""One process's way into the file of a SQLite store: its connection, and who it is there."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Final
from weakref import WeakSet

from backstop.adapters.owners import OwnerLocks
from backstop.adapters.sqlite_file import Durability, connect, trouble
from backstop.errors import BackstopError
from backstop.ports import Liveness

_OWNER_OF: Final = "SELECT id FROM owners WHERE process = ?"
_NEW_OWNER: Final = "INSERT INTO owners (process) VALUES (?) ON CONFLICT DO NOTHING"
_OWNER: Final = "SELECT process, gone FROM owners WHERE id = ?"
_GONE: Final = "UPDATE owners SET gone = 1 WHERE process = ?"

_OPEN: Final[WeakSet[Database]] = WeakSet()
_ABANDONED: Final[list[sqlite3.Connection]] = []
"""Connections of a parent: a forked child may neither use nor close them."""


class Database:
    """The file at `path`. `stamp` is a function of SQL there.

    Safe from several threads; a forked child opens the file anew, as an owner of its own.
    """

    def __init__(
        self,
        path: Path,
        *,
        create: bool,
        durability: Durability,
        stamp: Callable[[int | None], int],
    ) -> None:
        self._path = path
        self._durable = durability is Durability.POWER
        self._stamp = stamp
        self._locks = OwnerLocks(path.with_name(f"{path.name}.owners"))
        self._lock = RLock()
        self._owner: int | None = None
        self._syncs = self._durable
        self._db: sqlite3.Connection | None = self._connected(create=create)
        _OPEN.add(self)

    def at_work(self, *, synced: bool | None = None) -> Hold:
        """The connection, for one thread; a write of it is on the disk at once if `synced`.

        What SQLite raises leaves as a `BackstopError` (``store-...``).
        """
        return Hold(self, synced)

    def take(self, *, synced: bool | None) -> sqlite3.Connection:
        """The connection, for the caller alone until `give_back`."""
        self._lock.acquire()
        try:
            db = self._db
            if db is None:
                db = self._db = self._connected(create=False)
            if synced is not None and synced is not self._syncs and self._durable:
                db.execute(f"PRAGMA synchronous = {'FULL' if synced else 'NORMAL'}")
                self._syncs = synced
        except BaseException as error:
            self.give_back(error)
            raise
        return db

    def give_back(self, error: BaseException | None) -> None:
        """Let the next one have it; raises what `error` means where that is one of SQLite's."""
        self._lock.release()
        if isinstance(error, sqlite3.Error):
            raise trouble(self._path, error) from error

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own: what it reads stands still while others write through ours."""
        try:
            with closing(connect(self._path, create=False)) as db:
                yield db
        except sqlite3.Error as error:
            raise trouble(self._path, error) from error

    def owner(self, db: sqlite3.Connection) -> int:
        """The number of this process as an owner of claims, whose lock is held from now on."""
        if self._owner is None:
            try:
                self._owner = self._enrolled(db)
            except OSError as error:
                raise BackstopError(
                    f"{self._path}.owners: the lock that shows that this process runs cannot be "
                    f"held ({error}); make the folder writable",
                    slug="store-read-only",
                ) from error
        return self._owner

    def liveness(self, db: sqlite3.Connection, owner: int) -> Liveness:
        """What can be seen of an owner."""
        process, gone = db.execute(_OWNER, (owner,)).fetchone()
        return Liveness.GONE if gone else self._locks.liveness(process)

    def close(self) -> None:
        """Let go of the file. Owners stay what they are: their processes still run."""
        with self._lock:
            if self._db is not None:
                self._db.close()
            self._db = None

    def abandon(self) -> None:
        """In a forked child: what was opened by the parent is not used again."""
        if self._db is not None:
            _ABANDONED.append(self._db)
        self._lock, self._db, self._owner = RLock(), None, None

    def _connected(self, *, create: bool) -> sqlite3.Connection:
        db = connect(self._path, create=create)
        db.create_function("stamp", 1, self._stamp)
        db.execute(f"PRAGMA synchronous = {'FULL' if self._durable else 'NORMAL'}")
        self._syncs = self._durable
        return db

    def _enrolled(self, db: sqlite3.Connection) -> int:
        process = self._locks.hold()
        db.execute(_NEW_OWNER, (process,))
        self._locks.clear(lambda dead: db.execute(_GONE, (dead,)))
        number: int = db.execute(_OWNER_OF, (process,)).fetchone()[0]
        return number


class Hold:
    """A connection that is held for a `with` block. Written out: it stands on the hot path."""

    __slots__ = ("_file", "_synced")

    def __init__(self, file: Database, synced: bool | None) -> None:  # noqa: FBT001 - see `at_work`
        self._file = file
        self._synced = synced

    def __enter__(self) -> sqlite3.Connection:
        return self._file.take(synced=self._synced)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.give_back(error)


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


def _forked() -> None:
    for database in _OPEN:
        database.abandon()


os.register_at_fork(after_in_child=_forked)
