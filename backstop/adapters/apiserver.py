"""A running `adk api_server` or `adk web`, spoken to as any client speaks to it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from backstop.errors import BackstopError

_SLUG: Final = "doctor-server"
_AT_HOME: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_USER: Final = "backstop-doctor"
_MOST: Final = 4 * 1024 * 1024


class NotAnswered(Exception):
    """The server took the message, and came to no answer; the text says what it said."""


class ApiServer:
    """The server at `url`, which has `seconds` for each answer."""

    def __init__(self, url: str, *, seconds: float = 30.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise BackstopError(
                f"{url[:200]} is no address of a server: write http://HOST:PORT", slug=_SLUG
            )
        self._url = url.rstrip("/")
        self._seconds = seconds
        # What is on this machine is not asked for through a proxy.
        direct = [ProxyHandler({})] if parts.hostname in _AT_HOME else []
        self._opener = build_opener(*direct)

    def apps(self) -> list[str]:
        """The names of its apps. Raises `BackstopError` (``doctor-server``)."""
        try:
            return [str(name) for name in self._asked("GET", "/list-apps")]
        except (NotAnswered, TypeError) as error:
            raise BackstopError(
                f"{self._url} does not list its apps, as `adk api_server` does: {error}",
                slug=_SLUG,
            ) from None

    def ask(self, app: str, message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The events that come of `message` in a session of its own, which is deleted then.

        Raises `NotAnswered` where the server fails, `BackstopError` (``doctor-server``) where it
        cannot be reached.
        """
        sessions = f"/apps/{quote(app, safe='')}/users/{_USER}/sessions"
        session = self._asked("POST", sessions, {})["id"]
        try:
            asked = {
                "app_name": app,
                "user_id": _USER,
                "session_id": session,
                "new_message": message,
            }
            events: list[Mapping[str, Any]] = self._asked("POST", "/run", asked)
            return events
        finally:
            self._asked("DELETE", f"{sessions}/{quote(str(session), safe='')}")

    def _asked(self, method: str, path: str, body: object | None = None) -> Any:  # noqa: ANN401 - JSON
        data = None if body is None else json.dumps(body).encode()
        request = Request(  # noqa: S310 - the scheme was checked
            self._url + path,
            data=data,
            method=method,
            headers={"Content-Type": "application/json"},
        )
        try:
            with self._opener.open(request, timeout=self._seconds) as answer:
                return json.loads(answer.read(_MOST) or b"null")
        except HTTPError as error:
            raise NotAnswered(f"HTTP {error.code} to {method} {path}") from None
        except (URLError, http.client.HTTPException, OSError) as error:
            reason = getattr(error, "reason", error)
            raise BackstopError(
                f"{self._url} cannot be reached: {reason}; start the server, or correct the "
                "address",
                slug=_SLUG,
            ) from None
        except ValueError as error:
            raise NotAnswered(f"no JSON to {method} {path}: {error}") from None
