"""Events as GitHub sends them, as much of them as decides anything."""

from __future__ import annotations

from typing import Any, Final

NUMBER: Final = 12
REPOSITORY: Final = {"id": 2, "full_name": "octo/repo", "default_branch": "main"}
FORK: Final = {"id": 77, "full_name": "stranger/repo", "default_branch": "main"}


def pull_request(*, base: str, head: str, fork: bool = False) -> dict[str, Any]:
    """A pull request was opened, or moved on."""
    return {
        "action": "synchronize",
        "number": NUMBER,
        "pull_request": {
            "number": NUMBER,
            "head": {"ref": "feature", "sha": head, "repo": FORK if fork else REPOSITORY},
            "base": {"ref": "main", "sha": base, "repo": REPOSITORY},
        },
        "repository": REPOSITORY,
    }


def merge_group(*, base: str, head: str) -> dict[str, Any]:
    """A merge queue asks for the check."""
    return {
        "action": "checks_requested",
        "merge_group": {
            "head_sha": head,
            "head_ref": "refs/heads/gh-readonly-queue/main/pr-12-0",
            "base_sha": base,
            "base_ref": "refs/heads/main",
        },
        "repository": REPOSITORY,
    }


def push(*, before: str, after: str) -> dict[str, Any]:
    """Something was pushed to main."""
    return {"ref": "refs/heads/main", "before": before, "after": after, "repository": REPOSITORY}


def workflow_dispatch() -> dict[str, Any]:
    """Somebody pressed the button."""
    return {"ref": "refs/heads/main", "inputs": None, "repository": REPOSITORY}


def workflow_run(*, head: str, fork: bool = True) -> dict[str, Any]:
    """The first of two stages has ended; of a fork, GitHub names no pull request."""
    return {
        "action": "completed",
        "workflow_run": {
            "id": 41,
            "head_sha": head,
            "head_branch": "feature",
            "head_repository": FORK if fork else REPOSITORY,
            "pull_requests": [] if fork else [{"number": NUMBER}],
        },
        "repository": REPOSITORY,
    }
