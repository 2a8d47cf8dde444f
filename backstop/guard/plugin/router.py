# ruff: noqa: ANN401 - what a function gives is of any type
"""Plain `@effect` functions find the guard of the run that they are called in.

Several guards may work in one process, each for runs of its own: none is *the* sink.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final
from weakref import WeakSet

from backstop.guard.effect import install
from backstop.guard.plugin.scope import Scope, outlived, serving
from backstop.guard.plugin.station import EffectRefused


class Router:
    """Answers plain functions for whichever run they are called in, of however many guards."""

    def __init__(self) -> None:
        self._scopes: WeakSet[Scope] = WeakSet()

    def know(self, scope: Scope) -> None:
        """Functions may be called in this run from now on."""
        self._scopes.add(scope)
        former = install(self)
        if former is not None and former is not self:
            install(former)  # a driver's own: it answers all that is called here

    def call(self, tool: str, arguments: dict[str, Any], run: Callable[[], Any]) -> Any:
        """Answer the call of a plain function."""
        scope = self._scope(tool)
        return run() if scope is None else scope.sink.call(tool, arguments, run)

    async def acall(
        self, tool: str, arguments: dict[str, Any], run: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Answer the call of a coroutine function."""
        scope = self._scope(tool)
        return await (run() if scope is None else scope.sink.acall(tool, arguments, run))

    def _scope(self, tool: str) -> Scope | None:
        scope = serving()
        if scope is None and outlived():
            raise EffectRefused(
                f"{tool} was not run: the run that started this task or thread is over, so nothing "
                "would be put on record; wait for it within the run"
            )
        if scope is None and any(known.is_on for known in self._scopes):
            raise EffectRefused(
                f"{tool} was not run: a run is guarded in this process, and whether this call "
                "belongs to it cannot be seen; call it from the run's own context "
                "(contextvars.copy_context)"
            )
        return scope


ROUTER: Final = Router()
"""The one of this process."""
