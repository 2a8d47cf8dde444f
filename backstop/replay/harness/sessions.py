"""Sessions of a replay: events are shared, not copied, and not searched for duplicates.

The stock in-memory service copies the whole session at every turn and looks at every event
for each one that is appended, which is quadratic. In a replay one runner holds the session
and nothing is appended twice. State is copied as the stock service does: a value that the
candidate changes in place, without a state delta, is lost between turns here as there.
"""

from __future__ import annotations

import copy
from typing import Any

from google.adk.events.event import Event
from google.adk.sessions.base_session_service import (
    BaseSessionService,
    GetSessionConfig,
    ListSessionsResponse,
)
from google.adk.sessions.session import Session
from google.adk.sessions.state import State

from .views import Views


class ReplaySessions(BaseSessionService):
    """Keeps sessions of one process; with a `window` a runner sees the recent events only.

    These are at least as many, from where a view may begin (`Views`).
    """

    def __init__(self, window: int | None = None) -> None:
        self._window = window
        self._at_least = 0
        self._views: dict[int, Views] = {}
        self._sessions: dict[tuple[str, str, str], Session] = {}
        self._shared: dict[tuple[str, ...], dict[str, Any]] = {}

    def stored(self, app_name: str, user_id: str, session_id: str) -> Session:
        """The session as it is kept, with all its events and its own state."""
        return self._sessions[app_name, user_id, session_id]

    def reach_back_to(self, session: Session, calls: set[str]) -> None:
        """Let the next views reach back to where the turn of these calls began.

        An answer from outside resumes that turn, and a runner that cannot see it refuses.
        """
        self._at_least = 0
        if not calls:
            return
        turns = {
            event.invocation_id
            for event in session.events
            if any(call.id in calls for call in event.get_function_calls())
        }
        for index, event in enumerate(session.events):
            if event.invocation_id in turns:
                self._at_least = len(session.events) - index
                return

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Create a session; `app:` and `user:` state goes to where all sessions see it."""
        name = session_id or f"session-{len(self._sessions)}"
        session = Session(id=name, app_name=app_name, user_id=user_id, state={}, events=[])
        self._sessions[app_name, user_id, name] = session
        self._keep(session, dict(state or {}))
        return self._seen(session)

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """The session with its most recent events, or with all of them."""
        session = self._sessions.get((app_name, user_id, session_id))
        if session is None:
            return None
        wanted = config.num_recent_events if config is not None else None
        if wanted is not None:
            return self._seen(session, max(wanted, self._at_least))
        if self._window is None:
            return self._seen(session)
        views = self._views.setdefault(id(session), Views(self._window))
        shown = len(session.events) - views.begin(session.events)
        return self._seen(session, max(shown, self._at_least))

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """The sessions of an app, and of a user if one is named."""
        found = [
            session
            for (app, user, _), session in self._sessions.items()
            if app == app_name and user_id in {None, user}
        ]
        return ListSessionsResponse(sessions=found)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Forget a session."""
        self._sessions.pop((app_name, user_id, session_id), None)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """The state that all sessions of a user share, names without their prefix."""
        shared = self._scope(app_name, user_id)
        return {name.removeprefix(State.USER_PREFIX): value for name, value in shared.items()}

    async def append_event(self, session: Session, event: Event) -> Event:
        """Append to what the runner holds and, where that shares no events, to what is kept."""
        if event.partial:
            return event
        await super().append_event(session=session, event=event)
        session.last_update_time = event.timestamp
        stored = self._sessions.get((session.app_name, session.user_id, session.id))
        if stored is None:
            return event
        if stored.events is not session.events:
            stored.events.append(event)
        stored.last_update_time = event.timestamp
        self._keep(stored, event.actions.state_delta or {})
        return event

    def _keep(self, stored: Session, delta: dict[str, Any]) -> None:
        for name, value in delta.items():
            if name.startswith(State.APP_PREFIX):
                self._scope(stored.app_name)[name] = value
            elif name.startswith(State.USER_PREFIX):
                self._scope(stored.app_name, stored.user_id)[name] = value
            elif not name.startswith(State.TEMP_PREFIX):
                stored.state[name] = value

    def _scope(self, *names: str) -> dict[str, Any]:
        return self._shared.setdefault(names, {})

    def state_of(self, session: Session) -> dict[str, Any]:
        """The state that a runner sees: the session's own, its user's and its app's."""
        return {
            **session.state,
            **self._scope(session.app_name),
            **self._scope(session.app_name, session.user_id),
        }

    def _seen(self, session: Session, shown: int | None = None) -> Session:
        state = copy.deepcopy(self.state_of(session))
        # A whole view shares the list of events itself, and so costs the same at any length.
        events = session.events
        if shown is not None:
            events = session.events[-shown:] if shown else []
        return session.model_copy(update={"events": events, "state": state})
