"""Reads source text for the architecture tests: imports, and names seen through aliases."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "backstop"


def python_files(*places: str) -> list[Path]:
    """All Python files of the repository below the named places, sorted."""
    found: list[Path] = []
    for place in places:
        path = ROOT / place
        found += path.rglob("*.py") if path.is_dir() else [path] * path.is_file()
    return sorted(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One imported module, absolute: a `from x import y` is both x and, possibly, x.y."""

    module: str
    line: int
    relative: bool


def package_of(path: Path) -> list[str]:
    """The package that a file's relative imports start from."""
    return list(path.relative_to(ROOT).parent.parts) if path.is_relative_to(ROOT) else []


def imports(path: Path, *, package: list[str] | None = None) -> Iterator[Import]:
    """Every import statement of a file, wherever it stands, relative ones resolved."""
    here = package_of(path) if package is None else package
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module=alias.name, line=node.lineno, relative=False)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield Import(
                    module=f"{stem}.{alias.name}" if node.level else stem,
                    line=node.lineno,
                    relative=bool(node.level),
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A dotted name that a file mentions, aliases undone, and the call it heads, if it is one."""

    name: str
    line: int
    call: ast.Call | None


class Names:
    """What the names of one module stand for, blind to the order of statements."""

    def __init__(self, tree: ast.AST) -> None:
        self._meaning: dict[str, set[str]] = defaultdict(set)
        for node in ast.walk(tree):
            self._learn_import(node)
        # Twice, so that an alias of an alias is found whichever of them stands first.
        for _ in range(2):
            for node in ast.walk(tree):
                self._learn_assignment(node)

    def _learn_import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                self._meaning[alias.asname or top].add(alias.name if alias.asname else top)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                self._meaning[alias.asname or alias.name].add(f"{node.module}.{alias.name}")

    def _learn_assignment(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    self._meaning[target.id] |= self.resolve(node.value)

    def resolve(self, node: ast.AST) -> set[str]:
        """The dotted names that an expression may stand for; empty if it is none."""
        match node:
            case ast.Name(id=name):
                return set(self._meaning.get(name, ()))
            case ast.Attribute(value=value, attr=attr):
                return {f"{base}.{attr}" for base in self.resolve(value)}
            case ast.Call(
                func=ast.Name(id="getattr"), args=[value, ast.Constant(value=str(attr)), *_]
            ):
                return {f"{base}.{attr}" for base in self.resolve(value)}
            case _:
                return set()


def uses(text: str | bytes) -> Iterator[Use]:
    """Every imported thing that a module mentions, by its full name."""
    tree = ast.parse(text)
    names = Names(tree)
    heads = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.expr):
            for name in sorted(names.resolve(node)):
                yield Use(name=name, line=node.lineno, call=heads.get(id(node)))
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield Use(name=f"{node.module}.{alias.name}", line=node.lineno, call=None)
