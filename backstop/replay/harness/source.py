"""The candidate's code as it stands in its files: functions, what they call, and where.

Names are resolved by what the loaded modules hold, without running anything: members of
modules and classes, never a property of an object.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple

from ...adk.blocks import block_at, blocks
from .names import imported, is_effect, names_of, plain, resolve
from .outward import WRITING
from .syntax import Node, calls_of, first_line, named, parameters, run_on_import, writes

_FOLLOWED_AT_MOST: Final = 200
_WRAPPERS: Final = ("google.adk.tools.", "google.adk.agents.")
"""What is handed to these is a tool or a part of an agent, and looked at as such."""


class Call(NamedTuple):
    """A call in the code: its name, the place, and what is called as far as that is known.

    The name of a method of an unknown object begins with a dot.
    """

    dotted: str
    file: str
    line: int
    target: Any
    node: ast.Call

    @property
    def shown(self) -> str:
        """What is called, as it is written."""
        return ast.unparse(self.node.func)[:80]


class Function(NamedTuple):
    """A function of the candidate's: its file, its qualified name, its tree, and its names."""

    file: str
    name: str
    node: Node
    names: Mapping[str, Any]

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from others."""
        return (self.file, self.name)


class Sources:
    """The files that are the candidate's own: in its folder, and shared ones from elsewhere."""

    def __init__(self, folder: Path, *, before: Collection[str] | None = None) -> None:
        self.folder = folder.resolve()
        self._trees: dict[str, ast.Module | None] = {}
        self._first: dict[str, dict[int, list[tuple[str, Node]]]] = {}
        self.modules: dict[str, ModuleType] = {}
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if not isinstance(file, str) or not file.endswith(".py"):
                continue
            inside = Path(file).resolve().is_relative_to(self.folder)
            theirs = before is not None and name not in before and not is_installed(name, file)
            if inside or theirs:
                self.modules.setdefault(str(Path(file).resolve()), module)
        self._names = {module.__name__ for module in self.modules.values()}

    def is_own(self, file: str) -> bool:
        """Is this file one of the candidate's?"""
        return file in self.modules

    def is_own_name(self, dotted: str) -> bool:
        """Does this name begin with that of one of the candidate's modules?"""
        parts = dotted.split(".")
        names = {".".join(parts[:count]) for count in range(1, len(parts))}
        return not names.isdisjoint(self._names)

    def class_at(self, kind: type) -> tuple[str, int] | None:
        """The file and line of a class of the candidate's."""
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        if not isinstance(file, str) or (tree := self.tree(str(Path(file).resolve()))) is None:
            return None
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
                return str(Path(file).resolve()), node.lineno
        return None

    def at(self, file: str, line: int) -> str:
        """`file:line` as it is told, from the candidate's folder."""
        return f"{os.path.relpath(file, self.folder).replace(os.sep, '/')}:{line}"

    def block(self, file: str, line: int) -> int:
        """The number of the block that holds a line; -1 where nobody marks blocks."""
        if not Path(file).is_relative_to(self.folder):
            return -1
        try:
            return block_at(Path(file).read_bytes(), line)
        except (OSError, SyntaxError, ValueError, RecursionError):
            return -1

    def tree(self, file: str) -> ast.Module | None:
        """The file's syntax tree; None where it cannot be parsed."""
        if file not in self._trees:
            try:
                self._trees[file] = ast.parse(Path(file).read_bytes())
            except (OSError, SyntaxError, ValueError, RecursionError):
                self._trees[file] = None
        return self._trees[file]

    def functions(self, file: str) -> Iterator[Function]:
        """All functions of a module of the candidate's; lambdas belong to what is around them."""
        names = vars(self.modules[file])
        for found in self._by_line(file).values():
            for name, node in found:
                if not isinstance(node, ast.Lambda):
                    yield Function(file, name, node, names)

    def function(self, thing: Any) -> Function | None:
        """The function behind a callable, if it is the candidate's."""
        function = plain(thing)
        if function is None:
            return None
        code = function.__code__
        file = str(Path(code.co_filename).resolve())
        if not self.is_own(file):
            return None
        for name, node in self._by_line(file).get(code.co_firstlineno, ()):
            if name == code.co_qualname or isinstance(node, ast.Lambda):
                return Function(file, name, node, names_of(function))
        return None

    def _by_line(self, file: str) -> dict[int, list[tuple[str, Node]]]:
        if file not in self._first:
            found: dict[int, list[tuple[str, Node]]] = {}
            tree = self.tree(file)
            for name, node in named(tree, "") if tree is not None else ():
                found.setdefault(first_line(node), []).append((name, node))
            self._first[file] = found
        return self._first[file]

    def calls(self, function: Function, *, owner: Any = None) -> Iterator[Call]:
        """What a function calls, with what its lambdas and inner functions do.

        `owner` is the object, or the class, whose method it is: what `self` means there.
        """
        own = parameters(function.node)
        names = {name: held for name, held in function.names.items() if name not in own}
        names.update(imported(function.node))
        if owner is not None:
            names["self"] = owner
        yield from _calls(function.node, names, function.file)

    def module_calls(self, file: str) -> Iterator[Call]:
        """What a module calls when it is imported."""
        tree = self.tree(file)
        if tree is not None:
            names = vars(self.modules[file])
            for statement in run_on_import(tree.body):
                yield from _calls(statement, names, file, now=True)

    def followed(self, *roots: Any) -> Iterator[tuple[Function, list[Call]]]:
        """The functions that `roots` lead to, with what each calls; those of effects left out.

        A root is a callable, or a class or an object of the candidate's, all of whose methods
        count.
        """
        waiting = [entry for root in roots for entry in self._entries(root)]
        seen: set[tuple[str, str]] = set()
        while waiting and len(seen) < _FOLLOWED_AT_MOST:
            thing, owner = waiting.pop(0)
            if is_effect(thing) or (function := self.function(thing)) is None:
                continue
            if function.key in seen:
                continue
            seen.add(function.key)
            calls = list(self.calls(function, owner=owner))
            yield function, calls
            for call in calls:
                waiting += self._next(call, function, owner)

    def _next(self, call: Call, caller: Function, owner: Any) -> Iterator[tuple[Any, Any]]:
        yield from self._entries(call.target, owner)
        if call.dotted.startswith(_WRAPPERS):
            return
        for argument in [*call.node.args, *(one.value for one in call.node.keywords)]:
            if isinstance(argument, ast.Name | ast.Attribute):
                _, target = resolve(argument, {**caller.names, "self": owner})
                if isinstance(target, FunctionType | MethodType):
                    yield target, owner

    def _entries(self, thing: Any, owner: Any = None) -> list[tuple[Any, Any]]:
        """What runs where this is called: itself, or any method of a class of the candidate's."""
        if thing is None:
            return []
        if plain(thing) is not None and not isinstance(thing, type):
            return [(thing, getattr(thing, "__self__", owner))]
        kind = thing if isinstance(thing, type) else type(thing)
        own = [base for base in kind.__mro__ if self._defines(base)]
        members = {name: value for base in reversed(own) for name, value in vars(base).items()}
        return [(value, thing) for value in members.values() if plain(value) is not None]

    def _defines(self, kind: type) -> bool:
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        return isinstance(file, str) and self.is_own(str(Path(file).resolve()))


