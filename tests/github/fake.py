"""A GitHub on loopback: comments, commits, archives, rights, pages, limits, and every fault.

It remembers what it was asked, with headers. Archives lie on a host of their own (another
port), as they do at GitHub, under an address that is a key.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from tests.github import shapes
from tests.github.serving import Answer, Asked, serving
from tests.github.shapes import JOBS, Account, Comment, Commit
from tests.github.tarballs import archive_of

TOKEN: Final = "ghs_ThisIsTheTokenOfAJob0123456789abcdef"  # noqa: S105 - of a GitHub on loopback
KEY: Final = "AKEYINANADDRESS"
_STALL_S: Final = 30.0


class Fault(Enum):
    """What becomes of one request."""

    FAILS = auto()
    """It is not done; 502."""
    LOSES = auto()
    """It is done; the answer is a 502."""
    CUTS = auto()
    """It is done; the connection ends without an answer."""
    BREAKS = auto()
    """It is done; the answer ends in the middle."""
    STALLS = auto()
    """It is done; no answer comes."""
    DRIPS = auto()
    """It is done; the answer comes byte by byte."""
    GARBLES = auto()
    """It is done; the answer is a page of somebody's proxy, with 200."""
    MISSHAPES = auto()
    """It is done; the answer is JSON, and of another shape than GitHub's."""
    SECONDARY = auto()
    """It is turned away for a second by the limit on bursts."""
    UNTIMED = auto()
    """The same, with no word on how long."""
    SPENT = auto()
    """It is turned away until the hourly limit renews, in seven seconds."""
    EXHAUSTED = auto()
    """The same, in forty minutes."""


_INSTANT: Final = 1796040000
_DATE: Final = "Mon, 30 Nov 2026 12:00:00 GMT"
_LIMITS: Final[Mapping[Fault, tuple[dict[str, str], str]]] = {
    Fault.SECONDARY: ({"retry-after": "1"}, "You have exceeded a secondary rate limit"),
    Fault.UNTIMED: ({}, "You have exceeded a secondary rate limit"),
    Fault.SPENT: (
        {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(_INSTANT + 7)},
        "API rate limit exceeded for installation",
    ),
    Fault.EXHAUSTED: (
        {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(_INSTANT + 2400)},
        "API rate limit exceeded for installation",
    ),
}


