"""The client's own HTTP, with bounds of ours: bytes and seconds of an answer, and no redirects.

A redirect would carry the key to whoever it names. The client's timeout is one of silence, so
an answer that drips would never end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import httpx
from google import genai
from google.genai import types

MAX_ANSWER: Final = 8 * 1024 * 1024
"""Bytes of the largest answer that is read."""


class OutOfBounds(Exception):
    """An answer is larger, later or other than it may be."""


class Bounds:
    """The deadline of the call at hand, by thread; `now` is a clock that never goes back."""

    def __init__(self, *, now: Callable[[], float]) -> None:
        self._now = now
        self._calls = threading.local()
        self._http: httpx.Client | None = None

    def opened(self) -> httpx.Client:
        """The HTTP client that is bounded; `close` ends it."""
        self._http = httpx.Client(
            follow_redirects=False,
            # Packed, an answer of a kilobyte could come to a gigabyte.
            headers={"accept-encoding": "identity"},
            event_hooks={"response": [self.watch]},
        )
        return self._http

    def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            self._http.close()

    def begin(self, deadline: float) -> None:
        """A call begins on this thread."""
        self._calls.deadline = deadline

    def check(self, size: int) -> None:
        """Raises `OutOfBounds` for more bytes than may be, or once the deadline is over."""
        if size > MAX_ANSWER:
            raise OutOfBounds(f"its answer is larger than {MAX_ANSWER >> 20} MiB")
        if self._now() > self._calls.deadline:
            raise OutOfBounds("its answer took longer than a call may")

    def watch(self, response: httpx.Response) -> None:
        """Bound what is read of a response from here on."""
        if response.is_redirect:
            raise OutOfBounds(f"it answered with a redirect (HTTP {response.status_code})")
        kind = response.headers.get("content-type", "")
        if response.is_success and not kind.startswith("application/json"):
            raise OutOfBounds(f"its answer is no JSON, but {ascii(kind)[:60]}")
        if response.headers.get("content-encoding", "identity") != "identity":
            raise OutOfBounds("its answer is packed, although that was not asked for")
        stream = response.stream
        if isinstance(stream, httpx.SyncByteStream):
            response.stream = _Bounded(stream, self)


class _Bounded(httpx.SyncByteStream):
    def __init__(self, stream: httpx.SyncByteStream, bounds: Bounds) -> None:
        self._stream = stream
        self._bounds = bounds

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for chunk in self._stream:
            size += len(chunk)
            self._bounds.check(size)
            yield chunk

    def close(self) -> None:
        self._stream.close()


def opened(
    base_url: str | None, timeout_s: float, bounds: Bounds, **who: str | bool | None
) -> genai.Client:
    """A client with these bounds that asks as `who`.

    Raises what the client raises, for want of credentials.
    """
    options = types.HttpOptions(
        base_url=base_url, timeout=int(timeout_s * 1000), httpx_client=bounds.opened()
    )
    told: Any = who
    return genai.Client(http_options=options, **told)
