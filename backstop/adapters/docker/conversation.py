"""A candidate that runs in a container: lines to it, lines from it, and its end."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import docker
import requests
from docker.errors import DockerException, NotFound

from backstop.adapters.bounds import (
    Closing,
    Limits,
    LineSplitter,
    flooding,
    gone,
    out_of_time,
    silent,
)
from backstop.adapters.docker.attached import STDERR, STDOUT, Attached
from backstop.adapters.docker.client import asking
from backstop.adapters.docker.podman import was_killed
from backstop.errors import SandboxError

_REMOVALS: Final = 3
_GRACE_S: Final = 2


class Conversation(Closing):
    """A running harness in container `container`. Use it in a `with` block.

    It owns the container from the beginning: whatever happens, `close` removes it. `podman` says
    whose word it is how the container ended.
    """

    def __init__(
        self,
        *,
        client: docker.DockerClient,
        container: str,
        limits: Limits,
        agent: Path,
        podman: bool = False,
    ) -> None:
        self._client = client
        self._container = container
        self._limits = limits
        self._agent = agent
        self._podman = podman
        self._splitter = LineSplitter(limits.line)
        self._lines: deque[bytes] = deque()
        self._said = 0
        self._why: SandboxError | None = None
        self._noise = bytearray()
        self._timer = threading.Timer(limits.wall_s, self._run_out)
        self._timer.daemon = True
        self._listener = threading.Thread(target=self._collect_noise, daemon=True)
        self._wire: Attached | None = None
        self._printed: Attached | None = None

    def begin(self, first: bytes) -> None:
        """Start the container and hand it `first`. Raises `SandboxError`."""
        self._wire = Attached(self._client, self._container, STDOUT, writes=True)
        self._printed = Attached(self._client, self._container, STDERR)
        self._wire.wait_no_longer_than(self._limits.silence_s)
        with asking("start a candidate's container"):
            self._client.api.start(self._container)
        self._timer.start()
        self._listener.start()
        self.send(first)

    def send(self, line: bytes) -> None:
        """Send one line, newline included. Raises `SandboxError` if the harness is gone."""
        try:
            self._open.send(line, is_there=self._is_running)
        except TimeoutError:
            raise self._ended_as(silent(self._agent, self._limits)) from None
        except OSError:
            raise self._ended() from None

    def receive(self) -> bytes | None:
        """The next line, without its newline; None once the harness has left.

        Raises `WireError` for a line beyond the limit or without an end, and `SandboxError` for
        silence beyond the limit, a candidate out of time (both ``agent-hangs``), too much said
        (``agent-floods``) and a container out of memory (``agent-memory``).
        """
        while not self._lines:
            try:
                chunk = self._open.receive()
            except TimeoutError:
                raise self._ended_as(silent(self._agent, self._limits)) from None
            except OSError:
                raise self._ended() from None
            if chunk is None:
                self._open.end()
                self._check_the_end()
                return None
            self._said += len(chunk)
            if self._said > self._limits.said:
                raise self._ended_as(flooding(self._agent, self._limits))
            self._lines.extend(self._splitter.feed(chunk))
        return self._lines.popleft()

    @property
    def noise(self) -> str:
        """The last that the candidate printed, made safe to show; never trust it."""
        return bytes(self._noise).decode("utf-8", "backslashreplace")

    def kill(self) -> None:
        """End the candidate and every process it started, at once."""
        # Connections first: a daemon that cannot hand on what was said does not kill, either.
        for attached in (self._wire, self._printed):
            if attached is not None:
                attached.end()
        with contextlib.suppress(DockerException, requests.RequestException):
            self._client.api.kill(self._container, "SIGKILL")

    def close(self) -> None:
        """End the candidate and remove its container."""
        self._timer.cancel()
        for attached in (self._wire, self._printed):
            if attached is not None:
                attached.close()
        if self._listener.ident is not None:
            self._listener.join(_GRACE_S)
        self._remove()

    def _remove(self) -> None:
        """Remove the container; one that is just ending is waited for, which podman asks for.

        A daemon that fails must not stop others from being closed: the next gate sweeps.
        """
        for _ in range(_REMOVALS):
            with contextlib.suppress(DockerException, requests.RequestException):
                self._client.api.remove_container(self._container, v=True, force=True)
                return
            with contextlib.suppress(DockerException, requests.RequestException):
                self._client.api.wait(self._container, timeout=_GRACE_S)

    @property
    def _open(self) -> Attached:
        if self._wire is None:
            raise gone(self._agent)
        return self._wire

    def _ended_as(self, why: SandboxError) -> SandboxError:
        """End the candidate for a reason; the first one counts."""
        self._why = self._why or why
        self.kill()
        return self._why

    def _check_the_end(self) -> None:
        state = self._state()
        if self._why is not None or self._ran_out_of_memory(state):
            raise self._ended(state)
        self._splitter.finish()

    def _ended(self, state: dict[str, Any] | None = None) -> SandboxError:
        if self._why is not None:
            return self._why
        if self._ran_out_of_memory(self._state() if state is None else state):
            return SandboxError(
                f"{self._agent}: the candidate needed more memory than its container has "
                f"({self._limits.memory} bytes) and was ended; raise sandbox.memory if it is "
                "right to",
                slug="agent-memory",
            )
        return gone(self._agent)

    def _ran_out_of_memory(self, state: Mapping[str, Any]) -> bool:
        return bool(state.get("OOMKilled")) or (self._podman and was_killed(state))

    def _is_running(self) -> bool:
        try:
            return bool(self._client.api.inspect_container(self._container)["State"]["Running"])
        except NotFound:
            return False
        except (DockerException, requests.RequestException):
            return True  # whoever cannot say does not know that it has ended

    def _state(self) -> dict[str, Any]:
        """How the container ended; empty if it is not there any more, or did not end."""
        try:
            self._client.api.wait(self._container, timeout=_GRACE_S)
            return dict(self._client.api.inspect_container(self._container)["State"])
        except (DockerException, requests.RequestException):
            return {}

    def _run_out(self) -> None:
        self._ended_as(out_of_time(self._agent, self._limits))

    def _collect_noise(self) -> None:
        """Keep the end of what the candidate prints; megabytes of it must not fill a pipe."""
        printed, stream = 0, self._printed
        with contextlib.suppress(OSError, ValueError):
            while stream is not None and (chunk := stream.receive()) is not None:
                printed += len(chunk)
                self._noise += chunk
                del self._noise[: -self._limits.noise]
                if printed > self._limits.printed:
                    self._ended_as(flooding(self._agent, self._limits))