@dataclass(slots=True)
class FakeGitHub:
    """One repository, `repo`, and its pull requests. Its state may be read and set by a test."""

    repo: str = "octo/repo"
    url: str = ""
    """Of the API; `graphql` beside it."""
    archives: str = ""
    """Of the host where archives lie."""
    accounts: dict[str, Account] = field(default_factory=lambda: {TOKEN: JOBS})
    comments: list[Comment] = field(default_factory=list)
    commits: dict[str, Commit] = field(default_factory=dict)
    pulls: list[dict[str, Any]] = field(default_factory=list)
    """Open pull requests, as the list of them shows them."""
    renamed_from: str | None = None
    graphql: bool = True
    deaf: bool = False
    """It hides from the token that it may not change a comment, as servers do: 404."""
    hidden: frozenset[int] = frozenset()
    """Comments that a page has no room for and does not show, as those of blocked people."""
    asked: list[Asked] = field(default_factory=list)
    asked_for_archives: list[Asked] = field(default_factory=list)
    before: Callable[[Asked], None] = field(default=lambda _: None)
    """Called before each request is served: for what happens at the same time."""
    largest: int = 100 * 1024 * 1024
    """Bytes of a file that the API shows."""
    lost: frozenset[str] = frozenset()
    """Files that no commit shows, although the history tells of them."""
    tarball: bytes | None = None
    """Sent for every commit, instead of its own."""
    ended: threading.Event = field(default_factory=threading.Event)
    _next: deque[tuple[str, Fault]] = field(default_factory=deque)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def plan(self, *faults: Fault, on: str = "") -> None:
        """The next requests whose ``METHOD path`` contains `on` go wrong like this, in order."""
        self._next.extend((on, fault) for fault in faults)

    def forget(self) -> None:
        """What is planned does not happen."""
        self._next.clear()

    def say(self, number: int, body: str, author: Account = JOBS) -> Comment:
        """Have `author` comment."""
        with self._lock:
            said = Comment(id=1000 + len(self.comments), number=number, author=author, body=body)
            while any(said.id == other.id for other in self.comments):
                said.id += 1
            self.comments.append(said)
            return said

    def under(self, number: int) -> list[Comment]:
        """The comments of a pull request."""
        return [comment for comment in self.comments if comment.number == number]

    def commit(
        self,
        files: Mapping[str, bytes],
        *parents: str,
        links: Mapping[str, str] | None = None,
    ) -> str:
        """A new commit of these files; its full name."""
        told = repr((len(self.commits), sorted(files.items()), parents, links)).encode()
        sha = hashlib.sha1(told, usedforsecurity=False).hexdigest()
        self.commits[sha] = Commit(sha=sha, parents=parents, files=files, links=links or {})
        return sha

    def commit_folder(self, folder: Path, *parents: str) -> str:
        """A new commit of the files in `folder`."""
        found = sorted(path for path in folder.rglob("*") if not path.is_symlink())
        files = {str(p.relative_to(folder)): p.read_bytes() for p in found if p.is_file()}
        return self.commit(files, *parents)

    def requests(self, method: str) -> list[str]:
        """The paths that were asked with `method`, in order."""
        return [asked.path for asked in self.asked if asked.method == method]

    def answer(self, asked: Asked) -> Answer:
        """What the API says."""
        self.before(asked)
        self.asked.append(asked)
        fault = self._fault(asked)
        if fault is not None and fault in _LIMITS:
            headers, words = _LIMITS[fault]
            return _json(403, {"message": words}, headers)
        if fault is Fault.FAILS:
            return _json(502, {"message": "Server Error"})
        with self._lock:
            true = self._route(asked)
        return self._spoilt(fault, true)

    def answer_archive(self, asked: Asked) -> Answer:
        """What the host of the archives says."""
        self.asked_for_archives.append(asked)
        found = re.fullmatch(r"/[^/]+/[^/]+/legacy\.tar\.gz/([0-9a-f]{40})", asked.path)
        if found is None or asked.query.get("token") != KEY:
            return _json(404, {"message": "Not Found"})
        fault = self._fault(asked)
        data = self.tarball or archive_of(self.commits[found[1]], self.repo)
        true = Answer(200, {"content-type": "application/x-gzip"}, data)
        if fault is Fault.FAILS:
            return _json(502, {})
        return self._spoilt(fault, true)

    def _fault(self, asked: Asked) -> Fault | None:
        with self._lock:
            if self._next and self._next[0][0] in f"{asked.method} {asked.path}":
                return self._next.popleft()[1]
        return None

    def _spoilt(self, fault: Fault | None, true: Answer) -> Answer:
        match fault:
            case Fault.LOSES:
                return _json(502, {"message": "Server Error"})
            case Fault.CUTS:
                return Answer(0, {}, b"")
            case Fault.BREAKS:
                return true._replace(breaks_off=True)
            case Fault.STALLS:
                self.ended.wait(_STALL_S)
                return Answer(0, {}, b"")
            case Fault.DRIPS:
                return true._replace(drips_until=self.ended)
            case Fault.GARBLES:
                return Answer(200, {"content-type": "text/html"}, b"<html>Please log in</html>")
            case Fault.MISSHAPES:
                return _json(200, [{"id": "one"}])
            case _:
                return true

    def _route(self, asked: Asked) -> Answer:
        account = self.accounts.get(asked.token or "")
        if asked.token is not None and account is None:
            return _json(401, {"message": "Bad credentials"})
        if asked.path == "/graphql":
            return self._viewer(asked, account)
        path = asked.path
        if self.renamed_from is not None and path.startswith(f"/repos/{self.renamed_from}/"):
            rest = path.removeprefix(f"/repos/{self.renamed_from}")
            status = 301 if asked.method == "GET" else 307
            to = f"{self.url}/repositories/2{rest}{'?' if asked.raw_query else ''}{asked.raw_query}"
            return _json(status, {"message": "Moved Permanently"}, {"location": to})
        for begin in (f"/repos/{self.repo}", "/repositories/2"):
            if path.startswith(f"{begin}/"):
                return self._in_repo(asked, path.removeprefix(begin), account)
        return _json(404, {"message": "Not Found"})

    def _in_repo(self, asked: Asked, path: str, account: Account | None) -> Answer:
        if asked.method != "GET" and (account is None or not account.writes):
            return _json(403, {"message": "Resource not accessible by integration"})
        for pattern, method, serve in _ROUTES:
            if method == asked.method and (found := re.fullmatch(pattern, path)):
                return serve(self, asked, account or JOBS, *map(unquote, found.groups()))
        return _json(404, {"message": "Not Found"})

    def _viewer(self, asked: Asked, account: Account | None) -> Answer:
        if not self.graphql:
            return _json(404, {"message": "Not Found"})
        if account is None:
            return _json(401, {"message": "This endpoint requires you to be authenticated."})
        assert json.loads(asked.body)["query"] == "query { viewer { login databaseId } }"
        viewer = {"login": account.login, "databaseId": account.id}
        return _json(200, {"data": {"viewer": viewer}})

    def _list(self, asked: Asked, _: Account, number: str) -> Answer:
        said = [self._shown(comment) for comment in self.under(int(number))]
        return self._page(asked, said, hidden=self.hidden)

    def _pulls(self, asked: Asked, _: Account) -> Answer:
        label = asked.query.get("head")
        found = [it for it in self.pulls if label in {None, it["head"]["label"]}]
        return self._page(asked, found)

    def _create(self, asked: Asked, account: Account, number: str) -> Answer:
        body = json.loads(asked.body)["body"]
        if len(body) > 65_536:
            return _json(422, {"message": "Validation Failed"})
        return _json(201, self._shown(self.say(int(number), body, account)))

    def _patch(self, asked: Asked, _: Account, id_: str) -> Answer:
        if self.deaf:
            return _json(404, {"message": "Not Found"})
        for comment in self.comments:
            if comment.id == int(id_):
                comment.body = json.loads(asked.body)["body"]
                comment.edits += 1
                return _json(200, self._shown(comment))
        return _json(404, {"message": "Not Found"})

    def _delete(self, _: Asked, __: Account, id_: str) -> Answer:
        left = [comment for comment in self.comments if comment.id != int(id_)]
        gone = len(left) < len(self.comments)
        self.comments[:] = left
        return Answer(204, {}, b"") if gone else _json(404, {"message": "Not Found"})

    def _tarball(self, _: Asked, __: Account, ref: str) -> Answer:
        if ref not in self.commits:
            return _json(404, {"message": "Not Found"})
        to = f"{self.archives}/{self.repo}/legacy.tar.gz/{ref}?token={KEY}"
        return Answer(302, {"location": to}, b"")

    def _git_commit(self, _: Asked, __: Account, sha: str) -> Answer:
        if sha not in self.commits:
            return _json(404, {"message": "Not Found"})
        return _json(200, shapes.git_commit(self.commits[sha], self.url, self.repo))

    def _commits(self, asked: Asked, _: Account) -> Answer:
        if (sha := asked.query.get("sha", "")) not in self.commits:
            return _json(404, {"message": "Not Found"})
        touched = [it for it in self._ancestry(sha) if self._touches(it, asked.query["path"])]
        return self._page(asked, [shapes.listed_commit(it, self.url, self.repo) for it in touched])

    def _content(self, asked: Asked, _: Account, path: str) -> Answer:
        commit = self.commits.get(asked.query["ref"])
        if commit is None or path not in commit.files or path in self.lost:
            return _json(404, {"message": "Not Found"})
        if (size := len(commit.files[path])) > self.largest:
            return _json(403, {"message": "This API returns blobs up to 100 MB: too large."})
        return _json(200, shapes.content(path, size, commit.sha, self.url, self.repo))

    def _ancestry(self, sha: str) -> Iterator[Commit]:
        while True:
            commit = self.commits[sha]
            yield commit
            if not commit.parents:
                return
            sha = commit.parents[0]

    def _touches(self, commit: Commit, path: str) -> bool:
        before = self.commits[commit.parents[0]].files if commit.parents else {}
        return commit.files.get(path) != before.get(path)

    def _shown(self, comment: Comment) -> dict[str, Any]:
        return shapes.comment(comment, self.url, self.repo)

    def _page(
        self, asked: Asked, items: Sequence[Any], *, hidden: frozenset[int] = frozenset()
    ) -> Answer:
        size = min(int(asked.query.get("per_page", "30")), 100)
        page = int(asked.query.get("page", "1"))
        shown = [it for it in items[(page - 1) * size : page * size] if it.get("id") not in hidden]
        headers = {}
        if page * size < len(items):
            there = f"{self.url}{asked.path}?per_page={size}&page="
            headers["link"] = f'<{there}{page + 1}>; rel="next", <{there}9>; rel="last"'
        return _json(200, shown, headers)


