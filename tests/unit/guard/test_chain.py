"""A run's session: the chain of what each of its steps added."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService

from backstop.core.events import (
    AttemptEnded,
    CursorAdvanced,
    RunOpened,
    StepStarted,
)
from backstop.ports import Done, Handled, Later
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


def test_two_workers_at_one_step_at_once_leave_one_session() -> None:
    town = Town()

    async def both() -> list[Handled]:
        workers = [town.worker(name) for name in "abc"]
        return await asyncio.gather(*(worker.handle(tick()) for worker in workers))

    assert [type(answer) for answer in asyncio.run(both())] == [Done] * 3
    assert [event.session for event in town.events(CursorAdvanced)] == ["r1.s0.1"]


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
