"""One Firestore database over the wire: conditional writes, reads at one instant, queries.

It speaks the public API directly, below the vendor's client library, for three reasons: that
library repeats calls on its own for up to a minute, takes the emulator's address from the
environment only, and costs as much as the call itself.

An answer that leaves open whether a write was applied (no connection, no answer in time) is
never handed on: the same write is repeated until the answer is definite, or time is up. So a
caller has to make its writes conditional, and has to be able to recognise its own.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import grpc  # type: ignore[import-untyped]
from google.auth.exceptions import GoogleAuthError
from google.cloud.firestore_v1.services.firestore.transports.grpc import FirestoreGrpcTransport
from google.protobuf.timestamp_pb2 import Timestamp  # type: ignore[import-untyped]

from backstop.adapters.firestore.messages import (
    Answer,
    Commit,
    Committed,
    Document,
    Get,
    Got,
    Query,
    Range,
    Rollback,
    Write,
    begin_message,
    commit_message,
    document,
    full,
    get_message,
    microseconds,
    query_message,
)
from backstop.errors import BackstopError

_SERVICE: Final = "/google.firestore.v1.Firestore/"
_ENDPOINT: Final = "firestore.googleapis.com:443"
_OPTIONS: Final = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # After an outage the next try must not wait for minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # Stores of one process may be pointed at the same address, and each has its own line.
    ("grpc.use_local_subchannel_pool", 1),
)
_PAUSE_S: Final = 0.02
_LONGEST_PAUSE_S: Final = 0.4

_OPEN: Final = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
    }
)
"""Answers after which a write may or may not have been applied, now or later."""

_OVER: Final = frozenset({grpc.StatusCode.ABORTED, grpc.StatusCode.INVALID_ARGUMENT})
"""How a transaction ends that others came in the way of, or that took too long."""

_LOST: Final = frozenset({grpc.StatusCode.ALREADY_EXISTS, grpc.StatusCode.FAILED_PRECONDITION})

_FAULTS: Final[Mapping[grpc.StatusCode, tuple[str, str]]] = {
    grpc.StatusCode.NOT_FOUND: ("store-missing", "create the database, or name another"),
    grpc.StatusCode.PERMISSION_DENIED: (
        "store-denied",
        "give this account the role datastore.user",
    ),
    grpc.StatusCode.UNAUTHENTICATED: ("store-denied", "log in, or give this process an account"),
    grpc.StatusCode.RESOURCE_EXHAUSTED: ("store-full", "raise the quota, or wait until it renews"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """All writes were applied, at these instants of the server."""

    at: int
    version: Timestamp


@dataclass(frozen=True, slots=True)
class Lost:
    """Nothing was applied by this try: a document was there already, or has changed since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A transaction, and what it began with: documents, and when they were read by the server.

    What was read stays as it is until the transaction ends, or it ends with nothing done.
    """

    id: bytes
    documents: list[Document | None]
    read: int


class Patience:
    """How long one operation may go on: seconds of real time."""

    __slots__ = ("_pause", "_until", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._until = time.monotonic() + seconds
        self._pause = _PAUSE_S

    def left(self, at_most: float) -> float:
        """Seconds for one try, never none at all."""
        return max(0.001, min(at_most, self._until - time.monotonic()))

    def goes_on(self) -> bool:
        """Wait a little before the next try; False if there is no time for one."""
        if time.monotonic() + self._pause >= self._until:
            return False
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE_S)
        return True


class _Line:
    """The connection of one process, and what can be called over it."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.pid = os.getpid()
        self.channel = channel
        self.commit = channel.unary_unary(
            f"{_SERVICE}Commit",
            request_serializer=Commit.SerializeToString,
            response_deserializer=Committed.FromString,
        )
        self.get = channel.unary_stream(
            f"{_SERVICE}BatchGetDocuments",
            request_serializer=Get.SerializeToString,
            response_deserializer=Got.FromString,
        )
        self.rollback = channel.unary_unary(
            f"{_SERVICE}Rollback", request_serializer=Rollback.SerializeToString
        )
        self.query = channel.unary_stream(
            f"{_SERVICE}RunQuery",
            request_serializer=Query.SerializeToString,
            response_deserializer=Answer.FromString,
        )


