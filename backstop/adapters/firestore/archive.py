"""An archive in Firestore: a document for each entry, named by its number, and never changed.

A write makes new documents only. So of two that write the same numbers one wins, and the other
looks at what is there; a write whose answer was lost is told from another's in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from backstop.adapters.firestore.chunks import INLINE, Chunks, Spelled, spelled
from backstop.adapters.firestore.messages import Document, Range, Write
from backstop.adapters.firestore.wire import Database, Lost
from backstop.core.auditlog import ORIGIN, Entry, Tip, tip_at, unwritten
from backstop.errors import BackstopError

_DIGITS: Final = 16
_ID: Final = re.compile(rf"[0-9]{{{_DIGITS}}}")
_MOST: Final = 200
"""Documents in one write; Firestore takes 500."""
_BYTES: Final = 2_000_000
"""Bytes of lines in one write; where Firestore is emulated, 4 MiB are too many."""
_PROBES: Final = 64
_POWERS: Final = 48
_SLOWER: Final = 12
"""How much longer the first of many entries may take: an emulator sorts all before it tells any."""
_LINE: Final = "line"
_CHUNKS: Final = "chunks"
_NUMBERS: Final = ("spent", "avoided")
_TEXTS: Final = tuple(
    name for name in Entry.__struct_fields__ if name not in {"seq", _LINE, *_NUMBERS}
)
_COLUMNS: Final = frozenset({*_TEXTS, *_NUMBERS})


class FirestoreArchive:
    """An `Archive` in a collection of a Firestore database, or of its emulator's.

    An operation takes `patience_s` at most, and twelve times that where it reads many entries.
    Raises as `Database` does.
    """

    def __init__(
        self,
        *,
        project: str,
        database: str,
        collection: str,
        emulator: str | None = None,
        patience_s: float = 10.0,
    ) -> None:
        self._name = f"firestore://{project}/{database}/{collection}"
        self._patience_s = patience_s
        self._collection = collection.strip("/")
        self._db = Database(
            project=project, name=database, emulator=emulator, patience_s=patience_s
        )
        self._chunks = Chunks(self._db, f"{self._collection}_chunks")

    def append(self, entries: Sequence[Entry]) -> Tip:
        """Add entries; of what is cut off, a beginning is there."""
        rest = self._new(entries)
        while rest:
            batch = _batch(rest)
            writes = [self._write(entry) for entry in batch]
            done = self._db.commit(writes, self._db.patience())
            # What is lost is there: ours, after an answer that did not come, or another's.
            after = self._new(rest) if isinstance(done, Lost) else rest[len(batch) :]
            if len(after) == len(rest):
                raise BackstopError(
                    f"{self._name}: entry {rest[0].seq:,} can be neither written nor read; look "
                    "at the collection, then archive again",
                    slug="store-refused",
                )
            rest = after
        return tip_at(entries[-1]) if entries else self.head()

    def read(self, after: int = 0) -> Iterator[Entry]:
        """The entries numbered higher than `after`, as they are at one instant."""
        return self._entries(after + 1, None)

    def head(self) -> Tip:
        """How far it reaches: looked for, since Firestore tells names in rising order only."""
        low, high, tip = 0, 0, ORIGIN  # what is there, and the lowest that is not, once known
        while high - low != 1:
            numbers = _probes(low, high)
            paths = [self._path(seq) for seq in numbers]
            known = self._db.get(paths, self._db.patience(), only=("hash",))
            for seq, document in zip(numbers, known, strict=True):
                if document is None:
                    high = seq
                    break
                low, tip = seq, Tip(seq=seq, hash=document.text("hash"))
        return tip

    def close(self) -> None:
        """Let go of the connection."""
        self._db.close()

    def _new(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        return unwritten(entries, self.head(), self._entries, name=self._name)

    def _entries(self, first: int, last: int | None) -> Iterator[Entry]:
        end = "" if last is None else _id(last + 1)
        asked = Range(collection=self._collection, first=_id(first), end=end)
        for document in self._db.query(asked, patience_s=_SLOWER * self._patience_s):
            yield self._entry(document)

    def _entry(self, document: Document) -> Entry:
        if _ID.fullmatch(document.id) is None or _COLUMNS - document.fields.keys():
            raise BackstopError(
                f"{document.path}: no entry of an archive; an archive has a collection of its own",
                slug="store-unreadable",
            )
        held = Spelled(text=document.text(_LINE), chunks=document.text(_CHUNKS))
        told = {name: document.text(name) for name in _TEXTS}
        return Entry(
            seq=int(document.id),
            spent=document.number("spent") or 0,
            avoided=document.number("avoided") or 0,
            line=self._chunks.line(held),
            **told,
        )

    def _write(self, entry: Entry) -> Write:
        held = spelled(entry.line)
        self._chunks.put(entry.line, held)
        line = {_CHUNKS: held.chunks} if held.chunks else {_LINE: held.text}
        columns = {name: getattr(entry, name) for name in (*_TEXTS, *_NUMBERS)}
        return Write(path=self._path(entry.seq), fields={**columns, **line})

    def _path(self, seq: int) -> str:
        return f"{self._collection}/{_id(seq)}"


def _id(seq: int) -> str:
    return f"{seq:0{_DIGITS}}"


def _probes(low: int, high: int) -> Sequence[int]:
    """Numbers between what is there and what is not; by powers of two where that is not known."""
    if high <= low:
        return [low + 2**power for power in range(_POWERS)]
    step = -(-(high - low) // _PROBES)
    return range(low + step, high, step)


def _batch(entries: Sequence[Entry]) -> Sequence[Entry]:
    """As many of the first ones as fit into one write."""
    size = 0
    for number, entry in enumerate(entries[:_MOST]):
        size += min(len(entry.line), INLINE)
        if size > _BYTES:
            return entries[:number]
    return entries[:_MOST]
