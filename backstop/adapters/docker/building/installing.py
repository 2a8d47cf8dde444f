"""The one step with a network: packages, in a capped container that never has the source."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

import docker
from docker.errors import APIError
from docker.types import Ulimit

from backstop.adapters.docker.building.daemon import (
    container,
    disk_full,
    file_of,
    is_gone,
    said_of,
    shown,
    told,
)
from backstop.adapters.docker.building.recipe import Recipe
from backstop.adapters.docker.building.template import INSTALLER, WORKPLACE, Template
from backstop.errors import SandboxError

_LOOK_S: Final = 0.2
_MEASURE_S: Final = 4.0
_UNMEASURED: Final = 24
"""So often in a row nothing could be counted, before it is ended unseen."""
_TELL_S: Final = 2.0
_MOST_SAID: Final = 128 << 10
_PATH: Final = re.compile(r"/[A-Za-z0-9._/+-]{1,200}", re.ASCII)
_LAST: Final = 4
_OUTPUT_ENDS: Final = "[end of output]"
_LARGEST_FILE: Final = 2 << 30

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A container, ended, that holds what was installed.

    `python` is the interpreter that has it, `packages` the folder it lies in ("" where the image
    itself had everything), `adk` the version of google-adk, as the container says.
    """

    container: str
    python: str
    packages: str
    adk: str


@contextmanager
def installed(
    client: docker.DockerClient,
    base: str,
    what: Template,
    recipe: Recipe,
    *,
    subject: str,
    deadline: float,
    labels: Mapping[str, str],
    say: Say,
) -> Iterator[Installed]:
    """Install `what` on the image `base`; the container is gone afterwards.

    `subject` begins every message. Raises `SandboxError`: ``build-hangs``, ``build-failed``,
    ``build-memory``, ``disk-full``, ``base-unusable``, ``no-adk``.
    """
    options: dict[str, Any] = {
        "user": f"{INSTALLER}:{INSTALLER}",
        "working_dir": str(WORKPLACE),
        "labels": dict(labels),
        "healthcheck": {"test": ["NONE"]},
        "bounds": _bounds(recipe),
    }
    script = str(WORKPLACE / "install.py")
    with (
        told(subject),
        container(client, base, ["python3", "-I", script, str(WORKPLACE)], **options) as made,
    ):
        client.api.put_archive(made, "/", what.archive())
        _start(client, made, subject)
        state = _awaited(client, made, recipe, subject=subject, deadline=deadline, say=say)
        said = said_of(
            file_of(client, made, str(WORKPLACE / "said.json"), most=_MOST_SAID),
        )
        if state["ExitCode"] or "slug" in said:
            raise _failure(subject, state, said, recipe)
        yield Installed(
            container=made,
            python=_path(said.get("python"), subject),
            packages=_path(said["packages"], subject) if said.get("packages") else "",
            adk=shown(said.get("adk", ""))[:40],
        )


def _start(client: docker.DockerClient, made: str, subject: str) -> None:
    try:
        client.api.start(made)
    except APIError as error:
        if "executable file not found" not in str(error.explanation):
            raise
        raise _unusable(subject, "it has no python3") from None


def _bounds(recipe: Recipe) -> dict[str, object]:
    return {
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "mem_limit": recipe.memory,
        "memswap_limit": recipe.memory,
        "nano_cpus": int(recipe.cpus * 1e9),
        "pids_limit": recipe.pids,
        "ulimits": [
            Ulimit(name="core", soft=0, hard=0),
            Ulimit(name="fsize", soft=_LARGEST_FILE, hard=_LARGEST_FILE),
            Ulimit(name="nofile", soft=4096, hard=4096),
            Ulimit(name="nproc", soft=4096, hard=4096),
        ],
    }


