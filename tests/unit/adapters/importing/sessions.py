"""ADK sessions for tests: events in few words, and the ledger they amount to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from backstop.adapters.chat import Selection
from backstop.adapters.importing.building import Book
from backstop.adapters.importing.choosing import conversations
from backstop.adapters.importing.events import Stored
from backstop.adapters.importing.sessions import stored_at
from backstop.core.canon import parse
from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import EffectClaimed, EffectCommitted, Event, Header
from backstop.core.ledgerfile import read, verify
from backstop.core.sealing import seal_lines

DESK = {
    "pay": Declaration(tool="pay", identity=("order",)),
    "look": Declaration(tool="look", effect=False),
}
_BEGAN = 1_764_132_650


def call(tool: str, name: str = "", **args: Any) -> dict[str, Any]:
    named = {"id": name} if name else {}
    return {"function_call": {**named, "name": tool, "args": args}}


def answer(tool: str, name: str = "", **response: Any) -> dict[str, Any]:
    named = {"id": name} if name else {}
    return {"function_response": {**named, "name": tool, "response": response}}


def event(
    author: str, *parts: dict[str, Any] | str, invocation: str = "i", **more: Any
) -> dict[str, Any]:
    """An event as ADK dumps it; its id and time come with its place in the session."""
    told = [{"text": part} if isinstance(part, str) else part for part in parts]
    content = {"role": "user" if author == "user" else "model", "parts": told}
    said = {"author": author, "invocation_id": invocation, "actions": {}, **more}
    return {**said, "content": content} if parts else said


def numbered(*events: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"id": f"e{place}", "timestamp": _BEGAN + place, **one} for place, one in enumerate(events)
    ]


def told(*events: dict[str, Any], state: Mapping[str, Any] | None = None) -> Told:
    """The ledger of one session."""
    stored = Stored(
        app="desk",
        user="ann",
        id="one",
        # As a store holds them: text, read strictly.
        events=[_strict(one) for one in numbered(*events)],
        place="test",
        state=dict(state or {}),
    )
    return ledger([stored])


def at(place: str | Path, **where: str) -> Told:
    """The ledger of the sessions at a path or URL."""
    return ledger(stored_at(str(place)), Selection(where=where))


def ledger(sessions: Iterable[Stored], selection: Selection | None = None) -> Told:
    book = Book(namespace=Namespace(agent="desk"), declarations=DESK)
    read_ = conversations(
        sessions, name="test", selection=selection or Selection(), declared=book.declarations
    )
    events = list(book.events(read_))
    return Told(book.header("adk-session"), events)


class Told:
    """A ledger that stood up to the strict reader."""

    def __init__(self, header: Header, events: list[Event]) -> None:
        data = b"".join(seal_lines(header, events))
        verify([data], name="test")
        self.ledger = read(data, name="test")
        self.header = header
        self.events = events

    @property
    def gaps(self) -> list[str]:
        return self.header.gaps or []

    @property
    def kinds(self) -> list[str]:
        """The tags of all events."""
        return [one.__struct_config__.tag for one in self.events]  # type: ignore[misc]

    def of(self, kind: type[Any]) -> list[Any]:
        return [one for one in self.events if isinstance(one, kind)]

    @property
    def paid(self) -> list[tuple[str, Any, Any]]:
        """Tool, arguments and result of what went out, in the order of claims."""
        results: dict[str, list[Any]] = {}
        for one in self.of(EffectCommitted):
            results.setdefault(one.key, []).append(parse(bytes(one.result)))
        return [
            (one.tool, parse(bytes(one.args)), results[one.key].pop(0))
            for one in self.of(EffectClaimed)
            if results.get(one.key)
        ]


def _strict(one: dict[str, Any]) -> dict[str, Any]:

    found = parse(json.dumps(one))
    assert isinstance(found, dict)
    return found
