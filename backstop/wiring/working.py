# ruff: noqa: ANN401 - the framework's values are of any type
"""A worker from the configuration: the agent, its guard and store, its sessions, its messages."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from google.adk.apps import App
from google.adk.sessions.base_session_service import BaseSessionService

from backstop.adapters.owners import liveness_of, this_process
from backstop.adapters.pubsub import Inbox, Place
from backstop.clock import SystemClock
from backstop.config import Agent
from backstop.errors import ConfigError, MissingExtra, UsageError
from backstop.guard.plugin.recorder import GuardPlugin
from backstop.guard.plugin.station import Station
from backstop.guard.workers.attendance import Attendance
from backstop.guard.workers.worker import Worker
from backstop.ports import Delivery, Handled
from backstop.wiring.station import Settings, open_station

EMULATOR: Final = "PUBSUB_EMULATOR_HOST"
"""Google's own name for it."""

Reporter = Callable[[Delivery, Handled], None]


async def work(
    agent: Agent, settings: Settings, *, subscription: str, at_once: int, report: Reporter
) -> None:
    """Handle the messages of ``projects/PROJECT/subscriptions/NAME`` until this is cancelled.

    Raises `UsageError` for another name, `ConfigError` for what the configuration does not
    say, and what the store, the agent's code or Pub/Sub raises.
    """
    project, name = _named(subscription)
    inbox = Inbox(
        Place(project=project, emulator=os.environ.get(EMULATOR) or None), name, at_once=at_once
    )
    worker = worker_of(agent, settings)
    await inbox.serve(worker.handle, report=report)


def worker_of(agent: Agent, settings: Settings) -> Worker:
    """The worker of a configured agent; its sessions are kept beside its ledger.

    Raises `ConfigError`, and what the store or the agent's code raises.
    """
    if agent.path is None:
        raise ConfigError(f"agent {agent.name} has no `path`: nothing to run", slug="guard-path")
    app = _loaded(agent.path)
    station = open_station(agent, app.root_agent, settings)
    url = settings.store or agent.store
    assert url is not None  # noqa: S101 - or there would be no station
    return Worker(
        app=app,
        store=station.journal.store,
        journal=lambda store: dataclasses.replace(station.journal, store=store),
        guard=lambda journal: _Guard(dataclasses.replace(station, journal=journal)),
        sessions=sessions_beside(url),
        attendance=Attendance(process=this_process(), liveness=liveness_of, clock=SystemClock()),
    )


class _Guard(GuardPlugin):
    """The guard of the attempts that a worker begins and ends."""

    def __init__(self, station: Station) -> None:
        super().__init__("backstop")
        self._station = station

    async def _station_of(self, context: Any) -> Station:  # noqa: ARG002 - there is one
        return self._station


def sessions_beside(url: str) -> BaseSessionService:
    """Where the sessions of a worker are kept whose ledger is at `url`.

    Beside a SQLite file in one of its own, beside a Firestore collection in one of its own.
    Raises `ConfigError` (``store-url``) for a store that only one process can see.
    """
    parts = urlsplit(url)
    match parts.scheme:
        case "sqlite":
            from google.adk.sessions.sqlite_session_service import SqliteSessionService

            return SqliteSessionService(f"{unquote(parts.path[1:])}.sessions")
        case "firestore":
            try:
                from google.adk.integrations.firestore.firestore_session_service import (
                    FirestoreSessionService,
                )
                from google.cloud.firestore import AsyncClient
            except ImportError as error:
                raise MissingExtra(
                    f"{url} needs `pip install 'backstop-gate[firestore]'` ({error})"
                ) from error
            database, collection = parts.path.strip("/").split("/")
            return FirestoreSessionService(
                client=AsyncClient(project=parts.netloc, database=database),
                root_collection=f"{collection}-sessions",
            )
        case _:
            raise ConfigError(
                f"{url}: a worker needs a store that other processes see: sqlite: or firestore:",
                slug="store-url",
            )


def _loaded(folder: Path) -> App:
    """The agent's app, without a guard of its own: the worker stands in for that."""
    from google.adk.cli.utils.agent_loader import AgentLoader

    loaded: Any = AgentLoader(str(folder.parent)).load_agent(folder.name)
    app = loaded if isinstance(loaded, App) else App(name=folder.name, root_agent=loaded)
    others = [one for one in app.plugins if not getattr(one, "__backstop_guard__", False)]
    return app.model_copy(update={"plugins": others})


def _named(subscription: str) -> tuple[str, str]:
    match subscription.split("/"):
        case ["projects", project, "subscriptions", name] if project and name:
            return project, name
        case _:
            raise UsageError(
                f"{subscription} is no subscription: write projects/PROJECT/subscriptions/NAME"
            )
