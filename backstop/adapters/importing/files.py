"""ADK sessions as JSON: one session a file, a list of them, or a folder of such files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from backstop.adapters.files import read_bytes
from backstop.adapters.importing.events import Stored
from backstop.adapters.importing.fields import members, objects, text
from backstop.adapters.told import ImportRefused
from backstop.core.canon import NotCanonical, parse


def sessions_in(path: Path) -> Iterator[Stored]:
    """The sessions of a file, or of all ``*.json`` files in a folder, by name.

    Raises `ImportRefused`: ``import-not-json``, ``import-shape``, ``import-no-match`` for a
    folder without such files; `BackstopError` for a file that cannot be read.
    """
    if not path.is_dir():
        yield from _of_file(path)
        return
    files = sorted(path.rglob("*.json"))
    if not files:
        raise ImportRefused(
            f"{path}: holds no .json file; name the folder of session files", slug="import-no-match"
        )
    for file in files:
        yield from _of_file(file)


def _of_file(path: Path) -> Iterator[Stored]:
    try:
        document = parse(read_bytes(path))
    except NotCanonical as error:
        why = str(error).removeprefix("not JSON: ")
        raise ImportRefused(
            f"{path}: not JSON: {why}; give the session as it was exported", slug="import-not-json"
        ) from error
    entries = document if isinstance(document, list) else [document]
    for number, entry in enumerate(entries):
        place = str(path) if entries is not document else f"{path}: session {number}"
        if not isinstance(entry, dict) or not isinstance(entry.get("events"), list):
            raise ImportRefused(
                f"{place}: no session: it has no list of 'events'; give what ADK's `adk run "
                "--save_session` or its API server wrote"
            )
        try:
            yield Stored(
                app=text(entry, "app_name"),
                user=text(entry, "user_id"),
                id=text(entry, "id") or path.name.removesuffix(".json").removesuffix(".session"),
                events=objects(entry, "events"),
                place=place,
                state=members(entry, "state"),
            )
        except ImportRefused as error:
            raise ImportRefused(f"{place}: {error}", slug=error.slug) from error
