"""The names of one function: which are its own, and what they hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from backstop.adapters.discovery.sources import Function

_SESSION: Final = frozenset({"tool_context", "callback_context", "context", "ctx"})
_SESSION_TYPES: Final = frozenset(
    {"ToolContext", "CallbackContext", "Context", "InvocationContext", "ReadonlyContext"}
)
_MAKERS: Final = frozenset(
    {"dict", "list", "set", "str", "sorted", "tuple", "deepcopy", "copy", "loads", "json"}
    | {"model_dump", "to_dict", "defaultdict", "Counter", "deque", "OrderedDict", "StringIO"}
)
"""Calls whose result is nobody else's."""

_DEEPLY: Final = frozenset({"deepcopy", "loads", "json", "model_dump", "to_dict"})
"""Those of which nothing inside is anybody else's either."""

_OUT_OF: Final = frozenset({"get", "setdefault"})
"""What takes a thing out of the session's state and leaves it there."""


class Names:
    """The names of one function, and what each is given in it."""

    def __init__(self, function: Function) -> None:
        args = function.args
        every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
        self._params = {arg.arg for arg in every if arg is not None}
        self._sessions = set(_SESSION)
        for arg in every:
            if arg is not None and arg.annotation is not None:
                told = _is_session_type(arg.annotation)
                (self._sessions.add if told else self._sessions.discard)(arg.arg)
        self._values: dict[str, list[ast.expr | None]] = {}
        self._caught: set[str] = set()
        if function.name in {"__init__", "__post_init__"} and args.args:
            # What it fills is being made: nobody else has it yet.
            self._values[args.args[0].arg] = [ast.Dict(keys=[], values=[])]
            self._params.discard(args.args[0].arg)
        for node in inside(function):
            self._bind(node)

    def _bind(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._note(target, value)
            case ast.AnnAssign(target=target, value=value):
                self._note(target, value)
            case ast.NamedExpr(target=target, value=value):
                self._note(target, value)
            case ast.AugAssign(target=target, op=op, value=value):
                self._note(target, ast.BinOp(left=target, op=op, right=value))
            case (
                ast.For(target=target)
                | ast.AsyncFor(target=target)
                | ast.comprehension(target=target)
            ):
                self._note(target, None)
            case ast.withitem(optional_vars=ast.expr() as target):
                self._note(target, None)
            case ast.ExceptHandler(name=str() as name):
                self._values.setdefault(name, []).append(None)
                self._caught.add(name)
            case ast.arg(arg=name):
                self._params.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self._values.setdefault(name, []).append(None)
            case _:
                pass

    def _note(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self._values.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Tuple | ast.List):
            for inner in target.elts:
                self._note(inner, None)
        elif isinstance(target, ast.Starred):
            self._note(target.value, None)

    def is_local(self, name: str) -> bool:
        """Does the function give this name a value?"""
        return name in self._params or name in self._values

    def is_param(self, name: str) -> bool:
        """Is it handed in, so that it may be anything?"""
        return name in self._params

    def given(self, name: str) -> list[ast.expr]:
        """All that the function gives a name; empty where it is handed in, or nobody can tell."""
        values = [] if name in self._params else self._values.get(name, [])
        known = [value for value in values if value is not None]
        return known if len(known) == len(values) else []

    def is_caught(self, node: ast.expr) -> bool:
        """Is `node` an exception that was caught, and never anything else?"""
        return (
            isinstance(node, ast.Name)
            and node.id in self._caught
            and node.id not in self._params
            and self._values[node.id] == [None] * len(self._values[node.id])
        )

    def made_by(self, node: ast.expr) -> list[ast.expr]:
        """What was called to make `node`, each time that it gets a value; empty if unknown."""
        if isinstance(node, ast.Call):
            return [node.func]
        if not isinstance(node, ast.Name) or node.id in self._params:
            return []
        values = self._values.get(node.id, [])
        calls = [value.func for value in values if isinstance(value, ast.Call)]
        return calls if len(calls) == len(values) else []

    def is_own(self, node: ast.expr) -> bool:
        """Was `node` made in this call, with all that holds it, or is it the session's state?"""
        if self._is_session(node, frozenset()):
            return True
        deep = False
        while isinstance(node, ast.Attribute | ast.Subscript):
            node, deep = node.value, True
        if not isinstance(node, ast.Name):
            return _is_made(node, deep=deep)
        values = self._values.get(node.id, [])
        made = [
            _is_made(value, deep=deep) or self._is_session(value, frozenset({node.id}))
            for value in values
        ]
        return node.id not in self._params and bool(made) and all(made)

    def _is_session(self, node: ast.expr | None, asked: frozenset[str]) -> bool:
        """Is `node` the session's state, or something in it, by whatever name?"""
        match node:
            case ast.Attribute(attr="state"):
                return root(node) in self._sessions
            case ast.Subscript(value=inner) | ast.Attribute(value=inner):
                return self._is_session(inner, asked)
            case ast.Call(func=ast.Attribute(attr=name, value=inner), args=[_, *rest]):
                # What is put in where nothing was is in the state from then on, or nobody's.
                known = all(_is_made(one, deep=False) for one in rest)
                return name in _OUT_OF and known and self._is_session(inner, asked)
            case ast.BoolOp(op=ast.Or(), values=[first, *rest]):
                return self._is_session(first, asked) and all(
                    _is_made(one, deep=False) for one in rest
                )
            case ast.Name(id=name) if name not in asked and name not in self._params:
                values = self._values.get(name, [])
                return bool(values) and all(
                    self._is_session(value, asked | {name}) for value in values
                )
            case _:
                return False


def _is_session_type(annotation: ast.expr | None) -> bool:
    """Does an annotation say that an argument is the framework's context?"""
    match annotation:
        case ast.Constant(value=str() as text):
            return text.rpartition(".")[2] in _SESSION_TYPES
        case ast.Name() | ast.Attribute():
            return last(annotation) in _SESSION_TYPES
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return _is_session_type(left) or _is_session_type(right)
        case ast.Subscript(value=ast.Name(id="Optional"), slice=inner):
            return _is_session_type(inner)
        case _:
            return False


def _is_made(value: ast.expr | None, *, deep: bool) -> bool:
    """Is a value made anew; if `deep`, with everything in it?"""
    match value:
        case ast.Call(func=func):
            return last(func) in (_DEEPLY if deep else _MAKERS)
        case ast.Constant() | ast.JoinedStr():
            return True
        case ast.Dict(values=inner) | ast.List(elts=inner) | ast.Set(elts=inner):
            return not deep or all(_is_made(one, deep=True) for one in inner)
        case ast.DictComp() | ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.BinOp():
            return not deep
        case _:
            return False


def inside(function: Function) -> Iterator[ast.AST]:
    """What runs when the function is called: not its decorators, defaults and annotations."""
    for statement in function.body:
        yield from ast.walk(statement)


def last(node: ast.expr) -> str:
    """The name of a function or a class without what stands before it; empty if it has none."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def root(node: ast.expr) -> str:
    """The name that a dotted or subscripted expression begins with; empty if it has none."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
