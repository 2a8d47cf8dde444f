"""The checkouts that a request is about: where they begin, and what lies in them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from backstop.adapters.trees import read_tree, text_in
from backstop.config import Agent, Config, loads
from backstop.config.reading import text_of
from backstop.errors import BackstopError
from backstop.gate.packages import PACKAGES
from backstop.gate.reach import reached
from backstop.gate.request import ReplayRequest
from backstop.gate.touched import Checkout, Footprint, documentation, touched

_HISTORIES: Final = frozenset({".git", ".hg", ".svn"})
_CREDENTIALS: Final = "gha-creds-*.json"
"""What google-github-actions/auth leaves at the top of a workspace, by another name each time."""

ENTRANCES: Final = ("agent.py", "__init__.py", "root_agent.yaml")
"""Where the framework's loader begins to read an agent's folder."""

_TEXTS: Final = (
    *(".py", ".pyi", ".yaml", ".yml", ".json", ".toml", ".ini", ".cfg"),
    *(".txt", ".md", ".j2", ".jinja", ".jinja2"),
)
"""Ends of names of files in which code may point elsewhere."""

_PACKAGES: Final = re.compile(PACKAGES, re.IGNORECASE)

_ANYWHERE: Final = Path("/=checkout=")


def top_of(folder: Path, *, config: str) -> Path | None:
    """Where the checkout begins in which `folder` lies.

    That is where its history is, or else its configuration of that name; None for a folder
    that lies in neither.
    """
    above = (folder.resolve(), *folder.resolve().parents)
    for mark in (".git", config):
        for place in above:
            if (place / mark).exists():
                return place
    return None


def base_below(base: Path, config: Path) -> Path | None:
    """What `config`'s own folder is in `base`, if that is where a history begins, and no agent's.

    So a checkout that has no configuration yet is told from a folder of an agent.
    """
    head = top_of(config.parent, config=config.name)
    if head is None or not (base / ".git").exists():
        return None
    if any((base / entrance).is_file() for entrance in ENTRANCES):
        return None
    return base / config.parent.resolve().relative_to(head)


def left_out(top: Path, *others: Path | None) -> Callable[[str], bool]:
    """Says of a path what is no part of a checkout: histories, credentials, and `others`."""
    named = {inside(other, top) for other in others if other is not None}

    def without(path: str) -> bool:
        above, _, name = path.rpartition("/")
        if above:
            # Deeper, only what git takes into no commit is sure to be no part of one.
            return name == ".git" or path in named
        return name in _HISTORIES or path in named or fnmatchcase(name, _CREDENTIALS)

    return without


def tops(request: ReplayRequest) -> tuple[Path | None, Path | None]:
    """Where the checkouts of head and base begin, as far as anybody knows."""
    name = request.config.name
    head = request.top or top_of(request.config.parent, config=name)
    if request.base is None or request.base_top is not None:
        return head, request.base_top
    if not request.base_is_checkout:
        return head, top_of(request.base, config=name)
    # It has the configuration where the head has it.
    below = None if head is None else inside(request.config.parent, head)
    base = request.base.resolve()
    if below is None or (not base.as_posix().endswith(f"/{below}") and below != "."):
        return head, None
    return head, base.parents[len(Path(below).parts) - 1] if below != "." else base


def changes(request: ReplayRequest, cache: Path | None) -> dict[str, str] | str:
    """Why each agent that the change concerns is concerned, by name; or why nobody can tell.

    The change is from the checkout of `request.base` to the one that holds the configuration.
    """
    head, base = tops(request)
    if request.base is None:
        return "no base is named"
    if head is None or base is None:
        return f"nobody knows where the checkout around {request.base} begins"
    theirs = base / request.config.resolve().relative_to(head.resolve())
    if not theirs.is_file() or theirs.samefile(request.config):
        return "the base is no checkout of its own with a configuration"
    try:
        before = read_checkout(base, theirs, without=left_out(base))
        after = read_checkout(head, request.config, without=left_out(head, cache))
    except BackstopError as error:
        return str(error)
    return touched(before, after)


def read_checkout(top: Path, config: Path, *, without: Callable[[str], bool]) -> Checkout:
    """A checkout with its agents. Raises what `read_tree` and the configuration raise."""
    place = config.resolve().relative_to(top.resolve())
    text = text_of(config, missing="name one with --config")
    # As if all lay in one place: two checkouts that say the same say it in the same words.
    stated = loads(text, name=place.as_posix(), root=_ANYWHERE / place.parent)
    files = read_tree(top, without=without)
    agents = {name: _footprint(agent, stated, top) for name, agent in stated.agents.items()}
    folders = {agent.folder for agent in agents.values() if agent.folder is not None}
    return Checkout(
        files=files,
        agents=agents,
        config=place.as_posix(),
        reaches={
            name: pointed_to(top, files, agent.folder, others=folders - {agent.folder})
            for name, agent in agents.items()
            if agent.folder is not None
        },
    )


def pointed_to(
    top: Path, files: Mapping[str, str], folder: str, *, others: Collection[str] = ()
) -> frozenset[str]:
    """The folders `others`, and the documentation, that the code in `folder` points to."""

    def read(path: str) -> str:
        is_text = path.endswith(_TEXTS) or files[path].startswith("link ")
        return text_in(top, path) if is_text else ""

    prose = documentation(files)
    return reached(folder, files=files, others=others, prose=prose, read=read)


def package_files(folder: Path, top: Path | None) -> dict[str, bytes]:
    """What says which packages an agent has: files in its folder and above it, by path.

    They are looked for up to the top of the checkout, or where its own history begins if it
    lies in another; outside of both, in the folder alone.
    """
    found: dict[str, bytes] = {}
    here = folder.resolve()
    if top is None or inside(folder, top) is None:
        top = top_of(here, config=".git")
    last = here if top is None else top.resolve()
    for place in (here, *here.parents):
        for file in sorted(place.iterdir()) if place.is_dir() else ():
            if _PACKAGES.fullmatch(file.name) and file.is_file():
                found[os.path.relpath(file, last)] = file.read_bytes()
        if place == last:
            break
    return found


def _footprint(agent: Agent, stated: Config, top: Path) -> Footprint:
    ledger = agent.ledger
    return Footprint(
        folder=None if agent.path is None else _straight(agent.path, top),
        ledger=None if ledger is None or "://" in ledger else _straight(Path(ledger), top),
        stated=(agent, stated.gate, stated.sandbox),
    )


def _straight(path: Path, top: Path) -> str | None:
    """A path from the top of its checkout; None where it leads out of it, or over a link."""
    names: list[str] = []
    if not path.is_relative_to(_ANYWHERE):
        return None
    for name in path.relative_to(_ANYWHERE).parts:
        if name != "..":
            names.append(name)
        elif names:
            names.pop()
        else:
            return None
    written = Path(*names)
    return written.as_posix() if (top / written).resolve() == top.resolve() / written else None


def inside(path: Path, top: Path) -> str | None:
    """The path from the top of its checkout, wherever links lead; None outside of it."""
    found, top = path.resolve(), top.resolve()
    return found.relative_to(top).as_posix() if found.is_relative_to(top) else None
