"""An archive in a folder of Parquet files, written and read by DuckDB.

Each append is one file, named by its first entry and put in place whole: written beside, on the
disk, then linked under its name, which fails where another has it. So of an append that is cut
off there is all or nothing, and no file is ever changed.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from errno import ENOSPC
from pathlib import Path
from typing import Final

import duckdb

from backstop.adapters.archives.rows import COLUMNS, HASHED, day_from, days_of, entry_from
from backstop.core.auditlog import ORIGIN, Entry, Tip, damaged, gap, unwritten
from backstop.core.reckoning import Day
from backstop.errors import BackstopError

_FORM: Final = b'{"t":"archive","format":1}\n'
_LABEL: Final = "archive.json"
_DIGITS: Final = 16
_FETCH: Final = 5_000
_NUMBERS: Final = frozenset({"seq", "spent", "avoided"})
_OFFLINE: Final[dict[str, str | bool | int | float | list[str]]] = {
    "autoinstall_known_extensions": False,
    "allow_community_extensions": False,
}

_TYPES: Final = [(name, "BIGINT" if name in _NUMBERS else "VARCHAR") for name in COLUMNS]
_NAMES: Final = ", ".join(f'"{name}"' for name in COLUMNS)
_GIVEN: Final = ", ".join(
    f'unnest(${number}::{kind}[]) AS "{name}"' for number, (name, kind) in enumerate(_TYPES, 1)
)
_HASH: Final = "sha256({})".format(" || chr(10) || ".join(f'"{name}"::VARCHAR' for name in HASHED))
# Every file is looked at by itself, so that nothing but numbers and hashes is sorted.
_CHECK: Final = f"""
    WITH found AS (
        SELECT seq, prev, hash, hash = {_HASH} AND (seq = 1) = (prev = '') AS held
        FROM {{files}}
    ), linked AS (
        SELECT seq, prev, held, lag(seq, 1, 0) OVER w AS seq_before,
            lag(hash, 1, '') OVER w AS hash_before
        FROM found WINDOW w AS (ORDER BY seq)
    )
    SELECT seq, seq_before FROM linked
    WHERE (held AND seq = seq_before + 1 AND prev = hash_before) IS NOT TRUE
    ORDER BY seq LIMIT 1
