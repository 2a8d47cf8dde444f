"""A session database of any size, as ADK's `DatabaseSessionService` writes it, and much faster.

Each session is of a desk that is asked for five payments: a user's message, a call, its answer
and the last words, with all that the framework notes beside them. A test holds the rows to those
of the service itself.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

APP: Final = "desk"
USER: Final = "ann"
PER_SESSION: Final = 20
"""Events of a session."""

_BEGAN: Final = 1_764_132_650
_SPENT: Final[dict[str, Any]] = {
    "finish_reason": "STOP",
    "usage_metadata": {
        "candidates_token_count": 31,
        "candidates_tokens_details": [{"modality": "TEXT", "token_count": 31}],
        "prompt_token_count": 1184,
        "prompt_tokens_details": [{"modality": "TEXT", "token_count": 1184}],
        "total_token_count": 1215,
    },
    "avg_logprobs": -0.0521,
}
_ACTIONS: Final[dict[str, Any]] = {
    "state_delta": {},
    "artifact_delta": {},
    "requested_auth_configs": {},
    "requested_tool_confirmations": {},
}
_SAID: Final = (
    "Order {order} is paid: the money was taken from the account of the customer, and the "
    "confirmation is on its way. Is there anything else that I can do for you today?"
)
_INSERT: Final = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)"
_OPEN: Final = "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?)"


def session_name(number: int) -> str:
    """The id of a session."""
    return f"s{number:06}"


def event_rows(number: int) -> Iterator[dict[str, Any]]:
    """The events of one session, each as ADK dumps it."""
    for turn in range(PER_SESSION // 4):
        order = f"A-{number:06}-{turn}"
        call, invocation = f"adk-{number:08}-{turn:04}", f"e-{number:08}-{turn:04}"
        asked = {"id": call, "args": {"order": order, "amount": 12.5 + turn}, "name": "pay"}
        given = {"id": call, "name": "pay", "response": {"ok": True, "receipt": f"R-{order}"}}
        kept = {**_ACTIONS, "state_delta": {"last_order": order}}
        said = {"text": _SAID.format(order=order)}
        turns: tuple[tuple[str, str, dict[str, Any], dict[str, Any], dict[str, Any]], ...] = (
            ("user", "user", {"text": f"Please pay order {order}."}, {}, _ACTIONS),
            (APP, "model", {"function_call": asked}, _SPENT, _ACTIONS),
            (APP, "user", {"function_response": given}, {}, kept),
            (APP, "model", said, _SPENT, _ACTIONS),
        )
        for place, (author, role, part, spent, actions) in enumerate(turns):
            nth = turn * len(turns) + place
            # In the order in which the framework's model has its members.
            yield {
                "content": {"parts": [part], "role": role},
                **spent,
                "invocation_id": invocation,
                "author": author,
                "actions": actions,
                "node_info": {"path": ""},
                **({"long_running_tool_ids": []} if part is turns[1][2] else {}),
                "id": f"{number:08x}-0000-4000-8000-{nth:012x}",
                "timestamp": _BEGAN + number * 60 + nth + 0.25,
            }


def write(path: Path, sessions: int) -> None:
    """A new database with so many sessions."""
    asyncio.run(_prepared(path))
    with closing(sqlite3.connect(path)) as made:
        made.execute("PRAGMA synchronous = OFF")
        for number in range(sessions):
            events = list(event_rows(number))
            last = _moment(events[-1]["timestamp"])
            state = json.dumps({"last_order": f"A-{number:06}-{PER_SESSION // 4 - 1}"})
            made.execute(_OPEN, (APP, USER, session_name(number), state, last, last))
            made.executemany(_INSERT, (_row(event, session_name(number)) for event in events))
        made.commit()


def _row(event: dict[str, Any], session: str) -> tuple[str, ...]:
    said = json.dumps(event)
    when = _moment(event["timestamp"])
    return (event["id"], APP, USER, session, event["invocation_id"], when, said)


def _moment(seconds: float) -> str:
    """As SQLAlchemy writes a moment to SQLite."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


async def _prepared(path: Path) -> None:
    """The service's own tables, with one session of nobody's that is gone again."""
    from google.adk.sessions.database_session_service import DatabaseSessionService

    service = DatabaseSessionService(f"sqlite+aiosqlite:///{path}")
    # Whoever opens a session first leaves the rows of app and user.
    await service.create_session(app_name=APP, user_id=USER, session_id="first")
    await service.delete_session(app_name=APP, user_id=USER, session_id="first")
    await service.close()
