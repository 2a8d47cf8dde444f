"""ADK session databases behind any URL that SQLAlchemy knows.

Whoever has such a database has SQLAlchemy, and a driver. Nothing here needs to know its types.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from backstop.adapters.importing.tables import OWNER, Row
from backstop.adapters.told import ImportRefused
from backstop.errors import MissingExtra

_JSON: Final = frozenset(
    {"content", "event_data", "input_transcription", "output_transcription", "state"}
)


@contextmanager
def opened(url: str) -> Iterator[SqlTables]:
    """The tables at a URL, in one transaction that is never committed.

    An asynchronous driver gives way to one of the same database that is not. Raises
    `MissingExtra`, and `ImportRefused` (``import-store-unreachable``) for whatever the driver
    raises; no password is ever shown.
    """
    try:
        sql: Any = import_module("sqlalchemy")
        fault: type[Exception] = import_module("sqlalchemy.exc").SQLAlchemyError
    except ImportError as error:
        raise MissingExtra(
            "session databases behind a URL need SQLAlchemy: pip install 'backstop-gate[sessions]'"
        ) from error
    try:
        place = sql.make_url(url)
        name = place.set(query={}).render_as_string(hide_password=True)
    except (fault, ValueError) as error:
        raise ImportRefused(
            "the URL of the session database cannot be understood; write it as for "
            "DatabaseSessionService",
            slug="import-store-unreachable",
        ) from error
    try:
        engine = sql.create_engine(_waiting(place))
        try:
            # Some drivers hold a connection until all rows of a query are taken.
            with engine.connect() as events, engine.connect() as others:
                yield SqlTables(name=name, streaming=events, source=others, sql=sql)
        finally:
            engine.dispose()
    except (fault, ImportError) as error:
        raise ImportRefused(
            f"{name}: cannot be read: {_why(error)}", slug="import-store-unreachable"
        ) from error


def _why(error: Exception) -> str:
    """What to look at. SQLAlchemy's own text may quote the statement and the URL."""
    cause = getattr(error, "orig", None) or error
    kind = type(cause).__name__
    if isinstance(cause, ImportError) and cause.name:
        return f"its driver {cause.name} is not installed where Backstop runs"
    if kind == "NoSuchModuleError":
        return "no database is known by this scheme; write the URL as for DatabaseSessionService"
    return f"{kind}; is the server up and open to you?"


_WAITING: Final[Mapping[str, Sequence[str]]] = {
    "mariadb": ("mysqldb", "pymysql"),
    "mysql": ("mysqldb", "pymysql"),
    "postgresql": ("psycopg2", "psycopg", "pg8000"),
}
"""Drivers that wait for answers, by database, the usual one first."""


def _waiting(place: Any) -> Any:  # noqa: ANN401 - a vendor's
    """The URL with a driver that is not asynchronous: its own, else the first that is installed."""
    if not place.get_dialect().is_async:
        return place
    database = place.get_backend_name()
    for driver in _WAITING.get(database, ()):
        tried = place.set(drivername=f"{database}+{driver}")
        try:
            tried.get_dialect().import_dbapi()
        except ImportError:
            continue
        return tried
    return place.set(drivername=database)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlTables:
    """The tables of a database."""

    name: str
    streaming: Any
    source: Any
    sql: Any

    def columns(self, table: str) -> Collection[str]:
        """The columns of a table; none if there is no such table."""
        known = self.sql.inspect(self.source)
        return [one["name"] for one in known.get_columns(table)] if known.has_table(table) else []

    def version(self) -> str:
        """What ADK wrote down as the version of its tables; empty where it did not."""
        if not self.columns("adk_internal_metadata"):
            return ""
        asked = self.sql.select(self.sql.column("value")).select_from(
            self.sql.table("adk_internal_metadata")
        )
        found = self.source.execute(
            asked.where(self.sql.column("key") == "schema_version")
        ).scalar()
        return "" if found is None else str(found)

    def events(self, columns: Sequence[str]) -> Iterator[Row]:
        """All events by owner, time and id, as ADK itself orders them."""
        order = [self.sql.column(name) for name in (*OWNER, "timestamp", "id")]
        asked = self.sql.select(*map(self._column, columns)).select_from(self.sql.table("events"))
        streamed = self.streaming.execution_options(stream_results=True, max_row_buffer=1000)
        for row in streamed.execute(asked.order_by(*order)):
            yield tuple(row)

    def _column(self, name: str) -> Any:  # noqa: ANN401 - a vendor's
        """A column; what PostgreSQL keeps as JSON as text, which is read strictly, and once."""
        column = self.sql.column(name)
        if name in _JSON and self.source.dialect.name == "postgresql":
            return self.sql.cast(column, self.sql.Text)
        return column

    def state(self, table: str, owner: Mapping[str, str]) -> object:
        """The state of whoever the members of `owner` name; None if it is not there."""
        asked = self.sql.select(self._column("state")).select_from(self.sql.table(table))
        for name, value in owner.items():
            asked = asked.where(self.sql.column(name) == value)
        return self.source.execute(asked).scalar()
