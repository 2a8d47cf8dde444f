"""The high-water mark of a ledger, as a file kept elsewhere: read and raised under one lock."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from backstop.adapters.files import FileFault, read_bytes, write_atomic
from backstop.core.heads import Mark, open_mark, write_mark
from backstop.core.lines import MAX_LINE

_MAX_MARK: Final = 2 * MAX_LINE  # it holds about what a seal does


class MarkFile:
    """A mark that may not be there yet. Use it within `held`, or somebody else raises it too."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def held(self) -> Iterator[MarkFile]:
        """Keep every other process out between reading and raising; waits for them.

        Raises `FileFault` (``file-unwritable``).
        """
        beside = self.path.with_name(f".{self.path.name}.lock")
        try:
            lock = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as exc:
            raise FileFault(
                f"{self.path}: cannot be kept: {exc.strerror or exc}. Nothing was checked; name "
                "a file in a folder that is there and can be written to.",
                slug="file-unwritable",
            ) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield self
        finally:
            os.close(lock)

    def read(self) -> Mark | None:
        """The mark; None where none was made yet. Raises `LedgerError` (``mark-damaged``)."""
        if not os.path.lexists(self.path):
            return None
        return open_mark(read_bytes(self.path, cap=_MAX_MARK), name=str(self.path))

    def write(self, mark: Mark) -> None:
        """Put a mark in place of the one that was read, whole or not at all; durable."""
        write_atomic(self.path, write_mark(mark))
