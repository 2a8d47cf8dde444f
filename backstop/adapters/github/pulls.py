"""Which pull request a commit is the head of: GitHub's word, never that of an artifact."""

from __future__ import annotations

import msgspec

from backstop.adapters.github.client import Denied, GitHub
from backstop.adapters.github.event import Event


class _Repository(msgspec.Struct, frozen=True):
    full_name: str


class _Head(msgspec.Struct, frozen=True):
    sha: str
    repo: _Repository | None = None


class _Pull(msgspec.Struct, frozen=True):
    number: int
    head: _Head


def pull_of(github: GitHub, event: Event) -> int | Denied | None:
    """The open pull request whose head is that of the workflow run in `event`.

    None where there is none (any more), or where several could be meant. Raises what `GitHub`
    raises.
    """
    if event.head_repo is None or not event.head_ref:
        return None
    owner = event.head_repo.partition("/")[0]
    asked = {"state": "open", "head": f"{owner}:{event.head_ref}"}
    found: set[int] = set()
    for answer in github.pages(f"/repos/{event.repo}/pulls", asked):
        if isinstance(answer, Denied):
            return answer
        found |= {
            pull.number
            for pull in github.read(answer, list[_Pull])
            if pull.head.sha == event.head_sha
            and pull.head.repo is not None
            and pull.head.repo.full_name == event.head_repo
        }
    return found.pop() if len(found) == 1 else None
