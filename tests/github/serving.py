"""HTTP on loopback for fakes: one function answers; a thread for each connection."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

_DRIP_S: Final = 0.05
_IDLE_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request; `headers` by lower-case name."""

    method: str
    path: str
    raw_query: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def token(self) -> str | None:
        """Whose token came along."""
        _, _, token = self.headers.get("authorization", "").partition(" ")
        return token or None


class Answer(NamedTuple):
    """An answer; with status 0 the connection ends without one.

    With `drips_until` the body comes byte by byte, until that is set; what `breaks_off` ends in
    the middle of it.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    drips_until: threading.Event | None = None
    breaks_off: bool = False


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are two writes: the second would wait for the client's delayed ACK, 40 ms.
    disable_nagle_algorithm = True
    timeout = _IDLE_S
    answer: Callable[[Asked], Answer]

    def _serve(self) -> None:
        told = type(self).answer(self._asked())
        if not told.status:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response_only(told.status)
        for name, value in told.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(told.body)))
        self.end_headers()
        if told.breaks_off:
            self.close_connection = True
            self.wfile.write(told.body[: len(told.body) // 2])
        elif told.drips_until is None:
            self.wfile.write(told.body)
        else:
            self._drip(told.body, told.drips_until)

    def _asked(self) -> Asked:
        length = int(self.headers.get("content-length") or 0)
        parts = urlsplit(self.path)
        return Asked(
            method=self.command,
            path=parts.path,
            raw_query=parts.query,
            query=dict(parse_qsl(parts.query)),
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(length),
        )

    def _drip(self, body: bytes, ended: threading.Event) -> None:
        self.close_connection = True
        for byte in body:
            if ended.wait(_DRIP_S):
                return
            try:
                self.wfile.write(bytes([byte]))
            except OSError:
                return  # nobody reads any more

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = _serve  # noqa: N815 - its base's names

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving(answer: Callable[[Asked], Answer], host: str) -> Iterator[str]:
    """Serve `answer` at a free port of `host`; gives the address."""
    handler = type("Handler", (_Handler,), {"answer": staticmethod(answer)})
    server = ThreadingHTTPServer((host, 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
