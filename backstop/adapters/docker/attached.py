"""A connection to a container's streams: bytes in, and the daemon's frames out of it."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
from collections.abc import Callable
from math import inf
from typing import Any, Final

import docker

from backstop.adapters.docker.client import asking
from backstop.errors import SandboxError

_HEADER: Final = struct.Struct(">B3xI")
_CHUNK: Final = 1 << 18
_LOOK_S: Final = 1.0


STDOUT, STDERR = 1, 2
"""The daemon's numbers of the streams."""


class Frames:
    """Takes one stream out of what the daemon sends; holds no more than one header's bytes."""

    def __init__(self, stream: int) -> None:
        self._stream = stream
        self._header = bytearray()
        self._is_ours = False
        self._left = 0

    def feed(self, chunk: bytes) -> bytes:
        """The bytes of `chunk` that are the stream's own."""
        found, at = bytearray(), 0
        while at < len(chunk):
            if self._left == 0:
                missing = _HEADER.size - len(self._header)
                self._header += chunk[at : at + missing]
                at += missing
                if len(self._header) == _HEADER.size:
                    stream, self._left = _HEADER.unpack(self._header)
                    self._is_ours = stream == self._stream
                    self._header.clear()
                continue
            taken = chunk[at : at + self._left]
            # Podman sends every stream, whichever was asked for.
            found += taken if self._is_ours else b""
            at += len(taken)
            self._left -= len(taken)
        return bytes(found)


class Attached:
    """Stream `number` of one container, and its input too if `writes`, on a connection of its own.

    Make it before the container starts: what it says before that is lost. Raises
    `SandboxError` if the daemon does not connect them.
    """

    def __init__(
        self, client: docker.DockerClient, container: str, number: int, *, writes: bool = False
    ) -> None:
        names = ("stream", "stdout" if number == STDOUT else "stderr", *(["stdin"] * writes))
        with asking("connect a container's streams"):
            params = dict.fromkeys(names, 1)
            self._file: Any = client.api.attach_socket(container, params=params)
        # Both are closed in the end: one alone keeps the connection, and the daemon would wait
        # for somebody to read it before it removes the container.
        self._socket: Any = getattr(self._file, "_sock", self._file)
        if not hasattr(self._socket, "settimeout"):
            self._file.close()
            raise SandboxError(
                "a daemon can be talked to by unix:// or tcp:// only; set DOCKER_HOST to one",
                slug="docker-missing",
            )
        self._frames = Frames(number)
        self._patience_s = inf

    def wait_no_longer_than(self, seconds: float) -> None:
        """From now on `send` and `receive` raise `TimeoutError` after so long."""
        self._socket.settimeout(seconds)
        self._patience_s = seconds

    def send(self, data: bytes, *, is_there: Callable[[], bool] = lambda: True) -> None:
        """Send all of `data`. Raises `OSError` if the container does not take it.

        A daemon may leave the input of a container open that has ended: while nothing is taken,
        `is_there` is asked now and then.
        """
        view, waited = memoryview(data), 0.0
        while view:
            _, ready, _ = select.select([], [self._socket], [], _LOOK_S)
            if ready:
                view, waited = view[self._socket.send(view) :], 0.0
                continue
            waited += _LOOK_S
            if waited >= self._patience_s:
                raise TimeoutError
            if not is_there():
                raise BrokenPipeError

    def receive(self) -> bytes | None:
        """What comes next, perhaps nothing; None at the end. Raises `OSError`."""
        chunk = self._socket.recv(_CHUNK)
        return self._frames.feed(chunk) if chunk else None

    def end(self) -> None:
        """Wake whoever sends or receives."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the connection and let go of it."""
        self.end()
        for one in (self._file, self._socket):
            with contextlib.suppress(OSError):
                one.close()
