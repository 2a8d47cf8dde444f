"""The project around an agent: where relative paths begin, and what else of it the agent names."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

_OF_A_PROJECT: Final = ("pyproject.toml", "setup.py", "setup.cfg")
# In an agent's own folder it is what a deployment of that agent installs, and marks no project.
_ABOVE_AN_AGENT: Final = (*_OF_A_PROJECT, "requirements.txt")
_CODE: Final = (".py", ".pyc")
_FOLDERS: Final = 64
"""So many folders named one by one are looked into; what names more is not trying to be found."""


def project_of(agent: Path, checkouts: Sequence[Path] = ()) -> Path:
    """The folder that the agent in folder `agent` is started in, absolute.

    The nearest one upwards that is a project's, by the files in it, else the top of the checkout:
    of `checkouts` the innermost around the agent, or where its history begins. For an agent in
    no checkout, and for one that is all of its checkout, the folder above it.
    """
    here = agent.resolve()
    top = _top(here, checkouts)
    if top is None:
        return here.parent
    for place in (here, *here.parents):
        marks = _OF_A_PROJECT if place == here else _ABOVE_AN_AGENT
        if any((place / mark).is_file() for mark in marks):
            return place
        if place == top:
            break
    return top if top != here else here.parent


def _top(here: Path, checkouts: Sequence[Path]) -> Path | None:
    around = [top for one in checkouts if here.is_relative_to(top := one.resolve())]
    if around:
        return max(around, key=lambda top: len(top.parts))
    return next((place for place in (here, *here.parents) if (place / ".git").exists()), None)


def data_around(agent: Path, names: Collection[str], *, project: Path) -> Mapping[str, str]:
    """Digests of the project's files outside of the agent's folder that `names` lead to.

    By their paths from the agent's folder. Modules are left out. A name may be a whole path, from
    any folder between the agent's and the project's, or its parts one by one; a folder that is
    named as a path, by a slash in it, stands for the files in it.
    """
    here, top = agent.resolve(), project.resolve()
    looking = _Looking(names, top)
    for place in (here, *here.parents):
        if not place.is_relative_to(top):
            break
        looking.look_from(place)
    return {
        os.path.relpath(path, here).replace(os.sep, "/"): _digest(path)
        for path in sorted(looking.found)
        if not path.resolve().is_relative_to(here)
    }


class _Looking:
    """A search for the files that names lead to, in as many folders as a person would name."""

    def __init__(self, names: Collection[str], top: Path) -> None:
        self._names = sorted(names)  # of too many folders the same ones count each time
        self._top = top
        self._known: set[Path] = set()
        self.found: set[Path] = set()

    def look_from(self, place: Path) -> None:
        """Find what names lead to from one folder."""
        folders = [place]
        for folder in folders:
            for name in self._names:
                path = Path(os.path.normpath(folder / name))
                if path in self._known or not self._is_inside(path):
                    continue
                self._known.add(path)
                if _is_data(path):
                    self.found.add(path)
                elif path.is_dir() and len(folders) < _FOLDERS:
                    folders.append(path)
                    if "/" in name:
                        self._take_all(path)

    def _take_all(self, folder: Path) -> None:
        with contextlib.suppress(OSError):
            self.found.update(
                path for path in folder.iterdir() if _is_data(path) and self._is_inside(path)
            )

    def _is_inside(self, path: Path) -> bool:
        return path.is_relative_to(self._top) and path.resolve().is_relative_to(self._top)


def _is_data(path: Path) -> bool:
    return path.suffix not in _CODE and path.is_file()


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return "unreadable"
