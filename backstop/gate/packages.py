"""Which files say what packages there are, and whether two of them say the same. Pure."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any, Final

PACKAGES: Final = (
    r"[^/]*requirements[^/]*\.(?:txt|in)|constraints[^/]*\.txt|[^/]*\.lock|pylock[^/]*\.toml"
    r"|pyproject\.toml|setup\.(?:py|cfg)|Pipfile|environment\.ya?ml|\.python-version"
)
"""Names of files that say which packages there are."""

_COMMENT: Final = re.compile(rb"(?:^|\s)#.*")

_PROJECT: Final = ("dependencies", "optional-dependencies", "requires-python")
_TABLES: Final = ("dependency-groups", "build-system")
_TOOLS: Final = ("uv", "poetry", "pdm", "hatch")


def differing(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[str]:
    """The files, by path, that name other packages in `after` than in `before`.

    A project's own version and all else that is no package of another's counts for nothing.
    """
    return [
        path
        for path in sorted(before.keys() | after.keys())
        if _says(path, before.get(path)) != _says(path, after.get(path))
    ]


def _says(path: str, content: bytes | None) -> object:
    """What a file says of packages; all that it holds where nobody knows its form."""
    name = path.rpartition("/")[2]
    if content is not None and name.endswith((".txt", ".in")):
        return _lines(content)
    if content is None or not name.endswith((".toml", "uv.lock")):
        return content
    try:
        told = tomllib.loads(content.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        return content
    if name == "pyproject.toml":
        said: object = _project(told)
    elif name == "uv.lock":
        said = [one for one in told.get("package", ()) if not _is_own(one)]
    else:
        return content
    return json.dumps(said, sort_keys=True, default=str)


def _lines(content: bytes) -> list[bytes]:
    """What pip reads of a list of requirements: a comment begins a line, or follows a blank."""
    lines = (_COMMENT.sub(b"", line).strip() for line in content.splitlines())
    return [line for line in lines if line]


def _project(told: Mapping[str, Any]) -> object:
    project, tools = told.get("project", {}), told.get("tool", {})
    return (
        {name: project.get(name) for name in _PROJECT},
        {name: told.get(name) for name in _TABLES},
        {name: tools.get(name) for name in _TOOLS},
    )


def _is_own(package: Mapping[str, Any]) -> bool:
    """Is it the project itself, whose version says nothing of what is installed?"""
    source = package.get("source", {})
    return isinstance(source, dict) and bool(source.keys() & {"editable", "virtual"})
