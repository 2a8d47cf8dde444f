"""Whole lines out of chunks of bytes, with the last line held back: it is the seal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from backstop.errors import BackstopError

MAX_LINE: Final = 16 * 1024 * 1024
"""Bytes of the longest line that is taken into memory."""

TooLong = Callable[[int], BackstopError]
"""Makes the error for a line that is longer than `MAX_LINE`, given its number."""


class Lines:
    """Iterates blocks of whole lines; afterwards `last` is the last line and `rest` what follows.

    Every block ends in a newline; `last` has its newline cut off; `rest` is the text after
    the last newline. Memory is bounded by the largest chunk and `MAX_LINE`. Raises what
    `too_long` makes as soon as a line is known to be longer.
    """

    def __init__(self, chunks: Iterable[bytes], *, too_long: TooLong) -> None:
        self.last = b""
        self.rest = b""
        self._chunks = chunks
        self._too_long = too_long
        self._whole = 0

    def __iter__(self) -> Iterator[bytes]:
        pieces: list[bytes] = []
        pending = 0
        held = b""
        for chunk in self._chunks:
            cut = chunk.rfind(b"\n") + 1
            if cut:
                block = b"".join((*pieces, chunk[:cut]))
                self._check(block)
                start = block.rfind(b"\n", 0, -1) + 1
                ready, held = (held + block[:start], block[start:]) if start else (held, block)
                pieces, pending = [], 0
                if ready:
                    yield ready
            pieces.append(chunk[cut:])
            pending += len(chunk) - cut
            if pending > MAX_LINE:
                raise self._too_long(self._whole + 1)
        self.last = held[:-1]
        self.rest = b"".join(pieces)

    def _check(self, block: bytes) -> None:
        if len(block) > MAX_LINE:
            for offset, line in enumerate(block.split(b"\n")):
                if len(line) > MAX_LINE:
                    raise self._too_long(self._whole + offset + 1)
        self._whole += block.count(b"\n")
