"""What a tool's code does outside, read from its tree: it is never run.

Helpers in the agent's own folder are read too. Whatever is called and cannot be seen is told
as unknown: it may do anything.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from typing import Final

from backstop.adapters.discovery.sources import Defined, Function, Module, Sources
from backstop.adapters.discovery.vocabulary import (
    Deed,
    deed_of_method,
    deed_of_named,
    is_writing,
)
from backstop.core.proposing import Evidence

_DEEP: Final = 6
_MANY: Final = 200
_SESSION: Final = frozenset({"tool_context", "callback_context", "context", "ctx"})
_DECORATORS: Final = frozenset(
    {"cache", "cached", "lru_cache", "wraps", "staticmethod", "classmethod", "property", "override"}
)
_MAKERS: Final = frozenset(
    {"dict", "list", "set", "str", "sorted", "tuple", "deepcopy", "copy", "loads", "json"}
    | {"model_dump", "to_dict", "defaultdict", "Counter", "deque", "OrderedDict", "StringIO"}
)
"""Calls whose result is nobody else's."""

_DEEPLY: Final = frozenset({"deepcopy", "loads", "json", "model_dump", "to_dict"})
"""Those of which nothing inside is anybody else's either."""

_BASES: Final = frozenset(
    {"BaseModel", "Enum", "StrEnum", "IntEnum", "TypedDict", "NamedTuple"}
) | {name for name, kind in vars(builtins).items() if isinstance(kind, type)}
_DUNDER: Final = re.compile(r"__\w+__")
_SHOWN: Final = 60


def evidence_of(tool: Defined | None, sources: Sources) -> Evidence:
    """What the code of a tool does, as far as it can be seen."""
    if tool is None:
        return Evidence()
    reading = _Reading(sources)
    reading.function(tool, 0)
    return Evidence(
        is_whole=True,
        acts=tuple(reading.found[Deed.ACTS]),
        unknown=tuple(reading.found[Deed.UNKNOWN]),
        reads=tuple(reading.found[Deed.READS]),
    )


class _Reading:
    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._seen: set[int] = set()
        self.found: dict[Deed, list[str]] = {deed: [] for deed in Deed}

    def function(self, one: Defined, depth: int) -> None:
        """Read a function, and those that it calls."""
        if id(one.node) in self._seen:
            return
        self._seen.add(id(one.node))
        if depth > _DEEP or len(self._seen) > _MANY:
            self._tell(Deed.UNKNOWN, one, one.node, "calls on and on")
            return
        for decorator in one.node.decorator_list:
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            if _last(target) not in _DECORATORS:
                self._tell(Deed.UNKNOWN, one, decorator, f"is decorated by {_spelled(target)}")
        names = _Names(one.node)
        for node in _inside(one.node):
            self._node(node, one, names, depth)

    def _node(self, node: ast.AST, one: Defined, names: _Names, depth: int) -> None:
        match node:
            case ast.Call():
                self._call(node, one, names, depth)
            case ast.Constant(value=str() as text) if is_writing(text):
                self._tell(Deed.ACTS, one, node, "spells a statement that writes")
            case ast.Global():
                self._tell(Deed.ACTS, one, node, f"sets the module's {node.names[0]}")
            case ast.Assign(targets=targets) | ast.Delete(targets=targets):
                for target in targets:
                    self._target(target, one, names)
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                self._target(target, one, names)
            case ast.For(target=target) | ast.AsyncFor(target=target):
                self._target(target, one, names)
            case _:
                pass

    def _target(self, target: ast.expr, one: Defined, names: _Names) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            for inner in target.elts:
                self._target(inner, one, names)
        elif isinstance(target, ast.Subscript | ast.Attribute) and not names.is_own(target.value):
            what = "deletes from" if isinstance(target.ctx, ast.Del) else "writes to"
            self._tell(Deed.ACTS, one, target, f"{what} {_spelled(target.value)}")

    def _call(self, call: ast.Call, one: Defined, names: _Names, depth: int) -> None:
        for given in _handed(call):
            self._resolve(given, call, one, names, depth)
        self._resolve(call.func, call, one, names, depth)

    def _resolve(
        self, target: ast.expr, call: ast.Call, one: Defined, names: _Names, depth: int
    ) -> None:
        """Read what is called, or say what a call of that name does."""
        known = self._own_code(target, one, names)
        for inner in known:
            self.function(inner, depth + 1)
        dotted = self._dotted(target, one, names)
        if isinstance(target, ast.Lambda) or self._is_plain_class(target, names):
            deed = Deed.NOTHING
        elif dotted:
            deed = deed_of_named(dotted, call)
        elif isinstance(target, ast.Attribute):
            deed = deed_of_method(target.attr, call, fresh=names.is_own(target.value))
        else:
            deed = Deed.UNKNOWN
        if deed is Deed.UNKNOWN and known:
            return  # the name says nothing, and its code was read
        if deed is Deed.ACTS and known and dotted:
            return  # an own function of that name: its code was read
        if deed is not Deed.NOTHING:
            self._tell(deed, one, call, f"calls {_spelled(target)}")

    def _is_plain_class(self, target: ast.expr, names: _Names) -> bool:
        """Is it a class of the agent's own, of which nothing is inherited that may act?"""
        if names.is_local(_root(target)):
            return False
        found = self._sources.classes.get(_last(target), ())
        return bool(found) and all(
            _last(base) in _BASES or _last(base) in self._sources.classes
            for _, kind in found
            for base in kind.bases
        )

    def _own_code(self, target: ast.expr, one: Defined, names: _Names) -> list[Defined]:
        """The functions of the agent's own that a call may mean."""
        last = _last(target)
        functions = self._sources.functions.get(last, ())
        if isinstance(target, ast.Attribute):
            module = one.module.imports.get(_root(target), "")
            own = "." in module or any(_stem(module) == _file_stem(m) for m in self._modules)
            found = [each for each in functions if own or "." in each.qualified]
        elif names.is_param(last):
            return []
        elif source := one.module.imports.get(last, ""):
            found = list(self._sources.functions.get(_stem(source), ()))
            last = _stem(source)
        else:
            found = [each for each in functions if each.module is one.module]
        return found + list(self._made_by(last))

    @property
    def _modules(self) -> tuple[Module, ...]:
        return self._sources.modules

    def _made_by(self, name: str, depth: int = 0) -> Iterator[Defined]:
        """What may run unnamed once a class of the agent's own is called, inherited or not."""
        for module, kind in self._sources.classes.get(name, ()):
            for node in kind.body:
                if isinstance(node, Function) and _DUNDER.fullmatch(node.name):
                    yield Defined(module=module, qualified=f"{kind.name}.{node.name}", node=node)
            for base in kind.bases if depth < _DEEP else ():
                yield from self._made_by(_last(base), depth + 1)

    def _dotted(self, target: ast.expr, one: Defined, names: _Names) -> str:
        """The whole name of what is called, where it is a module's or a builtin; else empty."""
        parts: list[str] = []
        node = target
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or names.is_local(node.id):
            return ""
        root = one.module.imports.get(node.id)
        if root is None:
            value = one.module.assigned.get(node.id)
            if value is None:
                return "" if parts else node.id
            if isinstance(value, ast.Call) and _last(value.func) == "getLogger":
                return ".".join(["logging", *reversed(parts)])
            return ""
        if parts and root.startswith("."):
            return ""
        return ".".join([root, *reversed(parts)])

    def _tell(self, deed: Deed, one: Defined, node: ast.AST, what: str) -> None:
        told = f"{one.at(node)} {what}"
        if told not in self.found[deed]:
            self.found[deed].append(told)


