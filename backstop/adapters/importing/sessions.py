"""ADK sessions, wherever they are kept: JSON files, databases, Firestore."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from backstop.adapters.importing import sqlalchemy, sqlite
from backstop.adapters.importing.events import Stored
from backstop.adapters.importing.files import sessions_in
from backstop.adapters.importing.firestore import sessions_at
from backstop.adapters.importing.tables import sessions
from backstop.adapters.told import ImportRefused


def stored_at(place: str) -> Iterator[Stored]:
    """The sessions at a path or URL, one at a time; within a session in the order of time.

    A path is a SQLite database, a JSON file, or a folder of them. Raises `ImportRefused`
    (its slugs are those of the readers), and `BackstopError` for a file that cannot be read.
    """
    scheme, separator, rest = place.partition("://")
    if not separator:
        yield from _in_files(Path(place))
    elif scheme == "firestore":
        yield from sessions_at(place)
    elif scheme.partition("+")[0] == "sqlite":
        # As SQLAlchemy reads it: three slashes before a relative path, four before an absolute.
        file = unquote(rest.partition("?")[0]).removeprefix("/")
        if not file:
            raise ImportRefused(f"{place}: names no file; write sqlite:///FILE")
        yield from _in_database(Path(file))
    else:
        with sqlalchemy.opened(place) as tables:
            yield from sessions(tables)


def _in_files(path: Path) -> Iterator[Stored]:
    if path.is_file() and _is_database(path):
        yield from _in_database(path)
    else:
        yield from sessions_in(path)


def _in_database(path: Path) -> Iterator[Stored]:
    if not path.is_file():
        raise ImportRefused(f"{path}: there is no such file", slug="file-missing")
    with sqlite.opened(path) as tables:
        yield from sessions(tables)


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(sqlite.MAGIC)) == sqlite.MAGIC
    except OSError:
        return False  # whoever reads it says what is wrong
