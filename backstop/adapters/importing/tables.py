"""The tables of ADK's `DatabaseSessionService`, row by row, whatever database holds them.

Two forms are known: that of ADK 1.x, whose events are columns and whose `actions` are a pickle,
and the one since, whose events are JSON (`event_data`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, Protocol, TypeAlias

from backstop.adapters.importing.events import Stored
from backstop.adapters.importing.unpickling import plain_actions
from backstop.adapters.told import ImportRefused
from backstop.core.canon import Json, NotCanonical, parse

Row: TypeAlias = Mapping[str, Any]

OWNER: Final = ("app_name", "user_id", "session_id")
_OLD: Final = {*OWNER, "id", "invocation_id", "author", "timestamp", "content", "actions"}
_OLD_TOO: Final = ("branch", "error_code", "error_message", "long_running_tool_ids_json", "partial")
_NEW: Final = {*OWNER, "id", "invocation_id", "timestamp", "event_data"}
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

    def events(self, columns: Collection[str]) -> Iterator[Row]:
        """All events, by owner and within a session in the order in which they were appended."""

    def state(self, table: str, owner: Mapping[str, str]) -> object:
        """The state that a table has of `owner`, as stored; None if it is not there."""


def sessions(tables: Tables) -> Iterator[Stored]:
    """The sessions that have events, one at a time.

    Raises `ImportRefused`: ``import-store-schema`` for tables of no known form, ``import-pickle``
    and ``import-foreign-class`` for the actions of ADK 1.x, ``import-not-json``.
    """
    columns = set(tables.columns("events"))
    event_of = _form(tables, columns)
    wanted = _NEW if columns >= _NEW else _OLD | (columns & set(_OLD_TOO))
    by_owner = itemgetter(*OWNER)
    kept = [part for part in _STATES if "state" in tables.columns(part[1])]
    for (app, user, session), rows in groupby(tables.events(sorted(wanted)), key=by_owner):
        place = f"{tables.name}: session {session} of user {user}"
        yield Stored(
            app=str(app),
            user=str(user),
            id=str(session),
            place=place,
            state=_state(tables, kept, (str(app), str(user), str(session)), place=place),
            events=(_placed(event_of, row, place) for row in rows),
        )


def _form(tables: Tables, columns: set[str]) -> Callable[[Row], dict[str, Json]]:
    version = tables.version()
    if version not in _VERSIONS:
        raise ImportRefused(
            f"{tables.name}: its tables are of version {version[:40]!r}, and this Backstop knows 0 "
            "and 1; import with a newer Backstop",
            slug="import-store-schema",
        )
    if columns >= _NEW:
        return _new_event
    if columns >= _OLD:
        return _old_event
    found = f"they have {', '.join(sorted(columns))}" if columns else "there is no such table"
    raise ImportRefused(
        f"{tables.name}: its table events is not that of an ADK session store: {found}; name the "
        "database of DatabaseSessionService",
        slug="import-store-schema",
    )


def _placed(event_of: Callable[[Row], dict[str, Json]], row: Row, place: str) -> dict[str, Json]:
    try:
        return event_of(row)
    except ImportRefused as error:
        where = f"{place}, event {row['id']}"
        raise ImportRefused(f"{where}: {error}", slug=error.slug) from error


def _new_event(row: Row) -> dict[str, Json]:
    event = _json(row["event_data"], "event_data")
    if not event:
        raise ImportRefused("its event_data is empty: it was written half", slug="import-shape")
    event["id"], event["invocation_id"] = row["id"], row["invocation_id"]
    event.setdefault("timestamp", _seconds(row["timestamp"]))
    return event


def _old_event(row: Row) -> dict[str, Json]:
    actions = row["actions"]
    event: dict[str, Json] = {
        name: row[name]
        for name in ("id", "invocation_id", "author", *_OLD_TOO)
        if row.get(name) is not None
    }
    # SQL has numbers where JSON has booleans.
    event["partial"] = bool(row.get("partial"))
    event["timestamp"] = _seconds(row["timestamp"])
    event["content"] = dict(_json(row["content"], "content")) or None
    if isinstance(actions, bytes | bytearray | memoryview):
        event["actions"] = plain_actions(bytes(actions))
    elif actions is not None:
        raise ImportRefused(
            "its actions are no pickle; name a database of ADK", slug="import-pickle"
        )
    return event


_STATES: Final = (
    ("app:", "app_states", ("app_name",)),
    ("user:", "user_states", ("app_name", "user_id")),
    ("", "sessions", ("app_name", "user_id", "id")),
)
"""What names in a state begin with, the table that keeps them, and whose they are."""


def _state(
    tables: Tables,
    kept: Sequence[tuple[str, str, tuple[str, ...]]],
    owner: tuple[str, str, str],
    *,
    place: str,
) -> dict[str, Json]:
    """The state at the session's end, with what it shares with others of its app and user."""
    found: dict[str, Json] = {}
    for prefix, table, names in kept:
        try:
            whose = dict(zip(names, owner, strict=False))
            members = _json(tables.state(table, whose), "state")
        except ImportRefused as error:
            raise ImportRefused(f"{place}: {error}", slug=error.slug) from error
        found |= {prefix + name: value for name, value in members.items()}
    return found


def _json(stored: object, what: str) -> dict[str, Json]:
    """An object that a column holds: as text, or decoded by its driver."""
    if stored is None:
        return {}
    try:
        value = parse(stored if isinstance(stored, str | bytes) else _again(stored))
    except (NotCanonical, TypeError, ValueError) as error:
        why = str(error).removeprefix("not JSON: ")
        raise ImportRefused(f"its {what} is not JSON: {why}", slug="import-not-json") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ImportRefused(f"its {what} is no object; name a database of ADK")
    return value


def _again(stored: object) -> str:
    """The text of what a driver decoded itself (PostgreSQL's JSONB)."""
    return json.dumps(stored)


def _seconds(stored: object) -> Json:
    """A time column as seconds since 1970: a number, or a moment in UTC."""
    if isinstance(stored, int | float | Decimal):
        return Decimal(str(stored))
    moment = stored
    if isinstance(stored, str):
        try:
            moment = datetime.fromisoformat(stored)
        except ValueError:
            moment = None
    if not isinstance(moment, datetime):
        raise ImportRefused("its timestamp is no time; name a database of ADK")
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return Decimal(str(aware.timestamp()))
