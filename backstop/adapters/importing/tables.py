"""The tables of ADK's `DatabaseSessionService`, row by row, whatever database holds them.

Two forms are known: that of ADK 1.x, whose events are columns and whose `actions` are a pickle,
and the one since, whose events are JSON (`event_data`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, Protocol, TypeAlias

from backstop.adapters.importing.events import Stored
from backstop.adapters.importing.unpickling import plain_actions
from backstop.adapters.told import ImportRefused
from backstop.core.canon import Json, NotCanonical
from backstop.core.strict import strict

Row: TypeAlias = Sequence[Any]

OWNER: Final = ("app_name", "user_id", "session_id")
_NAMED: Final = (*OWNER, "id", "invocation_id", "timestamp")
_NEW: Final = (*_NAMED, "event_data")
_OLD: Final = (*_NAMED, "author", "content", "actions")
_OLD_TOO: Final = (
    *("branch", "error_code", "error_message", "partial"),
    *("input_transcription", "output_transcription"),
)
_VERSIONS: Final = frozenset({"", "0", "1"})


class Tables(Protocol):
    """A session database, read only; whatever its driver raises is an `ImportRefused` here."""

    @property
    def name(self) -> str:
        """How to speak of it: without any password."""

    def columns(self, table: str) -> Collection[str]:
        """The columns of a table; none if there is no such table."""

    def version(self) -> str:
        """What ADK wrote down as the version of its tables; empty where it did not."""

    def events(self, columns: Sequence[str]) -> Iterator[Row]:
        """These columns of all events, by owner and within a session in the order of time.

        Text may be bytes in UTF-8.
        """

    def state(self, table: str, owner: Mapping[str, str]) -> object:
        """The state that a table has of `owner`, as stored; None if it is not there."""


def sessions(tables: Tables) -> Iterator[Stored]:
    """The sessions that have events, one at a time.

    Raises `ImportRefused`: ``import-store-schema`` for tables of no known form, ``import-pickle``
    and ``import-foreign-class`` for the actions of ADK 1.x, ``import-not-json``.
    """
    columns = tables.columns("events")
    wanted = _form(tables, frozenset(columns))
    event_of = _new_event if wanted == _NEW else _old_event(wanted)
    states = _States(
        tables=tables, kept=[part for part in _STATES if "state" in tables.columns(part[1])]
    )
    whose = itemgetter(slice(len(OWNER)))
    for owner, rows in groupby(tables.events(wanted), key=whose):
        app, user, session = (_text(name) for name in owner)
        place = f"{tables.name}: session {session} of user {user}"
        yield Stored(
            app=app,
            user=user,
            id=session,
            place=place,
            state=states.of((app, user, session), place=place),
            events=_placed(event_of, rows, place),
        )


def _form(tables: Tables, columns: frozenset[str]) -> Sequence[str]:
    """The columns that are wanted of a table of events."""
    version = tables.version()
    if version not in _VERSIONS:
        raise ImportRefused(
            f"{tables.name}: its tables are of version {version[:40]!r}, and this Backstop knows 0 "
            "and 1; import with a newer Backstop",
            slug="import-store-schema",
        )
    if columns >= set(_NEW):
        return _NEW
    if columns >= set(_OLD):
        return (*_OLD, *(name for name in _OLD_TOO if name in columns))
    found = f"they have {', '.join(sorted(columns))}" if columns else "there is no such table"
    raise ImportRefused(
        f"{tables.name}: its table events is not that of an ADK session store: {found}; name the "
        "database of DatabaseSessionService",
        slug="import-store-schema",
    )


def _placed(
    event_of: Callable[[Row], dict[str, Json]], rows: Iterable[Row], place: str
) -> Iterator[dict[str, Json]]:
    row: Row = ()
    try:
        for row in rows:
            yield event_of(row)
    except ImportRefused as error:
        if not row:
            raise
        where = f"{place}, event {_text(row[_ID])}"
        raise ImportRefused(f"{where}: {error}", slug=error.slug) from error


_ID: Final = _NAMED.index("id")


def _new_event(row: Row) -> dict[str, Json]:
    *_, name, invocation, timestamp, data = row
    event = _json(data, "event_data")
    if not event:
        raise ImportRefused("its event_data is empty: it was written half", slug="import-shape")
    event["id"], event["invocation_id"] = _text(name), _text(invocation)
    if "timestamp" not in event:
        event["timestamp"] = _seconds(timestamp)
    return event


def _old_event(columns: Sequence[str]) -> Callable[[Row], dict[str, Json]]:
    """Reads a row of ADK 1.x, whose event is in so many columns."""

    def event_of(row: Row) -> dict[str, Json]:
        told = dict(zip(columns, row, strict=True))
        event: dict[str, Json] = {
            name: _text(told[name])
            for name in ("id", "invocation_id", "author", "branch", "error_code", "error_message")
            if told.get(name) is not None
        }
        # SQL has numbers where JSON has booleans.
        event["partial"] = bool(told.get("partial"))
        event["timestamp"] = _seconds(told["timestamp"])
        for name in ("content", "input_transcription", "output_transcription"):
            event[name] = _json(told.get(name), name) or None
        event["actions"] = _actions(told["actions"])
        return event

    return event_of


def _actions(stored: object) -> dict[str, Json]:
    if stored is None:
        return {}
    if not isinstance(stored, bytes | bytearray | memoryview):
        raise ImportRefused(
            "its actions are no pickle; name a database of ADK", slug="import-pickle"
        )
    return plain_actions(bytes(stored))


_STATES: Final = (
    ("app:", "app_states", ("app_name",)),
    ("user:", "user_states", ("app_name", "user_id")),
    ("", "sessions", ("app_name", "user_id", "id")),
)
"""What names in a state begin with, the table that keeps them, and whose they are."""


@dataclass(slots=True, kw_only=True)
class _States:
    """The states of sessions, in their order: what several of one owner share is read once."""

    tables: Tables
    kept: Sequence[tuple[str, str, tuple[str, ...]]]
    _last: dict[str, tuple[tuple[str, ...], dict[str, Json]]] = field(default_factory=dict)

    def of(self, owner: tuple[str, str, str], *, place: str) -> dict[str, Json]:
        """The state at the session's end, with what it shares with others of its app and user."""
        found: dict[str, Json] = {}
        for prefix, table, names in self.kept:
            whose = owner[: len(names)]
            if self._last.get(table, ((), {}))[0] != whose:
                self._last[table] = whose, self._read(prefix, table, names, whose, place)
            found |= self._last[table][1]
        return found

    def _read(
        self, prefix: str, table: str, names: Sequence[str], whose: Sequence[str], place: str
    ) -> dict[str, Json]:
        try:
            stored = self.tables.state(table, dict(zip(names, whose, strict=True)))
            members = _json(stored, "state")
        except ImportRefused as error:
            raise ImportRefused(f"{place}: {error}", slug=error.slug) from error
        return {prefix + name: value for name, value in members.items()}


