"""One request to GitHub, tried once: where its token goes, how much is read, what is not known.

The token goes to the host of the API and nowhere else. A redirect that leads away (a tarball
lies on another host, under an address that is a key itself) is followed without it, and no
address is ever shown with its query, nor logged with it, whoever turns logging on.
"""

from __future__ import annotations

import contextlib
import logging
import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import BinaryIO, Final

import httpx
import msgspec

from backstop.errors import BackstopError

MOST: Final = 64 * 1024 * 1024
"""Bytes of an answer that are read, unless the caller says otherwise."""

_HOPS: Final = 5
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_KEEPING: Final = frozenset({307, 308})
"""Redirects that keep method and body; the others may turn a change into a look."""
_SAID: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked: the body of a successful answer goes `into` a file, if there is one."""

    method: str
    url: str
    params: Mapping[str, str] | None = None
    json: bytes | None = None
    into: BinaryIO | None = None
    most: int = MOST


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer, read to its end. `headers` by lower-case name."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    def said(self) -> str:
        """GitHub's own message in it; empty if there is none."""
        try:
            return msgspec.json.decode(self.body, type=_Message).message
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return ""


class _Message(msgspec.Struct, frozen=True):
    message: str = ""


class NotSent(Exception):
    """The request never arrived: no connection came about."""


class Unsure(Exception):
    """The request may have arrived, and what it asks for may be done; no answer came."""


class Astray(Exception):
    """A redirect that nobody may follow; the text says where it leads."""


