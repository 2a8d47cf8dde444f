"""An archive from its URL: the one place that knows which archives there are."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from backstop.adapters.archives import sqlite as in_sqlite
from backstop.auditports import Archive
from backstop.errors import ConfigError, MissingExtra

_FORMS: Final = (
    "parquet:FOLDER, sqlite:///FILE, firestore://PROJECT/DATABASE/COLLECTION or "
    "bigquery://PROJECT/DATASET"
)
_PARQUET: Final = "parquet:"


def open_archive(url: str, *, create: bool) -> Archive:
    """The archive at `url`; where there is none it is made, if `create` says so.

    Raises `ConfigError` (``archive-url``) for a URL of no archive, `MissingExtra`, and what the
    archive raises that cannot be reached or read (``store-...``).
    """
    parts = urlsplit(url)
    match parts.scheme:
        case "parquet":
            return _parquet(url, create=create)
        case "sqlite":
            return in_sqlite.SqliteArchive(_file(url, parts), create=create)
        case "firestore":
            return _firestore(url, parts)
        case "bigquery":
            return _bigquery(url, parts, create=create)
        case _:
            raise _no_archive(url)


def is_archive(url: str) -> bool:
    """Whether at this URL there is an archive, and no store; a look at the place may be needed.

    Raises as `open_archive` does.
    """
    parts = urlsplit(url)
    match parts.scheme:
        case "parquet" | "bigquery":
            return True
        case "sqlite":
            return in_sqlite.is_archive(_file(url, parts))
        case "firestore":
            with closing(_firestore(url, parts)) as archive:
                return archive.head().seq > 0
        case _:
            return False


def _parquet(url: str, *, create: bool) -> Archive:
    folder = url.removeprefix(_PARQUET)
    if not folder:
        raise _no_archive(url)
    try:
        from backstop.adapters.archives.parquet import ParquetArchive
    except ImportError as error:
        raise _missing(url, "audit", error) from error
    return ParquetArchive(Path(folder), create=create)


def _firestore(url: str, parts: SplitResult) -> Archive:
    try:
        from backstop.adapters.firestore.archive import FirestoreArchive
    except ImportError as error:
        raise _missing(url, "firestore", error) from error
    project, database, collection = _names(url, parts, fewest=3)
    return FirestoreArchive(
        project=project,
        database=database,
        collection=collection,
        emulator=os.environ.get("FIRESTORE_EMULATOR_HOST") or None,
    )


def _bigquery(url: str, parts: SplitResult, *, create: bool) -> Archive:
    try:
        from backstop.adapters.bigquery import BigQueryArchive, Place
    except ImportError as error:
        raise _missing(url, "bigquery", error) from error
    project, dataset, *table = _names(url, parts, fewest=2)
    place = (
        Place(project=project, dataset=dataset, table=table[0])
        if table
        else Place(project=project, dataset=dataset)
    )
    return BigQueryArchive(
        place=place, create=create, emulator=os.environ.get("BIGQUERY_EMULATOR_HOST") or None
    )


def _file(url: str, parts: SplitResult) -> Path:
    if parts.netloc or len(parts.path) < len("/x") or parts.query or parts.fragment:
        raise _no_archive(url)
    return Path(unquote(parts.path[1:]))


def _names(url: str, parts: SplitResult, *, fewest: int) -> list[str]:
    names = [parts.netloc, *parts.path.strip("/").split("/")]
    fits = fewest <= len(names) <= len(("project", "database", "collection")) and all(names)
    if not fits or parts.query or parts.fragment:
        raise _no_archive(url)
    return names


def _no_archive(url: str) -> ConfigError:
    return ConfigError(f"{url} is no archive; write {_FORMS}", slug="archive-url")


def _missing(url: str, extra: str, error: ImportError) -> MissingExtra:
    return MissingExtra(f"{url} needs `pip install 'backstop-gate[{extra}]'` ({error})")