def _awaited(
    client: docker.DockerClient,
    made: str,
    recipe: Recipe,
    *,
    subject: str,
    deadline: float,
    say: Say,
) -> Mapping[str, object]:
    """The state in which the container ended. Raises `SandboxError` where it has to be ended."""
    measure = tell = monotonic()
    unmeasured = 0
    while True:
        state: Mapping[str, object] = client.api.inspect_container(made)["State"]
        now = monotonic()
        if not state["Running"]:
            return state
        if now > deadline:
            last = file_of(client, made, str(WORKPLACE / "now"), most=200) or b""
            raise SandboxError(
                f"{subject}: not done after {recipe.wall_s:g} s and ended; it last said "
                f"{shown(last.decode('utf-8', 'replace'))!r}; raise sandbox.build.wall, or see "
                "whether the package index answers",
                slug="build-hangs",
            )
        if now - measure > _MEASURE_S:
            measure = now
            written = _written(client, made)
            unmeasured = 0 if written is not None else unmeasured + 1
            # What nobody can count for minutes is taken for too much.
            if (written or 0) > recipe.disk or unmeasured > _UNMEASURED:
                raise _too_much(subject, recipe)
        if now - tell > _TELL_S:
            tell = now
            last = file_of(client, made, str(WORKPLACE / "now"), most=200) or b""
            say(f"installing packages: {shown(last.decode('utf-8', 'replace'))[:60]}")
        time.sleep(_LOOK_S)


def _written(client: docker.DockerClient, made: str) -> int | None:
    """Bytes that the container has written: no daemon bounds that itself.

    None where a file went away under podman's count, which then counts nothing.
    """
    try:
        found = client.api.containers(filters={"id": made}, size=True)
    except APIError as error:
        if is_gone(error):
            return None
        raise
    written: int = sum(one.get("SizeRw", 0) for one in found)
    return written


def _too_much(subject: str, recipe: Recipe) -> SandboxError:
    return SandboxError(
        f"{subject}: more than {recipe.disk >> 30} GiB were written and it was ended; install less",
        slug="disk-full",
    )


def _failure(
    subject: str, state: Mapping[str, object], said: Mapping[str, str], recipe: Recipe
) -> SandboxError:
    detail = said.get("detail", "")
    if state.get("OOMKilled"):
        return SandboxError(
            f"{subject}: more memory than {recipe.memory >> 20} MiB was needed; raise "
            "sandbox.build.memory",
            slug="build-memory",
        )
    match said.get("slug"):
        case "no-adk":
            return SandboxError(
                f"{subject}: google-adk is not among them; name it there, as every ADK agent "
                "needs it",
                slug="no-adk",
            )
        case "python-too-old":
            return _unusable(subject, f"its Python is {shown(detail)}, which is older than 3.11")
        case "base-unusable":
            return _unusable(subject, shown(detail))
        case "disk":
            return disk_full(subject)
        case "build-failed":
            return _not_installed(subject, detail, recipe)
        case _:
            why = shown(str(state.get("Error") or f"it left with {state.get('ExitCode')}"))
            return _unusable(subject, f"nothing can be installed on it: {why}")


def _unusable(subject: str, why: str) -> SandboxError:
    return SandboxError(
        f"{subject}: the base image does not serve: {why}; name another one in sandbox.build.base",
        slug="base-unusable",
    )


def _not_installed(subject: str, output: str, recipe: Recipe) -> SandboxError:
    """What pip said is wrong: its errors if it named them, else its last lines."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("ERROR:", "error:"))]
    if _OUTPUT_ENDS in lines:
        # The code of a package speaks before pip says that it failed.
        lines = lines[: lines.index(_OUTPUT_ENDS)]
        errors = [*errors[:1], *lines[-_LAST:]]
    hint = "correct the versions"
    if recipe.wheels_only and "No matching distribution" in output:
        hint = (
            "correct the version, or, if it exists as source only, take one with a wheel or set "
            "sandbox.build.wheels_only to false"
        )
    return SandboxError(
        f"{subject}: pip says: {shown(' '.join(errors or lines[-_LAST:]))}; {hint}",
        slug="build-failed",
    )


def _path(text: str | None, subject: str) -> str:
    if text is None or _PATH.fullmatch(text) is None:
        raise _unusable(subject, "it does not say where its Python is")
    return text
