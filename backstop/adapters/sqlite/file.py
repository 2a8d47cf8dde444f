"""The database file behind the SQLite store: where it may lie, its form, and what can go wrong.

Everything that SQLite raises leaves as a `BackstopError` that names the file and the remedy.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar

from backstop.errors import BackstopError

R = TypeVar("R")

SCHEMA_VERSION: Final = 1
BUSY_S: Final = 3.0
"""How long a write waits for others, in seconds, before it is refused."""

_APPLICATION: Final = 0x426B7374  # "Bkst": tells our files from other programs' databases
_EMPTY: Final = 0
_FOREIGN: Final = -1
_RETRY_S: Final = 0.01

_SHUT: Final = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR})

_OCTAL: Final = re.compile(r"\\([0-7]{3})")
"""How the kernel writes a blank, a tab, a line break or a backslash in a mount's name."""

_NETWORK: Final = frozenset(
    """9p afs beegfs ceph cifs coda davfs fuse.ceph fuse.cephfs fuse.davfs fuse.gcsfuse
    fuse.glusterfs fuse.rclone fuse.s3fs fuse.smbnetfs fuse.sshfs glusterfs gpfs lustre ncpfs nfs
    nfs4 orangefs smb3 smbfs""".split()  # noqa: SIM905 - a list of names reads as one
)


class Durability(StrEnum):
    """What a claim outlives once it is granted."""

    POWER = "power"
    """A power failure: it is on the disk."""
    PROCESS = "process"
    """The crash of every process, but not that of the machine."""


def is_network(filesystem: str) -> bool:
    """Whether a file system of this type keeps its files on another machine."""
    return filesystem in _NETWORK


def filesystem_of(path: Path, mounts: str) -> str:
    """The type of the file system that an absolute `path` lies on; empty where nothing says it.

    `mounts` is the text of ``/proc/self/mountinfo``.
    """
    found, depth = "", -1
    for mounted, kind in _mounted(mounts):
        # Of two mounts on one place, the later one hides the earlier.
        if path.is_relative_to(mounted) and len(mounted.parts) >= depth:
            found, depth = kind, len(mounted.parts)
    return found


def _mounted(mounts: str) -> Iterator[tuple[Path, str]]:
    """Where something is mounted, and of which type it is."""
    for line in mounts.splitlines():
        fields, _, rest = line.partition(" - ")
        places, types = fields.split(), rest.split()
        if len(places) < len(("id", "parent", "device", "root", "mounted on")) or not types:
            continue
        yield Path(_OCTAL.sub(lambda found: chr(int(found[1], 8)), places[4])), types[0]


def refuse_alone(path: Path, mounts: str) -> None:
    """Raises `BackstopError` (``store-mounted``) for a file that is mounted without its folder.

    What belongs to it lies beside it: every container would have a log and locks of its own, and
    be granted what another was granted.
    """
    if any(mounted == path for mounted, _ in _mounted(mounts)):
        raise BackstopError(
            f"{path} is mounted by itself, and what belongs to it lies beside it: processes on the "
            "two sides would not see what the others claim; mount its folder",
            slug="store-mounted",
        )


def refuse_network(path: Path, mounts: str) -> None:
    """Raises `BackstopError` (``store-network``) for an absolute `path` on a network drive."""
    filesystem = filesystem_of(path, mounts)
    if is_network(filesystem):
        raise BackstopError(
            f"{path} lies on a network drive ({filesystem}), where locks do not hold; put the "
            "store on a local disk, or use firestore://",
            slug="store-network",
        )


def connect(path: Path, *, create: bool) -> sqlite3.Connection:
    """Open the database at an absolute path; make it where there is none and `create` says so.

    Raises `BackstopError`: ``store-missing``, ``store-network``, ``store-mounted``,
    ``store-schema``, and those of `trouble`.
    """
    if not create and not path.exists():
        raise BackstopError(
            f"{path}: there is no store; name the file that the agent writes to",
            slug="store-missing",
        )
    mounts = _mounts()
    refuse_network(path, mounts)
    refuse_alone(path, mounts)
    try:
        db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise trouble(path, error) from error
    try:
        _prepare(db, path, create=create)
    except sqlite3.Error as error:
        db.close()
        raise trouble(path, error) from error
    except BackstopError:
        db.close()
        raise
    return db