class _Names:
    """The names of one function: which are its own, and which of them hold what it made itself."""

    def __init__(self, function: Function) -> None:
        args = function.args
        every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
        self._params = {arg.arg for arg in every if arg is not None}
        self._values: dict[str, list[ast.expr | None]] = {}
        if function.name in {"__init__", "__post_init__"} and args.args:
            # What it fills is being made: nobody else has it yet.
            self._values[args.args[0].arg] = [ast.Dict(keys=[], values=[])]
            self._params.discard(args.args[0].arg)
        for node in _inside(function):
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

    def is_own(self, node: ast.expr) -> bool:
        """Was `node` made in this call, with all that holds it, or is it the session's state?"""
        deep = False
        while isinstance(node, ast.Attribute | ast.Subscript):
            if isinstance(node, ast.Attribute) and node.attr == "state":
                return _root(node) in _SESSION
            node, deep = node.value, True
        if not isinstance(node, ast.Name):
            return _is_made(node, deep=deep)
        values = self._values.get(node.id, [])
        made = [_is_made(value, deep=deep) for value in values]
        return node.id not in self._params and bool(made) and all(made)


def _is_made(value: ast.expr | None, *, deep: bool) -> bool:
    """Is a value made anew; if `deep`, with everything in it?"""
    match value:
        case ast.Call(func=func):
            return _last(func) in (_DEEPLY if deep else _MAKERS)
        case ast.Constant() | ast.JoinedStr():
            return True
        case ast.Dict(values=inner) | ast.List(elts=inner) | ast.Set(elts=inner):
            return not deep or all(_is_made(one, deep=True) for one in inner)
        case ast.DictComp() | ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.BinOp():
            return not deep
        case _:
            return False


def _inside(function: Function) -> Iterator[ast.AST]:
    """What runs when the function is called: not its decorators, defaults and annotations."""
    for statement in function.body:
        yield from ast.walk(statement)


def _handed(call: ast.Call) -> Iterator[ast.expr]:
    """Functions that a builtin is handed, to call them."""
    if _last(call.func) in {"map", "filter", "reduce", "starmap", "filterfalse"} and call.args:
        yield call.args[0]
    for key in call.keywords:
        if key.arg == "key" and not isinstance(key.value, ast.Constant):
            yield key.value


def _stem(dotted: str) -> str:
    return dotted.rpartition(".")[2]


def _file_stem(module: Module) -> str:
    return module.path.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]


def _last(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _spelled(node: ast.expr) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
