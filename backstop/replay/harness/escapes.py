"""The ways past interception that an agent has: by its objects, and by its code.

What lies in objects (a toolset, an executor) is told as it is. What lies in code is told with
the place that reaches outside, and as `quiet` where nothing was seen that does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, Final

from ...adk.code import body_of
from ...adk.escapes import Way
from .names import plain
from .outward import is_model, is_outward
from .scan import Scan, located, reaches_out, told
from .source import Sources
from .survey import Found, Survey, is_agent, of_framework

_SERVER_SIDE: Final = frozenset(
    {
        "EnterpriseWebSearchTool",
        "GoogleMapsGroundingTool",
        "GoogleSearchTool",
        "UrlContextTool",
        "VertexAiRagRetrieval",
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
_INSTRUCTIONS: Final = ("instruction", "global_instruction")
_RUNS: Final = ("_run_async_impl", "_run_live_impl", "_run_impl", "run_async")
_LIVE_MODEL: Final = re.compile(r"(?:^|[-/])live(?:[-.]|$)|native-audio")
_PLACES: Final = 3
"""So many places of one callback are told; who reads the first looks at the others."""

_NETWORKED: Final = frozenset({"BigQueryAgentAnalyticsPlugin", "ModelArmorPlugin"})


def escapes(seen: Survey, app: Any, *, before: Collection[str] | None = None) -> list[Found]:
    """What is to be told of the ways past interception, each place once.

    `before` are the names of modules that were loaded without the candidate; None looks at its
    folder alone.
    """
    sources = Sources(seen.folder, before=before)
    once: dict[tuple[object, ...], Found] = {}
    for found in _Finder(seen, app, sources).all():
        key = (found["kind"], found["at"] or (found["where"], found["detail"]))
        once.setdefault(key, found)
    return list(once.values())


class _Finder:
    def __init__(self, seen: Survey, app: Any, sources: Sources) -> None:
        self._seen = seen
        self._app = app
        self._sources = sources
        self._watched: list[Any] = []

    def all(self) -> Iterator[Found]:
        """What lies in objects and in what they call, then what the rest of the code holds."""
        for node in self._seen.nodes:
            yield from self._node(node, getattr(node, "name", type(node).__name__))
        for tool, agent in self._seen.held:
            yield from self._tool(tool, agent)
        for plugin in self._seen.plugins:
            yield from self._plugin(plugin)
        if getattr(self._app, "events_compaction_config", None) is not None:
            detail = "events_compaction_config has a model sum the session up"
            yield told(Way.DIRECT_MODEL, self._app.name, detail)
        bodies = [body for tool, _ in self._seen.held if (body := _body(tool)) is not None]
        yield from Scan(self._sources, bodies=bodies, watched=self._watched).all()

    def _node(self, node: Any, name: str) -> Iterator[Found]:
        kind = type(node)
        if (function := getattr(node, "_func", None)) is not None:
            yield from self._code(Way.FUNCTION_NODE, name, "", function)
        if own := sorted(_kinds(node) & _OWN_LOOP):
            yield told(Way.OWN_LOOP, name, own[0])
        elif is_agent(node) and not of_framework(kind) and _runs_itself(kind):
            yield from self._code(Way.CUSTOM_AGENT, name, kind.__name__, node, shown=kind)
        if (executor := getattr(node, "code_executor", None)) is not None:
            yield told(Way.CODE_EXECUTOR, name, type(executor).__name__)
        model = getattr(node, "model", None)
        if _LIVE_MODEL.search(str(getattr(model, "model", model) or "")):
            yield told(Way.LIVE_MODE, name, "its model is one for live mode")
        for field in _CALLBACKS:
            for function in _listed(getattr(node, field, None)):
                yield from self._code(Way.CALLBACK, name, field, function)
        planner = getattr(node, "planner", None)
        if planner is not None and not of_framework(type(planner)):
            yield from self._code(Way.CALLBACK, name, "planner", planner)
        for field in _INSTRUCTIONS:
            if callable(provider := getattr(node, field, None)):
                yield from self._code(Way.INSTRUCTION_PROVIDER, name, field, provider)

    def _tool(self, tool: Any, agent: str) -> Iterator[Found]:
        from google.adk.tools.base_tool import BaseTool

        kind, kinds = type(tool), _kinds(tool)
        name = str(getattr(tool, "name", None) or getattr(tool, "__name__", kind.__name__))
        if kinds & _SERVER_SIDE or kind.__module__.startswith("google.genai."):
            yield told(Way.SERVER_SIDE_TOOL, agent, name)
        elif "RemoteMcpServer" in kinds:
            yield told(Way.REMOTE_MCP, agent, name)
        elif not isinstance(tool, BaseTool) and not callable(tool):
            yield told(Way.TOOLSET, agent, kind.__name__)
        if getattr(tool, "include_plugins", True) is False:
            yield told(Way.INCLUDE_PLUGINS, agent, f"by the tool {name}")
        if isinstance(tool, BaseTool) and not of_framework(kind):
            hook = kind.process_llm_request
            if not hook.__module__.startswith("google.adk."):
                yield from self._code(Way.CALLBACK, agent, f"process_llm_request of {name}", hook)
        confirm = getattr(tool, "_require_confirmation", None)
        if callable(confirm):
            yield from self._code(Way.CALLBACK, agent, f"require_confirmation of {name}", confirm)

    def _plugin(self, plugin: Any) -> Iterator[Found]:
        if known := sorted(_kinds(plugin) & _NETWORKED):
            yield told(Way.NETWORKED_PLUGIN, plugin.name, f"{known[0]} needs the network")
        elif not of_framework(type(plugin)):
            kind = type(plugin)
            yield from self._code(
                Way.NETWORKED_PLUGIN, plugin.name, kind.__name__, plugin, shown=kind
            )

    def _code(
        self, way: Way, where: str, what: str, root: Any, *, shown: Any = None
    ) -> Iterator[Found]:
        """The places at which `root` reaches outside, or itself, quiet, where none is seen."""
        self._watched.append(root)
        outward = [
            call
            for _, calls in self._sources.followed(root)
            for call in calls
            if reaches_out(call, self._sources)
        ]
        for call in sorted(outward, key=lambda one: (one.file, one.line))[:_PLACES]:
            is_asking = is_model(call.dotted)
            detail = " ".join(filter(None, (what, f"calls {call.shown}")))
            yield located(
                Way.DIRECT_MODEL if is_asking else way, where, detail, call, self._sources
            )
        function = plain(root)
        if not outward and function is not None and not self._is_known(function):
            # Of a library's code nobody here knows what it does.
            yield told(
                way, where, f"{what} is {function.__module__}.{function.__qualname__}".strip()
            )
        elif not outward:
            yield {**told(way, where, what), "quiet": True, "at": self._place(shown or root)}

    def _is_known(self, function: Any) -> bool:
        module = function.__module__ or ""
        own = self._sources.function(function) is not None
        return own or not is_outward(f"{module}.{function.__qualname__}")

    def _place(self, thing: Any) -> str:
        if isinstance(thing, type):
            found = self._sources.class_at(thing)
            return "" if found is None else self._sources.at(*found)
        function = self._sources.function(thing)
        return "" if function is None else self._sources.at(function.file, function.node.lineno)


def _kinds(thing: Any) -> frozenset[str]:
    """The names of the framework's classes that a thing is made from."""
    return frozenset(
        kind.__name__ for kind in type(thing).__mro__ if kind.__module__.startswith("google.adk.")
    )


def _listed(value: Any) -> list[Any]:
    found = value if isinstance(value, list) else [value]
    return [one for one in found if one is not None]


def _runs_itself(kind: type) -> bool:
    """Whether a user's agent class brings its own way of running."""
    return any(
        name in vars(base) for base in kind.__mro__ if not of_framework(base) for name in _RUNS
    )


def _body(tool: Any) -> Any:
    from google.adk.tools.base_tool import BaseTool

    if isinstance(tool, BaseTool):
        return body_of(tool)
    return tool if callable(tool) else None
