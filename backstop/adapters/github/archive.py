"""The commit that a pull request is compared with, and its files, without a git of our own.

The runner's checkout is one commit deep as a rule, and its `.git` belongs to the pull request's
side: what counts comes from GitHub, by the commit's full name. What a repository exempts from
archives (``export-ignore`` in `.gitattributes`) is not among it, and of Git LFS the pointers are.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn
from urllib.parse import quote

import msgspec

from backstop.adapters.github.client import Denied, GitHub
from backstop.adapters.github.event import Event, Kind
from backstop.adapters.github.unpacking import Bounds, unpack
from backstop.errors import BackstopError

_LOOKS: Final = 30
"""Commits that touched a file, of which each is asked whether the file was there."""
_NOT_FOUND: Final = 404
_SHA: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """The files of commit `sha` lie in `root`. `left_out`: links of it that lead elsewhere."""

    sha: str
    root: Path
    left_out: tuple[str, ...]


class Archive:
    """The commits of `repo` (``owner/name``).

    Every method raises what `GitHub` raises.
    """

    def __init__(self, github: GitHub, *, repo: str, bounds: Bounds | None = None) -> None:
        self._github = github
        self._name = repo
        self._repo = f"/repos/{repo}"
        self._bounds = bounds or Bounds()

    def fetch_checkout(self, ref: str, into: Path) -> Checkout | Denied:
        """Write the files of a commit, or of a branch or tag, into `into`, empty or not there.

        `Denied` where there is no such commit, or the token may not read it. Raises
        `BackstopError` (``archive``) for an archive that is broken, of another commit, or holds
        what no commit does; see `unpack`.
        """
        try:
            into.mkdir(parents=True, exist_ok=True)
            empty = next(into.iterdir(), None) is None
        except OSError as error:
            self._fail(f"cannot be written to {into}: {error.strerror}")
        if not empty:
            self._fail(f"cannot be written to {into}: something is there already")
        with tempfile.TemporaryFile() as packed:
            answer = self._github.download(
                f"{self._repo}/tarball/{quote(ref)}", packed, most=self._bounds.packed
            )
            if isinstance(answer, Denied):
                return answer
            packed.seek(0)
            unpacked = unpack(packed, into, bounds=self._bounds)
        commit = unpacked.commit or (ref if _SHA.fullmatch(ref) else None)
        if commit is None or (_SHA.fullmatch(ref) and commit != ref):
            self._fail(f"cannot be used: {ref[:40]} was asked for, and another commit came")
        return Checkout(sha=commit, root=into, left_out=unpacked.left_out)

    def base_of(self, event: Event) -> str | None:
        """The commit to compare with: of a pull request's merge the parent on the base's side.

        A payload names the base as it was when the pull request last moved; what is checked out
        is a merge into a later one, and what others changed meanwhile is no change of this pull
        request. None where the event has no base.
        """
        if event.kind is not Kind.PULL_REQUEST or event.merged_sha == event.head_sha:
            return event.base_sha
        answer = self._github.get(f"{self._repo}/git/commits/{event.merged_sha}")
        if isinstance(answer, Denied):
            return event.base_sha
        match self._github.read(answer, _Commit).parents:
            case [base, head] if head.sha == event.head_sha:
                return base.sha
            case _:
                return event.base_sha

    def shows(self, sha: str) -> bool:
        """May the token read this commit? Not so where it is the permission that is missing."""
        return not isinstance(self._github.get(f"{self._repo}/git/commits/{sha}"), Denied)

    def last_with(self, path: str, from_sha: str) -> str | None:
        """The nearest ancestor of commit `from_sha`, or itself, that has a file at `path` (G07).

        None if none of them has, as far as the last commits that touched it tell. Raises
        `BackstopError` (``archive``) where the token may not read the history.
        """
        left = _LOOKS
        asked = {"path": path, "sha": from_sha}
        for answer in self._github.pages(f"{self._repo}/commits", asked):
            if isinstance(answer, Denied):
                self._deny(f"the history of {path}", answer)
            for commit in self._github.read(answer, list[_Commit]):
                # One that touched it may have deleted it: then it was there just before.
                for sha in (commit.sha, *(parent.sha for parent in commit.parents)):
                    if self._has(path, sha):
                        return sha
                left -= 1
                if not left:
                    return None
        return None

    def _has(self, path: str, sha: str) -> bool:
        place = quote(path, safe="")
        answer = self._github.get(f"{self._repo}/contents/{place}", {"ref": sha})
        if not isinstance(answer, Denied):
            return True
        if answer.status == _NOT_FOUND:
            return False
        if "too large" not in answer.said.lower():
            self._deny(f"{path} at {sha[:12]}", answer)
        return True

    def _deny(self, what: str, denied: Denied) -> NoReturn:
        self._fail(
            f"cannot be read: of {self._name}, {what} is not shown ({denied}); give the job "
            "`contents: read`"
        )

    @staticmethod
    def _fail(what: str) -> NoReturn:
        raise BackstopError(
            f"the base {what}; or check it out in a step before, and name its folder as `base`",
            slug="archive",
        ) from None


class _Parent(msgspec.Struct, frozen=True):
    sha: str


class _Commit(msgspec.Struct, frozen=True):
    sha: str
    parents: list[_Parent] = []
