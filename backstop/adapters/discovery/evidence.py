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

from backstop.adapters.discovery.names import Names, inside, last, root
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
_DECORATORS: Final = frozenset(
    {"cache", "cached", "lru_cache", "wraps", "staticmethod", "classmethod", "property", "override"}
)
_BASES: Final = frozenset(
    {"BaseModel", "Enum", "StrEnum", "IntEnum", "TypedDict", "NamedTuple"}
) | {name for name, kind in vars(builtins).items() if isinstance(kind, type)}
_SELF_CONTAINED: Final = frozenset(
    {"collections", "datetime", "decimal", "difflib", "fractions", "hashlib", "hmac", "ipaddress"}
    | {"random", "re", "statistics", "string", "uuid", "zoneinfo"}
)
"""Modules whose objects hold nothing that is not theirs, whatever is called on them."""

_CAUGHT: Final = frozenset({"add_note", "error_count", "errors", "json", "with_traceback"})
"""Methods of exceptions, by which they tell of themselves."""

_CLOSED: Final = frozenset(
    {"client", "conn", "connection", "cur", "cursor", "engine", "f", "fh", "file", "pool"}
    | {"reader", "resp", "response", "session"}
)
"""Names of what is closed when it is no longer needed; what is written, something else writes."""

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
            if last(target) not in _DECORATORS:
                self._tell(Deed.UNKNOWN, one, decorator, f"is decorated by {_spelled(target)}")
        names = Names(one.node)
        for node in inside(one.node):
            self._node(node, one, names, depth)

    def _node(self, node: ast.AST, one: Defined, names: Names, depth: int) -> None:
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

    def _target(self, target: ast.expr, one: Defined, names: Names) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            for inner in target.elts:
                self._target(inner, one, names)
        elif isinstance(target, ast.Subscript | ast.Attribute) and not names.is_own(target.value):
            what = "deletes from" if isinstance(target.ctx, ast.Del) else "writes to"
            self._tell(Deed.ACTS, one, target, f"{what} {_spelled(target.value)}")

    def _call(self, call: ast.Call, one: Defined, names: Names, depth: int) -> None:
        for given in _handed(call):
            self._resolve(given, call, one, names, depth)
        self._resolve(call.func, call, one, names, depth)

    def _resolve(
        self, target: ast.expr, call: ast.Call, one: Defined, names: Names, depth: int
    ) -> None:
        """Read what is called, or say what a call of that name does."""
        known = self._own_code(target, one, names)
        for inner in known:
            self.function(inner, depth + 1)
        if known and any(_class_of(each) in self._family(target, one) for each in known):
            return  # a method of its own: its code was read, whatever it is called
        if isinstance(target, ast.Attribute) and self._is_harmless(target, call, one, names):
            return
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

    def _is_harmless(
        self, target: ast.Attribute, call: ast.Call, one: Defined, names: Names
    ) -> bool:
        """Is a method one that does nothing outside, by what it is called on?"""
        it = target.value
        if names.is_caught(it):
            return target.attr in _CAUGHT
        if target.attr in {"aclose", "close"} and not (call.args or call.keywords):
            return last(it).lstrip("_") in _CLOSED
        made = [self._dotted(func, one, names) for func in names.made_by(it)]
        return bool(made) and all(each.partition(".")[0] in _SELF_CONTAINED for each in made)

    def _family(self, target: ast.expr, one: Defined) -> frozenset[str]:
        """The own classes that a method called on ``self`` may be of; empty if on another."""
        kind = _class_of(one)
        is_self = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
        if not is_self or root(target) not in {"self", "cls"} or kind not in self._sources.classes:
            return frozenset()
        heirs = {name for name in self._sources.classes if kind in self._above(name)}
        return frozenset({kind, *self._above(kind), *heirs})

    def _above(self, name: str, depth: int = 0) -> Iterator[str]:
        """What a class of the agent's own inherits from, all the way up."""
        for _, kind in self._sources.classes.get(name, ()) if depth < _DEEP else ():
            for base in map(last, kind.bases):
                yield base
                yield from self._above(base, depth + 1)

    def _is_plain_class(self, target: ast.expr, names: Names) -> bool:
        """Is it a class of the agent's own, of which nothing is inherited that may act?"""
        if names.is_local(root(target)):
            return False
        found = self._sources.classes.get(last(target), ())
        return bool(found) and all(
            last(base) in _BASES or last(base) in self._sources.classes
            for _, kind in found
            for base in kind.bases
        )

    def _own_code(self, target: ast.expr, one: Defined, names: Names) -> list[Defined]:
        """The functions of the agent's own that a call may mean."""
        name = last(target)
        functions = self._sources.functions.get(name, ())
        if isinstance(target, ast.Attribute):
            module = one.module.imports.get(root(target), "")
            if family := self._family(target, one):
                methods = [each for each in functions if _class_of(each) in family]
                functions = tuple(methods) or functions
            own = "." in module or any(_stem(module) == _file_stem(m) for m in self._modules)
            found = [each for each in functions if own or "." in each.qualified]
        elif names.is_param(name):
            return []
        elif source := one.module.imports.get(name, ""):
            found = list(self._sources.functions.get(_stem(source), ()))
            name = _stem(source)
        else:
            found = [each for each in functions if each.module is one.module]
        return found + list(self._made_by(name))

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
                yield from self._made_by(last(base), depth + 1)

    def _dotted(self, target: ast.expr, one: Defined, names: Names) -> str:
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
            if isinstance(value, ast.Call) and last(value.func) == "getLogger":
                return ".".join(["logging", *reversed(parts)])
            return ""
        if parts and root.startswith("."):
            return ""
        return ".".join([root, *reversed(parts)])

    def _tell(self, deed: Deed, one: Defined, node: ast.AST, what: str) -> None:
        told = f"{one.at(node)} {what}"
        if told not in self.found[deed]:
            self.found[deed].append(told)


def _handed(call: ast.Call) -> Iterator[ast.expr]:
    """Functions that a builtin is handed, to call them."""
    if last(call.func) in {"map", "filter", "reduce", "starmap", "filterfalse"} and call.args:
        yield call.args[0]
    for key in call.keywords:
        if key.arg == "key" and not isinstance(key.value, ast.Constant):
            yield key.value


def _class_of(one: Defined) -> str:
    """The class that a function is a method of, if it is one."""
    return one.qualified.rpartition(".")[0].rpartition(".")[2]


def _stem(dotted: str) -> str:
    return dotted.rpartition(".")[2]


def _file_stem(module: Module) -> str:
    return module.path.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]


def _spelled(node: ast.expr) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
