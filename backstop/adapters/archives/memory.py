"""An archive in memory: the reference for every other one, and gone with its process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Final

from backstop.core.auditlog import ORIGIN, Entry, Tip, tip_at, unwritten
from backstop.errors import BackstopError

ENTRIES: Final = 1_000_000
"""How many entries an archive in memory holds, unless it is told otherwise."""

_NAME: Final = "memory:"


class MemoryArchive:
    """An `Archive` that holds `limit` entries at most.

    Full, it refuses (``store-full``) and evicts nothing: what it tells is always whole.
    """

    def __init__(self, *, limit: int = ENTRIES) -> None:
        self._entries: list[Entry] = []
        self._limit = limit
        self._lock = Lock()

    def append(self, entries: Sequence[Entry]) -> Tip:
        """Add entries, all of them or none."""
        with self._lock:
            new = unwritten(
                entries,
                self.head(),
                lambda first, last: self._entries[first - 1 : last],
                name=_NAME,
            )
            if len(self._entries) + len(new) > self._limit:
                raise BackstopError(
                    f"{_NAME} an archive of {self._limit:,} entries at most: {len(new):,} more do "
                    "not fit, and none is forgotten; use parquet: or sqlite:///",
                    slug="store-full",
                )
            self._entries.extend(new)
            return self.head()

    def read(self, after: int = 0) -> Iterator[Entry]:
        """The entries numbered higher than `after`."""
        return iter(self._entries[after:])

    def head(self) -> Tip:
        """How far it reaches."""
        return tip_at(self._entries[-1]) if self._entries else ORIGIN

    def close(self) -> None:
        """Nothing is held open."""