"""  # noqa: S608 - of constants


class ParquetArchive:
    """An `Archive` in `folder`, made if there is none and `create` says so. A `Reckoner`, too.

    Raises `BackstopError`: ``store-missing`` for a folder that is none, or that nobody labelled
    as an archive (an empty place where a disk is not mounted, say), ``store-schema`` for one of
    something else.
    """

    def __init__(self, folder: Path, *, create: bool) -> None:
        self._folder = folder
        self._name = f"parquet:{folder}"
        self._label = folder / _LABEL
        self._db = duckdb.connect(config=_OFFLINE)
        with self._troubles():
            if create and not self._label.exists():
                self._begin()
        self._check_label()

    def append(self, entries: Sequence[Entry]) -> Tip:
        """Add entries, as one file or not at all."""
        with self._troubles(), self._alone():
            new = unwritten(entries, self.head(), self._entries, name=self._name)
            if new:
                self._write(new)
            return self.head()

    def read(self, after: int = 0) -> Iterator[Entry]:
        """The entries numbered higher than `after`."""
        with self._troubles():
            files = self._files()
            begin = max(
                (at for at, file in enumerate(files) if _first(file) <= after + 1), default=0
            )
            for file in files[begin:]:
                yield from self._rows(file, after)

    def head(self) -> Tip:
        """How far it reaches."""
        with self._troubles():
            files = self._files()
            if not files:
                return ORIGIN
            found = self._db.cursor().execute(
                "SELECT seq, hash FROM read_parquet(?) ORDER BY seq DESC LIMIT 1", [str(files[-1])]
            )
            row = found.fetchone()
            if row is None:
                raise _unusable(self._name, f"{files[-1].name} holds no entry", "store-damaged")
            return Tip(seq=row[0], hash=row[1])

    def check(self) -> Tip:
        """How far it reaches, with each number, link and hash worked out anew by DuckDB."""
        with self._troubles():
            files = self._files()
            if files:
                asked = _CHECK.format(files="read_parquet(?)")
                row = self._db.cursor().execute(asked, [[str(file) for file in files]]).fetchone()
                if row is not None:
                    seq, before = row
                    if seq > before + 1:
                        raise gap(self._name, before + 1, seq)
                    raise damaged(self._name, seq, "it is not as it was archived")
            return self.head()

    def days(self) -> Iterator[Day]:
        """The figures of each day, worked out by DuckDB."""
        with self._troubles():
            files = self._files()
            if files:
                asked = self._db.cursor().execute(
                    days_of("read_parquet(?)"), [[str(file) for file in files]]
                )
                for row in asked.fetchall():
                    yield day_from(row, name=self._name)

    def close(self) -> None:
        """Let go of DuckDB; no file is held open."""
        self._db.close()

    def _entries(self, first: int, last: int) -> Iterator[Entry]:
        for entry in self.read(first - 1):
            if entry.seq > last:
                return
            yield entry

    def _rows(self, file: Path, after: int) -> Iterator[Entry]:
        """What a file holds behind a number, in order."""
        # A cursor of its own: what is read here may be read elsewhere at the same time.
        asked = self._db.cursor().execute(
            f"SELECT {_NAMES} FROM read_parquet(?) WHERE seq > ? ORDER BY seq",  # noqa: S608
            [str(file), after],
        )
        while rows := asked.fetchmany(_FETCH):
            for row in rows:
                line = row[-1].encode() if isinstance(row[-1], str) else row[-1]
                yield entry_from((*row[:-1], line), name=self._name)

    def _files(self) -> list[Path]:
        """The files of entries, in order of their first."""
        self._check_label()
        return sorted(self._folder.glob(f"entries-{'[0-9]' * _DIGITS}.parquet"))

    def _write(self, new: Sequence[Entry]) -> None:
        target = self._folder / f"entries-{new[0].seq:0{_DIGITS}}.parquet"
        beside = self._folder / f".{target.name}.part"
        columns: list[list[object]] = [[getattr(one, name) for one in new] for name in COLUMNS[:-1]]
        columns.append([one.line.decode() for one in new])
        place = str(beside).replace("'", "''")
        beside.unlink(missing_ok=True)  # of one that was cut off; nobody else writes now
        self._db.cursor().execute(
            f"COPY (SELECT {_GIVEN}) TO '{place}' (FORMAT parquet, COMPRESSION zstd)",
            columns,
        )
        _sync(beside)
        try:
            os.link(beside, target)
        except FileExistsError:
            raise _unusable(
                self._name, f"{target.name} came from elsewhere meanwhile; try again", "store-busy"
            ) from None
        beside.unlink()
        _sync(self._folder)

    def _begin(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        if any(self._folder.iterdir()):
            raise _unusable(
                self._name, "a folder of something else; name an empty or a new one", "store-schema"
            )
        self._label.write_bytes(_FORM)
        _sync(self._label)
        _sync(self._folder)

    def _check_label(self) -> None:
        try:
            label = self._label.read_bytes()
        except OSError as error:
            raise _unusable(
                self._name,
                f"no archive is there ({error.strerror}): check the name, and that its disk is "
                "mounted",
                "store-missing",
            ) from None
        if label != _FORM:
            raise _unusable(
                self._name, "of a form that this Backstop does not read", "store-schema"
            )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One writer at a time, of those on this machine."""
        with self._label.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _troubles(self) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            said = str(error).splitlines()[0][:200]
            raise _unusable(
                self._name, f"a file cannot be read or written ({said})", "store-damaged"
            ) from error
        except OSError as error:
            slug = "store-full" if error.errno == ENOSPC else "store-unusable"
            raise _unusable(
                self._name, f"cannot be read or written ({error.strerror or error})", slug
            ) from error


def _first(file: Path) -> int:
    return int(file.stem.rpartition("-")[2])


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unusable(name: str, what: str, slug: str) -> BackstopError:
    return BackstopError(f"{name}: {what}", slug=slug)
