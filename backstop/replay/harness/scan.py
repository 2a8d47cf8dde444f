"""Ways past interception that lie in the candidate's code, whoever calls it.

A function that only tools' bodies lead to is part of those bodies: no replay runs it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from types import FunctionType
from typing import Any, Final

from ...adk.escapes import Way
from .names import is_effect
from .outward import is_outward, is_service
from .source import Call, Function, Sources
from .survey import Found
from .syntax import is_by_hand

_RUNNERS: Final = ("google.adk.runners.Runner", "google.adk.runners.InMemoryRunner")
_QUEUE: Final = "google.adk.agents.live_request_queue.LiveRequestQueue"
_TASKS: Final = frozenset({"create_task", "ensure_future", "run_coroutine_threadsafe"})
_THREADS: Final = ("threading.Thread", "threading.Timer", "multiprocessing.")
_BACKGROUND: Final = frozenset({"add_task", "run_in_executor", "submit"})


class Scan:
    """Looks at every function of the candidate's modules, and at what they do on import.

    `bodies` are the functions of tools, `watched` what runs in a replay behind the walls.
    """

    def __init__(self, sources: Sources, *, bodies: Sequence[Any], watched: Sequence[Any]) -> None:
        self._sources = sources
        self._bodies = {
            function.key: function
            for body in bodies
            if (function := sources.function(body)) is not None
        }
        inside = {function.key for function, _ in sources.followed(*bodies)}
        live = {function.key for function, _ in sources.followed(*watched)}
        self._inside = inside - (live - self._bodies.keys())

    def all(self) -> Iterator[Found]:
        """What is to be told, module by module."""
        for file in sorted(self._sources.modules):
            yield from self._on_import(file)
            by_hand = _by_hand(self._sources.tree(file))
            for function in self._sources.functions(file):
                if function.name.partition(".")[0] in by_hand or _is_effect(function):
                    continue
                calls = list(self._sources.calls(function))
                yield from self._function(function, calls)

    def _on_import(self, file: str) -> Iterator[Found]:
        calls = list(self._sources.module_calls(file))
        for call in calls:
            made = isinstance(call.target, type) and not call.dotted.startswith(_ACTING)
            if not made and reaches_out(call, self._sources):
                detail = f"calls {call.shown} on import"
                yield located(Way.IMPORT_TIME, _stem(file), detail, call, self._sources)
        targets = [call.target for call in calls if isinstance(call.target, FunctionType)]
        for _, inner in self._sources.followed(*targets):
            for call in inner:
                if reaches_out(call, self._sources):
                    detail = f"calls {call.shown} on import"
                    yield located(Way.IMPORT_TIME, _stem(file), detail, call, self._sources)

    def _function(self, function: Function, calls: Sequence[Call]) -> Iterator[Found]:
        body = function.key in self._inside
        for call in calls:
            for way, detail in self._said(function, call, body=body):
                yield located(way, function.name, detail, call, self._sources, body=body)

    def _said(self, function: Function, call: Call, *, body: bool) -> Iterator[tuple[Way, str]]:
        name = call.dotted
        if name.startswith(_RUNNERS) and name.rpartition(".")[2] in {"Runner", "InMemoryRunner"}:
            yield Way.OWN_RUNNER, f"makes a {call.shown}"
        if name.endswith(".run_live") or name == _QUEUE:
            yield Way.LIVE_MODE, f"calls {call.shown}"
        if is_service(name) and not body:  # what a tool keeps is the tool's own effect
            yield Way.SERVICE, f"calls {call.shown}"
        if _is_left_behind(function, call):
            yield Way.BACKGROUND_TASK, f"starts {call.shown} and does not wait for it"
        if body and (other := self._tool_called(function, call)):
            yield Way.TOOL_TO_TOOL, f"calls the tool {other} by itself"

    def _tool_called(self, function: Function, call: Call) -> str:
        target = call.target
        if isinstance(target, FunctionType) and not is_effect(target):
            other = self._sources.function(target)
            if other is not None and other.key in self._bodies and other.key != function.key:
                return other.name
        if call.dotted.startswith("google.adk.tools.") and call.dotted.endswith(".run_async"):
            return call.shown.removesuffix(".run_async")
        return ""


def reaches_out(call: Call, sources: Sources) -> bool:
    """Whether a call leaves the process, as far as its name tells."""
    if sources.is_own_name(call.dotted):
        return False
    return is_outward(call.dotted)


def located(
    way: Way, where: str, detail: str, call: Call, sources: Sources, *, body: bool = False
) -> Found:
    """What is told of a place in the candidate's code."""
    return {
        **told(way, where, detail),
        "at": sources.at(call.file, call.line),
        "block": sources.block(call.file, call.line),
        "body": body,
    }


