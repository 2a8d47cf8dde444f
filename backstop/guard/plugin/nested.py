# ruff: noqa: ANN401 - the framework's values are of any type
"""Agents in tools that are told to run without the plugins of their caller.

Such a tool's runner has no plugins at all, and what its agent does would go out unseen. The
guard goes along all the same, alone: of the other plugins the tool still runs without.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from typing import Any

from google.adk.plugins.base_plugin import BasePlugin
from google.adk.plugins.plugin_manager import PluginManager

from backstop.adk.arming import disarmed


def is_hidden(tool: Any) -> bool:
    """Whether a tool that contains an agent keeps its caller's plugins out."""
    return getattr(tool, "include_plugins", True) is False


async def run_with(
    guard: BasePlugin,
    tool: Any,
    args: dict[str, Any],
    tool_context: Any,
    original: Callable[..., Awaitable[Any]],  # noqa: ARG001 - the shape of an executor
) -> Any:
    """Run the tool's agent with the guard for its only plugin."""
    asking = tool_context._invocation_context  # noqa: SLF001 - no public way to it
    alone = asking.model_copy(update={"plugin_manager": PluginManager([guard])})
    inner = copy.copy(tool_context)
    inner._invocation_context = alone  # noqa: SLF001
    twin = disarmed(tool)
    twin.include_plugins = True
    return await twin.run_async(args=args, tool_context=inner)
