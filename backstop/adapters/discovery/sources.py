"""An agent's source, parsed once: where its functions are, and what its names stand for."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from backstop.adapters.discovery.walking import parsed

_FILES: Final = 2_000
_ELSEWHERE: Final = 500
_LEFT_OUT: Final = frozenset({"node_modules", "site-packages", "venv", "env", "__pycache__"})

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A source file: its path from the agent's folder, and what its imports are called in it.

    `assigned` are names that it gives a value at its top, with the last value of each.
    """

    path: str
    tree: ast.Module
    imports: Mapping[str, str]
    assigned: Mapping[str, ast.expr]


@dataclass(frozen=True, slots=True, kw_only=True)
class Defined:
    """A function, and the module that it stands in. `qualified` is its name within that."""

    module: Module
    qualified: str
    node: Function

    @property
    def described(self) -> str:
        """Its docstring; empty if it has none."""
        return ast.get_docstring(self.node) or ""

    def at(self, node: ast.AST) -> str:
        """``file:line`` of something in it."""
        return f"{self.module.path}:{getattr(node, 'lineno', self.node.lineno)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a name was given at the top of a module."""

    module: Module
    value: ast.expr


Placed = TypeVar("Placed", Defined, Given)


def nearest(found: Sequence[Placed], user: Module) -> Placed:
    """The one that `user` means, as a rule: in it, or else in the folder that is nearest to it.

    A repository of several agents has many a ``tools.py``. `found` is not empty.
    """
    here = user.path.split("/")[:-1]

    def closeness(one: Placed) -> tuple[bool, int, int]:
        there = one.module.path.split("/")[:-1]
        shared = sum(
            1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(here, there, strict=False))
        )
        return one.module is user, shared, -len(there)

    return max(found, key=closeness)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """All modules of an agent's, and their functions and classes by name."""

    modules: tuple[Module, ...]
    functions: Mapping[str, tuple[Defined, ...]] = field(default_factory=dict)
    classes: Mapping[str, tuple[tuple[Module, ast.ClassDef], ...]] = field(default_factory=dict)

    def at(self, body: str) -> Defined | None:
        """The function that the harness names as ``file:qualified name``; None if unknown."""
        path, _, qualified = body.rpartition(":")
        plain = qualified.replace(".<locals>.", ".")
        for one in self.functions.get(plain.rpartition(".")[2], ()):
            if one.module.path == path and one.qualified == plain:
                return one
        return None

    def only(self, name: str) -> Defined | None:
        """The function of this name, if there is exactly one."""
        found = self.functions.get(name, ())
        return found[0] if len(found) == 1 else None

    def assigned(self, name: str, module: Module) -> tuple[Module, ast.expr] | None:
        """What a name of a module was last given at its top, through imports within the folder."""
        if name in module.assigned:
            return module, module.assigned[name]
        source = module.imports.get(name)
        if source is None:
            return None
        wanted, original = source.rpartition(".")[::2]
        return self._at_top(original, wanted, module)

    def member(self, alias: str, name: str, module: Module) -> tuple[Module, ast.expr] | None:
        """What a name of another module was last given at its top; that is called `alias` here."""
        source = module.imports.get(alias)
        return None if source is None else self._at_top(name, source, module)

    def _at_top(self, name: str, dotted: str, user: Module) -> tuple[Module, ast.expr] | None:
        stem = dotted.lstrip(".").replace(".", "/")
        found = [
            Given(module=other, value=other.assigned[name])
            for other in self.modules
            if name in other.assigned and _is_module(other.path, stem)
        ]
        if not found:
            return None
        near = nearest(found, user)
        return near.module, near.value


def variables_of(sources: Sources) -> tuple[str, ...]:
    """Variables of the environment that the code reads and has no default for, each once."""
    found: dict[str, None] = {}
    for module in sources.modules:
        for node in ast.walk(module.tree):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="getenv") | ast.Name(id="getenv"),
                    args=[ast.Constant(value=str() as name)],
                    keywords=[],
                ):
                    found[name] = None
                case ast.Call(
                    func=ast.Attribute(attr="get", value=ast.expr() as table),
                    args=[ast.Constant(value=str() as name)],
                    keywords=[],
                ) if _is_environment(table):
                    found[name] = None
                case ast.Subscript(
                    value=ast.expr() as table,
                    slice=ast.Constant(value=str() as name),
                    ctx=ast.Load(),
                ) if _is_environment(table):
                    found[name] = None
                case _:
                    pass
    return tuple(name for name in found if _VARIABLE.fullmatch(name))