def beside(folder: Path, *, before: Collection[str]) -> dict[str, str]:
    """Digests of the candidate's modules that lie elsewhere, by their paths from its folder."""
    sources = Sources(folder, before=before)
    found: dict[str, str] = {}
    for file in sorted(sources.modules):
        if not Path(file).is_relative_to(sources.folder):
            with contextlib.suppress(OSError):
                said = _says(Path(file).read_bytes())
                found[sources.at(file, 0).rpartition(":")[0]] = hashlib.sha256(said).hexdigest()
    return found


def _says(source: bytes) -> bytes:
    """What a module says, comments, docstrings and layout apart."""
    try:
        return "\n".join(f"{one.name} {one.way} {one.says}" for one in blocks(source)).encode()
    except (SyntaxError, ValueError, RecursionError):
        return source


_OURS: Final = Path(__file__).resolve().parents[2]
"""Where this package lies; a folder of a candidate's may have the same name."""


def is_installed(name: str, file: str) -> bool:
    """Is the module `name` in `file` a package's, the framework's or ours, not the candidate's?"""
    real = str(Path(file).resolve())
    roots = {sys.prefix, sys.base_prefix, sys.exec_prefix}
    return (
        name.partition(".")[0] == "backstop"
        or "site-packages" in real
        or "dist-packages" in real
        or real.startswith(f"{_OURS}{os.sep}")
        or any(real.startswith(f"{Path(root).resolve()}{os.sep}lib") for root in roots)
    )


def _calls(
    root: ast.AST, names: Mapping[str, Any], file: str, *, now: bool = False
) -> Iterator[Call]:
    for node in calls_of(root, now=now):
        dotted, target = resolve(node.func, names)
        if dotted == "builtins.open" and writes(node):
            dotted = WRITING
        yield Call(dotted, file, node.lineno, target, node)
