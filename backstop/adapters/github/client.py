"""GitHub's API: what may be asked again is, within one budget of time; a change never blindly.

A GET, a PATCH and a DELETE come to the same however often they arrive. A POST does not: where
nobody knows whether it arrived, the answer says so (`InDoubt`), and the caller looks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import BinaryIO, Final, Literal, Self, TypeAlias, TypeVar, overload
from urllib.parse import parse_qs, urlsplit

import msgspec

from backstop.adapters.github.retrying import Pacing, again, backoff_s
from backstop.adapters.github.wire import NotSent, Reply, Request, Unsure, Wire
from backstop.errors import BackstopError

_FAULTS: Final = 400
_DENYING: Final = frozenset({401, 403, 404, 410, 451})
_PER_PAGE: Final = "100"
_PAGES: Final = 200
_NEXT: Final = re.compile(r'<([^>]*)>\s*;[^,]*\brel="?next"?')
_NUMBER: Final = re.compile(r"[0-9]{1,9}")

Shape = TypeVar("Shape")


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """The token may not do this, or not see what it is about; `said` are GitHub's words."""

    status: int
    said: str

    def __str__(self) -> str:
        words = f": {self.said}" if self.said else ""
        return f"GitHub answers {self.status}{words}"


@dataclass(frozen=True, slots=True, kw_only=True)
class InDoubt:
    """Nobody knows whether a change was made; `reason` says what happened instead of an answer."""

    reason: str


Answered: TypeAlias = Reply | Denied


