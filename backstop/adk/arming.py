"""Interception at the last moment: wrappers on tool and model *instances*.

A plugin's `before_tool_callback` runs before the agent's own callbacks, which may still
rewrite the arguments or refuse the call; a response returned from `before_model_callback`
skips the agent's after-model callbacks. So plugins only arm, and the wrapper sees the
final arguments exactly when the tool or the model would have run.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from types import MethodType
from typing import Any, Final, TypeAlias

Executor: TypeAlias = Callable[
    [Any, dict[str, Any], Any, Callable[..., Awaitable[Any]]], Awaitable[Any]
]
"""``executor(tool, args, tool_context, original)``: what runs in place of `tool.run_async`."""

Generator: TypeAlias = Callable[
    [Any, Any, bool, Callable[..., AsyncIterator[Any]]], AsyncIterator[Any]
]
"""``generator(model, request, stream, original)``: in place of `generate_content_async`."""

Lister: TypeAlias = Callable[[Any, Any, Callable[..., Awaitable[Any]]], Awaitable[list[Any]]]
"""``lister(toolset, context, original)``: what runs in place of a toolset's `get_tools`."""

_NO_AGENT: Final = "unknown"
"""What the framework calls the agent where there is none."""

_MARK: Final = "__backstop_armed__"


class _Armed:
    """Whose wrapper it is, what it replaced, and where it leads now."""

    __slots__ = ("leads_to", "original", "owner")

    def __init__(self, owner: Any, original: Any, leads_to: Any) -> None:
        self.owner = owner
        self.original = original
        self.leads_to = leads_to


def agent_of(tool_context: Any) -> str:
    """The agent that a tool was called by; empty where the code of a workflow called it."""
    name = getattr(tool_context, "agent_name", "") or ""
    return "" if name == _NO_AGENT else name


def arm(tool: Any, executor: Executor) -> None:
    """Make `tool.run_async` lead to `executor`; arming again only changes where it leads.

    A copy of an armed tool carries the wrapper of its source and is armed anew.
    """
    armed = _take(tool, "run_async", executor)
    if armed is None:
        return

    @functools.wraps(armed.original)
    async def run_async(*, args: dict[str, Any], tool_context: Any) -> Any:
        return await armed.leads_to(tool, args, tool_context, armed.original)

    _put(tool, "run_async", run_async, armed)


def arm_model(model: Any, generator: Generator) -> None:
    """Make `model.generate_content_async` lead to `generator`, keeping the model's class.

    The class decides about capabilities and request forms, so it must not change. Arming
    again only changes where it leads.
    """
    armed = _take(model, "generate_content_async", generator)
    if armed is None:
        return

    @functools.wraps(armed.original)
    async def generate_content_async(llm_request: Any, stream: bool = False) -> AsyncIterator[Any]:  # noqa: FBT001, FBT002 - the framework's signature
        async for response in armed.leads_to(model, llm_request, stream, armed.original):
            yield response

    _put(model, "generate_content_async", generate_content_async, armed)


def arm_toolset(toolset: Any, lister: Lister) -> None:
    """Make `toolset.get_tools` lead to `lister`; arming again only changes where it leads.

    The framework puts a prefix before what comes of it.
    """
    armed = _take(toolset, "get_tools", lister)
    if armed is None:
        return

    @functools.wraps(armed.original)
    async def get_tools(readonly_context: Any = None) -> list[Any]:
        tools: list[Any] = await armed.leads_to(toolset, readonly_context, armed.original)
        return tools

    _put(toolset, "get_tools", get_tools, armed)


def disarmed(target: Any) -> Any:
    """A copy of a tool or model that runs as it did before it was armed."""
    twin = copy.copy(target)
    if vars(twin).pop(_MARK, None) is not None:
        for name in ("run_async", "generate_content_async"):
            vars(twin).pop(name, None)
    return twin


def is_armed(target: Any) -> bool:
    """Whether `target`, a tool or a model, carries a wrapper of its own."""
    mark = vars(target).get(_MARK)
    return mark is not None and mark.owner is target


def _take(target: Any, name: str, leads_to: Any) -> _Armed | None:
    """What is to be armed; None if `target` was armed before and now leads to `leads_to`."""
    mark = vars(target).get(_MARK)
    if mark is None:
        return _Armed(target, getattr(target, name), leads_to)
    if mark.owner is target:
        mark.leads_to = leads_to
        return None
    original = mark.original
    if isinstance(original, MethodType) and original.__self__ is mark.owner:
        original = MethodType(original.__func__, target)
    return _Armed(target, original, leads_to)


def _put(target: Any, name: str, wrapper: Any, armed: _Armed) -> None:
    # Straight into the instance's dictionary: models are pydantic and would refuse setattr.
    vars(target)[name] = wrapper
    vars(target)[_MARK] = armed
