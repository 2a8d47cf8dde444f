"""Finds the daemon, and says in one line why there is none that can be used."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import docker
import requests
from docker.errors import APIError, DockerException, InvalidVersion
from docker.utils import kwargs_from_env

from backstop.errors import SandboxError

OLDEST_API: Final = (1, 41)
"""Docker 20.10: the first that answers a system call with the error that our profile names."""
_TIMEOUT_S: Final = 60
_UNREACHABLE: Final = frozenset({errno.ENOENT, errno.ECONNREFUSED, errno.ENOTDIR})
_DENIED: Final = frozenset({errno.EACCES, errno.EPERM})


def connect(url: str | None = None, *, podman: bool = False) -> docker.DockerClient:
    """A client of the daemon at `url`, else of DOCKER_HOST, else of the first known socket.

    `podman` looks for podman's sockets instead of Docker's first, and not in DOCKER_HOST. Raises
    `SandboxError` with the slug ``docker-missing``, ``docker-denied`` or ``docker-too-old``.
    """
    settings = {} if podman else kwargs_from_env()
    where = url or settings.get("base_url") or _first(podman=podman)
    settings["base_url"] = where
    try:
        client = docker.DockerClient(version="auto", timeout=_TIMEOUT_S, **settings)
    except (DockerException, requests.RequestException, ValueError) as error:
        raise _no_client(error, where) from None
    version = client.api.api_version
    if tuple(int(part) for part in version.split(".")) < OLDEST_API:
        client.close()
        raise _too_old(where, f"speaks version {version} of the API")
    return client


@contextlib.contextmanager
def asking(what: str) -> Iterator[None]:
    """Say in one line what the daemon refused. Raises `SandboxError` (slug ``docker``)."""
    try:
        yield
    except APIError as error:
        said = error.explanation or str(error)
        raise SandboxError(f"the daemon could not {what}: {said}", slug="docker") from None
    except (DockerException, requests.RequestException, OSError) as error:
        raise SandboxError(
            f"the daemon did not {what}: {error}; see whether it still runs", slug="docker"
        ) from None


def _first(*, podman: bool) -> str:
    """The first socket that is there; where none is, the one that would usually be."""
    mine = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}")
    dockers = [Path("/var/run/docker.sock"), mine / "docker.sock"]
    podmans = [mine / "podman/podman.sock", Path("/run/podman/podman.sock")]
    known = podmans if podman else [*dockers, *podmans]
    return f"unix://{next((socket for socket in known if _is_there(socket)), known[0])}"


def _is_there(socket: Path) -> bool:
    try:
        return socket.exists()
    except PermissionError:
        return True  # it may be: whoever opens it is told


def _no_client(error: Exception, where: str) -> SandboxError:
    number = _cause(error)
    if number in _DENIED:
        return SandboxError(
            f"the daemon at {where} may not be used by user {os.getuid()}; join the group that "
            "owns its socket, or run with --runtime none",
            slug="docker-denied",
        )
    if isinstance(error, InvalidVersion) or "lower than" in str(error):
        return _too_old(where, str(error))
    if number in _UNREACHABLE:
        return SandboxError(
            f"no container daemon listens at {where}; start it, name another one in DOCKER_HOST, "
            "or run with --runtime none",
            slug="docker-missing",
        )
    return SandboxError(
        f"the daemon at {where} cannot be talked to: {error}; check DOCKER_HOST",
        slug="docker-missing",
    )


def _too_old(where: str, what: str) -> SandboxError:
    oldest = ".".join(map(str, OLDEST_API))
    return SandboxError(
        f"the daemon at {where} {what}, and a candidate's system calls can be bounded from "
        f"{oldest} (Docker 20.10) on; update it",
        slug="docker-too-old",
    )


def _cause(error: BaseException) -> int | None:
    """The system's number for what lies at the bottom of an error of the client library."""
    waiting, seen = [error], list[object]()
    while waiting:
        one = waiting.pop()
        if any(one is known for known in seen):
            continue
        seen.append(one)
        if isinstance(one, OSError) and one.errno is not None:
            return one.errno
        more = [one.__cause__, one.__context__, *one.args, getattr(one, "reason", None)]
        waiting += [other for other in more if isinstance(other, BaseException)]
    return None