class Database:
    """A database of Firestore, or of its emulator at `emulator` (``address:port``).

    A write, or a look at what is named, takes `patience_s` at most. Paths are relative to the
    database. Raises `BackstopError`: ``store-down``, ``store-denied``, ``store-missing``,
    ``store-full``, ``store-refused``.
    """

    def __init__(self, *, project: str, name: str, emulator: str | None, patience_s: float) -> None:
        self._patience_s = patience_s
        self._try_s = patience_s / 2  # a try that hangs leaves time for another
        self._name = f"projects/{project}/databases/{name}"
        self._shown = f"firestore://{project}/{name}" + (f" at {emulator}" if emulator else "")
        self._emulator = emulator
        self._metadata = (
            ("google-cloud-resource-prefix", self._name),
            ("x-goog-request-params", f"database={quote(self._name, safe='')}"),
            *((("authorization", "Bearer owner"),) if emulator else ()),
        )
        self._lock = threading.Lock()
        self._connected: _Line | None = None

    def patience(self) -> Patience:
        """The time for one operation, from now."""
        return Patience(self._patience_s)

    def close(self) -> None:
        """Let go of the connection; the next operation makes another."""
        with self._lock:
            if self._connected is not None:
                self._connected.channel.close()
            self._connected = None

    def commit(
        self, writes: Sequence[Write], patience: Patience, *, transaction: bytes = b""
    ) -> Written | Lost:
        """Apply all of `writes` or none; say whether their conditions held.

        In a `transaction` what it has read is one of the conditions; it is over then.
        """
        request = commit_message(self._name, writes, transaction)
        while True:
            try:
                done = self._line().commit(
                    request, timeout=patience.left(self._try_s), metadata=self._metadata
                )
            except grpc.RpcError as error:
                # A missing database is told from a missing document when it is read.
                gone = error.code() is grpc.StatusCode.NOT_FOUND and writes[0].version is not None
                if gone or error.code() in _LOST or (transaction and error.code() in _OVER):
                    return Lost()
                self._again(error, patience)
            else:
                version = done.write_results[0].update_time
                return Written(at=microseconds(version), version=version)

    def get(
        self, paths: Sequence[str], patience: Patience, *, only: Sequence[str] = ()
    ) -> list[Document | None]:
        """The documents at `paths`, None where there is none; `only` these fields of them."""
        names = [full(self._name, path) for path in paths]
        request = get_message(self._name, names, only)
        while True:
            try:
                answers = list(
                    self._line().get(
                        request, timeout=patience.left(self._try_s), metadata=self._metadata
                    )
                )
            except grpc.RpcError as error:
                self._again(error, patience)
            else:
                found = {
                    answer.found.name: document(answer.found, answer.read_time)
                    for answer in answers
                    if answer.HasField("found")
                }
                return [found.get(name) for name in names]

    def begin(self, paths: Sequence[str], patience: Patience, *, only: Sequence[str] = ()) -> Begun:
        """Begin a transaction by reading the documents at `paths`; `only` these fields of them."""
        names = [full(self._name, path) for path in paths]
        request = begin_message(self._name, names, only)
        while True:
            try:
                answers = list(
                    self._line().get(
                        request, timeout=patience.left(self._try_s), metadata=self._metadata
                    )
                )
            except grpc.RpcError as error:
                self._again(error, patience)
            else:
                found = {
                    answer.found.name: document(answer.found, answer.read_time)
                    for answer in answers
                    if answer.HasField("found")
                }
                return Begun(
                    id=next(answer.transaction for answer in answers if answer.transaction),
                    documents=[found.get(name) for name in names],
                    read=max(microseconds(answer.read_time) for answer in answers),
                )

    def rollback(self, transaction: bytes) -> None:
        """End a transaction in which nothing is to be written; one that is left ends by itself."""
        request = Rollback(database=self._name, transaction=transaction)
        with suppress(grpc.RpcError):
            self._line().rollback(request, timeout=self._try_s, metadata=self._metadata)

    def query(self, *ranges: Range, patience_s: float | None = None) -> Iterator[Document]:
        """The documents in `ranges`, all as they were at one instant of the server, by id.

        Each must come within `patience_s` after the one before, by default twice the usual time.
        """
        at: Timestamp | None = None
        wait_s = patience_s or 2 * self._patience_s
        for one in ranges:
            last, patience = "", Patience(wait_s)
            while True:
                request = query_message(self._name, one, after=last, at=at)
                try:
                    for answer in self._line().query(
                        request, timeout=wait_s / 2, metadata=self._metadata
                    ):
                        at = at or answer.read_time
                        if answer.HasField("document"):
                            found = document(answer.document, answer.read_time)
                            yield found
                            last, patience = found.id, Patience(wait_s)
                    break
                except grpc.RpcError as error:
                    self._again(error, patience)

    def _line(self) -> _Line:
        line = self._connected
        if line is None or line.pid != os.getpid():
            # A connection does not survive a fork; the parent's is left to the parent.
            with self._lock:
                line = self._connected = _Line(self._channel())
        return line

    def _channel(self) -> grpc.Channel:
        if self._emulator:
            return grpc.insecure_channel(self._emulator, options=_OPTIONS)
        try:
            return FirestoreGrpcTransport.create_channel(_ENDPOINT, options=_OPTIONS)
        except GoogleAuthError as error:
            raise BackstopError(
                f"{self._shown}: no account to log in with ({error}); run `gcloud auth "
                "application-default login`, or give this process a service account",
                slug="store-denied",
            ) from None

    def _again(self, error: grpc.RpcError, patience: Patience) -> None:
        """Wait for the next try, or say why there is none."""
        code, said = error.code(), (error.details() or "")[:200]
        if code in _OPEN:
            if patience.goes_on():
                return
            raise BackstopError(
                f"{self._shown} did not answer within {patience.seconds:g} s ({code.name}: "
                f"{said}); check the network and the service, then try again",
                slug="store-down",
            ) from None
        slug, remedy = _FAULTS.get(code, ("store-refused", "report it with this message"))
        raise BackstopError(
            f"{self._shown} refused ({code.name}: {said}); {remedy}", slug=slug
        ) from None
