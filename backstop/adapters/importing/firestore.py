"""ADK sessions in Firestore, as ADK's `FirestoreSessionService` keeps them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from backstop.adapters.importing.events import Stored
from backstop.adapters.told import ImportRefused
from backstop.core.canon import Json, NotCanonical, parse
from backstop.errors import MissingExtra

_PLACES: Final = ("project", "database", "collection")
_PATIENCE_S: Final = 10.0


def sessions_at(url: str) -> Iterator[Stored]:
    """The sessions at ``firestore://PROJECT/DATABASE/COLLECTION``, one at a time.

    The collection is the service's root (``adk-session`` unless it was given another). The
    emulator is asked where ``FIRESTORE_EMULATOR_HOST`` names one. Raises `MissingExtra`, and
    `ImportRefused`: ``import-store-unreachable``, ``import-not-json``, ``import-shape``.
    """
    try:
        from google.api_core.exceptions import GoogleAPIError
        from google.api_core.retry import Retry
        from google.auth.exceptions import GoogleAuthError
        from google.cloud.firestore import Client
    except ImportError as error:
        raise MissingExtra(
            f"{url} needs `pip install 'backstop-gate[firestore]'` ({error})"
        ) from error
    project, database, collection = _place(url)
    try:
        client: Any = Client(project=project, database=database)
        try:
            asking = {"retry": Retry(timeout=_PATIENCE_S), "timeout": _PATIENCE_S}
            yield from _sessions(client, url, collection, asking)
        finally:
            client.close()
    except (GoogleAPIError, GoogleAuthError) as error:
        where = os.environ.get("FIRESTORE_EMULATOR_HOST") or "Google Cloud"
        raise ImportRefused(
            f"{url}: cannot be read at {where}: {type(error).__name__}; check the URL, and that "
            "you are logged in",
            slug="import-store-unreachable",
        ) from error


def _place(url: str) -> tuple[str, str, str]:
    parts = urlsplit(url)
    names = [parts.netloc, *parts.path.strip("/").split("/")]
    if len(names) != len(_PLACES) or not all(names):
        raise ImportRefused(
            f"{url}: write firestore://PROJECT/DATABASE/COLLECTION, (default) for the default "
            "database and adk-session for the usual collection"
        )
    return names[0], names[1], names[2]


def _sessions(
    client: Any,  # noqa: ANN401 - a vendor's
    url: str,
    collection: str,
    asking: Mapping[str, Any],
) -> Iterator[Stored]:
    # Apps and users are documents that nobody wrote: only a listing names them.
    for app in client.collection(collection).list_documents(**asking):
        for user in app.collection("users").list_documents(**asking):
            for session in user.collection("sessions").stream(**asking):
                place = f"{url}: session {session.id} of user {user.id}"
                yield Stored(
                    app=app.id,
                    user=user.id,
                    id=session.id,
                    events=_events(session.reference, place, asking),
                    place=place,
                    state=_shared(client, app.id, user.id, asking)
                    | _object((session.to_dict() or {}).get("state"), place),
                )


def _events(
    session: Any,  # noqa: ANN401 - a vendor's
    place: str,
    asking: Mapping[str, Any],
) -> Iterator[Mapping[str, Json]]:
    ordered = session.collection("events").order_by("timestamp")
    for event in ordered.stream(**asking):
        where = f"{place}, event {event.id}"
        found = _object((event.to_dict() or {}).get("event_data"), where)
        if not found:
            raise ImportRefused(f"{where}: its event_data is empty: it was written half")
        yield found


def _shared(
    client: Any,  # noqa: ANN401 - a vendor's
    app: str,
    user: str,
    asking: Mapping[str, Any],
) -> dict[str, Json]:
    of_app = client.collection("app_states").document(app)
    of_user = client.collection("user_states").document(app).collection("users").document(user)
    found: dict[str, Json] = {}
    for prefix, reference in (("app:", of_app), ("user:", of_user)):
        members = reference.get(**asking).to_dict()
        told = _object(members, f"the state that {reference.path} shares")
        found |= {prefix + name: value for name, value in told.items()}
    return found


def _object(stored: object, place: str) -> dict[str, Json]:
    """An object, kept as text or as Firestore's own values; times among them become text."""
    if stored is None:
        return {}
    try:
        value = parse(stored if isinstance(stored, str) else json.dumps(stored, default=str))
    except (NotCanonical, TypeError, ValueError) as error:
        why = str(error).removeprefix("not JSON: ")
        raise ImportRefused(f"{place}: is not JSON: {why}", slug="import-not-json") from error
    if not isinstance(value, dict):
        raise ImportRefused(f"{place}: is no object; name the collection of ADK's sessions")
    return value
