"""A proxy in front of an emulated Firestore that lets calls go wrong, byte for byte in between."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any, Final

import grpc  # type: ignore[import-untyped]

_STALL_S: Final = 51.0
_UPSTREAM_S: Final = 60.0
_THREADS: Final = 64
_NOT_PASSED_ON: Final = ("user-agent", "grpc-", "te", "content-type")


class Fault(Enum):
    """What becomes of a call."""

    UNAVAILABLE = auto()
    """It is refused, and never arrives."""
    REPLY_LOST = auto()
    """It is done; the answer says that nobody knows. Of a stream, half of it arrives."""
    LATE = auto()
    """It is done `Proxy.late_s` later, when the caller has given up waiting."""
    DENIED = auto()
    """It is refused: this caller may not."""
    FULL = auto()
    """It is refused: there is no room for it."""
    STALLED = auto()
    """It hangs for 51 s, or until the proxy ends, and never arrives."""


_REFUSALS: Final[Mapping[Fault | None, grpc.StatusCode]] = {
    Fault.UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    Fault.DENIED: grpc.StatusCode.PERMISSION_DENIED,
    Fault.FULL: grpc.StatusCode.RESOURCE_EXHAUSTED,
}


class Proxy(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Passes every call on, but for what `fault` says of it by its name: ``Commit``, say."""

    def __init__(self, upstream: grpc.Channel) -> None:
        self._upstream = upstream
        self._ends = threading.Event()
        self._lock = threading.Lock()
        self._next: deque[Fault] = deque()
        self.fault: Callable[[str], Fault | None] = self._planned
        self.late_s = 1.0

    def plan(self, *faults: Fault) -> None:
        """The next writes go wrong like this, in this order."""
        with self._lock:
            self._next.extend(faults)

    def end(self) -> None:
        """Let go of what hangs."""
        self._ends.set()

    def service(self, details: Any) -> Any:
        """Called by gRPC for each call."""
        streams = details.method.endswith(("/BatchGetDocuments", "/RunQuery"))
        metadata = [
            (name, value)
            for name, value in details.invocation_metadata
            if not name.startswith(_NOT_PASSED_ON)
        ]
        make = self._upstream.unary_stream if streams else self._upstream.unary_unary
        forward = make(details.method, request_serializer=None, response_deserializer=None)
        name = details.method.rpartition("/")[2]

        def one(request: bytes, context: Any) -> Any:
            fault = self._before(name, context)
            with _passing_errors_on(context):
                answer = forward(request, metadata=metadata, timeout=_UPSTREAM_S)
            if fault is Fault.REPLY_LOST:
                context.abort(grpc.StatusCode.UNAVAILABLE, "planned: the reply is lost")
            return answer

        def many(request: bytes, context: Any) -> Iterator[Any]:
            fault = self._before(name, context)
            with _passing_errors_on(context):
                answers = list(forward(request, metadata=metadata, timeout=_UPSTREAM_S))
            if fault is Fault.REPLY_LOST:
                yield from answers[: len(answers) // 2]
                context.abort(grpc.StatusCode.UNAVAILABLE, "planned: the reply breaks off")
            yield from answers

        if streams:
            return grpc.unary_stream_rpc_method_handler(many)
        return grpc.unary_unary_rpc_method_handler(one)

    def _before(self, name: str, context: Any) -> Fault | None:
        fault = self.fault(name)
        if (code := _REFUSALS.get(fault)) is not None:
            context.abort(code, "planned: refused")
        if fault is Fault.STALLED:
            self._ends.wait(_STALL_S)
            context.abort(grpc.StatusCode.UNAVAILABLE, "planned: stalled")
        if fault is Fault.LATE:
            self._ends.wait(self.late_s)
        return fault

    def _planned(self, name: str) -> Fault | None:
        with self._lock:
            return self._next.popleft() if name == "Commit" and self._next else None


@contextmanager
def _passing_errors_on(context: Any) -> Iterator[None]:
    try:
        yield
    except grpc.RpcError as error:
        context.abort(error.code(), error.details())


@contextmanager
def proxy_to(host: str) -> Iterator[tuple[Proxy, str]]:
    """Run a proxy in front of `host`; gives it, and its own ``address:port``."""
    with grpc.insecure_channel(host) as upstream, ThreadPoolExecutor(_THREADS) as threads:
        proxy = Proxy(upstream)
        server = grpc.server(threads, handlers=(proxy,))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield proxy, f"127.0.0.1:{port}"
        finally:
            proxy.end()
            server.stop(grace=None).wait()
