"""The session of one attempt: what the steps before it left, and what it adds itself.

Two workers may try one step at once, and the framework's services let them write into one
session, where their histories interleave. So every attempt writes a session of its own, and
the cursor, which moves once, names the one that counts: a run's session is the chain of those.
What a lost or killed attempt wrote is in nobody's way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from google.adk.events.event import Event
from google.adk.sessions.base_session_service import (
    BaseSessionService,
    GetSessionConfig,
    ListSessionsResponse,
)
from google.adk.sessions.session import Session
from google.adk.sessions.state import State

from backstop.errors import BackstopError

_SHARED: Final = (State.APP_PREFIX, State.USER_PREFIX, State.TEMP_PREFIX)
"""State under these belongs to no session: the service keeps it, or nobody does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What the steps of a run have left so far: the session's events and its state."""

    events: tuple[Event, ...] = ()
    state: Mapping[str, Any]


class Links:
    """Reads the links of runs' chains; a link that counts never changes, so each is read once."""

    def __init__(self, sessions: BaseSessionService, *, app: str, keep: int = 4096) -> None:
        self._sessions = sessions
        self._app = app
        self._keep = keep
        self._read: dict[tuple[str, str], Session] = {}

    async def left(self, names: Sequence[str], *, user: str, opening: Mapping[str, Any]) -> Left:
        """What the steps left whose links these are; the state at the `opening` if none.

        Raises `BackstopError` (``session-gone``) for a link that the service has lost.
        """
        links = [await self._link(name, user) for name in names]
        state = links[-1].state if links else opening
        return Left(
            events=tuple(event for link in links for event in link.events),
            state={
                name: deepcopy(value)
                for name, value in state.items()
                if not name.startswith(_SHARED)
            },
        )

    async def _link(self, name: str, user: str) -> Session:
        if (known := self._read.get((user, name))) is not None:
            return known
        link = await self._sessions.get_session(app_name=self._app, user_id=user, session_id=name)
        if link is None:
            raise BackstopError(
                f"session {name} of user {user} is gone, and with it what its step left; "
                "restore it in the session service",
                slug="session-gone",
            )
        if len(self._read) >= self._keep:
            self._read.clear()
        self._read[user, name] = link
        return link


class AttemptSession(BaseSessionService):
    """Serves one session to a runner: that of a run, as one attempt sees it.

    What the attempt adds goes to the session `own` of `sessions`, which must not exist yet.
    """

    def __init__(self, sessions: BaseSessionService, *, run: str, own: str, left: Left) -> None:
        self._sessions = sessions
        self._run = run
        self._own = own
        self._left = left
        self._link: Session | None = None
        self._added: list[Event] = []

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """The run's session; any other is the service's own matter."""
        if session_id != self._run:
            return await self._sessions.get_session(
                app_name=app_name, user_id=user_id, session_id=session_id, config=config
            )
        if self._link is None:
            self._link = await self._sessions.create_session(
                app_name=app_name,
                user_id=user_id,
                session_id=self._own,
                state=dict(self._left.state),
            )
        events = [*self._left.events, *self._added]
        return Session(
            id=self._run,
            app_name=app_name,
            user_id=user_id,
            state=deepcopy(self._link.state),
            # The framework may write into the events that it is handed.
            events=[event.model_copy(deep=True) for event in _recent(events, config)],
            last_update_time=self._link.last_update_time,
        )

    async def append_event(self, session: Session, event: Event) -> Event:
        """Add an event to the attempt's own link, and to what the runner holds."""
        if event.partial:
            return event
        if session.id != self._run or self._link is None:
            return await self._sessions.append_event(session, event)
        added = await super().append_event(session, event)
        await self._sessions.append_event(self._link, added)
        self._added.append(added.model_copy(deep=True))
        return added

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Create another session, where an agent asks for one."""
        return await self._sessions.create_session(
            app_name=app_name, user_id=user_id, state=state, session_id=session_id
        )

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """List the service's sessions."""
        return await self._sessions.list_sessions(app_name=app_name, user_id=user_id)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete another session; what a run's steps left is not an agent's to delete."""
        if session_id != self._run:
            await self._sessions.delete_session(
                app_name=app_name, user_id=user_id, session_id=session_id
            )


def _recent(events: list[Event], config: GetSessionConfig | None) -> list[Event]:
    if config is None:
        return events
    if config.after_timestamp:
        events = [event for event in events if event.timestamp >= config.after_timestamp]
    if config.num_recent_events is not None:
        events = events[len(events) - min(len(events), config.num_recent_events) :]
    return events
