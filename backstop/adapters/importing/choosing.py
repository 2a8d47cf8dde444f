"""Which sessions of a store to take, and what names their runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from backstop.adapters.chat import Selection
from backstop.adapters.importing.conversation import Conversation
from backstop.adapters.importing.events import Stored, conversation
from backstop.adapters.told import ImportRefused

_FIELDS = ("app_name", "id", "user_id")


def conversations(
    sessions: Iterable[Stored], *, name: str, selection: Selection, declared: Iterable[str]
) -> Iterator[Conversation]:
    """The conversations of the chosen sessions, one at a time.

    `selection` speaks of ``app_name``, ``user_id`` and ``id``. Sessions without any event that
    counts are no runs. Raises `ImportRefused`: ``import-where`` for other fields,
    ``import-apps`` where sessions of several apps are chosen, and whatever `conversation` does.
    """
    run_field = selection.run_field or "id"
    for field in (*selection.where, run_field):
        if field not in _FIELDS:
            raise ImportRefused(
                f"{name}: sessions have no field {field!r}; they have: {', '.join(_FIELDS)}",
                slug="import-where",
            )
    tools, app = frozenset(declared), None
    for stored in sessions:
        said = {"app_name": stored.app, "user_id": stored.user, "id": stored.id}
        if any(said[field] != wanted for field, wanted in selection.where.items()):
            continue
        if app is not None and stored.app != app:
            raise ImportRefused(
                f"{name}: holds sessions of the apps {app!r} and {stored.app!r}, and a ledger is "
                "of one; choose by --where app_name=NAME",
                slug="import-apps",
            )
        app = stored.app
        told = conversation(stored, run=said[run_field], declared=tools)
        if told is not None:
            yield told
