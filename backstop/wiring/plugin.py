# ruff: noqa: ANN401 - the framework's values are of any type
"""`backstop.Plugin`: the guard for an agent's runners, put together from the configuration.

    App(name="desk", root_agent=root, plugins=[backstop.Plugin()])
    adk web --extra_plugins backstop.Plugin .

A server that cannot load a plugin starts without it, unguarded. So neither the import nor the
construction ever raises: a guard that cannot be set up refuses effects, and says why.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, Final

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool

from backstop import __version__
from backstop.adk.arming import arm, is_armed
from backstop.adk.control import is_control
from backstop.config import Config
from backstop.core.declaration import Declaration
from backstop.errors import BackstopError
from backstop.guard.plugin.health import Health
from backstop.guard.plugin.scope import Closed
from backstop.guard.plugin.standalone import SessionPlugin
from backstop.guard.plugin.station import Station
from backstop.wiring.station import (
    Settings,
    agent_of,
    configuration,
    open_station,
    settings_from,
)

__all__ = ["Plugin"]

_log: Final = logging.getLogger("backstop")


class Plugin(SessionPlugin):
    """The guard for the agents of ``backstop.yaml``: a side effect goes out at most once.

    `config` is the configuration's file; left out, ``BACKSTOP_CONFIG`` or the nearest
    ``backstop.yaml`` upwards from the working directory. `agent`, `store` (a URL) and `mode`
    (``guard``, or ``observe``: refuse nothing, and record what would have been) stand for
    ``BACKSTOP_AGENT``, ``BACKSTOP_STORE`` and ``BACKSTOP_MODE``. `mesh` (for ``BACKSTOP_MESH``) is
    a file of anchors: with it no effect goes out whose step is not VERIFIED. Never raises.
    """

    def __init__(
        self,
        name: str = "backstop",
        *,
        config: str | os.PathLike[str] | None = None,
        agent: str | None = None,
        store: str | None = None,
        mode: str | None = None,
        mesh: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(name)
        self._stations: dict[str, Station] = {}
        self._opening = Lock()
        self._config: Config | None = None
        self._settings = Settings()
        self._why = ""
        self.only_observes = mode == "observe"
        try:
            said = settings_from(
                os.environ if mode is None else {**os.environ, "BACKSTOP_MODE": mode}
            )
            self._settings = replace(
                said,
                config=said.config if config is None else Path(config),
                agent=agent or said.agent,
                store=store or said.store,
                mesh=said.mesh if mesh is None else Path(mesh),
            )
            self._config = configuration(self._settings, start=Path.cwd())
        except Exception as error:  # noqa: BLE001 - a server would start without the guard
            self._why = _told(error)
            _log.error("backstop refuses effects: %s", self._why)

    async def _station_of(self, context: Any) -> Station | Closed:
        app = context.session.app_name
        station = self._stations.get(app)
        if station is not None:
            return station
        if self._config is None:
            return Closed(why=self._why, observing=self._settings.observing is True)
        # Reads files, and may wait for a network: others on this loop go on meanwhile.
        return await asyncio.to_thread(self._opened, self._config, app, _root_of(context))

    def _opened(self, config: Config, app: str, root: Any) -> Station | Closed:
        declared: Mapping[str, Declaration] = {}
        observing = self._settings.observing
        with self._opening:
            if app in self._stations:
                return self._stations[app]
            try:
                agent = agent_of(config, self._settings, app=app)
                declared = agent.declarations
                observing = agent.observing if observing is None else observing
                station = open_station(agent, root, self._settings)
            except Exception as error:  # noqa: BLE001 - one that raises would end the run
                # Tried anew at the next run: a store may be back by then.
                why = _told(error)
                _log.error("backstop refuses effects: %s", why)
                return Closed(why=why, declarations=declared, observing=observing is True)
            self._stations[app] = station
            return station

    async def _health(self, context: Any, *, nonce: str, index: int) -> Health:
        station = await self._station_of(context)
        tools = [(tool.name, self._arms(tool)) for tool in _tools_of(_root_of(context), set())]
        return Health(
            backstop=__version__,
            nonce=nonce,
            index=index,
            agent="" if isinstance(station, Closed) else station.journal.namespace.agent,
            why=station.why if isinstance(station, Closed) else "",
            observing=station.observing,
            armed=tuple(name for name, armed in tools if armed),
            missed=tuple(name for name, armed in tools if not armed),
        )

    def _arms(self, tool: Any) -> bool:
        try:
            arm(tool, self._run)
        except (TypeError, AttributeError):
            return False
        return is_armed(tool)


def _told(error: Exception) -> str:
    """Why, in one line: ours with its slug, anybody else's with its class."""
    name = error.slug if isinstance(error, BackstopError) else type(error).__name__
    return f"{' '.join(str(error).split())} ({name})"


def _root_of(context: Any) -> Any:
    """The root of what the run of `context` runs: an agent, or a node of a workflow."""
    return getattr(context.agent, "root_agent", context.agent)


def _tools_of(node: Any, seen: set[int]) -> Iterator[Any]:
    """The tools below an agent or node that do something themselves, as far as they are listed."""
    if id(node) in seen:
        return
    seen.add(id(node))
    for tool in (*(getattr(node, "tools", None) or ()), getattr(node, "tool", None)):
        if isinstance(tool, BaseTool):
            if not is_control(tool):
                yield tool
            yield from _tools_of(getattr(tool, "agent", None), seen)
        elif callable(tool):
            yield FunctionTool(tool)
    nodes = getattr(getattr(node, "graph", None), "nodes", None) or ()
    for below in (*(getattr(node, "sub_agents", None) or ()), *nodes):
        yield from _tools_of(below, seen)
