"""`@effect`: puts a plain function under the guard, and in replay under the harness.

Whoever watches effects installs itself as the sink of the process; until then a decorated
function is the function that it was. Standard library only: an agent's own code imports it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, Protocol, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")


class Sink(Protocol):
    """Takes the calls of decorated functions; `run` calls the function itself."""

    def call(self, tool: str, arguments: dict[str, Any], run: Callable[[], Any]) -> Any:  # noqa: ANN401 - a user's result
        """Answer the call of a plain function."""
        ...

    async def acall(
        self, tool: str, arguments: dict[str, Any], run: Callable[[], Awaitable[Any]]
    ) -> Any:  # noqa: ANN401 - a user's result
        """Answer the call of a coroutine function."""
        ...


_installed: list[Sink] = []


def install(sink: Sink | None) -> Sink | None:
    """Make `sink` the one that answers from now on, None for nobody; returns the former one."""
    former = _installed[0] if _installed else None
    _installed[:] = [] if sink is None else [sink]
    return former


def effect(function: Callable[P, R]) -> Callable[P, R]:
    """Declare that `function` changes the world outside; its name is the tool's name.

    The arguments are bound to parameter names, defaults filled in, before anybody sees them.
    """
    signature = inspect.signature(function)
    name = function.__name__

    def bound(*args: Any, **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401 - a user's arguments
        arguments = signature.bind(*args, **kwargs)
        arguments.apply_defaults()
        return dict(arguments.arguments)

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: P.args, **kwargs: P.kwargs) -> Any:  # noqa: ANN401 - a user's result
            if not _installed:
                return await function(*args, **kwargs)
            return await _installed[0].acall(
                name, bound(*args, **kwargs), lambda: function(*args, **kwargs)
            )

        wrapper = cast("Callable[P, R]", awaited)
    else:

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            if not _installed:
                return function(*args, **kwargs)
            answer = _installed[0].call(
                name, bound(*args, **kwargs), lambda: function(*args, **kwargs)
            )
            return cast("R", answer)

        wrapper = called
    wrapper.__backstop_effect__ = True  # type: ignore[attr-defined]  # the mark that doctor and harness look for
    return wrapper
