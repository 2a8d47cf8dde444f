"""Sessions that ADK's own service keeps in Firestore, read from the emulator."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import pytest
from google.adk.events.event import Event
from google.adk.integrations.firestore.firestore_session_service import FirestoreSessionService
from google.cloud.firestore import AsyncClient

from backstop.adapters.told import ImportRefused
from backstop.core.canon import parse
from backstop.core.events import RunOpened
from tests.emulators import firestore, fresh_name
from tests.unit.adapters.importing.sessions import answer, at, call, event, numbered

pytestmark = pytest.mark.emulator

SAID = numbered(
    event("user", "pay 7"),
    event("desk", call("pay", "c", order=7)),
    event("desk", answer("pay", "c", paid=7), actions={"state_delta": {"last": 7}}),
)


@pytest.fixture(scope="module", autouse=True)
def emulated() -> Iterator[None]:
    """The vendor's client finds the emulator by the environment only."""
    os.environ["FIRESTORE_EMULATOR_HOST"] = firestore()
    yield
    del os.environ["FIRESTORE_EMULATOR_HOST"]


async def _kept(collection: str, *users: str) -> None:
    service = FirestoreSessionService(AsyncClient(project="p"), root_collection=collection)
    for user in users:
        began: dict[str, Any] = {"limit": 50, "app:shop": "north"}
        session = await service.create_session(
            app_name="desk", user_id=user, session_id=f"of-{user}", state=began
        )
        for one in SAID:
            await service.append_event(session, Event.model_validate(one))


def test_sessions_in_firestore_are_read_user_by_user() -> None:
    collection = fresh_name()
    asyncio.run(_kept(collection, "ann", "bob"))
    found = at(f"firestore://p/(default)/{collection}")
    assert [(one.run, one.user) for one in found.of(RunOpened)] == [
        ("of-ann", "ann"),
        ("of-bob", "bob"),
    ]
    assert parse(bytes(found.of(RunOpened)[0].state)) == {"app:shop": "north", "limit": 50}
    assert found.paid == [("pay", {"order": 7}, {"paid": 7})] * 2
    assert found.gaps == []


def test_a_collection_without_sessions_is_no_ledger() -> None:
    with pytest.raises(ImportRefused, match="no conversation to import"):
        at(f"firestore://p/(default)/{fresh_name()}")


def test_a_url_of_another_form_is_refused() -> None:
    with pytest.raises(ImportRefused, match="write firestore://PROJECT/DATABASE/COLLECTION"):
        at("firestore://p")
