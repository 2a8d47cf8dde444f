"""The plugin on the shared store: on its emulator, and where nobody answers."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from backstop.core.events import CallAnswered, CursorAdvanced, EffectClaimed
from backstop.wiring.stores import find_store
from tests.e2e.till import PAY, Till, calls, says, told
from tests.emulators import firestore, fresh_name

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")


@contextmanager
def host(address: str) -> Iterator[None]:
    """The emulator's address, in the environment as Google's libraries read it."""
    os.environ["FIRESTORE_EMULATOR_HOST"] = address
    try:
        yield
    finally:
        del os.environ["FIRESTORE_EMULATOR_HOST"]


@pytest.mark.emulator
def test_sessions_are_guarded_in_the_shared_store(tmp_path: Path) -> None:
    url = f"firestore://p/(default)/{fresh_name()}"
    till = Till(folder=tmp_path)

    async def go() -> list[Any]:
        await till.session()
        # Two processes' worth: each guard opens the store by itself.
        events = []
        for _ in range(2):
            runner = till.runner(till.agent(PAY, says("done")), plugins=[till.plugin(store=url)])
            events += await till.say(runner, "pay")
        return events

    with host(firestore()):
        events = asyncio.run(go())
        rows = list(find_store(url, agent="till").read())
    assert till.sent == [("7", 10)]
    assert told(events, "pay") == [{"paid": "7", "amount": 10}] * 2
    (claimed,) = [row for row in rows if isinstance(row, EffectClaimed)]
    assert claimed.lease_s == 300
    assert [row.how for row in rows if isinstance(row, CallAnswered)] == ["recorded"]
    assert [row.cursor for row in rows if isinstance(row, CursorAdvanced)] == [1, 2]


def test_effects_are_refused_within_seconds_where_no_store_answers(tmp_path: Path) -> None:
    till = Till(folder=tmp_path)
    guard = till.plugin(store="firestore://p/(default)/c")
    asked = calls(("look", {"order": "7"}), ("pay", {"order": "7", "amount": 10}))
    began = time.monotonic()
    with host("127.0.0.1:1"):
        events = till.chat(till.agent(asked, says("hm")), "pay", plugins=[guard])
    assert time.monotonic() - began < 8  # five for the store, the rest for the framework
    assert till.sent == []
    assert told(events, "pay")[0]["backstop"] == "refused"
    assert told(events, "look") == [{"order": "7"}]