def _text(stored: object) -> str:
    return stored.decode(errors="replace") if isinstance(stored, bytes) else str(stored)


def _json(stored: object, what: str) -> dict[str, Json]:
    """An object that a column holds: as text, or decoded by its driver."""
    if stored is None:
        return {}
    try:
        value = strict(stored if isinstance(stored, bytes) else _again(stored))
    except (NotCanonical, TypeError, ValueError) as error:
        why = str(error).removeprefix("not JSON: ")
        raise ImportRefused(f"its {what} is not JSON: {why}", slug="import-not-json") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ImportRefused(f"its {what} is no object; name a database of ADK")
    return value


def _again(stored: object) -> bytes:
    """The bytes of text, or of what a driver decoded itself."""
    return (stored if isinstance(stored, str) else json.dumps(stored)).encode()


def _seconds(stored: object) -> Json:
    """A time column as seconds since 1970: a number, or a moment in UTC."""
    if isinstance(stored, int | float | Decimal):
        return Decimal(str(stored))
    moment = stored
    if isinstance(stored, str | bytes):
        try:
            moment = datetime.fromisoformat(_text(stored))
        except ValueError:
            moment = None
    if not isinstance(moment, datetime):
        raise ImportRefused("its timestamp is no time; name a database of ADK")
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return Decimal(str(aware.timestamp()))