def trouble(path: Path, error: sqlite3.Error) -> BackstopError:
    """What SQLite could not do, and what to do about it.

    ``store-busy``, ``store-full``, ``store-read-only``, ``store-damaged`` or ``store-unusable``.
    """
    code = _code(error)
    match code:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            slug, why = "store-busy", f"another process holds it for more than {BUSY_S:g} s"
        case sqlite3.SQLITE_FULL:
            slug, why = "store-full", "there is no room left; make room and try again"
        case _ if code == sqlite3.SQLITE_READONLY or (code in _SHUT and not _writable(path)):
            slug, why = "store-read-only", "it may not be written; see to the rights of the file"
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            slug, why = "store-damaged", "it is no SQLite database, or a damaged one; restore it"
        case _:
            slug, why = "store-unusable", "it cannot be opened, read or written"
    return BackstopError(f"{path}: {why} ({error}); nothing was changed", slug=slug)


def is_busy(error: sqlite3.Error) -> bool:
    """Whether others hold the file, so that it is worth while to try again."""
    return _code(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def is_read_only(error: sqlite3.Error) -> bool:
    """Whether nothing can be written."""
    return _code(error) == sqlite3.SQLITE_READONLY


def _code(error: sqlite3.Error) -> int:
    # A fault of the binding itself has none; an extended code says it in its last byte.
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def _writable(path: Path) -> bool:
    """SQLite makes files beside the database, so its folder counts as well."""
    return all(os.access(one, os.W_OK) for one in (path.parent, path) if one.exists())


def _mounts() -> str:
    try:
        return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""  # nothing says where a file lies


def _prepare(db: sqlite3.Connection, path: Path, *, create: bool) -> None:
    # Others may be making the same file, and some of its locks do not wait by themselves.
    version = _patiently(lambda: _seen(db))
    if version == _EMPTY and create:
        _patiently(lambda: db.execute("PRAGMA journal_mode = WAL"))
        _patiently(lambda: _create(db))
        version = _patiently(lambda: _seen(db))
    if version in {_EMPTY, _FOREIGN}:
        raise BackstopError(
            f"{path} is a database of something else; name the file that the agent writes to"
            if version == _FOREIGN
            else f"{path} holds nothing; name the file that the agent writes to",
            slug="store-schema" if version == _FOREIGN else "store-missing",
        )
    if version != SCHEMA_VERSION:
        raise BackstopError(
            f"{path} is a store of form {version}; this Backstop reads form {SCHEMA_VERSION}: use "
            "the Backstop that wrote it, or a newer one, or name another file",
            slug="store-schema",
        )


def _patiently(act: Callable[[], R]) -> R:
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            return act()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
        time.sleep(_RETRY_S)


def _seen(db: sqlite3.Connection) -> int:
    db.execute("BEGIN")  # of a file that others are making, all or nothing is seen
    try:
        return _version(db)
    finally:
        db.execute("ROLLBACK")


def _version(db: sqlite3.Connection) -> int:
    """The version of the store's form."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application == _APPLICATION:
        return int(version)
    return _FOREIGN if tables or version or application else _EMPTY


def _create(db: sqlite3.Connection) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        if _version(db) == _EMPTY:
            for statement in _SCHEMA:
                db.execute(statement)
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


_SCHEMA: Final = (
    # `floor`: no event gets a stamp below it any more, for a snapshot was taken there. Each write
    # looks at it, so it stands before the header, which may be long.
    """CREATE TABLE ledgers (
        id INTEGER PRIMARY KEY, floor INTEGER NOT NULL DEFAULT 0, agent TEXT NOT NULL UNIQUE,
        header BLOB NOT NULL)""",
    """CREATE TABLE owners (
        id INTEGER PRIMARY KEY, process TEXT NOT NULL UNIQUE, gone INTEGER NOT NULL DEFAULT 0)""",
    # One row a key. The claim in force and what settled it stand in the row itself; what they
    # took the place of is in `events`. `told` says that the settlement is there as well.
    """CREATE TABLE effects (
        id INTEGER PRIMARY KEY, ledger INTEGER NOT NULL, key TEXT NOT NULL, phase TEXT NOT NULL,
        fence INTEGER NOT NULL, owner TEXT NOT NULL, process INTEGER NOT NULL, run TEXT NOT NULL,
        step TEXT NOT NULL, since INTEGER, claimed_at INTEGER NOT NULL, settled_at INTEGER,
        told INTEGER NOT NULL DEFAULT 0, overrides BLOB, done BLOB, claimed BLOB NOT NULL,
        settled BLOB, UNIQUE (ledger, key))""",
    "CREATE INDEX effects_of_step ON effects (ledger, run, step)",
    """CREATE TABLE events (
        ledger INTEGER NOT NULL, run TEXT NOT NULL, stamp INTEGER NOT NULL, tie TEXT NOT NULL,
        once TEXT, line BLOB NOT NULL, PRIMARY KEY (ledger, run, stamp, tie)) WITHOUT ROWID""",
    "CREATE UNIQUE INDEX said_once ON events (ledger, run, once) WHERE once IS NOT NULL",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
