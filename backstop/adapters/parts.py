"""A folder that holds what has been pulled so far: whole parts, sorted, each durable once kept.

A part is kept as sorted runs of lines, each small enough for memory, and a file that says that
it is whole, written last. Whoever is killed in between finds the whole parts again, and pulls
the others anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from backstop.adapters.files import write_atomic
from backstop.core.events import Event, Header
from backstop.core.sealing import EVENT
from backstop.errors import BackstopError
from backstop.ports import Stamped

SPILL: Final = 32 << 20
"""Bytes of lines that are sorted in memory at a time."""

_TERMS: Final = "pull.json"
_LOCK: Final = "lock"


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What is being pulled: the ledger of whom, from where, as it was at which instant."""

    store: str
    agent: str
    at: str
    header: Header


class _Row(msgspec.Struct, frozen=True, array_like=True):
    stamp: int
    tie: str
    line: msgspec.Raw


class _Whole(msgspec.Struct, frozen=True, kw_only=True):
    """Says that a part is whole: its name, and in how many runs it lies there."""

    part: str
    runs: int


_ROW: Final = msgspec.json.Decoder(_Row)


class PullFolder:
    """The folder of one pull. `spill` is `SPILL`, less where a test wants several runs."""

    def __init__(self, path: Path, *, spill: int = SPILL) -> None:
        self._path = path
        self._spill = spill

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._path

    @contextmanager
    def held(self) -> Iterator[PullFolder]:
        """Make the folder, and keep every other process out of it.

        Raises `BackstopError` (``pull-busy``, ``pull-folder``).
        """
        with contextlib.suppress(FileExistsError):
            self._path.mkdir()
        if not self._path.is_dir() or not self._is_ours():
            raise BackstopError(
                f"{self._path}: is there, and holds no pull of a ledger; move it away, or pull to "
                "another file",
                slug="pull-folder",
            )
        with (self._path / _LOCK).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise BackstopError(
                    f"{self._path}: another process is pulling to the same file; wait for it",
                    slug="pull-busy",
                ) from None
            yield self

    def _is_ours(self) -> bool:
        names = {entry.name for entry in self._path.iterdir()}
        begun = {name for name in names if name != _LOCK and not name.startswith(f".{_TERMS}.")}
        return not begun or _TERMS in names

    def terms(self) -> Terms | None:
        """What an earlier pull was about; None if there was none."""
        try:
            return msgspec.json.decode((self._path / _TERMS).read_bytes(), type=Terms)
        except FileNotFoundError:
            return None
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise BackstopError(
                f"{self._path / _TERMS}: cannot be read as the beginning of a pull; remove the "
                "folder, and pull again",
                slug="pull-folder",
            ) from None

    def begin(self, terms: Terms) -> None:
        """Put down what is being pulled, before anything of it."""
        write_atomic(self._path / _TERMS, msgspec.json.encode(terms))

    def is_whole(self, number: int, part: str) -> bool:
        """Whether part `number` is kept already, and is that part."""
        whole = self._whole(number)
        return whole is not None and whole.part == part

    def keep(self, number: int, part: str, rows: Iterable[Stamped]) -> None:
        """Keep a part; it is durable once this returns."""
        runs = 0
        for runs, held in enumerate(_batches(rows, self._spill), start=1):
            write_atomic(self._run(number, runs), _lines(held))
        whole = _Whole(part=part, runs=runs)
        write_atomic(self._path / f"{number:06}.whole", msgspec.json.encode(whole))

    def events(self, count: int) -> Iterator[Event]:
        """The events of the first `count` parts, all of them kept, in the order of the ledger."""
        with contextlib.ExitStack() as files:
            rows = [
                map(_ROW.decode, files.enter_context(path.open("rb")))
                for number in range(count)
                for path in self._runs(number)
            ]
            for row in heapq.merge(*rows, key=_order):
                yield EVENT.decode(row.line)

    def remove(self) -> None:
        """Leave nothing behind."""
        shutil.rmtree(self._path)

    def _run(self, number: int, run: int) -> Path:
        return self._path / f"{number:06}.{run:04}.rows"

    def _runs(self, number: int) -> list[Path]:
        whole = self._whole(number)
        return [] if whole is None else [self._run(number, run + 1) for run in range(whole.runs)]

    def _whole(self, number: int) -> _Whole | None:
        try:
            return msgspec.json.decode(
                (self._path / f"{number:06}.whole").read_bytes(), type=_Whole
            )
        except (FileNotFoundError, msgspec.MsgspecError):
            return None


def _order(row: _Row) -> tuple[int, str, bytes]:
    return row.stamp, row.tie, bytes(row.line)


def _batches(rows: Iterable[Stamped], spill: int) -> Iterator[list[Stamped]]:
    held: list[Stamped] = []
    size = 0
    for row in rows:
        held.append(row)
        size += len(row.line)
        if size >= spill:
            yield held
            held, size = [], 0
    if held:
        yield held


def _lines(rows: list[Stamped]) -> Iterator[bytes]:
    for row in sorted(rows):
        yield msgspec.json.encode(_Row(row.stamp, row.tie, msgspec.Raw(row.line))) + b"\n"


def put_in_place(file: Path, target: Path) -> None:
    """Rename a whole file of the same file system to where it belongs; durable."""
    file.replace(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