def _is_environment(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(attr="environ") | ast.Name(id="environ"):
            return True
        case _:
            return False


def _is_module(path: str, stem: str) -> bool:
    """Is `path` the file of a dotted name, of which the beginning may lie above the folder?"""
    own = path.removesuffix(".py").removesuffix("/__init__")
    return not stem or own == stem or own.endswith(f"/{stem}") or stem.endswith(f"/{own}")


def read(folder: Path, *, roots: Sequence[Path] = ()) -> Sources:
    """Parse every source file below `folder`, and those that they import from `roots`.

    What is no Python is left out. Paths of what lies elsewhere begin with ``../``.
    """
    here = folder.resolve()
    modules = [one for path in _files(here) if (one := _module(here, path)) is not None]
    modules += _elsewhere(modules, here, [root.resolve() for root in roots])
    functions: dict[str, list[Defined]] = {}
    classes: dict[str, list[tuple[Module, ast.ClassDef]]] = {}
    for module in modules:
        for qualified, node in _definitions(module.tree, ""):
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append((module, node))
            else:
                found = Defined(module=module, qualified=qualified, node=node)
                functions.setdefault(node.name, []).append(found)
    return Sources(
        modules=tuple(modules),
        functions={name: tuple(found) for name, found in functions.items()},
        classes={name: tuple(found) for name, found in classes.items()},
    )


def _module(folder: Path, path: str) -> Module | None:
    tree = parsed(folder / path)
    if tree is None:
        return None
    imports, assigned = dict(_imports(tree)), dict(_assigned(tree))
    return Module(path=path, tree=tree, imports=imports, assigned=assigned)


def _elsewhere(within: Sequence[Module], folder: Path, roots: Sequence[Path]) -> list[Module]:
    """The modules outside of `folder` that those in it import, and what these import."""
    found: dict[str, Module] = {}
    waiting = list(within)
    while waiting and len(found) < _ELSEWHERE:
        for file in _imported(waiting.pop(0), folder, roots):
            path = os.path.relpath(file, folder).replace(os.sep, "/")
            if path not in found and (module := _module(folder, path)) is not None:
                found[path] = module
                waiting.append(module)
    return list(found.values())


def _imported(module: Module, folder: Path, roots: Sequence[Path]) -> Iterator[Path]:
    """The files outside of `folder`, and below one of `roots`, that a module may import."""
    for dotted in dict.fromkeys(module.imports.values()):
        name = dotted.lstrip(".")
        above = len(dotted) - len(name)
        package = (folder / module.path).parent
        places = roots if above == 0 else [(package, *package.parents)[above - 1]] if roots else ()
        stem = name.replace(".", "/")
        for place in places:
            file = next(filter(Path.is_file, _candidates(place, stem)), None)
            if file is not None:
                real = file.resolve()
                if _is_own(real, roots) and not real.is_relative_to(folder):
                    yield real
                break


def _candidates(place: Path, stem: str) -> Iterator[Path]:
    """Where a module, or one that holds something of that name, may lie."""
    for one in (stem, stem.rpartition("/")[0]):
        if one:
            yield place / f"{one}.py"
            yield place / one / "__init__.py"


def _is_own(file: Path, roots: Sequence[Path]) -> bool:
    below = any(file.is_relative_to(root) for root in roots)
    return below and _LEFT_OUT.isdisjoint(file.parts) and "dist-packages" not in file.parts


def _files(folder: Path) -> list[str]:
    found: list[str] = []
    for file in sorted(folder.rglob("*.py")):
        path = file.relative_to(folder)
        if any(part.startswith(".") or part in _LEFT_OUT for part in path.parts):
            continue
        found.append(path.as_posix())
        if len(found) >= _FILES:
            break
    return found


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """What each imported name stands for, dotted; of a relative import with its dots."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    yield alias.asname or top, alias.name if alias.asname else top
            case ast.ImportFrom():
                module = "." * node.level + (node.module or "")
                for alias in node.names:
                    yield alias.asname or alias.name, f"{module}.{alias.name}"
            case _:
                pass


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from _targets(target, value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value
            case _:
                pass


def _targets(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match target, value:
        case ast.Name(id=name), _:
            yield name, value
        case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
            for name_of, one in zip(names, values, strict=True):
                yield from _targets(name_of, one)
        case ast.Tuple(elts=names), _:
            for name_of in names:
                yield from _targets(name_of, value)
        case _:
            pass


def _definitions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function | ast.ClassDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}{child.name}"
            yield name, child
            yield from _definitions(child, f"{name}.")
        else:
            yield from _definitions(child, prefix)
