"""Lines of a ledger that are too long for a document: cut into documents of their own.

A document holds a line as text, or, where it is long, its digest and how many chunks it has.
Chunks are named by the digest, so writing them again changes nothing, and what is put together
is checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from backstop.adapters.firestore.messages import Write
from backstop.adapters.firestore.wire import Database
from backstop.errors import BackstopError

INLINE: Final = 300_000
"""Bytes of a line that stay in its document: three of them fit into what a document may hold."""

CHUNK: Final = 900_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelled:
    """A line as a document holds it: its `text`, or ``digest/count`` of its `chunks`."""

    text: str = ""
    chunks: str = ""


def spelled(line: bytes) -> Spelled:
    """How a document holds this line."""
    if len(line) <= INLINE:
        return Spelled(text=line.decode())
    return Spelled(chunks=f"{sha256(line).hexdigest()}/{-(-len(line) // CHUNK)}")


class Chunks:
    """The chunks of one agent's ledger, in a collection of a database."""

    def __init__(self, database: Database, collection: str) -> None:
        self._database = database
        self._collection = collection

    def put(self, line: bytes, held: Spelled) -> None:
        """Write the chunks of a line, if it has any; those that are there stay."""
        if not held.chunks:
            return
        for number, path in enumerate(self._paths(held)):
            chunk = line[number * CHUNK : (number + 1) * CHUNK]
            write = Write(path=path, fields={"data": chunk})
            # One at a time: a request may hold 4 MiB where Firestore is emulated. That a chunk
            # is there already is no loss.
            self._database.commit([write], self._database.patience())

    def remove(self, held: Spelled) -> None:
        """Remove the chunks of a line that no document holds any more."""
        for path in self._paths(held) if held.chunks else ():
            write = Write(path=path, fields={}, gone=True)
            self._database.commit([write], self._database.patience())

    def line(self, held: Spelled) -> bytes:
        """The whole line. Raises `BackstopError` (``store-unreadable``) where part is missing."""
        if not held.chunks:
            return held.text.encode()
        whole = b"".join(map(self._chunk, self._paths(held)))
        if sha256(whole).hexdigest() != held.chunks.partition("/")[0]:
            raise BackstopError(
                f"{self._collection}: the chunks of {held.chunks[:12]}… are not what was written; "
                "restore them, or resolve the effect by hand",
                slug="store-unreadable",
            )
        return whole

    def _chunk(self, path: str) -> bytes:
        (found,) = self._database.get([path], self._database.patience())
        if found is None:
            raise BackstopError(
                f"{path} is missing: its writer was cut off after it had settled the effect, and "
                "what it came to is not on record; resolve it by hand if it is needed",
                slug="store-unreadable",
            )
        return found.blob("data")

    def _paths(self, held: Spelled) -> list[str]:
        digest, _, count = held.chunks.partition("/")
        return [f"{self._collection}/{digest}-{number:04}" for number in range(int(count))]
