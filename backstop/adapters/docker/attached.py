"""A connection to a container's streams: bytes in, and the daemon's frames out of it."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterable
from typing import Any, Final

import docker

from backstop.adapters.docker.client import asking
from backstop.errors import SandboxError

_HEADER: Final = struct.Struct(">B3xI")
_CHUNK: Final = 1 << 18


class Frames:
    """Takes the headers out of what the daemon sends; holds no more than one header's bytes."""

    def __init__(self) -> None:
        self._header = bytearray()
        self._left = 0

    def feed(self, chunk: bytes) -> bytes:
        """The bytes of `chunk` that are the container's own."""
        found, at = bytearray(), 0
        while at < len(chunk):
            if self._left == 0:
                missing = _HEADER.size - len(self._header)
                self._header += chunk[at : at + missing]
                at += missing
                if len(self._header) == _HEADER.size:
                    _, self._left = _HEADER.unpack(self._header)
                    self._header.clear()
                continue
            taken = chunk[at : at + self._left]
            found += taken
            at += len(taken)
            self._left -= len(taken)
        return bytes(found)


class Attached:
    """The streams named in `streams` of one container, on a connection of their own.

    Make it before the container starts: what it says before that is lost. Raises
    `SandboxError` if the daemon does not connect them.
    """

    def __init__(self, client: docker.DockerClient, container: str, streams: Iterable[str]) -> None:
        with asking("connect a container's streams"):
            params = dict.fromkeys(("stream", *streams), 1)
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
        self._frames = Frames()

    def wait_no_longer_than(self, seconds: float) -> None:
        """From now on `send` and `receive` raise `TimeoutError` after so long."""
        self._socket.settimeout(seconds)

    def send(self, data: bytes) -> None:
        """Send all of `data`. Raises `OSError` if the container does not take it."""
        self._socket.sendall(data)

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
