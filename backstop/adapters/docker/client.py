"""Finds the daemon, and says in one line why there is none that can be used."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import docker
import requests
from docker.errors import APIError, DockerException
from docker.utils import kwargs_from_env

from backstop.errors import SandboxError

OLDEST_API: Final = (1, 41)
"""Docker 20.10: the first that answers a system call with the error that our profile names."""
_TIMEOUT_S: Final = 60
_MOST_SAID: Final = 400
_CAUSE: Final = re.compile(r"\[Errno -?\d+\] (?P<cause>[^)'\"]+)")
"""What the system said, in the representations of the exceptions that were wrapped around it."""


def connect(url: str | None = None, *, podman: bool = False) -> docker.DockerClient:
    """A client of the daemon at `url`, else of DOCKER_HOST, else of the first known socket.

    `podman` means podman's own: CONTAINER_HOST, else its sockets. Raises `SandboxError` with the
    slug ``docker-missing``, ``docker-denied`` or ``docker-too-old``.
    """
    settings: dict[str, Any] = {} if podman else dict(kwargs_from_env())
    named = os.environ.get("CONTAINER_HOST") if podman else settings.get("base_url")
    where = url or named or _first(podman=podman)
    settings["base_url"] = where
    try:
        _knock(where)
        spoken = _spoken(settings)
    except (DockerException, requests.RequestException, OSError, ValueError) as error:
        raise _no_client(error, where, "CONTAINER_HOST" if podman else "DOCKER_HOST") from None
    if tuple(int(part) for part in spoken.split(".")) < OLDEST_API:
        raise _too_old(where, spoken)
    return docker.DockerClient(version=spoken, timeout=_TIMEOUT_S, **settings)


def _spoken(settings: dict[str, Any]) -> str:
    """The newest version of the API that the daemon speaks; no connection stays open."""
    oldest = ".".join(map(str, OLDEST_API))
    client = docker.DockerClient(version=oldest, timeout=_TIMEOUT_S, **settings)
    try:
        said = str(client.api.version(api_version=False).get("ApiVersion"))
    finally:
        client.close()
    if not re.fullmatch(r"\d{1,3}\.\d{1,3}", said):
        raise ValueError(f"it speaks version {said[:20]!r} of the API")
    return said


@contextlib.contextmanager
def asking(what: str) -> Iterator[None]:
    """Say in one line what the daemon refused. Raises `SandboxError` (slug ``docker``)."""
    try:
        yield
    except APIError as error:
        said = str(error.explanation or error)[-_MOST_SAID:]
        raise SandboxError(f"the daemon could not {what}: {said}", slug="docker") from None
    except (DockerException, requests.RequestException, OSError) as error:
        raise SandboxError(
            f"the daemon did not {what}: {error}; see whether it still runs", slug="docker"
        ) from None


def _first(*, podman: bool) -> str:
    """The first socket that is there; where none is, the usual one."""
    mine = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}")
    dockers = [Path("/var/run/docker.sock"), mine / "docker.sock"]
    podmans = [mine / "podman/podman.sock", Path("/run/podman/podman.sock")]
    known = podmans if podman else [*dockers, *podmans]
    return f"unix://{next((one for one in known if _is_there(one)), known[0])}"


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:
        return True  # it may be: whoever opens it is told


def _knock(where: str) -> None:
    """Raise the system's own word for why a socket cannot be used; a client would hide it."""
    kind, _, path = where.partition("://")
    if kind in {"unix", "http+unix"}:
        with socket.socket(socket.AF_UNIX) as knocking:
            knocking.settimeout(_TIMEOUT_S)
            knocking.connect(path)


def _no_client(error: Exception, where: str, variable: str) -> SandboxError:
    match error:
        case PermissionError():
            return SandboxError(
                f"the daemon at {where} may not be used by user {os.geteuid()}; join the group "
                "that owns its socket, or run with --runtime none",
                slug="docker-denied",
            )
        case FileNotFoundError() | NotADirectoryError() | ConnectionRefusedError():
            return SandboxError(
                f"no container daemon listens at {where}; start it, name another one in "
                f"{variable}, or run with --runtime none",
                slug="docker-missing",
            )
        case _:
            said = _CAUSE.search(str(error))
            why = said["cause"] if said else error
            return SandboxError(
                f"the daemon at {where} cannot be talked to: {why}; check {variable}",
                slug="docker-missing",
            )


def _too_old(where: str, spoken: str) -> SandboxError:
    oldest = ".".join(map(str, OLDEST_API))
    return SandboxError(
        f"the daemon at {where} speaks version {spoken} of the API, and a candidate's system "
        f"calls can be bounded from {oldest} (Docker 20.10) on; update it",
        slug="docker-too-old",
    )
