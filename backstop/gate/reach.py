"""What an agent's code points to outside of its folder: other agents, and documentation it reads.

Nobody knows what is imported before it runs; but what an agent takes from a place that is not
its own has to be named in its own files, or in what those name. Words count that stand where a
path or a module's name does, so that a mere mention is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

_POINTING: Final = re.compile(
    r"(?<=[./\\])\s?[\"']?(?P<after>[\w-]++)|(?<![\w-])(?P<before>[\w-]++)(?=[\"']?\s?[./\\])"
)
_IMPORTS: Final = re.compile(
    r"^[ \t]*(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]*(?:\([^)]{0,4000}\)|[^\n]*)", re.MULTILINE
)
_WORD: Final = re.compile(r"[\w-]+")
_QUOTED: Final = re.compile(r"/\s{0,9}[\"']([\w-]+)[\"']")
_PACKAGE: Final = "__init__.py"


def pointed_to(text: str) -> frozenset[str]:
    """The words of a text that may be parts of a path or of a module's name."""
    found = {match["after"] or match["before"] for match in _POINTING.finditer(text)}
    found.update(_QUOTED.findall(text))
    for line in _IMPORTS.findall(text):
        found.update(_WORD.findall(line))
    return frozenset(found)


def reached(
    folder: str,
    *,
    files: Collection[str],
    others: Collection[str],
    prose: Collection[str],
    read: Callable[[str], str],
) -> frozenset[str]:
    """Which of the folders `others` and of the files `prose` the code in `folder` points to.

    Directly, through another of those folders, or through Python files of nobody's folder.
    `read` gives a file's text; of a link, where it leads.
    """
    places = _named(files, others=others, prose=prose)
    found: set[str] = set()
    known: set[str] = set()
    waiting = [path for path in files if _is_in(path, folder)]
    while waiting:
        for name in pointed_to(read(waiting.pop())) - known:
            known.add(name)
            for place in places.get(name, ()):
                if place not in found:
                    found.add(place)
                    waiting += [path for path in files if _is_in(path, place)]
    return frozenset(found & {*others, *prose})


def _named(
    files: Iterable[str], *, others: Collection[str], prose: Collection[str]
) -> Mapping[str, list[str]]:
    """The places that code can point to, by each name that would do it."""
    places: dict[str, list[str]] = {}
    for other in others:
        places.setdefault(other.rpartition("/")[2], []).append(other)
    for path in files:
        shared = path.endswith(".py") and not any(_is_in(path, other) for other in others)
        if path in prose or shared:
            for name in _names_of(path, deep=path in prose):
                places.setdefault(name, []).append(path)
    return places


def _names_of(path: str, *, deep: bool) -> Iterator[str]:
    *above, last = path.split("/")
    if last == _PACKAGE:
        yield from above[-1:]
    else:
        yield last.partition(".")[0]
    if deep:
        # A folder of texts is read by whoever lists it.
        yield from above


def _is_in(path: str, folder: str) -> bool:
    return folder in {"", "."} or path == folder or path.startswith(f"{folder}/")
