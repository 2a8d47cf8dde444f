"""What GitHub answers, as far as its own description demands; plain values in, JSON values out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

STAMP: Final = "2026-11-30T12:00:00Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who a token belongs to, and what it may do."""

    login: str
    id: int
    writes: bool = True
    is_app: bool = True


JOBS: Final = Account(login="github-actions[bot]", id=41_898_282)
"""Whom the token of a job belongs to."""


@dataclass(slots=True, kw_only=True)
class Comment:
    """One comment under an issue; its body may change."""

    id: int
    number: int
    author: Account
    body: str
    edits: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit: its files with their bytes, links with their targets."""

    sha: str
    parents: tuple[str, ...]
    files: Mapping[str, bytes]
    links: Mapping[str, str]


def user(account: Account, base: str) -> dict[str, Any]:
    it = f"{base}/users/{quote(account.login)}"
    return {
        "login": account.login,
        "id": account.id,
        "node_id": f"U_{account.id}",
        "avatar_url": f"{base}/avatars/{account.id}",
        "gravatar_id": "",
        "url": it,
        "html_url": it,
        "followers_url": f"{it}/followers",
        "following_url": f"{it}/following",
        "gists_url": f"{it}/gists",
        "starred_url": f"{it}/starred",
        "subscriptions_url": f"{it}/subscriptions",
        "organizations_url": f"{it}/orgs",
        "repos_url": f"{it}/repos",
        "events_url": f"{it}/events",
        "received_events_url": f"{it}/received_events",
        "type": "Bot" if account.is_app else "User",
        "site_admin": False,
    }


def comment(it: Comment, base: str, repo: str) -> dict[str, Any]:
    return {
        "id": it.id,
        "node_id": f"IC_{it.id}",
        "url": f"{base}/repos/{repo}/issues/comments/{it.id}",
        "html_url": f"{base}/{repo}/pull/{it.number}#issuecomment-{it.id}",
        "body": it.body,
        "user": user(it.author, base),
        "created_at": STAMP,
        "updated_at": STAMP,
        "issue_url": f"{base}/repos/{repo}/issues/{it.number}",
        "author_association": "CONTRIBUTOR",
        "performed_via_github_app": None,
    }


def listed_commit(it: Commit, base: str, repo: str) -> dict[str, Any]:
    url = f"{base}/repos/{repo}/commits/{it.sha}"
    return {
        "sha": it.sha,
        "node_id": f"C_{it.sha[:8]}",
        "url": url,
        "html_url": url,
        "comments_url": f"{url}/comments",
        "commit": {
            "url": url,
            "author": _person(),
            "committer": _person(),
            "message": "A change",
            "comment_count": 0,
            "tree": {"sha": it.sha, "url": url},
        },
        "author": None,
        "committer": None,
        "parents": _parents(it.parents, base, repo),
    }


def git_commit(it: Commit, base: str, repo: str) -> dict[str, Any]:
    url = f"{base}/repos/{repo}/git/commits/{it.sha}"
    return {
        "sha": it.sha,
        "node_id": f"C_{it.sha[:8]}",
        "url": url,
        "html_url": url,
        "author": _person(),
        "committer": _person(),
        "message": "A change",
        "tree": {"sha": it.sha, "url": url},
        "parents": _parents(it.parents, base, repo),
        "verification": {
            "verified": False,
            "reason": "unsigned",
            "signature": None,
            "payload": None,
            "verified_at": None,
        },
    }


def content(path: str, size: int, sha: str, base: str, repo: str) -> dict[str, Any]:
    url = f"{base}/repos/{repo}/contents/{path}?ref={sha}"
    return {
        "type": "file",
        "encoding": "none",
        "size": size,
        "name": path.rpartition("/")[2],
        "path": path,
        "content": "",
        "sha": sha,
        "url": url,
        "git_url": url,
        "html_url": url,
        "download_url": url,
        "_links": {"git": url, "self": url, "html": url},
    }


def pull(number: int, head: str, base_sha: str) -> dict[str, Any]:
    """The part of an event that says which pull request it is about."""
    repository = {"id": 2, "full_name": "octo/repo", "default_branch": "main", "fork": False}
    return {
        "action": "synchronize",
        "number": number,
        "pull_request": {
            "number": number,
            "head": {"ref": "feature", "sha": head, "repo": repository},
            "base": {"ref": "main", "sha": base_sha, "repo": repository},
        },
        "repository": repository,
    }


def _person() -> dict[str, str]:
    return {"name": "Mona", "email": "mona@example.com", "date": STAMP}


def _parents(shas: Sequence[str], base: str, repo: str) -> list[dict[str, str]]:
    url = f"{base}/repos/{repo}/commits"
    return [{"sha": sha, "url": f"{url}/{sha}", "html_url": f"{url}/{sha}"} for sha in shas]
