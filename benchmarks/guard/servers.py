"""The servers that some contenders store into, each started when first asked for."""

from __future__ import annotations

import http.client
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from backstop.adapters.emulators import firestore_emulator

_STARTS_WITHIN_S: Final = 60.0
_PAUSE_S: Final = 0.1


class Servers:
    """Addresses of running servers by name; they end with the stack."""

    def __init__(self, stack: ExitStack, *, python: Path) -> None:
        self._stack = stack
        self._python = python
        self._running: dict[str, str] = {"": ""}

    def address(self, name: str) -> str:
        """Where ``moto`` or ``firestore`` listens; the empty name is no server."""
        if name not in self._running:
            server = firestore_emulator() if name == "firestore" else moto(self._python)
            self._running[name] = self._stack.enter_context(server)
        return self._running[name]


@contextmanager
def moto(python: Path) -> Iterator[str]:
    """Moto's server in a process of its own, on the loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(python), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _wait_for(port, server)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _STARTS_WITHIN_S
    while time.monotonic() < until and server.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_STARTS_WITHIN_S)
        try:
            connection.request("GET", "/moto-api/")
            connection.getresponse()
        except OSError:
            time.sleep(_PAUSE_S)
        else:
            return
        finally:
            connection.close()
    raise RuntimeError("moto's server did not come up")
