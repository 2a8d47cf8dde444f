"""The framework's own tools that only steer an agent: never intents, always run as they are."""

from __future__ import annotations

import functools
from typing import Any, Final

PERSONS: Final = frozenset(
    {"adk_request_confirmation", "adk_request_credential", "adk_request_input"}
)
"""Calls that the framework makes itself, to ask a person."""

STEERING: Final = PERSONS | {
    "exit_loop",
    "finish_task",
    "set_model_response",
    "transfer_to_agent",
}
"""Names of steering tools; they count only if the framework itself defines the tool."""

_CONTAINERS: Final = frozenset({"AgentTool", "GoogleSearchAgentTool", "NodeTool"})
"""Tools that run agents or nodes, whose own tools are intercepted one by one."""


def is_control(tool: Any) -> bool:
    """Whether `tool` steers the agent or contains agents, and so asks for nothing outside.

    A user's tool that bears a steering tool's name is not control.
    """
    if _is_container(type(tool)):  # type: ignore[arg-type]  # classes hash
        return not _overrides_run(tool)
    if getattr(tool, "name", None) not in STEERING:
        return False
    function = getattr(tool, "func", None)
    return _of_framework(type(tool)) and (function is None or _of_framework(function))


@functools.lru_cache(maxsize=256)  # of classes there are few, and calls are many
def _is_container(kind: type[Any]) -> bool:
    return any(_of_framework(one) and one.__name__ in _CONTAINERS for one in kind.__mro__)


def _of_framework(thing: Any) -> bool:
    return (getattr(thing, "__module__", None) or "").startswith("google.adk.")


def _overrides_run(tool: Any) -> bool:
    """Whether a user's subclass replaced what the framework's container does."""
    for kind in type(tool).__mro__:
        if "run_async" in vars(kind):
            return not _of_framework(kind)
    return False
