"""A run's session: the chain of what each of its steps added."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
from google.adk.events.event import Event as AdkEvent
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from backstop.core.events import (
    AttemptEnded,
    CursorAdvanced,
    RunOpened,
    StepStarted,
)
from backstop.guard.workers.chain import AttemptSession, Left, Links
from backstop.ports import Done, Later
from tests.unit.guard.town import Died, Town, handle, parts_of, tick

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")


def test_a05_what_a_lost_attempt_said_is_not_in_the_session_of_the_run() -> None:
    """A05: histories of two workers on one run never interleave."""
    town = Town()
    town.dies_at(AttemptEnded, "a")
    with contextlib.suppress(Died):
        handle(town.worker("a"), tick("x@y"))
    handle(town.worker("b"), tick("x@y"))
    handle(town.worker("b"), tick(cursor=1))
    links = [event.session for event in town.events(CursorAdvanced)]
    assert links == ["r1.s0.2", "r1.s1.1"]
    last = asyncio.run(
        town.sessions.get_session(app_name="desk", user_id="u", session_id="r1.s1.1")
    )
    assert last is not None
    said = [part.text for event in last.events for part in parts_of(event)]
    # Its model saw: the first message, a call, its answer, a text; then this one.
    assert said == ["[]", "seen 5"]
    assert last.state == {"mails": 1}


def test_the_session_lives_in_the_session_service_that_all_workers_share(tmp_path: Path) -> None:
    town = Town(sessions=SqliteSessionService(str(tmp_path / "sessions.db")))
    for number, name in enumerate("abc"):
        assert isinstance(handle(town.worker(name), tick(f"{name}@y", cursor=number)), Done)
    assert bytes(town.events(StepStarted)[2].state) == b'{"mails":2}'


def test_a_session_that_is_gone_holds_the_run() -> None:
    town = Town()
    handle(town.worker("a"), tick())
    town.sessions = InMemorySessionService()
    answer = handle(town.worker("a"), tick(cursor=1))
    assert isinstance(answer, Later)
    assert answer.reason.startswith("error[session-gone]: session r1.s0.1 of user u is gone")


def test_a_run_that_something_else_drove_is_left_alone() -> None:
    town = Town()
    worker = town.worker("a")
    town.store.append(RunOpened(run="r1", at="", user="u"))
    town.store.append(StepStarted(run="r1", at="", step="s0", cursor=0))
    town.store.append(CursorAdvanced(run="r1", at="", step="s0", cursor=1))
    answer = handle(worker, tick(cursor=1))
    assert isinstance(answer, Later)
    assert answer.reason.startswith("error[session-elsewhere]")


def attempt_of(town: Town, *names: str) -> tuple[AttemptSession, Left]:
    """A session of an attempt after the steps whose links these are."""
    links = Links(town.sessions, app="desk", keep=1)
    left = asyncio.run(links.left(names, user="u", opening={"temp:x": 1, "user:y": 2, "z": 3}))
    return AttemptSession(town.sessions, run="r1", own="r1.s9.1", left=left), left


def get(sessions: BaseSessionService, name: str, **config: Any) -> Session:
    found = asyncio.run(
        sessions.get_session(
            app_name="desk", user_id="u", session_id=name, config=GetSessionConfig(**config)
        )
    )
    assert found is not None
    return found


def test_what_belongs_to_no_session_is_not_written_into_the_next_one() -> None:
    sessions, left = attempt_of(Town())
    assert left.state == {"z": 3}
    assert get(sessions, "r1").state == {"z": 3}


def test_a_view_of_the_session_is_cut_as_the_framework_asks() -> None:
    town = Town()
    worker = town.worker("a")
    for cursor in range(2):
        handle(worker, tick("x@y", cursor=cursor))
    sessions, left = attempt_of(town, "r1.s0.1", "r1.s1.1")
    every = get(sessions, "r1").events
    assert [event.id for event in every] == [event.id for event in left.events]
    assert get(sessions, "r1", num_recent_events=3).events == every[-3:]
    assert get(sessions, "r1", num_recent_events=0).events == []
    assert get(sessions, "r1", num_recent_events=99).events == every
    since = every[2].timestamp
    assert get(sessions, "r1", after_timestamp=since).events == [
        event for event in every if event.timestamp >= since
    ]


def test_what_the_framework_writes_into_its_events_does_not_reach_the_chain() -> None:
    town = Town()
    handle(town.worker("a"), tick("x@y"))
    sessions, _ = attempt_of(town, "r1.s0.1")
    get(sessions, "r1").events[0].author = "somebody else"
    get(sessions, "r1").state["mails"] = 99
    assert get(sessions, "r1").events[0].author == "user"
    assert get(sessions, "r1").state == {"mails": 1}


def test_other_sessions_are_the_services_own_matter() -> None:
    town = Town()
    sessions, _ = attempt_of(town)

    async def live() -> None:
        own = await sessions.get_session(app_name="desk", user_id="u", session_id="r1")
        other = await sessions.create_session(app_name="desk", user_id="u", session_id="other")
        said = AdkEvent(author="user", content=types.Content(parts=[types.Part(text="hello")]))
        half = AdkEvent(author="user", partial=True)
        await sessions.append_event(other, said)
        assert own is not None
        assert await sessions.append_event(own, half) is half
        listed = await sessions.list_sessions(app_name="desk", user_id="u")
        assert {one.id for one in listed.sessions} == {"other", "r1.s9.1"}
        for name in ("r1", "other"):  # what steps left is not an agent's to delete
            await sessions.delete_session(app_name="desk", user_id="u", session_id=name)
        left = await sessions.list_sessions(app_name="desk", user_id="u")
        assert [one.id for one in left.sessions] == ["r1.s9.1"]

    asyncio.run(live())
    assert get(sessions, "r1").events == []