class Wire:
    """The connection to the API at `api`, whose `token` is None for anybody.

    Raises `BackstopError` (``github-token``, ``github-down``) for a token, and for a proxy or
    certificate of the environment, that cannot be used.
    """

    __slots__ = ("_api", "_http", "_monotonic", "_token")

    def __init__(self, *, api: str, token: str | None, monotonic: Callable[[], float]) -> None:
        token = (token or "").strip() or None
        if token is not None and not _TOKEN.fullmatch(token):
            raise BackstopError(
                "the token for GitHub holds a blank or a letter that no token has; hand over "
                "${{ github.token }}, or the secret alone",
                slug="github-token",
            )
        self._api = httpx.URL(api)
        self._token = token
        self._monotonic = monotonic
        logging.getLogger("httpx").addFilter(_without_queries)
        logging.getLogger("httpcore.http11").addFilter(_silence)
        try:
            self._http = httpx.Client(follow_redirects=False, verify=_authorities())
        except (OSError, ValueError, ImportError, httpx.InvalidURL) as error:
            # What the environment says may hold a password: only the kind of error is told.
            raise BackstopError(
                f"no connection to {self._api.host} can be set up ({type(error).__name__}); look "
                "at HTTPS_PROXY and SSL_CERT_FILE",
                slug="github-down",
            ) from None

    def __repr__(self) -> str:
        return f"Wire({self.address!r})"

    @property
    def address(self) -> str:
        """Where the API is, for a message."""
        return f"{self._api.scheme}://{self._api.netloc.decode('ascii', 'replace')}"

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def clean(self, text: str) -> str:
        """`text`, which came from outside, on one line and without the token in it."""
        if self._token is not None:
            text = text.replace(self._token, "***")
        return " ".join(text.split())[:_SAID]

    def send(self, asked: Request, *, within_s: float) -> Reply:
        """The answer to one request, redirects followed.

        Raises `NotSent`, `Unsure`, and `BackstopError` (``github-answer``) for an answer longer
        than allowed and for a redirect that nobody may follow.
        """
        until = self._monotonic() + within_s
        target = httpx.URL(asked.url)
        if asked.params:
            target = target.copy_merge_params(dict(asked.params))
        for _ in range(_HOPS):
            left = max(0.001, until - self._monotonic())
            with self._answer(self._request(asked, target, left)) as response:
                reply = self._read(response, asked, until)
            if reply.status not in _REDIRECTS:
                return reply
            try:
                target = onward(asked.method, target, reply, home=self._api)
            except Astray as error:
                raise self._astray(str(error)) from None
        raise self._astray("leads from one address to the next")

    def _request(self, asked: Request, target: httpx.URL, left_s: float) -> httpx.Request:
        headers = {"User-Agent": "backstop-gate", "Accept": "application/vnd.github+json"}
        if self._at_home(target):
            headers["X-GitHub-Api-Version"] = "2022-11-28"
            if self._token is not None:
                headers["Authorization"] = f"Bearer {self._token}"
        if asked.json is not None:
            headers["Content-Type"] = "application/json"
        return self._http.build_request(
            asked.method,
            target,
            headers=headers,
            content=asked.json,
            timeout=httpx.Timeout(left_s),
        )

    @contextlib.contextmanager
    def _answer(self, request: httpx.Request) -> Iterator[httpx.Response]:
        try:
            response = self._http.send(request, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise NotSent(self._reason(error)) from None
        except httpx.ProxyError as error:
            raise NotSent(f"the proxy does not let it through: {self._reason(error)}") from None
        except httpx.HTTPError as error:
            raise Unsure(self._reason(error)) from None
        with contextlib.closing(response):
            yield response

    def _read(self, response: httpx.Response, asked: Request, until: float) -> Reply:
        into = asked.into if response.status_code in range(200, 300) else None
        kept, length = bytearray(), 0
        try:
            for chunk in response.iter_bytes():
                length += len(chunk)
                if length > asked.most:
                    raise self._astray(f"is longer than {asked.most} bytes")
                if self._monotonic() > until:
                    raise Unsure("the answer did not end in time")
                if into is None:
                    kept += chunk
                else:
                    into.write(chunk)
        except httpx.HTTPError as error:
            raise Unsure(self._reason(error)) from None
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Reply(status=response.status_code, headers=headers, body=bytes(kept))

    def _at_home(self, target: httpx.URL) -> bool:
        return _same_host(target, self._api)

    def _reason(self, error: httpx.HTTPError) -> str:
        return self.clean(str(error)) or type(error).__name__

    def _astray(self, what: str) -> BackstopError:
        return BackstopError(
            f"the answer of {self.address} {what}; is this the API of GitHub (GITHUB_API_URL)?",
            slug="github-answer",
        )


def onward(method: str, here: httpx.URL, reply: Reply, *, home: httpx.URL) -> httpx.URL:
    """Where a redirect leads: a look anywhere, a change within the host of the API alone.

    Raises `Astray`, never with the query of an address.
    """
    try:
        there = here.join(reply.headers.get("location", ""))
    except (httpx.InvalidURL, ValueError):
        raise Astray("leads to no address") from None
    if there.scheme not in {"http", "https"} or not there.host:
        raise Astray("leads to no address")
    if here.scheme == "https" and there.scheme != "https":
        raise Astray(f"leads to {there.host} without encryption")
    keeps = reply.status in _KEEPING and _same_host(there, home)
    if method != "GET" and not keeps:
        raise Astray(f"would send a change on to {there.host}")
    return there


def _without_queries(record: logging.LogRecord) -> bool:
    if isinstance(record.args, tuple):
        record.args = tuple(
            arg.copy_with(query=None) if isinstance(arg, httpx.URL) else arg for arg in record.args
        )
    return True


def _silence(_record: logging.LogRecord) -> bool:
    """Its records hold all headers of an answer: a redirect's address is one."""
    return False


@cache
def _authorities() -> ssl.SSLContext:
    """Whom to believe about hosts; it takes as long to read as several requests."""
    return httpx.create_ssl_context()


def _same_host(one: httpx.URL, other: httpx.URL) -> bool:
    usual = {"http": 80, "https": 443}
    first, second = ((url.scheme, url.host, url.port or usual[url.scheme]) for url in (one, other))
    return first == second
