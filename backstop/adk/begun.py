"""Whether the framework has begun a tool's own function, or turned the call away itself.

A function tool whose arguments are missing or of the wrong type answers in words, and its
function never runs: nothing has happened. From outside that looks like any other result.
"""

from __future__ import annotations

import inspect
from contextvars import ContextVar
from typing import Any, Final

_STEP: Final = "_invoke_callable"
_MARK: Final = "__backstop_watched__"


class Beginning:
    """One call of a tool. `never` says that its function certainly has not been called."""

    __slots__ = ("_began", "_seen")

    def __init__(self, *, seen: bool) -> None:
        self._seen = seen
        self._began = False

    @property
    def never(self) -> bool:
        """False also where nobody could have seen it begin."""
        return self._seen and not self._began

    def now(self) -> None:
        """The function is being called."""
        self._began = True


_CALL: Final[ContextVar[Beginning | None]] = ContextVar("backstop_beginning", default=None)


class watched:  # noqa: N801 - reads as the `with` block that it makes; a class, as it is on the path of every call
    """Watch the one call of `tool` that is made in here."""

    __slots__ = ("_beginning", "_token")

    def __init__(self, tool: Any) -> None:
        self._beginning = Beginning(seen=_watch(tool))

    def __enter__(self) -> Beginning:
        self._token = _CALL.set(self._beginning)
        return self._beginning

    def __exit__(self, *_: object) -> None:
        _CALL.reset(self._token)


def _watch(tool: Any) -> bool:
    """Watch the step by which the framework calls a tool's function; False if it has none."""
    if vars(tool).get(_MARK) is True:
        return True
    from google.adk.tools.function_tool import FunctionTool

    kind = type(tool)
    # A class that brings its own way of running may call its function by itself.
    if not issubclass(kind, FunctionTool) or any(
        getattr(kind, name, None) is not getattr(FunctionTool, name, _MARK)
        for name in ("run_async", _STEP)
    ):
        return False
    function = inspect.unwrap(tool.func)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return False
    _put(tool)
    return True


def _put(tool: Any) -> None:
    original = getattr(tool, _STEP)

    async def invoke(target: Any, *args: Any, **named: Any) -> Any:
        beginning = _CALL.get()
        # The same step also calls what decides whether a person is asked first.
        if beginning is not None and target is tool.func:
            beginning.now()
        return await original(target, *args, **named)

    vars(tool).update({_STEP: invoke, _MARK: True})
