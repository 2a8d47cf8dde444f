"""GitHub's own description of its API, and a proxy that holds both sides to it.

Both are npm packages, locked beside this file. They are installed once into the user's cache
and cut down to what is used there (one description has 13 MB, and four hundred come with it).
Nothing of them is part of this repository.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

HERE: Final = Path(__file__).parent
_LOCKED: Final = ("package.json", "package-lock.json")
_TRIES: Final = 600
_PAUSE_S: Final = 0.1
_NEEDED: Final = ("node", "npm", "setpriv")
DESCRIPTIONS: Final = ("api.github.com", "ghes-3.17")
"""GitHub itself, and the oldest server of one's own that still has a description."""

TARBALL: Final = "/repos/{owner}/{repo}/tarball/{ref}"
OPERATIONS: Final = {
    "/repos/{owner}/{repo}/issues/{issue_number}/comments": ("get", "post"),
    "/repos/{owner}/{repo}/issues/comments/{comment_id}": ("patch", "delete"),
    TARBALL: ("get",),
    "/repos/{owner}/{repo}/git/commits/{commit_sha}": ("get",),
    "/repos/{owner}/{repo}/commits": ("get",),
    "/repos/{owner}/{repo}/contents/{path}": ("get",),
    "/repos/{owner}/{repo}/pulls": ("get",),
}
"""All that the client asks for."""
EVENTS: Final = ("pull_request", "merge_group", "workflow_dispatch", "push", "workflow_run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """Where the pieces lie."""

    folder: Path

    @property
    def prism(self) -> Path:
        return self.folder / "node_modules/@stoplight/prism-cli/dist/index.js"

    def description(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def description_of(self, name: str) -> dict[str, Any]:
        """The trimmed description itself."""
        told: dict[str, Any] = json.loads(self.description(name).read_bytes())
        return told

    def payloads(self) -> dict[str, list[dict[str, Any]]]:
        """Examples of what GitHub sends, by the name of the event."""
        told: dict[str, list[dict[str, Any]]] = json.loads(
            (self.folder / "payloads.json").read_text(encoding="utf-8")
        )
        return told


def installed() -> Installed:
    """Install what is locked, unless it is there; skips where there is no npm."""
    for program in _NEEDED:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed, and the proxy of the contract needs it")
    locked = b"".join((HERE / name).read_bytes() for name in _LOCKED)
    locked += repr((DESCRIPTIONS, OPERATIONS, EVENTS)).encode()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "backstop"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"github-contract-{hashlib.sha256(locked).hexdigest()[:16]}"
    # Several test processes may get here at once.
    with (cache / "github-contract.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _install(folder)
    return Installed(folder=folder)


def _install(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        here = Path(made) / "whole"
        here.mkdir()
        for name in _LOCKED:
            shutil.copy(HERE / name, here)
        subprocess.run(
            ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"],
            cwd=here,
            check=True,
            timeout=300,
        )
        octokit = here / "node_modules/@octokit"
        for name in DESCRIPTIONS:
            whole = json.loads((octokit / f"openapi/generated/{name}.json").read_bytes())
            (here / f"{name}.json").write_text(json.dumps(trimmed(whole)), encoding="utf-8")
        examples = octokit / "webhooks-examples/api.github.com/index.json"
        told = {one["name"]: one["examples"] for one in json.loads(examples.read_bytes())}
        (here / "payloads.json").write_text(json.dumps({name: told[name] for name in EVENTS}))
        shutil.rmtree(octokit)
        here.rename(folder)


def trimmed(whole: dict[str, Any]) -> dict[str, Any]:
    """The description of `OPERATIONS` alone, with everything that they refer to."""
    paths = {
        path: {key: part for key, part in whole["paths"][path].items() if key in methods}
        for path, methods in OPERATIONS.items()
    }
    kept: dict[str, Any] = {"openapi": whole["openapi"], "info": whole["info"], "paths": paths}
    seen: set[str] = set()
    todo: list[Any] = [paths]
    while todo:
        match todo.pop():
            case {"$ref": str(reference), **rest}:
                todo.extend(rest.values())
                if reference not in seen:
                    seen.add(reference)
                    todo.append(_copy(whole, kept, reference.removeprefix("#/").split("/")))
            case dict() as parts:
                todo.extend(parts.values())
            case list() as parts:
                todo.extend(parts)
            case _:
                pass
    return kept


def _copy(whole: dict[str, Any], kept: dict[str, Any], names: list[str]) -> Any:
    found, place = whole, kept
    for name in names[:-1]:
        found, place = found[name], place.setdefault(name, {})
    place[names[-1]] = found[names[-1]]
    return found[names[-1]]


@contextmanager
def validating(upstream: str, description: str) -> Iterator[str]:
    """A proxy before `upstream`; gives its address.

    A request against the description is answered 422, an answer against it 500.
    """
    there = installed()
    command = ["node", str(there.prism), "proxy", str(there.description(description)), upstream]
    with tempfile.NamedTemporaryFile() as log:
        # The kernel ends it with us, however we end.
        proxy = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command, "--errors", "--port", "0"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            yield _address(proxy, Path(log.name))
        finally:
            proxy.kill()
            proxy.wait()


def _address(proxy: subprocess.Popen[bytes], log: Path) -> str:
    for _ in range(_TRIES):
        said = log.read_text(encoding="utf-8")
        if found := re.search(r"listening on (http://\S+)", said):
            return found[1]
        if proxy.poll() is not None:
            break
        time.sleep(_PAUSE_S)
    pytest.fail(f"the proxy does not listen: {log.read_text(encoding='utf-8')[-2000:]}")
