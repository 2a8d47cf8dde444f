"""Syntax trees of a candidate's modules: functions, and what runs on import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

Node: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def writes(node: ast.Call) -> bool:
    """Whether a call of `open` says that it writes."""
    modes = [node.args[1]] if len(node.args) > 1 else []
    modes += [one.value for one in node.keywords if one.arg == "mode"]
    said = [one.value for one in modes if isinstance(one, ast.Constant)]
    return any(isinstance(mode, str) and set(mode) & set("wax+") for mode in said)


def named(node: ast.AST, outer: str) -> Iterator[tuple[str, Node]]:
    """Every function below a node, with its qualified name."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield f"{outer}{name}", child
                yield from named(child, f"{outer}{name}.<locals>.")
            case ast.Lambda():
                yield f"{outer}<lambda>", child
                yield from named(child, f"{outer}<lambda>.<locals>.")
            case ast.ClassDef(name=name):
                yield from named(child, f"{outer}{name}.")
            case _:
                yield from named(child, outer)


def first_line(node: Node) -> int:
    """The line that the function's code object begins at."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


def run_on_import(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The statements and expressions that run on import."""
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from statement.decorator_list
            case ast.ClassDef():
                yield from statement.decorator_list
                yield from run_on_import(statement.body)
            case ast.If() if is_by_hand(statement):
                yield from run_on_import(statement.orelse)
            case ast.If() | ast.Try() | ast.With() | ast.For() | ast.While():
                yield from _parts(statement)
            case _:
                yield statement


def _parts(statement: ast.stmt) -> Iterator[ast.AST]:
    for field in ("test", "iter"):
        if (part := getattr(statement, field, None)) is not None:
            yield part
    yield from (item.context_expr for item in getattr(statement, "items", ()))
    for field in ("body", "orelse", "finalbody"):
        yield from run_on_import(getattr(statement, field, []))
    for handler in getattr(statement, "handlers", ()):
        yield from run_on_import(handler.body)


def is_by_hand(node: ast.If) -> bool:
    """Whether this is for type checkers, or for a module that is started by hand."""
    test = ast.unparse(node.test)
    return test in {"TYPE_CHECKING", "typing.TYPE_CHECKING"} or "__name__" in test


def parameters(node: Node) -> set[str]:
    """The names of a function's parameters: what they hold nobody knows from the code."""
    given = node.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    named += [one for one in (given.vararg, given.kwarg) if one is not None]
    return {one.arg for one in named}


def calls_of(root: ast.AST, *, now: bool = False) -> Iterator[ast.Call]:
    """The calls below a node; those that happen `now` are not in a lambda."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call):
            yield node
        if not (now and isinstance(node, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)
