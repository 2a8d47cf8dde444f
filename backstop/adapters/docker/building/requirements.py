"""Requirements as pip writes them, taken apart: only releases on the index are let through.

A pull request writes these files. What pip would take from them beside names and versions
(another index, a folder, an address, a build from source) is refused, with its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final, TypeAlias

from backstop.errors import SandboxError

Read: TypeAlias = Callable[[str], bytes | None]
"""The content of a file of the checkout, by its name from the top; None if it is not there."""

_MOST_LINES: Final = 5_000
_DEEPEST: Final = 8
_LONGEST: Final = 8_000
"""Characters of a requirement without its hashes."""
_PYPI: Final = "https://pypi.org/simple"
_NAME: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_CLAUSE: Final = r"(?:===?|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+"
_RELEASE: Final = re.compile(
    rf"{_NAME}\s*(?:\[\s*(?:{_NAME}(?:\s*,\s*{_NAME})*)?\s*\])?\s*"
    rf"(?:{_CLAUSE}(?:\s*,\s*{_CLAUSE})*,?|\(\s*{_CLAUSE}(?:\s*,\s*{_CLAUSE})*\s*\))?",
    re.ASCII,
)
_MARKER: Final = re.compile(
    r"""(?: [A-Za-z_][A-Za-z_.]* | '[^'"\\]*' | "[^'"\\]*" | [<>=!~]=?=? | [()] | \s )++""",
    re.ASCII | re.VERBOSE,
)
_HASH: Final = re.compile(r"--hash[= ](sha(?:256|384|512):[0-9a-f]{64,128})", re.ASCII)
_OPTION: Final = re.compile(r"(--?[A-Za-z][A-Za-z-]*)(?:[= ]\s*)?(.*)", re.DOTALL)
_OF_NO_ACCOUNT: Final = {"--only-binary", "--prefer-binary", "--require-hashes"}
"""What the recipe decides by itself, and in the same sense."""


@dataclass(slots=True)
class Packages:
    """What is to be installed: one requirement a line, and what only bounds their versions.

    `file` is where it was found. `preview` lets versions before a release count.
    """

    file: str
    wanted: list[str] = field(default_factory=list)
    bounds: list[str] = field(default_factory=list)
    preview: bool = False

    @property
    def locked(self) -> bool:
        """Does a hash stand with everything that is to be installed?"""
        return bool(self.wanted) and all("--hash=" in line for line in self.wanted)


def read_requirements(name: str, read: Read, *, index: str | None) -> Packages:
    """The requirements file `name` and those it names. `index` is the one that is installed from.

    Raises `SandboxError`: ``requirements-missing``, ``requirements-refused``.
    """
    found = Packages(file=name)
    reading = _Reading(read, index or _PYPI, found)
    reading.file(name, into=found.wanted, depth=0)
    return found


def release(text: str, *, at: str) -> str:
    """One requirement, as a line of ours. Raises `SandboxError` (``requirements-refused``)."""
    said, *hashes = re.split(r"\s+(?=--hash[= ])", text.strip())
    required, _, marker = said.partition(";")
    right = (
        len(required) + len(marker) <= _LONGEST
        and _RELEASE.fullmatch(required.strip())
        and (not marker.strip() or _MARKER.fullmatch(marker))
        and all(_HASH.fullmatch(one.strip()) for one in hashes)
    )
    if not right:
        raise refusal(at, f"{text.strip()[:200]!r} is no release on the package index")
    line = " ".join(required.split())
    if marker.strip():
        line += f" ; {' '.join(marker.split())}"
    return " ".join((line, *(f"--hash={one.strip()[7:].strip()}" for one in hashes)))


def refusal(at: str, why: str) -> SandboxError:
    """What is said of a line that is not let through."""
    return SandboxError(
        f"{at}: {why}; name a released version of it, on the index that sandbox.build.index says",
        slug="requirements-refused",
    )


def missing(name: str) -> SandboxError:
    """What is said of a file that is not there."""
    return SandboxError(
        f"{name!r} is not in the checkout; add it, or name another file in "
        "sandbox.build.requirements",
        slug="requirements-missing",
    )


class _Reading:
    def __init__(self, read: Read, index: str, found: Packages) -> None:
        self._read = read
        self._index = index
        self._found = found
        self._lines = 0

    def file(self, name: str, *, into: list[str], depth: int) -> None:
        data = self._read(name)
        if data is None:
            raise missing(name)
        if depth > _DEEPEST:
            raise refusal(name, "requirements files name each other without an end")
        for number, line in _logical_lines(data.decode("utf-8", "backslashreplace")):
            self._lines += 1
            if self._lines > _MOST_LINES:
                raise refusal(name, f"more than {_MOST_LINES:,} requirements")
            at = f"{name}:{number}"
            if line.startswith("-"):
                self._option(line, at=at, name=name, into=into, depth=depth)
            else:
                into.append(release(line, at=at))

    def _option(self, line: str, *, at: str, name: str, into: list[str], depth: int) -> None:
        match = _OPTION.fullmatch(line)
        option, value = (match[1], match[2].strip()) if match else (line, "")
        match option:
            case "-r" | "--requirement":
                self.file(_beside(name, value, at), into=into, depth=depth + 1)
            case "-c" | "--constraint":
                self.file(_beside(name, value, at), into=self._found.bounds, depth=depth + 1)
            case "--pre":
                self._found.preview = True
            case "-i" | "--index-url" if value.rstrip("/") == self._index.rstrip("/"):
                pass
            case _ if option in _OF_NO_ACCOUNT:
                pass
            case _:
                raise refusal(at, f"{line[:200]!r} is not followed")


def _beside(name: str, said: str, at: str) -> str:
    """The file that a requirements file names, which lies in the checkout."""
    parts: list[str] = list(PurePosixPath(name).parent.parts)
    for part in said.split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part == ".." or "\0" in part:
            raise refusal(at, f"{said!r} is not in the checkout")
        elif part not in {"", "."}:
            parts.append(part)
    if said.startswith("/") or "://" in said or not parts:
        raise refusal(at, f"{said!r} is not in the checkout")
    return "/".join(parts)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments, put together where they go on, each with its number."""
    joined, first = "", 0
    for number, physical in enumerate(text.splitlines(), 1):
        first = first or number
        if physical.lstrip().startswith("#"):
            continue
        if physical.endswith("\\"):
            joined += physical[:-1] + " "
            continue
        line = re.sub(r"\s#.*", "", joined + physical).strip()
        if line:
            yield first, line
        joined, first = "", 0
    if line := re.sub(r"\s#.*", "", joined).strip():
        yield first, line