_ROUTES: Final[Sequence[tuple[str, str, Callable[..., Answer]]]] = (
    (r"/issues/(\d+)/comments", "GET", FakeGitHub._list),  # noqa: SLF001 - its own
    (r"/issues/(\d+)/comments", "POST", FakeGitHub._create),  # noqa: SLF001
    (r"/pulls", "GET", FakeGitHub._pulls),  # noqa: SLF001
    (r"/issues/comments/(\d+)", "PATCH", FakeGitHub._patch),  # noqa: SLF001
    (r"/issues/comments/(\d+)", "DELETE", FakeGitHub._delete),  # noqa: SLF001
    (r"/tarball/(.+)", "GET", FakeGitHub._tarball),  # noqa: SLF001
    (r"/git/commits/([0-9a-f]{40})", "GET", FakeGitHub._git_commit),  # noqa: SLF001
    (r"/commits", "GET", FakeGitHub._commits),  # noqa: SLF001
    (r"/contents/(.+)", "GET", FakeGitHub._content),  # noqa: SLF001
)


def _json(status: int, value: object, headers: Mapping[str, str] | None = None) -> Answer:
    said = {"content-type": "application/json; charset=utf-8", **(headers or {})}
    return Answer(status, {"date": _DATE, **said}, json.dumps(value).encode())


@contextmanager
def fake_github(host: str = "127.0.0.1") -> Iterator[FakeGitHub]:
    """A GitHub at `host`, until the block ends."""
    fake = FakeGitHub()
    with serving(fake.answer, host) as url, serving(fake.answer_archive, host) as archives:
        fake.url, fake.archives = url, archives
        try:
            yield fake
        finally:
            fake.ended.set()
