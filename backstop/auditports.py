"""What the long-term audit needs from outside: a place that keeps entries and changes none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from backstop.core.auditlog import Entry, Tip
from backstop.core.reckoning import Day


class Archive(Protocol):
    """Keeps the entries of one ledger, in order, for good.

    What cannot be reached, read or written raises `BackstopError` (``store-...``): it is never
    told as empty. What it returns is to be checked by whoever asks (`auditwalk.Walk`).
    """

    def append(self, entries: Sequence[Entry]) -> Tip:
        """Add entries, each following the one before; how far the archive reaches then.

        Told again, they change nothing: so whoever does not know whether they went in tells them
        again. Of what is cut off, a beginning may be there. Raises `LedgerError`:
        ``archive-gap`` where entries are missing before them, ``archive-fork`` where others
        stand in their place or before them, ``archive-damaged`` for entries that are no chain.
        """
        ...

    def read(self, after: int = 0) -> Iterator[Entry]:
        """The entries numbered higher than `after`, in order, as they stand there."""
        ...

    def head(self) -> Tip:
        """How far it reaches; `ORIGIN` for one that holds nothing yet."""
        ...

    def close(self) -> None:
        """Let go of what it holds open. What was appended is kept."""
        ...


@runtime_checkable
class Reckoner(Protocol):
    """An archive that can be asked where it lies: no entry has to come here for the figures."""

    def check(self) -> Tip:
        """How far it reaches, with each number, link and hash worked out anew.

        Raises `LedgerError`: ``archive-gap`` or ``archive-damaged``, naming the first entry.
        """
        ...

    def days(self) -> Iterator[Day]:
        """What `reckoning.reckon` says of all its entries, by day."""
        ...
