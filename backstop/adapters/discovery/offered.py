"""Which tools an agent's code hands to agents, as far as that can be read without running it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from backstop.adapters.discovery.sources import Defined, Function, Module, Sources, nearest
from backstop.adapters.discovery.walking import text_of

_DEEP: Final = 8
_WRAPPERS: Final = frozenset(
    {"FunctionTool", "LongRunningFunctionTool", "AuthenticatedFunctionTool", "list", "tuple"}
)
_CONTAINERS: Final = frozenset(
    {"Agent", "LlmAgent", "LoopAgent", "ParallelAgent", "SequentialAgent", "Workflow"}
)
"""What is handed over as it is, and contains agents: their own tools are found where those are."""

_MODELS: Final = frozenset(
    {"GenerateContentConfig", "GenerateContentConfigDict", "GenerativeModel", "LiveConnectConfig"}
)
"""Makers of requests to a model that is no agent's: what they call tools is not an agent's."""

_FRAMEWORKS: Final = {
    "EnterpriseWebSearchTool": "enterprise_web_search",
    "GoogleSearchTool": "google_search",
    "LoadArtifactsTool": "load_artifacts",
    "LoadMemoryTool": "load_memory",
    "PreloadMemoryTool": "preload_memory",
    "UrlContextTool": "url_context",
}
"""Classes of the framework's own tools, and what an instance of each is called."""

