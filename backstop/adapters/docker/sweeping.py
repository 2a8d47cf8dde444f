"""Whose containers are whose, and the end of those whose owner is gone.

Every container of ours says who made it, and until when it may run at most. An owner that ends
in peace removes its own; what a killed one left is removed by the next.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import FrameType
from typing import Final, TypeAlias

import docker
import requests
from docker.errors import APIError, DockerException, NotFound

from backstop.adapters.docker.client import asking
from backstop.adapters.owners import liveness_of, this_process
from backstop.ports import Liveness

OWNER: Final = "dev.backstop.owner"
UNTIL: Final = "dev.backstop.until"
_SLACK: Final = timedelta(minutes=2)
_BEING_REMOVED: Final = 409

_Handler: TypeAlias = Callable[[int, FrameType | None], object] | int | None


def ownership(*, now: datetime, for_s: float) -> dict[str, str]:
    """Labels for a container of this process that runs for `for_s` seconds at most."""
    until = now + timedelta(seconds=for_s) + _SLACK
    return {OWNER: this_process(), UNTIL: str(int(until.timestamp()))}


def sweep(client: docker.DockerClient, *, now: datetime) -> int:
    """Remove the containers whose owner is gone; how many there were.

    Where the owner cannot be looked up (it ran in a container of its own, or on another host),
    a container is left alone until its time is over. Raises `SandboxError`.
    """
    with asking("list the containers that were left behind"):
        found = client.api.containers(all=True, filters={"label": [OWNER]})
    left = [one["Id"] for one in found if is_abandoned(one.get("Labels") or {}, now=now)]
    for container in left:
        _remove(client, container)
    return len(left)


def is_abandoned(labels: Mapping[str, str], *, now: datetime) -> bool:
    """Is nobody there any more who would remove the container with these labels?"""
    until = labels.get(UNTIL, "")
    match liveness_of(labels.get(OWNER, "")):
        case Liveness.ALIVE:
            return False
        case Liveness.GONE:
            return True
        case Liveness.UNKNOWN:
            return until.isdecimal() and now.timestamp() > int(until)


def remove_own(client: docker.DockerClient) -> None:
    """Remove every container of this process, in whatever state; a daemon that fails is left be."""
    with contextlib.suppress(DockerException, requests.RequestException):
        labels = [f"{OWNER}={this_process()}"]
        for one in client.api.containers(all=True, filters={"label": labels}):
            _remove(client, one["Id"])


def remove_at_signals(connect: Callable[[], docker.DockerClient]) -> None:
    """From now on SIGTERM and SIGINT first remove every container of this process.

    Then they do what they did before. `connect` makes a client of its own: the one in use may
    be in the middle of a request. Without effect outside the main thread, where Python does not
    handle signals.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _removing(connect, before=signal.getsignal(number)))


def _removing(
    connect: Callable[[], docker.DockerClient], *, before: _Handler
) -> Callable[[int, FrameType | None], None]:
    owner = os.getpid()

    def handle(number: int, frame: FrameType | None) -> None:
        if os.getpid() == owner:  # a forked child has none
            with contextlib.suppress(Exception), contextlib.closing(connect()) as client:
                remove_own(client)
        if callable(before):
            before(number, frame)
        elif before != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    return handle


def _remove(client: docker.DockerClient, container: str) -> None:
    try:
        client.api.remove_container(container, v=True, force=True)
    except NotFound:
        pass
    except APIError as error:
        # Another gate sweeps at the same time.
        if error.response is None or error.response.status_code != _BEING_REMOVED:
            raise
