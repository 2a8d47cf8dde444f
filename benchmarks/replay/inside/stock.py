"""In place of the harness's own sessions: the framework's, as they are.

A benchmark copies this over `harness/sessions.py`, to show what the stock service costs.
"""

from __future__ import annotations

from typing import Any

from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session


class ReplaySessions(InMemorySessionService):
    """The stock service, with the little that the harness asks of its own beyond it."""

    def __init__(self, window: int | None = None) -> None:
        super().__init__()
        self.window = window  # not kept to: the stock service shows all, and copies it

    def stored(self, app_name: str, user_id: str, session_id: str) -> Session:
        """The session as it is kept."""
        return self.sessions[app_name][user_id][session_id]

    def reach_back_to(self, session: Session, calls: set[str]) -> None:
        """Nothing to do: all of it is shown."""

    def state_of(self, session: Session) -> dict[str, Any]:
        """The session's own state."""
        return session.state
