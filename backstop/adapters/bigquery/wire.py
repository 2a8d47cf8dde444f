"""One request to BigQuery, tried once, within a time that is certain.

It speaks the REST API directly, with the account that the vendor's library for authentication
finds. The vendor's client for BigQuery repeats calls for ten minutes by itself, and waits for a
page of results two minutes at least, whatever it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import google.auth
import requests
from google.auth.credentials import AnonymousCredentials, Credentials
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, TransportError
from google.auth.transport.requests import AuthorizedSession
from urllib3.exceptions import HTTPError

from backstop.errors import BackstopError

_API: Final = "https://bigquery.googleapis.com"
_SCOPE: Final = "https://www.googleapis.com/auth/bigquery"
_MOST: Final = 256 * 1024 * 1024
"""Bytes of an answer that are read; BigQuery itself ends a page far below."""

_CHUNK: Final = 64 * 1024
_SAID: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked. `path` begins with a slash; `kind` is the media type of the body."""

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = field(default=None, repr=False)
    kind: str = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer, read to its end."""

    status: int
    body: bytes = field(repr=False)


class Unanswered(Exception):
    """No answer came, or not all of it: what was asked for may be done, or not."""


class Wire:
    """The connection to BigQuery, or to its emulator at `emulator`.

    That is ``address:port``, or a URL, as the vendor's client wants it. `name` is what is talked
    to, for a message.
    """

    __slots__ = ("_emulator", "_monotonic", "_name", "_session")

    def __init__(self, *, name: str, emulator: str | None, monotonic: Callable[[], float]) -> None:
        self._name = name
        self._emulator = emulator
        self._monotonic = monotonic
        self._session: requests.Session | None = None

    def close(self) -> None:
        """Let go of the connections; the next request makes others."""
        if self._session is not None:
            self._session.close()
        self._session = None

    def send(self, asked: Request, *, within_s: float) -> Reply:
        """The answer to one request, whatever it says.

        Raises `Unanswered`, and `BackstopError`: ``store-denied`` where no account is found, or
        the one that was is not let in; ``store-refused`` for an answer without end, and for an
        address, a proxy or a certificate of the environment that cannot be used.
        """
        until = self._monotonic() + within_s
        try:
            with self._connected().request(
                asked.method,
                f"{self._base()}{asked.path}",
                params=dict(asked.params),
                data=asked.body,
                headers={"Content-Type": asked.kind} if asked.body is not None else {},
                timeout=within_s,
                stream=True,
                # The account's token goes to BigQuery and nowhere else.
                allow_redirects=False,
            ) as response:
                return Reply(status=response.status_code, body=self._read(response, until))
        except (requests.RequestException, HTTPError, TransportError) as error:
            if isinstance(error, ValueError):
                raise self._unusable(error) from None
            raise Unanswered(_line(error)) from None
        except GoogleAuthError as error:
            raise self._denied(error) from None
        except OSError as error:
            raise self._unusable(error) from None

    def _base(self) -> str:
        if not self._emulator:
            return _API
        url = self._emulator if "://" in self._emulator else f"http://{self._emulator}"
        return url.rstrip("/")

    def _connected(self) -> requests.Session:
        if self._session is None:
            # A token is renewed before it ends; one that is not let in is not asked for again.
            made: requests.Session = AuthorizedSession(  # type: ignore[no-untyped-call]
                self._account(), refresh_status_codes=()
            )
            # What proxies the machine has are none of the emulator's.
            made.trust_env = not self._emulator
            self._session = made
        return self._session

    def _account(self) -> Credentials:
        if self._emulator:
            return AnonymousCredentials()  # type: ignore[no-untyped-call]
        try:
            found, _ = google.auth.default(scopes=[_SCOPE])
        except DefaultCredentialsError as error:
            raise self._denied(error) from None
        return found

    def _read(self, response: requests.Response, until: float) -> bytes:
        kept = bytearray()
        # What has come so far, each time: who waits for a whole piece waits without end.
        while chunk := response.raw.read1(_CHUNK, decode_content=True):
            kept += chunk
            if len(kept) > _MOST:
                raise BackstopError(
                    f"{self._name}: an answer is longer than {_MOST:,} bytes; is this BigQuery "
                    "(BIGQUERY_EMULATOR_HOST)?",
                    slug="store-refused",
                )
            if self._monotonic() > until:
                raise Unanswered("the answer did not end in time")
        return bytes(kept)

    def _unusable(self, error: Exception) -> BackstopError:
        return BackstopError(
            f"{self._name}: no connection can be set up ({_line(error)}); look at "
            "BIGQUERY_EMULATOR_HOST, HTTPS_PROXY and REQUESTS_CA_BUNDLE",
            slug="store-refused",
        )

    def _denied(self, error: GoogleAuthError) -> BackstopError:
        return BackstopError(
            f"{self._name}: no account that is let in ({_line(error)}); run `gcloud auth "
            "application-default login`, or give this process a service account",
            slug="store-denied",
        )


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:_SAID] or type(error).__name__
