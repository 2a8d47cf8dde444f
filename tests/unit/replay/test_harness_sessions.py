"""Sessions of a replay: as the stock service shows them, at a cost that does not grow."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from google.genai import types

from backstop.replay.harness.sessions import ReplaySessions

pytestmark = pytest.mark.filterwarnings("ignore")
WHO: Final[dict[str, Any]] = {"app_name": "app", "user_id": "u", "session_id": "s"}


def event(
    number: int,
    delta: dict[str, Any] | None = None,
    *,
    turn: str = "t",
    answered: bool = False,
) -> Event:
    """A call; one that is `answered` at once holds its answer too."""
    parts = [types.Part(function_call=types.FunctionCall(id=f"call-{number}", name="f"))]
    if answered:
        response = types.FunctionResponse(id=f"call-{number}", name="f", response={})
        parts.append(types.Part(function_response=response))
    return Event(
        id=f"e{number}",
        invocation_id=turn,
        author="agent",
        timestamp=float(number),
        content=types.Content(role="model", parts=parts),
        actions=EventActions(state_delta=delta or {}),
    )


async def lived(service: BaseSessionService) -> Session:
    """A session's life: state of every scope, a temporary value, a value changed in place."""
    await service.create_session(**WHO, state={"own": [1], "user:name": "n", "app:v": 1})
    session = await service.get_session(**WHO)
    assert session is not None
    session.state["own"].append(2)
    await service.append_event(session, event(1, {"own_too": 1, "user:name": "m", "temp:x": 9}))
    assert session.state["temp:x"] == 9
    partial = event(2)
    partial.partial = True
    await service.append_event(session, partial)
    await service.append_event(session, event(3, {"app:v": 2}))
    found = await service.get_session(**WHO)
    assert found is not None
    return found


def test_a_session_reads_as_in_the_stock_service() -> None:
    ours = asyncio.run(lived(ReplaySessions()))
    stock = asyncio.run(lived(InMemorySessionService()))
    assert ours.state == stock.state
    assert [one.id for one in ours.events] == [one.id for one in stock.events] == ["e1", "e3"]
    assert "temp:x" not in ours.state
    assert ours.state["own"] == [1]
    assert ours.last_update_time == stock.last_update_time == 3.0


async def windowed(window: int | None, *, asked: int | None = None) -> tuple[list[str], int]:
    sessions = ReplaySessions(window)
    await sessions.create_session(**WHO)
    for number in range(5):
        view = await sessions.get_session(**WHO)
        assert view is not None
        await sessions.append_event(view, event(number))
    config = GetSessionConfig(num_recent_events=asked) if asked is not None else None
    view = await sessions.get_session(**WHO, config=config)
    assert view is not None
    return [one.id for one in view.events], len(sessions.stored("app", "u", "s").events)


@pytest.mark.parametrize(
    ("window", "asked", "seen"),
    [
        (None, None, ["e0", "e1", "e2", "e3", "e4"]),
        (None, 2, ["e3", "e4"]),
        (2, 3, ["e2", "e3", "e4"]),
        (9, None, ["e0", "e1", "e2", "e3", "e4"]),
    ],
)
def test_a_window_bounds_what_a_runner_sees_and_not_what_is_kept(
    window: int | None, asked: int | None, seen: list[str]
) -> None:
    assert asyncio.run(windowed(window, asked=asked)) == (seen, 5)


def test_an_answer_from_outside_widens_the_window_to_the_turn_that_asked() -> None:
    async def story() -> tuple[list[str], list[str]]:
        sessions = ReplaySessions(0)
        await sessions.create_session(**WHO)
        stored = sessions.stored("app", "u", "s")
        for number in range(6):
            made = event(number, turn=f"t{number // 2}", answered=True)
            await sessions.append_event(stored, made)
        sessions.reach_back_to(stored, {"call-3"})
        wide = await sessions.get_session(**WHO)
        sessions.reach_back_to(stored, set())
        narrow = await sessions.get_session(**WHO)
        assert wide is not None
        assert narrow is not None
        return [one.id for one in wide.events], [one.id for one in narrow.events]

    assert asyncio.run(story()) == (["e2", "e3", "e4", "e5"], ["e4", "e5"])


def test_sessions_can_be_listed_and_forgotten() -> None:
    async def story() -> tuple[int, int, dict[str, Any]]:
        sessions = ReplaySessions()
        await sessions.create_session(**WHO, state={"user:name": "n"})
        before = len((await sessions.list_sessions(app_name="app")).sessions)
        shared = await sessions.get_user_state(app_name="app", user_id="u")
        await sessions.delete_session(**WHO)
        assert await sessions.get_session(**WHO) is None
        after = len((await sessions.list_sessions(app_name="app", user_id="u")).sessions)
        return before, after, shared

    assert asyncio.run(story()) == (1, 0, {"name": "n"})
