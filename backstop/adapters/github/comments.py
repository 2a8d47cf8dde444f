"""One comment of ours under a pull request, however many runs write it.

A comment is ours if its first line is the marker *and* GitHub says that the owner of our token
wrote it: anybody may paste the marker, and a comment of somebody else is never touched. Who the
owner is, GraphQL tells (``viewer``): it answers the token of a job and of an app, to which
``GET /user`` is closed. A server without it leaves the account that the tokens of jobs write
under, whose name no person can have.

The second line says which run wrote it (``<!-- backstop-run: {"run":7,"attempt":1,…} -->``), so
that a slow run does not overwrite the answer of a later one. Runs that post at the same time
leave two comments; whoever looks next, each of them first, makes one of them.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

import msgspec

from backstop.adapters.github.client import Denied, GitHub, InDoubt
from backstop.errors import BackstopError

COMMENT: Final = 65_536
"""Characters of a comment; GitHub answers 422 to a longer one."""

_ROUNDS: Final = 4
_GONE: Final = frozenset({404, 410})
"""Of a comment that was there a moment ago: somebody deleted it."""
_REST_S: Final = 2.0
_JOBS: Final = "github-actions[bot]"
_VIEWER: Final = "query { viewer { login databaseId } }"
_RUN: Final = re.compile(r"<!-- backstop-run: (\{[^<>]{0,1000}\}) -->")


class When(Enum):
    """Who is to be told (G06)."""

    ALWAYS = "always"
    ON_FINDING = "on-finding"
    """Nobody, until there is something; what was said then is kept true afterwards."""
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """A new comment stands at `url`."""

    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Updated:
    """Ours, at `url`, says this now and nothing of what it said before."""

    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchanged:
    """Ours, at `url`, said this already."""

    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outrun:
    """Ours, at `url`, is of a later run, and stays."""

    url: str


@dataclass(frozen=True, slots=True)
class Withheld:
    """Nobody was to be told."""


Posted: TypeAlias = Created | Updated | Unchanged | Outrun | Withheld | Denied
"""What became of a comment. After `Denied` the caller tells it elsewhere."""


class Comments:
    """The comments under pull request `number` of `repo` (``owner/name``)."""

    def __init__(self, github: GitHub, *, repo: str, number: int) -> None:
        self._github = github
        self._repo = f"/repos/{repo}"
        self._list = f"{self._repo}/issues/{number}/comments"
        self._viewer: _Viewer | None = None

    def upsert(
        self, marker: str, body: str, *, when: When = When.ALWAYS, finding: bool = True
    ) -> Posted:
        """Have one comment of ours with `marker`, which is the first line of `body`, say `body`.

        `finding`: there is something to tell. Raises `BackstopError`: ``too-long``, and what
        `GitHub` raises.
        """
        if len(body) > COMMENT:
            raise BackstopError(
                f"the comment has {len(body)} characters, and GitHub takes {COMMENT}; shorten "
                "it, and link to the whole report",
                slug="too-long",
            )
        if _first_line(body) != marker:
            raise ValueError("a comment begins with its marker")
        if when is When.NEVER:
            return Withheld()
        silent = when is When.ON_FINDING and not finding
        posted: Posted | InDoubt = Withheld()
        for _ in range(_ROUNDS):
            ours = self._ours(marker)
            if isinstance(ours, Denied):
                return ours
            if not ours and silent:
                return Withheld()
            posted = self._replace(ours, body) if ours else self._create(marker, body)
            gone = isinstance(posted, Denied) and bool(ours) and posted.status in _GONE
            if isinstance(posted, InDoubt):
                # Nobody knows whether it is there now: look, before anything is sent again.
                self._github.rest(_REST_S)
            elif not gone:
                return posted
        if not isinstance(posted, InDoubt):
            return posted
        raise BackstopError(
            f"GitHub does not say whether it took the comment ({posted.reason}), and shows none; "
            "see its status page, and run again",
            slug="github-down",
        )

    def previous(self, marker: str) -> str | Denied | None:
        """What our comment with `marker` says now; None if there is none."""
        ours = self._ours(marker)
        if isinstance(ours, Denied):
            return ours
        return max(ours, key=_order).body if ours else None

    def _create(self, marker: str, body: str) -> Posted | InDoubt:
        answer = self._github.post(self._list, {"body": body})
        if isinstance(answer, Denied | InDoubt):
            return answer
        made = self._github.read(answer, _Comment)
        # It stands. Whether another one stands beside it, the next run sees at the latest.
        with contextlib.suppress(BackstopError):
            ours = self._ours(marker)
            if not isinstance(ours, Denied) and len(ours) > 1:
                posted = self._replace(ours, body)
                if isinstance(posted, Outrun | Updated | Unchanged):
                    return posted
        return Created(url=made.html_url)

    def _replace(self, ours: Sequence[_Comment], body: str) -> Posted:
        """Make one comment of `ours`."""
        # The oldest is kept: whoever else tidies up at this moment keeps the same one.
        kept, *spare = sorted(ours, key=lambda comment: comment.id)
        newest = max(ours, key=_order)
        outrun = _order(newest) > (_written_by(body) or _order(newest))
        wanted = newest.body if outrun else body
        changes = _settled(kept.body) != _settled(wanted)
        if changes:
            answer = self._github.patch(self._path(kept), {"body": wanted})
            if isinstance(answer, Denied):
                return answer
        for comment in spare:
            # Gone already, or not to be deleted: either way the one that is kept is right.
            self._github.delete(self._path(comment))
        if outrun:
            return Outrun(url=kept.html_url)
        return Updated(url=kept.html_url) if changes else Unchanged(url=kept.html_url)

    def _ours(self, marker: str) -> list[_Comment] | Denied:
        marked: list[_Comment] = []
        for answer in self._github.pages(self._list):
            if isinstance(answer, Denied):
                return answer
            page = self._github.read(answer, list[_Comment])
            marked += [comment for comment in page if _first_line(comment.body) == marker]
        if not marked:
            return []
        if self._viewer is None:
            self._viewer = self._asked_who()
        return [comment for comment in marked if self._viewer.wrote(comment)]

    def _asked_who(self) -> _Viewer:
        jobs = _Viewer(login=_JOBS)
        with contextlib.suppress(BackstopError):
            answer = self._github.query(_VIEWER, {})
            if not isinstance(answer, Denied):
                said = self._github.read(answer, _Answer)
                return jobs if said.data is None else said.data.viewer
        return jobs

    def _path(self, comment: _Comment) -> str:
        return f"{self._repo}/issues/comments/{comment.id}"


class _User(msgspec.Struct, frozen=True):
    id: int
    login: str


class _Comment(msgspec.Struct, frozen=True):
    id: int
    html_url: str
    body: str = ""
    user: _User | None = None


class _Viewer(msgspec.Struct, frozen=True, rename="camel"):
    login: str
    database_id: int | None = None

    def wrote(self, comment: _Comment) -> bool:
        if comment.user is None:
            return False
        if self.database_id is None:
            return comment.user.login == self.login
        return comment.user.id == self.database_id


class _Data(msgspec.Struct, frozen=True):
    viewer: _Viewer


class _Answer(msgspec.Struct, frozen=True):
    data: _Data | None = None


class _Run(msgspec.Struct, frozen=True):
    run: int
    attempt: int = 1


def _first_line(body: str) -> str:
    return body.partition("\n")[0].rstrip()


def _settled(body: str) -> str:
    """What GitHub may change as it stores a text is no change."""
    return body.replace("\r\n", "\n").rstrip()


def _written_by(body: str) -> tuple[int, int] | None:
    """The run, and its attempt, that wrote a comment; None where the second line is no answer."""
    found = _RUN.fullmatch(body.split("\n", 2)[1].strip()) if "\n" in body else None
    if found is None:
        return None
    try:
        said = msgspec.json.decode(found[1], type=_Run)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return (said.run, said.attempt)


def _order(comment: _Comment) -> tuple[int, int]:
    # What does not say whose it is gives way.
    return _written_by(comment.body) or (0, 0)