_TYPES: Final = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
_SESSION: Final = frozenset({"ToolContext", "Context", "CallbackContext", "InvocationContext"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A tool that code names: its function where that is the agent's own, and its place.

    `origin` is the dotted name that it is imported by, if it is; `parameters` are schemas by
    name, as far as annotations tell, and None where the function is not there to read.
    """

    name: str
    at: str
    function: Defined | None = None
    origin: str = ""
    parameters: Mapping[str, Any] | None = None
    described: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What code tells of tools. `unlisted` are sets of tools that only a run can list."""

    tools: tuple[Offered, ...] = ()
    unlisted: tuple[str, ...] = ()


def read_tools(folder: Path, sources: Sources) -> Read:
    """The tools that the code below `folder` hands to agents, in its order, each once."""
    reading = _Reading(sources)
    for module in sources.modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call):
                reading.call(node, module)
    for file in sorted(folder.rglob("*.yaml")):
        reading.yaml(file, file.relative_to(folder).as_posix())
    return Read(tools=tuple(reading.tools.values()), unlisted=tuple(reading.unlisted))


class _Reading:
    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self.tools: dict[str, Offered] = {}
        self.unlisted: dict[str, None] = {}

    def call(self, call: ast.Call, module: Module) -> None:
        """An agent that is made with tools."""
        is_request = _last(call.func) in _MODELS
        for key in call.keywords:
            if key.arg == "tools" and not is_request:
                self._value(key.value, module, 0)
            elif key.arg == "tool" and _last(call.func) in {"ToolNode", "node"}:
                self._one(key.value, module, 0)
        if _last(call.func) == "run_node" and call.args:
            self._ran(call.args[0], module)

    def _ran(self, given: ast.expr, module: Module) -> None:
        """A tool that code runs by itself; anything else that is run so is a node."""
        if isinstance(given, ast.Call) and _last(given.func) in _WRAPPERS:
            self._one(given, module, 0)

    def _value(self, value: ast.expr, module: Module, depth: int) -> None:
        """Something that is or makes a list of tools."""
        if depth > _DEEP:
            return
        match value:
            case ast.List(elts=inner) | ast.Tuple(elts=inner):
                for one in inner:
                    self._one(one, module, depth + 1)
            case ast.BinOp(left=left, right=right):
                self._value(left, module, depth + 1)
                self._value(right, module, depth + 1)
            case ast.IfExp(body=one, orelse=other):
                self._value(one, module, depth + 1)
                self._value(other, module, depth + 1)
            case ast.Name() | ast.Attribute() if found := self._given(value, module):
                self._value(found[1], found[0], depth + 1)
            case ast.Call(func=ast.Name(id="map"), args=[made_by, inner]) if _is_wrapper(made_by):
                self._value(inner, module, depth + 1)
            case ast.Call(func=func, args=[_, inner]) if _last(func) == "cast":
                self._value(inner, module, depth + 1)
            case ast.Constant():
                pass
            case _:
                self._untold(value, module)

    def _one(self, value: ast.expr, module: Module, depth: int) -> None:
        """One member of a list of tools."""
        if depth > _DEEP:
            return
        match value:
            case ast.Starred(value=inner):
                self._value(inner, module, depth + 1)
            case ast.IfExp(body=one, orelse=other):
                self._one(one, module, depth + 1)
                self._one(other, module, depth + 1)
            case ast.Call():
                self._made(value, module, depth)
            case ast.Name(id=name):
                self._named(name, value, module, depth)
            case ast.Attribute(attr=name):
                self._member(name, value, module, depth)
            case _:
                self._untold(value, module)

    def _made(self, call: ast.Call, module: Module, depth: int) -> None:
        """One member of a list of tools that is made where it is handed over."""
        kind = _last(call.func)
        if kind in _WRAPPERS:
            inner = call.args[0] if call.args else _keyword(call, "func")
            if inner is not None:
                self._one(inner, module, depth + 1)
        elif kind.endswith("AgentTool") or kind in _CONTAINERS:
            pass  # it contains an agent, whose own tools are found where that is made
        elif kind == "cast" and len(call.args) > 1:
            self._one(call.args[1], module, depth + 1)
        elif isinstance(call.func, ast.Name) and kind == "map":
            self._value(call, module, depth + 1)
        elif _is_frameworks(call.func, module):
            self._add(_FRAMEWORKS[kind], None, call.func, module)
        elif name := _literal(_keyword(call, "name")):
            self._add(name, None, call, module)
        else:
            self._untold(call, module)

    def _member(self, name: str, value: ast.expr, module: Module, depth: int) -> None:
        function = self._sources.only(name)
        given = None if function is not None else self._given(value, module)
        if given is not None:
            self._one(given[1], given[0], depth + 1)
        else:
            self._add(name, function, value, module)

    def _named(self, name: str, value: ast.expr, module: Module, depth: int) -> None:
        original = module.imports.get(name, name).rpartition(".")[2]
        found = self._sources.functions.get(original, ())
        own = [one for one in found if "." not in one.qualified]
        if own:
            self._add(original, nearest(own, module), value, module)
        elif (given := self._given(value, module)) is not None:
            self._one(given[1], given[0], depth + 1)
        elif name in module.imports:
            self._add(original, None, value, module)
        else:
            self._untold(value, module)

    def _given(self, value: ast.expr, module: Module) -> tuple[Module, ast.expr] | None:
        """What a name, or a name of another module, stands for; of several in one file the last."""
        match value:
            case ast.Name(id=name):
                found = self._sources.assigned(name, module)
                if found is None and name not in module.imports:
                    return _in_a_function(name, module)
                return found
            case ast.Attribute(attr=name):
                return self._sources.member(_root(value), name, module)
            case _:
                return None

    def _add(self, name: str, function: Defined | None, value: ast.expr, module: Module) -> None:
        origin = module.imports.get(_root(value), "")
        self._keep(name, function, f"{module.path}:{value.lineno}", origin)

    def _keep(self, name: str, function: Defined | None, at: str, origin: str) -> None:
        if origin.startswith("google.adk."):
            name = name.removesuffix("_tool")  # what the framework's own instances are called
        if name in self.tools:
            return
        self.tools[name] = Offered(
            name=name,
            at=at,
            function=function,
            origin=origin,
            parameters=None if function is None else parameters_of(function.node),
            described="" if function is None else function.described,
        )

    def _untold(self, value: ast.expr, module: Module) -> None:
        text = " ".join(ast.unparse(value).split())
        name = _last(value.func) if isinstance(value, ast.Call) else text
        self.unlisted[f"{name or text} at {module.path}:{value.lineno}"] = None

    def yaml(self, file: Path, path: str) -> None:
        """The tools that an agent's YAML names."""
        if (text := text_of(file)) is None or "agent_class" not in text:
            return
        try:
            told = yaml.safe_load(text)
        except (yaml.YAMLError, RecursionError, ValueError):
            return
        given = told.get("tools") if isinstance(told, dict) else None
        for one in given if isinstance(given, list) else ():
            name = one.get("name") if isinstance(one, dict) else None
            if isinstance(name, str) and name:
                last = name.rpartition(".")[2]
                origin = name if "." in name else f"google.adk.tools.{name}"
                self._keep(last, self._sources.only(last), path, origin)


def parameters_of(function: Function) -> dict[str, Any]:
    """Schemas of a function's parameters by name, without what the framework hands in.

    One that may be left out has a default, whatever that is.
    """
    args = function.args
    plain = [*args.posonlyargs, *args.args]
    needed = {one.arg for one in plain[: len(plain) - len(args.defaults)]}
    needed |= {
        one.arg
        for one, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
        if default is None
    }
    found: dict[str, Any] = {}
    for one in (*plain, *args.kwonlyargs):
        told = "" if one.annotation is None else ast.unparse(one.annotation).strip("'\"")
        if one.arg in {"self", "cls", "tool_context"} or told.rpartition(".")[2] in _SESSION:
            continue
        found[one.arg] = _schema(told) | ({} if one.arg in needed else {"default": None})
    return found


def _schema(annotation: str) -> dict[str, Any]:
    """What an annotation amounts to; nothing for one that is not known."""
    plain = annotation.removesuffix(" | None").removeprefix("Optional[")
    told = plain.partition("[")[0].rstrip("]").rpartition(".")[2]
    if told.lower() in {"list", "set", "tuple", "sequence"}:
        items = {"type": "string"} if "[str" in plain else {}
        return {"type": "array", "items": items}
    if told.lower() in {"dict", "mapping"}:
        return {"type": "object"}
    if told == "Decimal":
        return {"type": "number"}
    return {"type": _TYPES[told]} if told in _TYPES else {}


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((key.value for key in call.keywords if key.arg == name), None)


def _literal(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_frameworks(func: ast.expr, module: Module) -> bool:
    origin = module.imports.get(_root(func), "")
    return _last(func) in _FRAMEWORKS and origin.startswith("google.adk.")


def _in_a_function(name: str, module: Module) -> tuple[Module, ast.expr] | None:
    """What a name is given inside a function of the module."""
    found = None
    for node in ast.walk(module.tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                found = module, value
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if (
                target == name
            ):
                found = module, value
            case _:
                pass
    return found


def _is_wrapper(node: ast.expr) -> bool:
    return _last(node) in _WRAPPERS


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _last(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""
