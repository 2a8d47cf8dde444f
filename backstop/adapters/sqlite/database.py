"""One process's way into the file of a SQLite store: its connection, and who it is there."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import RLock
from typing import Final, TypeVar
from weakref import WeakSet, finalize

from backstop.adapters.owners import OwnerLocks
from backstop.adapters.sqlite.backlog import Backlog
from backstop.adapters.sqlite.file import BUSY_S, Durability, connect, is_busy, trouble
from backstop.errors import BackstopError
from backstop.ports import Liveness

R = TypeVar("R")

_PAUSES: Final = (0.0003, 0.0007, 0.001, 0.002)
"""Seconds between attempts at a file that others hold; the last one for good."""

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
        self._backlog = Backlog()
        self._db: sqlite3.Connection | None = self._connected(create=create)
        self._opened = self._there()
        finalize(self, self._backlog.finish)
        _OPEN.add(self)

    @property
    def is_behind(self) -> bool:
        """Does anything wait to be written?"""
        return len(self._backlog) > 0

    def put_off(self, statement: str, said: tuple[object, ...]) -> None:
        """Let a row wait for the next work that is done here; its statement must always do."""
        self._backlog.add(statement, said)
        if self._backlog.is_long:
            self.work(lambda _: None)

    def work(
        self,
        act: Callable[[sqlite3.Connection], R],
        *,
        synced: bool | None = None,
        behind: bool = False,
    ) -> R:
        """What `act` gives, for one thread at a time; its writes are on the disk if `synced`.

        What was put off is written first, unless `act` may as well run `behind` that. While
        others hold the file it is tried again, from its start: it may not have done anything
        before it comes to a statement that waits. Raises `BackstopError` (``store-...``) for
        what SQLite raises.
        """
        tries, deadline = 0, 0.0
        while True:
            try:
                with self._lock:
                    db = self._db
                    if db is None:
                        db = self._db = self._connected(create=False)
                    if self._there() != self._opened:
                        raise self._replaced()
                    if self._backlog and not behind:
                        self.sync(db, wanted=False)
                        self._backlog.write(db)
                    if synced is not None:
                        self.sync(db, wanted=synced)
                    return act(db)
            except sqlite3.Error as error:
                now = time.monotonic()
                deadline = deadline or now + BUSY_S
                if not is_busy(error) or now > deadline:
                    raise trouble(self._path, error) from error
            # SQLite's own waiting sleeps longer and longer, and never finds a busy file free.
            time.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])
            tries += 1

    def _there(self) -> tuple[int, int] | None:
        """Which file stands at the path; None if none does."""
        try:
            found = os.stat(self._path)  # noqa: PTH116 - on the path of every call
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _replaced(self) -> BackstopError:
        # SQLite would go on with the file that it holds, which nobody else finds any more: what
        # is claimed there could be claimed once more in the one that took its place.
        return BackstopError(
            f"{self._path} was removed or replaced while it was in use: what is claimed from here "
            "on would be claimed where nobody looks; put the file back, or start this process anew",
            slug="store-replaced",
        )

    def sync(self, db: sqlite3.Connection, *, wanted: bool) -> None:
        """Whether what is written from now on, outside of transactions, is on the disk at once."""
        if wanted is not self._syncs and self._durable:
            # SQLite compiles this anew each time: it is said only where it changes something.
            db.execute(f"PRAGMA synchronous = {'FULL' if wanted else 'NORMAL'}")
            self._syncs = wanted

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
                self._backlog.finish()
                self._db.close()
            self._db = None

    def abandon(self) -> None:
        """In a forked child: what was opened by the parent is not used again."""
        if self._db is not None:
            _ABANDONED.append(self._db)
        self._lock, self._db, self._owner = RLock(), None, None
        self._backlog.drop()

    def _connected(self, *, create: bool) -> sqlite3.Connection:
        db = connect(self._path, create=create)
        db.create_function("stamp", 1, self._stamp)
        db.execute("PRAGMA busy_timeout = 0")  # `work` waits
        db.execute(f"PRAGMA synchronous = {'FULL' if self._durable else 'NORMAL'}")
        self._syncs = self._durable
        self._backlog.opened(db)
        return db

    def _enrolled(self, db: sqlite3.Connection) -> int:
        process = self._locks.hold()
        db.execute(_NEW_OWNER, (process,))
        self._locks.clear(lambda dead: db.execute(_GONE, (dead,)))
        number: int = db.execute(_OWNER_OF, (process,)).fetchone()[0]
        return number


def _forked() -> None:
    for database in _OPEN:
        database.abandon()


os.register_at_fork(after_in_child=_forked)
