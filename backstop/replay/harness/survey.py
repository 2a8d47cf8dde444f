"""What the candidate is made of: agents, tools, and the ways past interception."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ...adk.code import body_of, setup_digest, tool_code
from ...adk.schema import schema_of
from ...adk.toolsets import Toolset, toolsets_of

_SERVER_SIDE: Final = frozenset(
    {
        "EnterpriseWebSearchTool",
        "GoogleMapsGroundingTool",
        "GoogleSearchTool",
        "UrlContextTool",
        "VertexAiSearchTool",
    }
)
_OWN_LOOP: Final = frozenset({"LangGraphAgent", "ManagedAgent", "RemoteA2aAgent"})
_CALLBACKS: Final = (
    "before_agent_callback",
    "after_agent_callback",
    "before_model_callback",
    "after_model_callback",
    "on_model_error_callback",
    "before_tool_callback",
    "after_tool_callback",
    "on_tool_error_callback",
)

Found = dict[str, Any]


class Survey:
    """Walks the agent tree once; `agents`, `tools` and `escapes` are as `Ready` tells them.

    `said` is what the `@effect` on a tool's function declares, for each tool that has one;
    `toolsets` are those of the agents, each with whether the guard sits on its tools.
    """

    def __init__(self, *, root: Any, plugins: list[Any], folder: Path) -> None:
        self.agents: list[Found] = []
        self.tools: list[Found] = []
        self.escapes: list[Found] = []
        self.said: list[Any] = []
        self.toolsets: list[tuple[Toolset, bool]] = []
        self._folder = folder
        self._guarded = any(is_guard(plugin) for plugin in plugins)
        self._seen: set[int] = set()
        for plugin in plugins:
            if type(plugin).__name__ == "ModelArmorPlugin":
                self._escape("networked-plugin", plugin.name, "left out: it fails without network")
        self._visit(root, guarded=self._guarded)
        self._look_into_modules()

    def _visit(self, node: Any, *, guarded: bool) -> None:
        if id(node) in self._seen:
            return
        self._seen.add(id(node))
        kind = type(node).__name__
        if hasattr(node, "canonical_model") or _is_agent(node):
            model = getattr(node, "model", "") or ""
            self.agents.append(
                {
                    "name": node.name,
                    "kind": kind,
                    "model": model if isinstance(model, str) else str(model.model),
                    "setup": setup_digest(node),
                }
            )
        self._look_for_escapes(node, kind)
        self.toolsets += [(toolset, guarded) for toolset in toolsets_of(node)]
        for tool in getattr(node, "tools", None) or ():
            self._visit_tool(tool, agent=node.name, guarded=guarded)
        if kind == "_ToolNode":
            self._visit_tool(node.tool, agent=node.name, guarded=guarded)
        for child in _children(node):
            self._visit(child, guarded=guarded)

    def _look_for_escapes(self, node: Any, kind: str) -> None:
        name = getattr(node, "name", kind)
        function = getattr(node, "_func", None)
        if function is not None:
            self._escape("function-node", name, _place(function, self._folder))
        if kind in _OWN_LOOP:
            self._escape("own-loop", name, f"{kind} runs elsewhere")
        elif _is_agent(node) and not _of_framework(type(node)) and _runs_itself(type(node)):
            self._escape("custom-agent", name, _place(type(node), self._folder))
        if getattr(node, "code_executor", None) is not None:
            self._escape("code-executor", name, type(node.code_executor).__name__)
        for callback in _CALLBACKS:
            found = getattr(node, callback, None)
            for function in found if isinstance(found, list) else [found]:
                if function is not None:
                    self._escape(callback, name, _place(function, self._folder))

    def _visit_tool(self, tool: Any, *, agent: str, guarded: bool) -> None:
        from google.adk.tools.base_tool import BaseTool
        from google.adk.tools.function_tool import FunctionTool

        if not isinstance(tool, BaseTool):
            if not callable(tool):
                self._escape("toolset", agent, f"{type(tool).__name__}: its tools are listed live")
                return
            tool = FunctionTool(tool)
        kind = type(tool).__name__
        if kind in _SERVER_SIDE:
            self._escape("server-side-tool", agent, tool.name)
        inner = getattr(tool, "agent", None) or getattr(tool, "node", None)
        if inner is not None:
            shared = getattr(tool, "include_plugins", True)
            if not shared:
                self._escape("include-plugins", agent, f"{tool.name} runs without our plugins")
            self._visit(inner, guarded=guarded and shared)
        told = describe(tool, agent=agent, guarded=guarded)
        self.tools.append({**told, "body": _body(tool, self._folder)})
        if (said := _said(tool)) is not None:
            self.said.append(said)

    def _look_into_modules(self) -> None:
        """Tools that code calls by itself, and `@effect` functions, in the candidate's modules."""
        from google.adk.tools.base_tool import BaseTool
        from google.adk.tools.function_tool import FunctionTool

        known = {told["tool"] for told in self.tools}
        for thing in _module_members(self._folder):
            if isinstance(thing, BaseTool) and thing.name not in known:
                self._visit_tool(thing, agent="", guarded=self._guarded)
            elif getattr(thing, "__backstop_effect__", False) is True:
                told = describe(FunctionTool(thing), agent="", guarded=self._guarded)
                if told["tool"] in known:
                    continue
                body = _body(FunctionTool(thing), self._folder)
                self.tools.append({**told, "kind": "effect", "body": body})
            else:
                continue
            known.add(self.tools[-1]["tool"])

    def _escape(self, kind: str, where: str, detail: str) -> None:
        self.escapes.append({"kind": kind, "where": where, "detail": detail})


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
    """Where a tool's own code stands, if it stands in the candidate's folder."""
    code = getattr(body_of(tool), "__code__", None)
    if code is None or not _lies_in(Path(code.co_filename), folder):
        return ""
    return f"{Path(code.co_filename).resolve().relative_to(folder).as_posix()}:{code.co_qualname}"


def _children(node: Any) -> Iterator[Any]:
    yield from getattr(node, "sub_agents", None) or ()
    graph = getattr(node, "graph", None)
    yield from getattr(graph, "nodes", None) or ()
    for name in ("_node", "agent", "node"):
        child = getattr(node, name, None)
        if child is not None and hasattr(child, "name"):
            yield child


def _is_agent(node: Any) -> bool:
    return any(kind.__name__ == "BaseAgent" and _of_framework(kind) for kind in type(node).__mro__)


def _runs_itself(kind: type) -> bool:
    """Whether a user's agent class brings its own way of running."""
    return any(
        "_run_async_impl" in vars(base) or "_run_impl" in vars(base) or "run_async" in vars(base)
        for base in kind.__mro__
        if not _of_framework(base)
    )


def _of_framework(kind: type) -> bool:
    return kind.__module__.startswith(("google.adk.", "pydantic", "builtins", "abc"))


def _lies_in(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder)


def _place(thing: Any, folder: Path) -> str:
    """`file:line` of a function or class, relative to the candidate's folder."""
    try:
        thing = inspect.unwrap(thing)
        file = Path(inspect.getsourcefile(thing) or "").resolve()
        line = inspect.getsourcelines(thing)[1]
    except (OSError, TypeError):
        return getattr(thing, "__qualname__", type(thing).__name__)
    return f"{file.relative_to(folder) if _lies_in(file, folder) else file.name}:{line}"
