"""A server of our own that speaks ``generateContent``, as bad as a test wants it."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

KEY = "key-of-a-test-0123456789"


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """What is sent as it is; `reset` breaks the connection off instead, `drip` sends it slowly."""

    status: int = 200
    body: bytes = b""
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    reset: bool = False
    drip: threading.Event | None = None


Answer: TypeAlias = Mapping[str, Any] | Raw
Script: TypeAlias = Callable[[dict[str, Any]], Answer]
"""What a request's body is answered."""


def says(text: str, *, tokens: tuple[int, int] = (10, 5)) -> dict[str, Any]:
    """An answer of words."""
    return of_parts({"text": text}, tokens=tokens)


def calls(name: str, tokens: tuple[int, int] = (10, 5), **args: Any) -> dict[str, Any]:
    """An answer that calls a tool."""
    return of_parts({"functionCall": {"name": name, "args": args}}, tokens=tokens)


def of_parts(
    *parts: Mapping[str, Any], tokens: tuple[int, int] = (10, 5), finish: str = "STOP"
) -> dict[str, Any]:
    """An answer of these parts."""
    return {
        "candidates": [
            {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}
        ],
        "usageMetadata": {
            "promptTokenCount": tokens[0],
            "candidatesTokenCount": tokens[1],
            "totalTokenCount": sum(tokens),
        },
        "modelVersion": "test-model",
    }


@dataclass(slots=True, kw_only=True)
class Served:
    """A server that runs: its address, and the requests that it got, with their headers."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


@contextmanager
def gemini(script: Script) -> Iterator[Served]:
    """A server on the loopback that answers by `script`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(script))
    server.daemon_threads = True
    served = Served(url=f"http://127.0.0.1:{server.server_address[1]}")
    server.served = served  # type: ignore[attr-defined]  # the handler's only way to it
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(script: Script) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body are two writes: the second would wait for the client's delayed ACK, 40 ms.
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            served: Served = self.server.served  # type: ignore[attr-defined]  # set above
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            served.requests.append(body)
            served.headers.append({name.lower(): value for name, value in self.headers.items()})
            served.paths.append(self.path)
            answer = script(body)
            if not isinstance(answer, Raw):
                answer = Raw(body=json.dumps(answer).encode())
            self._send(answer)

        def _send(self, answer: Raw) -> None:
            if answer.reset:
                # Closed with a linger of none: the other side gets a reset, not an end.
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                os.close(self.connection.detach())
                self.close_connection = True
                return
            self.send_response(answer.status)
            self.send_header("content-type", answer.kind)
            self.send_header("content-length", str(len(answer.body)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self._write(answer)
            except OSError:
                self.close_connection = True  # whoever asked has had enough

        def _write(self, answer: Raw) -> None:
            if answer.drip is None:
                self.wfile.write(answer.body)
                return
            for byte in answer.body:
                self.wfile.write(bytes([byte]))
                if answer.drip.wait(0.02):
                    break

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its base's name
            pass

    return Handler
