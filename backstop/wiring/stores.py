"""A store from its URL: the one place that knows which stores there are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from backstop.adapters.sqlite.file import Durability
from backstop.clock import SystemClock
from backstop.core.events import Header
from backstop.errors import ConfigError, MissingExtra
from backstop.meshports import MeshStore
from backstop.ports import Clock

_FORMS: Final = "sqlite:///FILE, firestore://PROJECT/DATABASE/COLLECTION or memory:"


def open_store(url: str, *, header: Header, clock: Clock | None = None) -> MeshStore:
    """The store at `url`, ready for a process that writes: it registers what `header` says.

    Raises `ConfigError` (``store-url``) for a URL of no store, and what the store raises that
    cannot be reached, read, written or trusted (``store-...``).
    """
    return _opened(url, header, header.agent, clock or SystemClock())


def find_store(url: str, *, agent: str, clock: Clock | None = None) -> MeshStore:
    """The store at `url` as it stands, for a person who lists, resolves or pulls.

    Raises as `open_store` does, and `BackstopError` (``store-missing``) where `agent` has
    written nothing.
    """
    return _opened(url, None, agent, clock or SystemClock())


def _opened(url: str, header: Header | None, agent: str, clock: Clock) -> MeshStore:
    parts = urlsplit(url)
    match parts.scheme:
        case "sqlite":
            from backstop.adapters.sqlite.store import SqliteStore

            return SqliteStore(
                _file(url, parts),
                agent=agent,
                header=header,
                clock=clock,
                durability=_durability(url, parts),
            )
        case "firestore":
            try:
                from backstop.adapters.firestore import FirestoreStore
            except ImportError as error:
                raise MissingExtra(
                    f"{url} needs `pip install 'backstop-gate[firestore]'` ({error})"
                ) from error

            project, database, collection = _place(url, parts)
            return FirestoreStore(
                project=project,
                database=database,
                collection=collection,
                agent=agent,
                header=header,
                clock=clock,
                emulator=os.environ.get("FIRESTORE_EMULATOR_HOST") or None,
            )
        case "memory" if header is not None:
            from backstop.adapters.memory import MemoryStore

            return MemoryStore(clock=clock, header=header)
        case _:
            raise ConfigError(f"{url} is no store; write {_FORMS}", slug="store-url")


def _file(url: str, parts: SplitResult) -> Path:
    """``sqlite:///relative`` and ``sqlite:////absolute``, as SQLAlchemy reads them."""
    if parts.netloc or len(parts.path) < len("/x"):
        raise ConfigError(f"{url}: write sqlite:///FILE, with three slashes", slug="store-url")
    return Path(unquote(parts.path[1:]))


def _durability(url: str, parts: SplitResult) -> Durability:
    """``?durability=process`` gives up what ``power``, the default, keeps: see `Durability`."""
    known = {f"durability={one.value}": one for one in Durability} | {"": Durability.POWER}
    if parts.query not in known or parts.fragment:
        raise ConfigError(
            f"{url}: after the file only ?durability=power or ?durability=process may follow; "
            "write %3F and %23 for ? and # in its name",
            slug="store-url",
        )
    return known[parts.query]


def _place(url: str, parts: SplitResult) -> tuple[str, str, str]:
    names = [parts.netloc, *parts.path.strip("/").split("/")]
    if len(names) != len(("project", "database", "collection")) or not all(names):
        raise ConfigError(
            f"{url}: write firestore://PROJECT/DATABASE/COLLECTION, (default) for the default "
            "database",
            slug="store-url",
        )
    return names[0], names[1], names[2]
