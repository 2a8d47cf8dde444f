# ruff: noqa: ANN401 - the framework's values are of any type
"""The guard without a driver: a plugin that keeps the runs of its agents by itself.

Where somebody else began an attempt it serves that. Where nobody did, which is so under `adk
web`, `adk api_server` and a plain `Runner`, each run of the runner is an attempt of its own.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, Final

from backstop.errors import BackstopError
from backstop.guard.claims.offloop import asked
from backstop.guard.journal import current
from backstop.guard.plugin import sessions
from backstop.guard.plugin.health import Health, answer, asked_by, without_question
from backstop.guard.plugin.recorder import GuardPlugin
from backstop.guard.plugin.scope import Closed, Scope, scope_of
from backstop.guard.plugin.station import Station

_log: Final = logging.getLogger("backstop")

_ASKED: Final = "__backstop_asked__"


class SessionPlugin(GuardPlugin):
    """The guard of runs that nobody drives: each session is a run, each message to it a step.

    It moves itself to the front of the plugins: one before it may answer a tool's call, and
    the guard would not have armed the tool.
    """

    async def on_user_message_callback(self, *, invocation_context: Any, user_message: Any) -> Any:
        """Take the question for the guard's health out of the framework's hands."""
        _move_first(self, invocation_context)
        nonce = asked_by(user_message)
        if nonce is None or self._is_spare(invocation_context):
            return None
        vars(invocation_context)[_ASKED] = nonce
        return without_question()

    async def before_run_callback(self, *, invocation_context: Any) -> Any:
        """Find out to which attempt this run belongs, and begin one if there is none."""
        index = _move_first(self, invocation_context)
        if self._is_spare(invocation_context):
            return None
        nonce = vars(invocation_context).get(_ASKED)
        if nonce is not None:
            return answer(await self._health(invocation_context, nonce=nonce, index=index))
        return await super().before_run_callback(invocation_context=invocation_context)

    async def on_run_error_callback(self, *, invocation_context: Any, error: Exception) -> None:
        """The run failed, and so did its attempt."""
        scope = scope_of(invocation_context)
        spare = self._is_spare(invocation_context)
        if scope is not None and scope.is_of(invocation_context) and not spare:
            await self._over(scope, error)

    async def _health(self, context: Any, *, nonce: str, index: int) -> Health:
        """What to say of oneself."""
        raise NotImplementedError

    async def _scope_for(self, context: Any) -> Scope:
        if current() is not None:
            return await super()._scope_for(context)
        station = await self._station_of(context)
        begun: sessions.Begun | None = None
        if isinstance(station, Station):
            message = sessions.message_of(context)
            try:
                begun = await asked(station.journal.store, partial(station.sessions.begin, message))
            except BackstopError as error:
                _log.error("backstop refuses effects: %s", error)
                station = Closed(
                    why=str(error),
                    declarations=station.journal.declarations,
                    observing=station.observing,
                )
        return Scope(
            sink=self,
            station=station,
            attempt=None if begun is None else begun.attempt,
            driven=False,
            begun=begun,
        )

    async def _over(self, scope: Scope, error: Exception | None = None) -> None:
        await super()._over(scope, error)
        begun, station = scope.begun, scope.station
        if begun is None or isinstance(station, Closed):
            return
        try:
            await asked(station.journal.store, partial(station.sessions.end, begun, error=error))
        except BackstopError as fault:
            _log.warning("backstop could not end an attempt: %s", fault)


def _move_first(plugin: Any, context: Any) -> int:
    """Stand before all other plugins of this run; the place where it stands now."""
    plugins = context.plugin_manager.plugins
    if plugin in plugins and plugins[0] is not plugin:
        plugins.remove(plugin)
        plugins.insert(0, plugin)
    return plugins.index(plugin) if plugin in plugins else -1