class GitHub:
    """The API at `api`, for the owner of `token`. Closes its connections when it is left.

    Every method raises `BackstopError`: ``github-down`` for what cannot be reached or fails
    until the time is up, ``github-limit`` for a limit that renews too late, ``github-refused``
    for a request that GitHub finds wrong, ``github-answer`` for an answer that is none.
    """

    def __init__(self, *, api: str, graphql: str, token: str | None, pacing: Pacing) -> None:
        self._api = api.rstrip("/")
        self._graphql = graphql
        self._pacing = pacing
        self._spent = 0.0
        self._wire = Wire(api=self._api, token=token, monotonic=pacing.monotonic)

    def __repr__(self) -> str:
        return f"GitHub({self._wire.address!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._wire.close()

    def get(self, path: str, params: Mapping[str, str] | None = None) -> Answered:
        """What is at `path`, which begins with ``/``."""
        return self._asked(Request(method="GET", url=self._api + path, params=params))

    def pages(self, path: str, params: Mapping[str, str] | None = None) -> Iterator[Answered]:
        """All pages of the list at `path`, one after the other; ends after a refusal."""
        page = 1
        for _ in range(_PAGES):
            answer = self.get(path, {**(params or {}), "per_page": _PER_PAGE, "page": str(page)})
            yield answer
            following = None if isinstance(answer, Denied) else _next_page(answer)
            if following is None:
                return
            if following <= page:
                break
            page = following
        raise self._odd(f"the list at {path} does not end")

    def patch(self, path: str, body: object) -> Answered:
        """Change what is at `path`."""
        json = msgspec.json.encode(body)
        return self._asked(Request(method="PATCH", url=self._api + path, json=json))

    def delete(self, path: str) -> Answered:
        """Delete what is at `path`."""
        return self._asked(Request(method="DELETE", url=self._api + path))

    def post(self, path: str, body: object) -> Answered | InDoubt:
        """Make something new at `path`; sent again only where it surely was not read before."""
        json = msgspec.json.encode(body)
        return self._asked(Request(method="POST", url=self._api + path, json=json), twice=False)

    def query(self, text: str, variables: Mapping[str, object]) -> Answered:
        """The answer to a GraphQL query, which changes nothing and so may be asked again."""
        json = msgspec.json.encode({"query": text, "variables": variables})
        return self._asked(Request(method="POST", url=self._graphql, json=json))

    def download(self, path: str, into: BinaryIO, *, most: int) -> Answered:
        """Write what is at `path`, at most `most` bytes, `into` an empty file."""
        return self._asked(Request(method="GET", url=self._api + path, into=into, most=most))

    def read(self, reply: Reply, shape: type[Shape]) -> Shape:
        """The JSON of `reply`. Raises `BackstopError` (``github-answer``) if it is another."""
        try:
            return msgspec.json.decode(reply.body, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._odd(f"an answer cannot be understood: {error}") from None

    def rest(self, seconds: float) -> None:
        """Wait a little, at the cost of the budget."""
        self._pacing.sleep(seconds)
        self._spent += seconds

    @overload
    def _asked(self, asked: Request, *, twice: Literal[True] = True) -> Answered: ...
    @overload
    def _asked(self, asked: Request, *, twice: Literal[False]) -> Answered | InDoubt: ...
    def _asked(self, asked: Request, *, twice: bool = True) -> Answered | InDoubt:
        clock, began = self._pacing.monotonic, self._pacing.monotonic()
        downloads = asked.into is not None
        left = self._pacing.download_s if downloads else self._pacing.total_s - self._spent
        tried = 0
        try:
            while True:
                tried += 1
                told = self._tried(asked, tried=tried, left_s=began + left - clock())
                if not isinstance(told, _Failed):
                    return told
                if not (twice or told.untouched):
                    return InDoubt(reason=told.reason)
                if clock() + told.wait_s >= began + left:
                    raise self._given_up(told)
                self._pacing.sleep(told.wait_s)
        finally:
            self._spent += 0.0 if downloads else clock() - began

    def _tried(self, asked: Request, *, tried: int, left_s: float) -> Answered | _Failed:
        if asked.into is not None:
            asked.into.seek(0)
            asked.into.truncate()
        chance = self._pacing.chance()
        within = left_s if asked.into is not None else min(left_s, self._pacing.try_s)
        try:
            reply = self._wire.send(asked, within_s=max(1.0, within))
        except (NotSent, Unsure) as error:
            untouched = isinstance(error, NotSent)
            wait = backoff_s(tried, chance)
            return _Failed(reason=str(error), wait_s=wait, untouched=untouched, limited=False)
        said = "" if reply.status < _FAULTS else reply.said()
        repeat = again(
            status=reply.status, headers=reply.headers, said=said, tried=tried, chance=chance
        )
        said = self._wire.clean(said)
        if repeat is not None:
            return _Failed(
                reason=str(Denied(status=reply.status, said=said)),
                wait_s=repeat.wait_s,
                untouched=repeat.limited,
                limited=repeat.limited,
            )
        if reply.status in _DENYING:
            return Denied(status=reply.status, said=said)
        if reply.status not in range(200, 300):
            raise self._refused(asked, reply.status, said)
        return reply

    def _given_up(self, failed: _Failed) -> BackstopError:
        if failed.limited:
            return BackstopError(
                f"{self._wire.address} takes no more requests with this token for "
                f"{failed.wait_s:.0f} s ({failed.reason}); run again then, or hand over a token "
                "with a limit of its own",
                slug="github-limit",
            )
        return BackstopError(
            f"{self._wire.address} cannot be reached, or fails each time: {failed.reason}; see "
            "its status page, HTTPS_PROXY and GITHUB_API_URL, and run again",
            slug="github-down",
        )

    def _refused(self, asked: Request, status: int, said: str) -> BackstopError:
        path = asked.url.removeprefix(self._api)
        return BackstopError(
            f"GitHub finds {asked.method} {path} wrong ({status}: {said or 'no reason'}); if "
            "this is a server of your own, it may be too old for it",
            slug="github-refused",
        )

    def _odd(self, what: str) -> BackstopError:
        return BackstopError(
            f"{self._wire.address}: {self._wire.clean(what)}; is this the API of GitHub "
            "(GITHUB_API_URL)?",
            slug="github-answer",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failed:
    """A try that may be followed by another after `wait_s`."""

    reason: str
    wait_s: float
    untouched: bool
    """The server surely did nothing."""
    limited: bool


def _next_page(reply: Reply) -> int | None:
    # Its number alone: behind a proxy, the address in the link may be one that nobody reaches.
    found = _NEXT.search(reply.headers.get("link", ""))
    if found is None:
        return None
    numbers = parse_qs(urlsplit(found[1]).query).get("page", ["0"])
    return int(numbers[0]) if _NUMBER.fullmatch(numbers[0]) else 0
