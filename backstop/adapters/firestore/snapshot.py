"""The ledger as it was at one instant, told at any later time: part by part, the same each time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from backstop.adapters.firestore.chunks import Chunks
from backstop.adapters.firestore.documents import Found, lines_of
from backstop.adapters.firestore.headers import Headers
from backstop.adapters.firestore.messages import Range
from backstop.adapters.firestore.wire import Database
from backstop.adapters.stamps import micros
from backstop.ports import Stamped

_DIGITS: Final = "0123456789abcdef"
_MILLISECOND: Final = 1_000
_PATIENCE_S: Final = 120.0
"""Nobody waits for a snapshot as for an answer, and an emulator sorts all before it tells any."""

_WHOLE: Final = "all"
_AHEAD: Final = 10_000_000
"""Microseconds by which our clock may go before the server's; then the server is waited for."""


class Snapshot:
    """Parts are ranges of names, which are digests; `whole` makes one part of all of them.

    What was written after an instant is told by the server's time, not by that of the writers:
    a write that was on its way at the instant is in no telling of it, or in all.
    """

    def __init__(
        self,
        database: Database,
        *,
        headers: Headers,
        collections: Sequence[str],
        chunks: Chunks,
        whole: bool,
    ) -> None:
        self._database = database
        self._headers = headers
        self._collections = collections
        self._chunks = chunks
        self._whole = whole

    def parts(self) -> Sequence[str]:
        """Names of the parts."""
        return (_WHOLE,) if self._whole else tuple(_DIGITS)

    def pull(self, part: str, *, at: datetime) -> Iterator[Stamped]:
        """The events of one part up to `at`, in no order."""
        until = micros(at)
        began = self._reached(until)
        for found in self._lines(part):
            slot = found.slot
            # A story may be told in another time than the server's: then only its own counts.
            on_record = slot.written <= until or until < began
            if on_record and slot.stamp // _MILLISECOND <= until // _MILLISECOND:
                yield Stamped(stamp=slot.stamp, tie=found.tie, line=self._chunks.line(slot.held))

    def _reached(self, until: int) -> int:
        """When the ledger was begun, by the server's time, which is past `until` on return."""
        header = self._headers.document()
        if 0 <= until - header.read < _AHEAD:
            time.sleep((until - header.read) / 1_000_000 + 0.01)
        return header.created

    def _lines(self, part: str) -> Iterator[Found]:
        first, end = _bounds(part)
        # Both as of one instant: a line may move from the one collection into the other.
        ranges = (Range(collection=name, first=first, end=end) for name in self._collections)
        for document in self._database.query(*ranges, patience_s=_PATIENCE_S):
            yield from lines_of(document)


def _bounds(part: str) -> tuple[str, str]:
    """The first name of a part, and the first behind it; names need not be digests."""
    if part == _WHOLE:
        return "", ""
    number = _DIGITS.index(part)
    after = number + 1
    return (part if number else ""), (_DIGITS[after] if after < len(_DIGITS) else "")
