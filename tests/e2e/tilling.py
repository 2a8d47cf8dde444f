"""A till at work on the framework's own SQLite sessions: run as a process of its own.

``python -m tests.e2e.tilling serve FILE AGENT`` hands it three messages of two users; ``rewind``
rewinds the session of the second one to its beginning; ``ask`` has a payment confirmed, one
declined, and a ticket that is answered later.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path

from google.adk.runners import Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

_SAID = (("ann", "one", "pay A7 10"), ("ann", "one", "look A7"), ("bob", "two", "pay B8 20"))


def _runner(sessions: SqliteSessionService, agent: Path) -> Runner:
    spec = importlib.util.spec_from_file_location("till_at_work", agent / "agent.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Runner(app_name="till", agent=module.root_agent, session_service=sessions)


async def serve(sessions: SqliteSessionService, runner: Runner) -> None:
    """Hand the till its messages."""
    for user, session in sorted({(user, session) for user, session, _ in _SAID}):
        await sessions.create_session(app_name="till", user_id=user, session_id=session)
    for user, session, said in _SAID:
        message = types.Content(role="user", parts=[types.Part(text=said)])
        async for _ in runner.run_async(user_id=user, session_id=session, new_message=message):
            pass


async def rewind(sessions: SqliteSessionService, runner: Runner) -> None:
    """Rewind what the second user said."""
    session = await sessions.get_session(app_name="till", user_id="bob", session_id="two")
    assert session is not None
    await runner.rewind_async(
        user_id="bob",
        session_id="two",
        rewind_before_invocation_id=session.events[0].invocation_id,
    )


async def ask(sessions: SqliteSessionService, runner: Runner) -> None:
    """Three sessions that wait for a person, and go on with what that one says."""
    for session, said, answer in (
        ("yes", "pay A7 10", {"confirmed": True}),
        ("no", "pay A8 10", {"confirmed": False}),
        ("later", "ticket A9", {"status": "open"}),
    ):
        await sessions.create_session(app_name="till", user_id="ann", session_id=session)
        message = types.Content(role="user", parts=[types.Part(text=said)])
        asked: list[types.FunctionCall] = [
            call
            async for event in runner.run_async(
                user_id="ann", session_id=session, new_message=message
            )
            for call in event.get_function_calls()
        ]
        response = types.FunctionResponse(id=asked[-1].id, name=asked[-1].name, response=answer)
        message = types.Content(role="user", parts=[types.Part(function_response=response)])
        async for _ in runner.run_async(user_id="ann", session_id=session, new_message=message):
            pass


if __name__ == "__main__":
    name, store, agent = sys.argv[1:]
    kept = SqliteSessionService(store)
    deed = {"serve": serve, "rewind": rewind, "ask": ask}[name]
    asyncio.run(deed(kept, _runner(kept, Path(agent))))
