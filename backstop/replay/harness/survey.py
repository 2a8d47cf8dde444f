"""What the candidate is made of: agents and tools."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...adk.code import body_of, setup_digest, tool_code
from ...adk.schema import schema_of
from ...adk.toolsets import Toolset, toolsets_of
from .source import is_installed

Found = dict[str, Any]


class Survey:
    """Walks the agent tree once; `agents` and `tools` are as `Ready` tells them.

    `said` is what the `@effect` on a tool's function declares, for each tool that has one;
    `toolsets` are those of the agents, each with whether the guard sits on its tools. `nodes`
    and `held` are the objects themselves: agents and nodes, and what they have for tools, each
    with its agent's name.
    """

    def __init__(self, *, root: Any, plugins: list[Any], folder: Path) -> None:
        self.agents: list[Found] = []
        self.tools: list[Found] = []
        self.said: list[Any] = []
        self.toolsets: list[tuple[Toolset, bool]] = []
        self.nodes: list[Any] = []
        self.held: list[tuple[Any, str]] = []
        self.plugins = [plugin for plugin in plugins if not is_guard(plugin)]
        self.folder = folder
        self._guarded = any(is_guard(plugin) for plugin in plugins)
        self._seen: set[int] = set()
        self._visit(root, guarded=self._guarded)
        self._look_into_modules()

    def _visit(self, node: Any, *, guarded: bool) -> None:
        if id(node) in self._seen:
            return
        self._seen.add(id(node))
        kind = type(node).__name__
        if hasattr(node, "canonical_model") or is_agent(node):
            model = getattr(node, "model", "") or ""
            self.agents.append(
                {
                    "name": node.name,
                    "kind": kind,
                    "model": model if isinstance(model, str) else str(model.model),
                    "setup": setup_digest(node),
                }
            )
        self.nodes.append(node)
        self.toolsets += [(toolset, guarded) for toolset in toolsets_of(node)]
        for tool in getattr(node, "tools", None) or ():
            self._visit_tool(tool, agent=node.name, guarded=guarded)
        if kind == "_ToolNode":
            self._visit_tool(node.tool, agent=node.name, guarded=guarded)
        for child in _children(node):
            self._visit(child, guarded=guarded)

    def _visit_tool(self, tool: Any, *, agent: str, guarded: bool) -> None:
        from google.adk.tools.base_tool import BaseTool
        from google.adk.tools.function_tool import FunctionTool

        self.held.append((tool, agent))
        if not isinstance(tool, BaseTool):
            if not callable(tool):
                return
            tool = FunctionTool(tool)
        inner = getattr(tool, "agent", None) or getattr(tool, "node", None)
        if inner is not None:
            shared = getattr(tool, "include_plugins", True)
            self._visit(inner, guarded=guarded and shared)
        told = describe(tool, agent=agent, guarded=guarded)
        self.tools.append({**told, "body": _body(tool, self.folder)})
        if (said := _said(tool)) is not None:
            self.said.append(said)

    def _look_into_modules(self) -> None:
        """Tools that code calls by itself, and `@effect` functions, in the candidate's modules."""
        from google.adk.tools.base_tool import BaseTool
        from google.adk.tools.function_tool import FunctionTool

        known = {told["tool"] for told in self.tools}
        for thing in _module_members(self.folder):
            if isinstance(thing, BaseTool) and thing.name not in known:
                self._visit_tool(thing, agent="", guarded=self._guarded)
            elif getattr(thing, "__backstop_effect__", False) is True:
                told = describe(FunctionTool(thing), agent="", guarded=self._guarded)
                if told["tool"] in known:
                    continue
                body = _body(FunctionTool(thing), self.folder)
                self.tools.append({**told, "kind": "effect", "body": body})
            else:
                continue
            known.add(self.tools[-1]["tool"])


def _module_members(folder: Path) -> Iterator[Any]:
    """Everything that the candidate's own modules hold by a name of their own."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and _lies_in(Path(file), folder):
            yield from list(vars(module).values())


def is_guard(plugin: Any) -> bool:
    """Whether a plugin is the run-time guard, which must not act in a replay."""
    return getattr(type(plugin), "__backstop_guard__", False) is True


def describe(tool: Any, *, agent: str, guarded: bool) -> Found:
    """A tool as `Ready` tells it: parameters with defaults, and a digest of its own code."""
    return {
        "agent": agent,
        "tool": tool.name,
        "kind": type(tool).__name__,
        "schema": schema_of(tool),
        "guarded": guarded,
        "long_running": bool(tool.is_long_running),
        "code": tool_code(tool),
        "says": _says(tool),
    }


def _said(tool: Any) -> Any:
    return getattr(getattr(tool, "func", None), "__backstop_declared__", None)


def _says(tool: Any) -> Found | None:
    """What an `@effect` on a tool's function declares of it."""
    said = _said(tool)
    if said is None:
        return None
    return {
        "identity": said.identity,
        "scope": said.scope,
        "key": said.key,
        "param": getattr(said.capability, "param", ""),
    }


def _body(tool: Any, folder: Path) -> str:
    """Where a tool's own code stands, from the candidate's folder, unless it is installed."""
    code = getattr(body_of(tool), "__code__", None)
    if code is None or not code.co_filename.endswith(".py"):
        return ""
    file = Path(code.co_filename).resolve()
    if not file.is_relative_to(folder) and is_installed("", str(file)):
        return ""
    return f"{os.path.relpath(file, folder).replace(os.sep, '/')}:{code.co_qualname}"


def _children(node: Any) -> Iterator[Any]:
    yield from getattr(node, "sub_agents", None) or ()
    graph = getattr(node, "graph", None)
    yield from getattr(graph, "nodes", None) or ()
    for name in ("_node", "agent", "node"):
        child = getattr(node, name, None)
        if child is not None and hasattr(child, "name"):
            yield child


def is_agent(node: Any) -> bool:
    """Whether it is an agent of the framework's, or of a class made from one."""
    return any(kind.__name__ == "BaseAgent" and of_framework(kind) for kind in type(node).__mro__)


def of_framework(kind: type) -> bool:
    """Whether a class is the framework's, or one that those are made from."""
    return kind.__module__.startswith(("google.adk.", "pydantic", "builtins", "abc"))


def _lies_in(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder)
