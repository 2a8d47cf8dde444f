"""What the tests of importers share: a ledger of conversations, and documents gone wrong."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from backstop.adapters.importing.building import Book
from backstop.adapters.importing.contents import Tools
from backstop.adapters.importing.conversation import Conversation
from backstop.adapters.told import ImportRefused
from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import Event, Header
from backstop.core.history import effect_rows
from backstop.core.ledgerfile import seal_lines, verify

AT = datetime(2026, 5, 4, tzinfo=UTC)
DECLARED = {
    "pay": Declaration(tool="pay", identity=("order",)),
    "look": Declaration(tool="look", effect=False),
}
TOOLS = Tools(declared=frozenset(DECLARED), reads=frozenset({"look"}))


def booked(conversations: Iterable[Conversation]) -> tuple[Header, list[Event]]:
    """The ledger of these conversations, which has stood up to the strict reader."""
    book = Book(namespace=Namespace(agent="till"), declarations=DECLARED)
    events = list(book.events(conversations))
    header = book.header("test")
    verify(list(seal_lines(header, events)), name="ledger")
    assert not header.guarded
    return header, events


def effects(events: list[Event]) -> list[tuple[str, str, str]]:
    """Tool, call id and outcome of each effect, in the order of asking."""
    return [(row.tool, row.call, row.outcome.value) for row in effect_rows([events]).rows]


def gaps(header: Header) -> list[str]:
    """What the ledger says that its record could not tell."""
    return list(header.gaps or [])


def refusal(read: Callable[[], Iterable[Conversation]]) -> str:
    """Why a record is refused, in one line with its slug."""
    with pytest.raises(ImportRefused) as caught:
        booked(read())
    line = str(caught.value)
    assert "\n" not in line
    return f"{caught.value.slug}: {line}"


def gone_wrong(document: Any) -> Iterator[Any]:
    """The document with each of its values, in turn, replaced by one of every other kind."""
    others: tuple[Any, ...] = (None, True, -1, 1e300, "", "x", [], ["x"], {}, {"x": {}})
    for place in list(_places(document)):
        for other in others:
            damaged = copy.deepcopy(document)
            if not place:
                yield other
                continue
            inside = damaged
            for step in place[:-1]:
                inside = inside[step]
            inside[place[-1]] = other
            yield damaged


def withstands(read: Callable[[Any], Iterable[Conversation]], document: Any) -> tuple[int, int]:
    """How many damaged documents are imported, and how many refused; nothing else may happen."""
    imported = refused = 0
    for damaged in gone_wrong(document):
        try:
            booked(read(damaged))
        except ImportRefused:
            refused += 1
        else:
            imported += 1
    return imported, refused


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    if isinstance(value, dict | list):
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        for step, item in inside:
            yield from _places(item, (*place, step))
