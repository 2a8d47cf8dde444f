"""ADK session databases in SQLite files: read as they are, never written, never locked for long."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from backstop.adapters.importing.tables import OWNER, Row
from backstop.adapters.told import ImportRefused

MAGIC: Final = b"SQLite format 3\x00"
_PATIENCE_S: Final = 5.0
_AT_A_TIME: Final = 256


@contextmanager
def opened(path: Path, *, patience_s: float = _PATIENCE_S) -> Iterator[SqliteTables]:
    """The tables in a file, in one consistent view. Waits `patience_s` seconds for a writer.

    Raises `ImportRefused`: ``import-store-locked``, ``import-store-damaged``; so does reading.
    """
    with translated(str(path)):
        source = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro",
            uri=True,
            timeout=patience_s,
            isolation_level=None,
        )
    with closing(source):
        # A state that is no UTF-8 text is damage, and said to be so by whoever parses it.
        source.text_factory = bytes
        with translated(str(path)):
            source.execute("BEGIN")
        yield SqliteTables(name=str(path), source=source)


@contextmanager
def translated(name: str) -> Iterator[None]:
    """What SQLite raises becomes one line."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" in str(error) or "busy" in str(error):
            raise ImportRefused(
                f"{name}: a running server has it locked; import again, or import a copy of it",
                slug="import-store-locked",
            ) from error
        raise _damaged(name, error) from error
    except sqlite3.DatabaseError as error:
        raise _damaged(name, error) from error


def _damaged(name: str, error: sqlite3.Error) -> ImportRefused:
    return ImportRefused(
        f"{name}: cannot be read as a SQLite database: {error}; it may be written half, or miss "
        "its -wal file: copy it again while its server is stopped",
        slug="import-store-damaged",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteTables:
    """The tables of a SQLite file."""

    name: str
    source: sqlite3.Connection

    def columns(self, table: str) -> Collection[str]:
        """The columns of a table; none if there is no such table."""
        rows = self._rows("SELECT name FROM pragma_table_info(?)", table)
        return [name.decode() for (name,) in rows]

    def version(self) -> str:
        """What ADK wrote down as the version of its tables; empty where it did not."""
        if not self.columns("adk_internal_metadata"):
            return ""
        asked = "SELECT value FROM adk_internal_metadata WHERE key = 'schema_version'"
        return next((_text(value) for (value,) in self._rows(asked)), "")

    def events(self, columns: Sequence[str]) -> Iterator[Row]:
        """All events by owner and time; of those of one moment, in the order of writing."""
        named = ", ".join(f'"{column}"' for column in columns)
        order = ", ".join((*OWNER, "timestamp", "rowid"))
        # Names of columns come from a list of ours, never from the file.
        yield from self._rows(f"SELECT {named} FROM events ORDER BY {order}")  # noqa: S608

    def state(self, table: str, owner: Mapping[str, str]) -> object:
        """The state of whoever the members of `owner` name; None if it is not there."""
        where = " AND ".join(f'"{name}" = ?' for name in owner)
        asked = f'SELECT state FROM "{table}" WHERE {where}'  # noqa: S608 - names of ours
        return next((state for (state,) in self._rows(asked, *owner.values())), None)

    def _rows(self, asked: str, *values: str) -> Iterator[tuple[Any, ...]]:
        with translated(self.name):
            cursor = self.source.execute(asked, values)
        # Nothing of the database is held across a yield: a reader that fails closes it first.
        while True:
            with translated(self.name):
                rows = cursor.fetchmany(_AT_A_TIME)
            if not rows:
                return
            yield from rows


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
