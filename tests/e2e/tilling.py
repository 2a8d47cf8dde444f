"""A till at work on the framework's own SQLite sessions: run as a process of its own.

``python -m tests.e2e.tilling serve FILE`` hands it three messages of two users; ``rewind FILE``
rewinds the session of the second one to its beginning.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path

from google.adk.runners import Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

TILL = Path(__file__).parents[1] / "agents/till"
_SAID = (("ann", "one", "pay A7 10"), ("ann", "one", "look A7"), ("bob", "two", "pay B8 20"))


def _runner(sessions: SqliteSessionService) -> Runner:
    spec = importlib.util.spec_from_file_location("till_at_work", TILL / "agent.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Runner(app_name="till", agent=module.root_agent, session_service=sessions)


async def serve(sessions: SqliteSessionService) -> None:
    """Hand the till its messages."""
    runner = _runner(sessions)
    for user, session in sorted({(user, session) for user, session, _ in _SAID}):
        await sessions.create_session(app_name="till", user_id=user, session_id=session)
    for user, session, said in _SAID:
        message = types.Content(role="user", parts=[types.Part(text=said)])
        async for _ in runner.run_async(user_id=user, session_id=session, new_message=message):
            pass


async def rewind(sessions: SqliteSessionService) -> None:
    """Rewind what the second user said."""
    session = await sessions.get_session(app_name="till", user_id="bob", session_id="two")
    assert session is not None
    await _runner(sessions).rewind_async(
        user_id="bob",
        session_id="two",
        rewind_before_invocation_id=session.events[0].invocation_id,
    )


if __name__ == "__main__":
    deed = {"serve": serve, "rewind": rewind}[sys.argv[1]]
    asyncio.run(deed(SqliteSessionService(sys.argv[2])))
