"""The session database of the benchmark is one that ADK's own service would have written."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from google.adk.events.event import Event
from google.adk.sessions.database_session_service import DatabaseSessionService

from benchmarks.importing.store import APP, USER, event_rows, session_name, write
from tests.unit.adapters.importing.sessions import at


async def _served(path: Path, sessions: int) -> None:
    service = DatabaseSessionService(f"sqlite+aiosqlite:///{path}")
    for number in range(sessions):
        session = await service.create_session(
            app_name=APP, user_id=USER, session_id=session_name(number)
        )
        for one in event_rows(number):
            await service.append_event(session, Event.model_validate(one))
    await service.close()


def _rows(path: Path) -> dict[str, Any]:
    with closing(sqlite3.connect(path)) as source:
        made = source.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
        events = source.execute("SELECT * FROM events ORDER BY session_id, timestamp").fetchall()
        asked = "SELECT app_name, user_id, id, state, update_time FROM sessions ORDER BY id"
        kept = source.execute(asked).fetchall()
        states = [
            source.execute(f"SELECT app_name, state FROM {table}").fetchall()  # noqa: S608
            for table in ("app_states", "user_states")
        ]
    return {"made": made, "events": events, "sessions": kept, "states": states}


def test_the_workload_is_written_as_the_service_writes_it(tmp_path: Path) -> None:
    write(tmp_path / "fast.db", 3)
    asyncio.run(_served(tmp_path / "served.db", 3))
    assert _rows(tmp_path / "fast.db") == _rows(tmp_path / "served.db")
    found = at(tmp_path / "fast.db")
    assert len(found.paid) == 15
    assert found.gaps == []
    assert json.loads(bytes(found.events[0].state)) == {}  # type: ignore[union-attr]
