"""Which packages a candidate needs: the file nearest to the agent that says so, in any form.

``requirements.txt``, ``pylock.toml``, ``uv.lock`` and the dependencies of ``pyproject.toml``
become the same lines, and go through the same narrow gate.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Final, TypeAlias

from backstop.adapters.docker.building.requirements import (
    Packages,
    Read,
    missing,
    read_requirements,
    refusal,
    release,
)
from backstop.errors import SandboxError

_FORMS: Final = ("requirements.txt", "pylock.toml", "uv.lock", "pyproject.toml")
_MOST_WAYS: Final = 64
_Table: TypeAlias = Mapping[str, Any]
_Node: TypeAlias = tuple[str, str, str]
_Ways: TypeAlias = frozenset[frozenset[str]]
"""Under which markers a package is needed: one set a way, all of which must hold on it."""


def find_packages(
    agent: PurePosixPath, read: Read, *, named: str | None, index: str | None
) -> Packages:
    """What the agent in folder `agent`, from the checkout's top, needs.

    `named` is the file that the configuration names; else it is looked for from the agent's
    folder upwards. Raises `SandboxError`: ``requirements-missing``, ``requirements-refused``.
    """
    if named is not None:
        found = _read(named, read, agent, index)
        if found is None:
            raise missing(named)
        return found
    for folder in (agent, *agent.parents):
        for form in _FORMS:
            if (found := _read(str(folder / form), read, agent, index)) is not None:
                return found
    raise SandboxError(
        f"no packages are named for the agent {str(agent)!r}: neither it nor a folder above it has "
        f"one of {', '.join(_FORMS)}; add one that names google-adk",
        slug="requirements-missing",
    )


def _read(name: str, read: Read, agent: PurePosixPath, index: str | None) -> Packages | None:
    """What a file names; None if it is not there, or speaks of something else."""
    data = read(name)
    if data is None:
        return None
    last = PurePosixPath(name).name
    if not last.endswith((".toml", ".lock")):
        return read_requirements(name, read, index=index)
    try:
        table = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise refusal(name, f"is no TOML ({' '.join(str(error).split())[:200]})") from None
    try:
        if last == "uv.lock":
            return _of_uv(name, table, agent)
        if last.startswith("pylock.") or "packages" in table:
            return _of_pylock(name, table)
        return _of_project(name, table)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise refusal(name, f"does not have its form ({type(error).__name__} {error})") from None


def _of_project(name: str, table: _Table) -> Packages | None:
    project = table.get("project", {})
    if "dependencies" not in project:
        return None
    return Packages(
        file=name, wanted=[release(one, at=name) for one in _texts(project["dependencies"])]
    )


def _of_pylock(name: str, table: _Table) -> Packages:
    found = Packages(file=name)
    for package in table["packages"]:
        shown = f"package {package['name']!r}"
        if package.keys() & {"vcs", "directory", "archive"} or "version" not in package:
            raise refusal(name, f"{shown} comes from an address or a folder")
        files = [*package.get("wheels", ()), *([package["sdist"]] if "sdist" in package else [])]
        hashes = [f"sha256:{file['hashes']['sha256']}" for file in files]
        found.wanted.append(
            _line(name, package["name"], package["version"], package.get("marker"), hashes)
        )
    return found


def _of_uv(name: str, table: _Table, agent: PurePosixPath) -> Packages:
    found = Packages(file=name)
    lock = _UvLock(name, table["package"])
    top = PurePosixPath(name).parent
    inside = agent.relative_to(top) if agent.is_relative_to(top) else PurePosixPath()
    for (package, version, extra), ways in sorted(lock.needed(inside).items()):
        held = lock.package(package, version)
        # An extra of a package brings others in, and is none itself.
        if extra or lock.lies_here(held):
            continue
        if "registry" not in held["source"]:
            raise refusal(name, f"package {package!r} comes from an address or a folder")
        files = [*held.get("wheels", ()), *([held["sdist"]] if "sdist" in held else [])]
        hashes = [file["hash"] for file in files if "hash" in file]
        found.wanted.append(_line(name, package, version, _marker(ways), hashes))
    return found


class _UvLock:
    """The packages of a uv.lock, and what needs what."""

    def __init__(self, name: str, packages: Iterable[_Table]) -> None:
        self._name = name
        self._packages: dict[str, list[_Table]] = {}
        for package in packages:
            self._packages.setdefault(package["name"], []).append(package)

    def package(self, name: str, version: str) -> _Table:
        """The package of a name and version. Raises `KeyError`."""
        for package in self._packages[name]:
            if package.get("version", "") == version:
                return package
        raise KeyError(f"{name} {version}")

    def lies_here(self, package: _Table) -> bool:
        """Is it a folder of the checkout, and so no package to be fetched?"""
        return bool(package["source"].keys() & {"virtual", "editable", "directory"})

    def needed(self, agent: PurePosixPath) -> dict[_Node, _Ways]:
        """What is needed by the project that holds `agent`, and on which conditions."""
        root = self._project(agent)
        start = (root["name"], root.get("version", ""), "")
        ways: dict[_Node, _Ways] = {start: frozenset({frozenset()})}
        waiting = [start]
        while waiting:
            node = waiting.pop()
            for other, marker in self._after(node):
                through = {way | {marker} if marker else way for way in ways[node]}
                known = ways.get(other, frozenset())
                shortest = _shortest(known | through)
                if len(shortest) > _MOST_WAYS:
                    raise refusal(
                        self._name,
                        f"{other[0]!r} is needed in more than {_MOST_WAYS} ways: write a "
                        "requirements.txt with `uv export`",
                    )
                if shortest != known:
                    ways[other] = shortest
                    waiting.append(other)
        return ways

    def _project(self, agent: PurePosixPath) -> _Table:
        """The package of the folder that holds the agent; the nearest one of a workspace."""
        places = {
            PurePosixPath(place): package
            for packages in self._packages.values()
            for package in packages
            for place in [next(iter(package["source"].values()))]
            if self.lies_here(package)
        }
        for folder in (agent, *agent.parents):
            if folder in places:
                return places[folder]
        raise refusal(self._name, f"holds no project for {str(agent)!r}")

    def _after(self, node: _Node) -> Iterator[tuple[_Node, str]]:
        name, version, extra = node
        package = self.package(name, version)
        needs = package.get("optional-dependencies", {}).get(extra, ()) if extra else ()
        for need in needs if extra else package.get("dependencies", ()):
            other = need.get("version") or self._only_version(need["name"])
            marker = need.get("marker", "")
            for wanted in ("", *need.get("extra", ())):
                yield (need["name"], other, wanted), marker

    def _only_version(self, name: str) -> str:
        (package,) = self._packages[name]
        return str(package.get("version", ""))


def _shortest(ways: Iterable[frozenset[str]]) -> _Ways:
    """Ways of which none is another one with more conditions."""
    kept: list[frozenset[str]] = []
    for way in sorted(ways, key=len):
        if not any(other <= way for other in kept):
            kept.append(way)
    return frozenset(kept)


def _marker(ways: _Ways) -> str | None:
    if frozenset() in ways:
        return None
    written = sorted(" and ".join(f"({one})" for one in sorted(way)) for way in ways)
    return written[0] if len(written) == 1 else " or ".join(f"({one})" for one in written)


def _line(at: str, name: str, version: str, marker: str | None, hashes: Iterable[str]) -> str:
    text = f"{name}=={version}" + (f" ; {marker}" if marker else "")
    return release(" ".join((text, *(f"--hash={one}" for one in hashes))), at=at)


def _texts(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"{value!r} is no text")
        yield value