def told(way: Way, where: str, detail: str) -> Found:
    """What is told of a way that lies in no place of the candidate's code."""
    return {"kind": way.value, "where": where, "detail": detail, "at": ""}


_ACTING: Final = ("subprocess.", "socket.", "smtplib.", "threading.", "multiprocessing.")
"""Classes that reach out as soon as there is an instance; clients of others when they are used."""


def _stem(file: str) -> str:
    name = file.rpartition("/")[2].removesuffix(".py")
    return file.split("/")[-2] if name == "__init__" else name


def _is_effect(function: Function) -> bool:
    return is_effect(function.names.get(function.name))


def _by_hand(tree: ast.Module | None) -> frozenset[str]:
    """Functions that nobody calls but a module that is started by hand."""
    if tree is None:
        return frozenset()
    hand = [node for node in tree.body if isinstance(node, ast.If) and is_by_hand(node)]
    named = {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    found: set[str] = set()
    while True:
        starting = [*hand, *(named[name] for name in found)]
        started = {name for node in starting for name in _loaded(node)}
        elsewhere = {
            name
            for node in tree.body
            if node not in starting
            for name in _loaded(node) - {getattr(node, "name", "")}
        }
        more = (started & named.keys()) - elsewhere - found
        if not more:
            return frozenset(found)
        found |= more


def _loaded(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _is_left_behind(function: Function, call: Call) -> bool:
    """Whether a call starts what goes on when the function has returned."""
    name = call.dotted.rpartition(".")[2]
    is_task = name in _TASKS and not _is_grouped(function, call)
    is_thread = call.dotted.startswith(_THREADS)
    is_handed = name in _BACKGROUND and call.target is None and _is_background(call)
    if not (is_task or is_thread or is_handed):
        return False
    kept = _kept_as(function.node, call.node)
    return kept is not None and not any(
        kept & _loaded(node) for node in ast.walk(function.node) if _waits(node)
    )


def _is_background(call: Call) -> bool:
    text = ast.unparse(call.node.func).lower()
    return any(word in text for word in ("executor", "pool", "background", "loop"))


def _is_grouped(function: Function, call: Call) -> bool:
    """Whether a task belongs to a group that is waited for at its end."""
    group = call.node.func
    if not isinstance(group, ast.Attribute) or not isinstance(group.value, ast.Name):
        return False
    return any(
        isinstance(item.optional_vars, ast.Name) and item.optional_vars.id == group.value.id
        for node in ast.walk(function.node)
        if isinstance(node, ast.With | ast.AsyncWith)
        for item in node.items
    )


def _kept_as(root: ast.AST, call: ast.Call) -> set[str] | None:
    """The names that a call's value is kept by; None if the statement itself waits or returns."""
    statements = [
        node
        for node in ast.walk(root)
        if isinstance(node, ast.stmt)
        and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and any(one is call for one in ast.walk(node))
    ]
    if not statements:
        return None
    statement = min(statements, key=lambda node: (node.end_lineno or 0) - node.lineno)
    if any(_waits(node) and _holds(node, call) for node in ast.walk(statement)):
        return None
    match statement:
        case ast.Return():
            return None
        case ast.Assign(targets=targets):
            return {name for target in targets for name in _loaded(target)}
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute))):
            return {name} if attribute in {"append", "add", "extend"} else set()
        case _:
            return set()


def _holds(node: ast.AST, call: ast.Call) -> bool:
    return any(one is call for one in ast.walk(node))


def _waits(node: ast.AST) -> bool:
    """Whether a node waits for what it names: an `await`, a `join`, a `result`, a `return`."""
    if isinstance(node, ast.Await | ast.Return | ast.Yield):
        return True
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"join", "result", "as_completed"}
    ) or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and "wait" in node.func.id)
