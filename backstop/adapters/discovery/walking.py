"""Where agents are below a folder, by the conventions of the framework's own loader."""

from __future__ import annotations

import ast
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_ENTRANCES: Final = ("agent.py", "__init__.py")
_YAML: Final = "root_agent.yaml"
_LEFT_OUT: Final = frozenset({"node_modules", "site-packages", "venv", "env", "build", "dist"})
_TESTS: Final = frozenset({"test", "tests", "testing"})
_LONGEST: Final = 1 << 20
_FOLDERS: Final = 20_000
_SHOWN: Final = 3
_DEPTH: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A folder that holds an agent, as a path from the root; `entrance` is the file to load.

    `project` is the nearest folder around it with a ``pyproject.toml``, and `project_name` what
    that says it is called; both empty where there is none.
    """

    folder: str
    entrance: str
    project: str = ""
    project_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The agents below a folder. `within` are folders inside an agent's that expose one too.

    `is_cut` says that there was more to look at than is looked at.
    """

    places: tuple[Place, ...]
    within: tuple[str, ...] = ()
    is_cut: bool = False


def find(root: Path, *, with_tests: bool = False) -> Found:
    """The agents in `root` and below it, in the order of their paths.

    Folders that are hidden, hold packages of others or, unless asked for, tests are left out,
    and no link is followed. What cannot be read holds no agent.
    """
    places: list[Place] = []
    within: list[str] = []
    seen = 0
    for folder in _folders(root, with_tests=with_tests):
        seen += 1
        if seen > _FOLDERS:
            return Found(places=tuple(places), within=tuple(within), is_cut=True)
        entrance = entrance_of(root / folder)
        if entrance is None:
            continue
        if any(folder.startswith(f"{one.folder}/") or one.folder == "." for one in places):
            within.append(folder)
            continue
        project, name = _project(root, folder)
        places.append(Place(folder=folder, entrance=entrance, project=project, project_name=name))
    return Found(places=tuple(places), within=tuple(within))


def made_in(root: Path, *, with_tests: bool = False) -> tuple[str, ...]:
    """Where below `root` code makes agents of the framework's, as ``file:line``: the first few.

    None of them is found by the loader, which goes by a module's `root_agent`.
    """
    found: list[str] = []
    for number, folder in enumerate(_folders(root, with_tests=with_tests)):
        for file in _modules(root / folder):
            tree = parsed(file)
            if tree is not None and (line := _making(tree)):
                found.append(f"{file.relative_to(root).as_posix()}:{line}")
        if len(found) >= _SHOWN or number > _FOLDERS:
            break
    return tuple(found[:_SHOWN])


def _modules(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.suffix == ".py")
    except OSError:
        return []


def _making(tree: ast.Module) -> int:
    """The line where a module first makes an agent; 0 if it makes none."""
    kinds = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("google.adk")
        for alias in node.names
        if alias.name.endswith(("Agent", "Workflow"))
    }
    return min(
        (
            node.lineno
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and _name_of(node.func) in kinds
        ),
        default=0,
    )


def _folders(root: Path, *, with_tests: bool) -> Iterator[str]:
    """Folders from the root down, each before those in it, sorted."""
    left = ["."]
    while left:
        here = left.pop()
        yield here
        if here.count("/") >= _DEPTH:
            continue
        names = sorted(_below(root / here), reverse=True)
        left += [
            name if here == "." else f"{here}/{name}"
            for name in names
            if with_tests or name not in _TESTS
        ]


def _below(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if name.startswith((".", "__")) or name in _LEFT_OUT or not name.isprintable():
                    continue
                if entry.is_dir(follow_symlinks=False) and not _is_environment(Path(entry.path)):
                    yield name
    except OSError:
        return


def _is_environment(folder: Path) -> bool:
    return (folder / "pyvenv.cfg").exists()


def entrance_of(folder: Path) -> str | None:
    """The file by which the loader finds an agent in `folder`; None if it would find none."""
    for name in _ENTRANCES:
        tree = parsed(folder / name)
        if tree is not None and _exposes(tree):
            return name
    return _YAML if _is_file(folder / _YAML) else None


def parsed(file: Path) -> ast.Module | None:
    """A source file as a tree; None for one that is not there, too long or no Python."""
    if (text := text_of(file)) is None:
        return None
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def text_of(file: Path) -> str | None:
    """The text of a file as long as a person writes; None for what is none."""
    try:
        if not _is_file(file) or file.stat().st_size > _LONGEST:
            return None
        return file.read_bytes().decode("utf-8-sig", "replace")
    except OSError:
        return None


def _is_file(file: Path) -> bool:
    try:
        return stat.S_ISREG(file.lstat().st_mode)
    except OSError:
        return False


def _exposes(tree: ast.Module) -> bool:
    """Does a module define or import `root_agent`, or an `app` of the framework's?"""
    stars = False
    for node in _statements(tree.body):
        match node:
            case ast.ImportFrom():
                names = {alias.asname or alias.name for alias in node.names}
                if "root_agent" in names:
                    return True
                stars = stars or "*" in names
            case ast.Assign() | ast.AnnAssign():
                if _assigns(node):
                    return True
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                # Made by a decorator: a node of a graph may be the root.
                if node.name == "root_agent" and node.decorator_list:
                    return True
            case _:
                pass
    return stars and any(isinstance(n, ast.Name) and n.id == "root_agent" for n in ast.walk(tree))


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """What runs when a module is imported, whichever branch is taken."""
    for node in body:
        yield node
        for inner in ("body", "orelse", "finalbody"):
            if isinstance(node, ast.If | ast.Try | ast.With):
                yield from _statements(getattr(node, inner, []))
        if isinstance(node, ast.Try):
            for handler in node.handlers:
                yield from _statements(handler.body)


def _assigns(node: ast.Assign | ast.AnnAssign) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names: set[str] = set()
    for target in targets:
        inner = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        names.update(one.id for one in inner if isinstance(one, ast.Name))
    if "root_agent" in names and node.value is not None:
        return True
    # A web server is called `app` too.
    called = _name_of(node.value.func) if isinstance(node.value, ast.Call) else ""
    told = _name_of(node.annotation) if isinstance(node, ast.AnnAssign) else ""
    return "app" in names and "App" in {called, told}


def _name_of(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


_PROJECT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def _project(root: Path, folder: str) -> tuple[str, str]:
    """The nearest project around a folder, and its name."""
    here = folder
    while True:
        text = text_of(root / here / "pyproject.toml")
        if text is not None:
            return here, _project_name(text)
        if here in {".", ""}:
            return "", ""
        here = here.rpartition("/")[0] or "."


def _project_name(text: str) -> str:
    try:
        told = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return ""
    tool = told.get("tool")
    poetry = tool.get("poetry") if isinstance(tool, dict) else None
    for table in (told.get("project"), poetry):
        name = table.get("name") if isinstance(table, dict) else None
        if isinstance(name, str) and _PROJECT.fullmatch(name):
            return name
    return ""
