"""Records made elsewhere, by their kind, and the sealed ledgers that they amount to."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import IO, Final, TypeAlias

import msgspec

from backstop.adapters.chat import Selection, import_chat
from backstop.adapters.files import CHUNK, read_bytes, write_atomic
from backstop.adapters.importing.building import Book
from backstop.adapters.importing.choosing import conversations
from backstop.adapters.importing.contents import Tools
from backstop.adapters.importing.conversation import Conversation
from backstop.adapters.importing.recorded import (
    evalsets_at,
    messages_at,
    recordings_at,
    traces_at,
)
from backstop.adapters.importing.sessions import stored_at
from backstop.core.canon import CANON_VERSION
from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import FORMAT, Event, Header
from backstop.core.ledgerfile import encode
from backstop.core.making import Making
from backstop.core.redaction import RedactionKey
from backstop.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A record at `place` (a path or a URL), and whose ledger becomes of it.

    `at` is when a run begins of which the record does not say.
    """

    place: str
    namespace: Namespace
    declarations: Mapping[str, Declaration]
    selection: Selection
    at: datetime
    key: RedactionKey | None = None

    @property
    def book(self) -> Book:
        """An empty ledger for what is read."""
        return Book(namespace=self.namespace, declarations=self.declarations, key=self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a record tells: its events, and its `header`, which is known after the last event."""

    events: Iterable[Event]
    header: Callable[[], Header]


Importer: TypeAlias = Callable[[Source], Told]


def _chat(source: Source) -> Told:
    header, events = import_chat(
        read_bytes(Path(source.place)),
        name=source.place,
        namespace=source.namespace,
        declarations=source.declarations,
        selection=source.selection,
        at=source.at,
        key=source.key,
    )
    return Told(events=events, header=lambda: header)


def booked(kind: str, source: Source, conversations: Iterable[Conversation]) -> Told:
    """What conversations tell, one at a time."""
    book = source.book
    return Told(events=book.events(conversations), header=lambda: book.header(kind))


def _sessions(source: Source) -> Told:
    read = conversations(
        stored_at(source.place),
        name=source.place,
        selection=source.selection,
        declared=source.declarations,
    )
    return booked("adk-session", source, read)


def _tools(kind: str, source: Source) -> Tools:
    """What is known of tools, for a record that is taken whole."""
    if source.selection.where or source.selection.run_field is not None:
        raise UsageError(
            f"--from {kind}: takes no --where and no --run-field; name the file or the folder of "
            "what is to be imported"
        )
    reads = frozenset(tool for tool, one in source.declarations.items() if not one.effect)
    return Tools(declared=frozenset(source.declarations), reads=reads)


def _evalsets(source: Source) -> Told:
    tools = _tools("evalset", source)
    return booked("evalset", source, evalsets_at(source.place, tools=tools, at=source.at))


def _recordings(source: Source) -> Told:
    tools = _tools("conformance", source)
    return booked("conformance", source, recordings_at(source.place, tools=tools, at=source.at))


def _traces(source: Source) -> Told:
    tools = _tools("otlp", source)
    return booked("otlp", source, traces_at(source.place, tools=tools))


def _messages(source: Source) -> Told:
    read = messages_at(source.place, selection=source.selection, at=source.at)
    return booked("anthropic", source, read)


IMPORTERS: Final[Mapping[str, Importer]] = {
    "chat": _chat,
    "adk-session": _sessions,
    "evalset": _evalsets,
    "conformance": _recordings,
    "anthropic": _messages,
    "otlp": _traces,
}
"""How to read what `--from` names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What came of an import: the ledger's header, and how much is in it."""

    header: Header
    runs: int
    events: int
    effects: int


def import_record(kind: str, source: Source, out: Path) -> Imported:
    """Import a record to a sealed ledger at `out`; memory holds one run at a time.

    Raises `UsageError` for an unknown kind, and whatever the importer refuses a record for. What
    is written stands up to the strict reader, whoever wrote the record.
    """
    importer = IMPORTERS.get(kind)
    if importer is None:
        known = ", ".join(IMPORTERS)
        raise UsageError(f"--from: {kind!r} cannot be imported; this version knows: {known}")
    with tempfile.TemporaryFile() as spool:
        told = importer(source)
        # The header stands first and is known last: the tools are those that were called.
        blank = Header(format=FORMAT, agent=source.namespace.agent, canon=CANON_VERSION)
        making = Making(blank, name=str(out))
        spool.writelines(making.add(event) for event in told.events)
        making.close()
        header = told.header()
        first = encode(header) + b"\n"
        digest = hashlib.sha256(first)
        for chunk in _chunks(spool):
            digest.update(chunk)
        seal = msgspec.structs.replace(making.sealer.seal(), digest=digest.hexdigest())
        write_atomic(out, chain([first], _chunks(spool), [encode(seal) + b"\n"]))
    return Imported(header=header, runs=seal.runs, events=seal.events, effects=seal.effects)


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while chunk := file.read(CHUNK):
        yield chunk
