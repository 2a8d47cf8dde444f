"""What stands behind the names in a candidate's code, with nothing of it run.

Members of modules, classes and objects as they are held, never a property's value.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
from collections.abc import Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple


def plain(thing: Any) -> FunctionType | None:
    """The Python function behind wrappers, partials, methods and callable objects, if any."""
    for _ in range(10):
        if isinstance(thing, functools.partial):
            thing = thing.func
        elif isinstance(thing, MethodType | staticmethod | classmethod):
            thing = thing.__func__
        elif isinstance(thing, FunctionType):
            inner = inspect.unwrap(thing)
            return inner if isinstance(inner, FunctionType) else thing
        elif isinstance(thing, type) or not callable(thing):
            return None
        else:
            thing = inspect.getattr_static(type(thing), "__call__", None)
    return None


def is_effect(thing: Any) -> bool:
    """Is it a function that `@effect` stands before, and so is met wherever it is called?"""
    return isinstance(thing, FunctionType) and vars(thing).get("__backstop_effect__") is True


def names_of(function: FunctionType) -> dict[str, Any]:
    """The names that a function sees: its module's, and those around it."""
    names = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            names[name] = cell.cell_contents
        except ValueError:
            continue  # not yet filled
    return names


def resolve(node: ast.expr, names: Mapping[str, Any]) -> tuple[str, Any]:
    """The dotted name of an expression, and what stands behind it, as far as that is known."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return f".{parts[-1]}" if parts else "", None
    if node.id in names:
        return _walk(names[node.id], parts)
    if hasattr(builtins, node.id):
        return ".".join(["builtins", node.id, *parts]), None
    return f".{[node.id, *parts][-1]}", None


class Imported(NamedTuple):
    """What a function imports itself, known by its name only."""

    dotted: str


_MISSING: Final = object()
_BUILT_IN: Final = {"nt": "os", "posix": "os"}


def _walk(thing: Any, parts: list[str]) -> tuple[str, Any]:
    for at, part in enumerate(parts):
        below = _member(thing, part)
        if isinstance(below, staticmethod | classmethod):
            below = below.__func__
        if below is _MISSING or isinstance(below, property | functools.cached_property):
            return ".".join([_name(thing), *parts[at:]]), None
        thing = below
    return _name(thing), thing


def _member(thing: Any, part: str) -> Any:
    """A member by its name, with nothing run."""
    if isinstance(thing, Imported):
        return _MISSING
    if isinstance(thing, ModuleType):
        return vars(thing).get(part, _MISSING)
    if isinstance(thing, type):
        return inspect.getattr_static(thing, part, _MISSING)
    held = getattr(thing, "__dict__", None)
    if isinstance(held, dict) and part in held:
        return held[part]
    return inspect.getattr_static(type(thing), part, _MISSING)


def _name(thing: Any) -> str:
    if isinstance(thing, Imported):
        return thing.dotted
    if isinstance(thing, ModuleType):
        return thing.__name__
    named = isinstance(thing, type | FunctionType | MethodType) or inspect.isbuiltin(thing)
    held = thing if named else type(thing)
    module = str(getattr(held, "__module__", None) or "builtins")
    return f"{_BUILT_IN.get(module, module.lstrip('_'))}.{getattr(held, '__qualname__', '')}"


def imported(node: ast.AST) -> dict[str, Imported]:
    """The names that a function imports itself."""
    found: dict[str, Imported] = {}
    for one in ast.walk(node):
        if isinstance(one, ast.Import):
            for alias in one.names:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                found[alias.asname or name] = Imported(name)
        elif isinstance(one, ast.ImportFrom) and not one.level:
            for alias in one.names:
                found[alias.asname or alias.name] = Imported(f"{one.module}.{alias.name}")
    return found
