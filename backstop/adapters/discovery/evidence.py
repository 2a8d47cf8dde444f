"""What a tool's code does outside, read from its tree: it is never run.

Helpers in the agent's own folder are read too. Whatever is called and cannot be seen is told
as unknown: it may do anything.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Final

from backstop.adapters.discovery.classes import above, is_plain, made_by
from backstop.adapters.discovery.handing import calls_in, handed, passed_on
from backstop.adapters.discovery.names import Names, inside, last, root
from backstop.adapters.discovery.sources import Defined, Function, Module, Sources
from backstop.adapters.discovery.statements import deed_of_taker, deed_of_text, spelled
from backstop.adapters.discovery.vocabulary import Deed, deed_of_method, deed_of_named
from backstop.core.proposing import Evidence

_DEEP: Final = 6
_MANY: Final = 200
_DECORATORS: Final = frozenset(
    {"abstractmethod", "asynccontextmanager", "cache", "cached", "cached_property", "classmethod"}
    | {"contextmanager", "deleter", "getter", "lru_cache", "overload", "override", "property"}
    | {"setter", "staticmethod", "wraps"}
)
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

_WORD: Final = re.compile(r"\w+\Z")
_SHOWN: Final = 60
_AS_IT_IS: Final = ast.Call(func=ast.Name(id=""), args=[], keywords=[])
"""A call of which nothing is known but what is called."""

_FILLED: Final = """
    bisect.insort bisect.insort_left bisect.insort_right heapq.heapify heapq.heappop heapq.heappush
    heapq.heappushpop heapq.heapreplace next operator.delitem operator.iadd operator.ior
    operator.setitem random.shuffle
    """
_FILLING: Final[Mapping[str, int | None]] = {
    **dict.fromkeys(_FILLED.split(), 0),
    "json.dump": 1,
    "pprint.pprint": 1,
    "print": None,
}
"""Functions that change what they are given, at which place."""


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
        self._decorated(one.node, one)
        names = Names(one.node)
        for node in inside(one.node):
            self._node(node, one, names, depth)

    def _decorated(self, node: Function, one: Defined) -> None:
        for decorator in node.decorator_list:
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            if last(target) not in _DECORATORS:
                self._tell(Deed.UNKNOWN, one, decorator, f"is decorated by {_spelled(target)}")

    def _node(self, node: ast.AST, one: Defined, names: Names, depth: int) -> None:
        match node:
            case ast.Call():
                self._call(node, one, names, depth)
            case ast.Constant(value=str() as text):
                self._text(text, node, one)
            case ast.Name() | ast.Attribute():
                self._mentioned(node, one, names, depth)
            case ast.Global():
                self._tell(Deed.ACTS, one, node, f"sets the module's {node.names[0]}")
            case ast.Assign(targets=targets) | ast.Delete(targets=targets):
                for target in targets:
                    self._target(target, one, names)
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                self._target(target, one, names)
            case ast.For(target=target) | ast.AsyncFor(target=target):
                self._target(target, one, names)
            case ast.withitem(optional_vars=ast.expr() as target):
                self._target(target, one, names)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._decorated(node, one)
            case _:
                pass

    def _text(self, text: str, node: ast.AST, one: Defined) -> None:
        deed = deed_of_text(text)
        if deed is Deed.ACTS:
            self._tell(deed, one, node, "spells a statement that writes")
        elif deed is Deed.UNKNOWN:
            self._tell(deed, one, node, "spells a statement that calls a function of its own")

    def _mentioned(
        self, node: ast.Name | ast.Attribute, one: Defined, names: Names, depth: int
    ) -> None:
        """Read what may run without being called by name.

        A function that is mentioned may be called by whoever gets it, a property runs where it
        is asked for, and so do the operators of an object that a module keeps.
        """
        if names.is_local(node.id if isinstance(node, ast.Name) else ""):
            return
        for inner in self._own_functions(node, one):
            self.function(inner, depth + 1)
        for value in self._kept(node, one):
            if isinstance(value, ast.Call):
                for inner in made_by(last(value.func), self._sources):
                    self.function(inner, depth + 1)
            elif (text := spelled(value, lambda name: self._given(name, one, names))) is not None:
                self._text(text, node, one)

    def _kept(self, node: ast.expr, one: Defined) -> list[ast.expr]:
        """What a module's name was given, here or in another module of the agent's own."""
        match node:
            case ast.Name(id=name):
                found = self._sources.assigned(name, one.module)
            case ast.Attribute(value=ast.Name(id=alias), attr=name):
                found = self._sources.member(alias, name, one.module)
            case _:
                found = None
        return [] if found is None else [found[1]]

    def _given(self, node: ast.expr, one: Defined, names: Names) -> list[ast.expr]:
        """All that a name was given, in the function or at the top of a module."""
        if isinstance(node, ast.Name) and names.is_local(node.id):
            return names.given(node.id)
        return self._kept(node, one)

    def _target(self, target: ast.expr, one: Defined, names: Names) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            for inner in target.elts:
                self._target(inner, one, names)
        elif isinstance(target, ast.Subscript | ast.Attribute) and not names.is_own(target.value):
            what = "deletes from" if isinstance(target.ctx, ast.Del) else "writes to"
            self._tell(Deed.ACTS, one, target, f"{what} {_spelled(target.value)}")

    def _call(self, call: ast.Call, one: Defined, names: Names, depth: int) -> None:
        for inner in calls_in(call):
            self._resolve(inner, one, names, depth)
        for given in handed(call):
            dotted = self._dotted(given, one, names)
            if dotted and deed_of_named(dotted, _AS_IT_IS) is Deed.ACTS:
                self._tell(Deed.ACTS, one, call, f"hands over {_spelled(given)}")
        self._resolve(call, one, names, depth)

    def _resolve(self, call: ast.Call, one: Defined, names: Names, depth: int) -> None:
        """Read what is called, or say what a call of that name does."""
        target = call.func
        known = self._own_code(target, one, names)
        for inner in known:
            self.function(inner, depth + 1)
        if known and any(_class_of(each) in self._family(target, one) for each in known):
            return  # a method of its own: its code was read, whatever it is called
        if isinstance(target, ast.Attribute) and self._is_harmless(target, call, one, names):
            return
        dotted = self._dotted(target, one, names)
        deed = self._deed(call, dotted, one, names)
        if self._is_strange_class(target, names):
            self._tell(Deed.UNKNOWN, one, call, f"makes {_spelled(target)}, which inherits more")
        if deed is Deed.UNKNOWN and known:
            return  # the name says nothing, and its code was read
        if deed is Deed.ACTS and known and dotted:
            return  # an own function of that name: its code was read
        if deed is not Deed.NOTHING:
            self._tell(deed, one, call, f"calls {_spelled(target)}")

    def _deed(self, call: ast.Call, dotted: str, one: Defined, names: Names) -> Deed:
        """What a call does, by its name and by what it is given."""
        target = call.func
        if isinstance(target, ast.Lambda) or self._is_plain_class(target, names):
            return Deed.NOTHING
        if (inner := passed_on(call)) is not None and self._is_known(inner, one, names):
            return Deed.NOTHING  # what it calls was asked for by itself
        if dotted in _FILLING and not self._fills_its_own(call, dotted, names):
            return Deed.ACTS
        if "." in dotted or isinstance(target, ast.Attribute):
            taken = deed_of_taker(call, lambda name: self._given(name, one, names))
            if taken is not None:
                return taken
        if dotted:
            return deed_of_named(dotted, call)
        if isinstance(target, ast.Attribute):
            return deed_of_method(target.attr, call, fresh=names.is_own(target.value))
        return Deed.UNKNOWN

    def _is_known(self, target: ast.expr, one: Defined, names: Names) -> bool:
        """Is it a function by its name: the agent's own, or a module's?"""
        if isinstance(target, ast.Lambda) or self._dotted(target, one, names):
            return True
        return bool(self._own_code(target, one, names))

    def _fills_its_own(self, call: ast.Call, dotted: str, names: Names) -> bool:
        """Does a function that changes what it is given change nothing that outlives the call?"""
        at = _FILLING[dotted]
        given = call.args[at : at + 1] if isinstance(at, int) else []
        given += [key.value for key in call.keywords if key.arg in {"file", "fp", "stream"}]
        kept = [each for each in given if root(each) and not names.is_local(root(each))]
        return all(names.is_own(each) or last(each) in {"stderr", "stdout"} for each in kept)

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
        heirs = {name for name in self._sources.classes if kind in above(name, self._sources)}
        return frozenset({kind, *above(kind, self._sources), *heirs})

    def _is_plain_class(self, target: ast.expr, names: Names) -> bool:
        """Is it a class of the agent's own, of which nothing is inherited that may act?"""
        return self._is_own_class(target, names) and is_plain(last(target), self._sources)

    def _is_strange_class(self, target: ast.expr, names: Names) -> bool:
        """Is it a class of the agent's own that inherits from what cannot be seen?"""
        return self._is_own_class(target, names) and not is_plain(last(target), self._sources)

    def _is_own_class(self, target: ast.expr, names: Names) -> bool:
        return not names.is_local(root(target)) and last(target) in self._sources.classes

    def _own_code(self, target: ast.expr, one: Defined, names: Names) -> list[Defined]:
        """The functions of the agent's own that a call may mean, and those of a class it makes."""
        name = last(target)
        if isinstance(target, ast.Name):
            if names.is_param(name):
                return []
            name = _stem(one.module.imports.get(name, "")) or name
        return [*self._own_functions(target, one), *made_by(name, self._sources)]

    def _own_functions(self, target: ast.expr, one: Defined) -> list[Defined]:
        """The functions of the agent's own that a name may mean."""
        name = last(target)
        functions = self._sources.functions.get(name, ())
        if isinstance(target, ast.Attribute):
            module = one.module.imports.get(root(target), "")
            if family := self._family(target, one):
                methods = [each for each in functions if _class_of(each) in family]
                functions = tuple(methods) or functions
            own = "." in module or any(_stem(module) == _file_stem(m) for m in self._modules)
            found = [each for each in functions if own or "." in each.qualified]
        elif source := one.module.imports.get(name, ""):
            found = list(self._sources.functions.get(_stem(source), ()))
        else:
            found = [each for each in functions if each.module is one.module]
        return found

    @property
    def _modules(self) -> tuple[Module, ...]:
        return self._sources.modules

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


def _class_of(one: Defined) -> str:
    """The class that a function is a method of, if it is one."""
    return one.qualified.rpartition(".")[0].rpartition(".")[2]


def _stem(dotted: str) -> str:
    return dotted.rpartition(".")[2]


def _file_stem(module: Module) -> str:
    return module.path.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]


def _spelled(node: ast.expr) -> str:
    """An expression on one line; a long one ends with a whole word."""
    text = " ".join(ast.unparse(node).split())
    if len(text) <= _SHOWN:
        return text
    kept = text[: _SHOWN - 1]
    whole = kept if not (kept[-1] + text[_SHOWN - 1]).isidentifier() else _WORD.sub("", kept)
    return f"{(whole or kept).rstrip()}…"
