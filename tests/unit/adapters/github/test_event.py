"""What is read from an event, and what is refused in one line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from backstop.adapters.github.event import Event, Kind, read_event
from backstop.errors import BackstopError

A, B, C, NONE = "a" * 40, "b" * 40, "c" * 40, "0" * 40
OURS = {"id": 2, "full_name": "octo/repo", "default_branch": "main", "fork": True}
FORK = {"id": 9, "full_name": "mona/repo", "default_branch": "main"}


def env_of(tmp_path: Path, name: str, payload: object, **more: str) -> Mapping[str, str]:
    path = tmp_path / "event.json"
    path.write_text(json.dumps(payload), encoding="utf-8")
    return {
        "GITHUB_EVENT_NAME": name,
        "GITHUB_EVENT_PATH": str(path),
        "GITHUB_REPOSITORY": "octo/repo",
        "GITHUB_SHA": C,
        "GITHUB_RUN_ID": "4242",
        "GITHUB_RUN_ATTEMPT": "2",
        **more,
    }


def pull(head: Mapping[str, Any] | None = OURS) -> dict[str, Any]:
    return {
        "action": "opened",
        "pull_request": {
            "number": 7,
            "head": {"ref": "feature", "sha": A, "repo": head},
            "base": {"ref": "main", "sha": B, "repo": OURS},
        },
        "repository": OURS,
    }


def test_a_pull_request_names_both_sides(tmp_path: Path) -> None:
    assert read_event(env_of(tmp_path, "pull_request", pull())) == Event(
        kind=Kind.PULL_REQUEST,
        repo="octo/repo",
        number=7,
        base_ref="main",
        base_sha=B,
        head_ref="feature",
        head_sha=A,
        head_repo="octo/repo",
        fork=False,
        merged_sha=C,
        default_branch="main",
        run=4242,
        attempt=2,
        run_url="https://github.com/octo/repo/actions/runs/4242/attempts/2",
        server_url="https://github.com",
        api_url="https://api.github.com",
        graphql_url="https://api.github.com/graphql",
    )


@pytest.mark.parametrize(("head", "fork"), [(OURS, False), (FORK, True), (None, True)])
def test_a_fork_is_another_repository_or_one_that_is_gone(
    tmp_path: Path, head: Mapping[str, Any] | None, fork: bool
) -> None:
    assert read_event(env_of(tmp_path, "pull_request", pull(head))).fork is fork


def test_a_merge_group_has_a_base_and_no_pull_request(tmp_path: Path) -> None:
    group = {
        "head_ref": "refs/heads/gh-readonly-queue/main/pr-7-x",
        "head_sha": A,
        "base_ref": "refs/heads/main",
        "base_sha": B,
    }
    event = read_event(env_of(tmp_path, "merge_group", {"merge_group": group}))
    assert (event.number, event.base_sha, event.head_sha, event.fork) == (None, B, A, False)
    assert (event.base_ref, event.head_ref) == ("main", "gh-readonly-queue/main/pr-7-x")


def test_a_run_by_hand_has_no_base(tmp_path: Path) -> None:
    told = {"ref": "refs/heads/main", "inputs": None, "repository": OURS}
    event = read_event(env_of(tmp_path, "workflow_dispatch", told))
    assert (event.base_sha, event.head_sha, event.head_ref) == (None, C, "main")
    assert event.default_branch == "main"


@pytest.mark.parametrize(("before", "base"), [(B, B), (NONE, None)])
def test_a_push_is_compared_with_what_was_there_before(
    tmp_path: Path, before: str, base: str | None
) -> None:
    told = {"ref": "refs/heads/main", "before": before, "after": A}
    event = read_event(env_of(tmp_path, "push", told))
    assert (event.base_sha, event.head_sha) == (base, A)


def test_a_workflow_run_says_whose_work_is_to_be_posted(tmp_path: Path) -> None:
    run = {"head_sha": A, "head_branch": "feature", "head_repository": FORK, "pull_requests": []}
    told = {"workflow_run": run, "repository": OURS}
    event = read_event(env_of(tmp_path, "workflow_run", told))
    assert (event.fork, event.number, event.head_repo) == (True, None, "mona/repo")
    told["workflow_run"] = {**run, "head_repository": OURS, "pull_requests": [{"number": 7}]}
    event = read_event(env_of(tmp_path, "workflow_run", told))
    assert (event.fork, event.number) == (False, 7)


def test_a_server_of_ones_own_is_spoken_to_at_its_own_address(tmp_path: Path) -> None:
    event = read_event(
        env_of(
            tmp_path,
            "pull_request",
            pull(),
            GITHUB_SERVER_URL="https://git.example.com/",
            GITHUB_API_URL="https://git.example.com/api/v3",
            GITHUB_GRAPHQL_URL="https://git.example.com/api/graphql",
        )
    )
    assert event.run_url.startswith("https://git.example.com/octo/repo/actions/")
    assert event.api_url == "https://git.example.com/api/v3"
    assert event.graphql_url == "https://git.example.com/api/graphql"


def refused(env: Mapping[str, str]) -> str:
    with pytest.raises(BackstopError) as failed:
        read_event(env)
    assert failed.value.slug == "event"
    assert failed.value.exit_code == 2
    assert "\n" not in str(failed.value)
    return str(failed.value)


@pytest.mark.parametrize("name", ["schedule", "issues", "pull_request_target", "x\ny"])
def test_other_events_are_refused(tmp_path: Path, name: str) -> None:
    assert "no gate runs on" in refused(env_of(tmp_path, name, {}))


def test_the_event_that_hands_a_token_to_strangers_is_refused_with_its_reason(
    tmp_path: Path,
) -> None:
    assert "use pull_request" in refused(env_of(tmp_path, "pull_request_target", pull()))


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"null", b"[]", b"\xff", b"{}", b'{"pull_request": 7}', b"[" * 100_000],
)
def test_a_garbled_payload_is_one_line(tmp_path: Path, text: bytes) -> None:
    env = env_of(tmp_path, "pull_request", {})
    Path(env["GITHUB_EVENT_PATH"]).write_bytes(text)
    assert "not what GitHub sends" in refused(env)


def test_a_payload_names_the_place_of_its_fault(tmp_path: Path) -> None:
    told = pull()
    told["pull_request"]["number"] = "7; rm"
    assert "$.pull_request.number" in refused(env_of(tmp_path, "pull_request", told))


@pytest.mark.parametrize("sha", ["main", A[:39], A.upper(), f"{A}\n", "../../x", ""])
def test_a_commit_is_hexadecimal_or_refused(tmp_path: Path, sha: str) -> None:
    told = pull()
    told["pull_request"]["head"]["sha"] = sha
    assert "full commit" in refused(env_of(tmp_path, "pull_request", told))


def test_a_missing_event_file_is_one_line(tmp_path: Path) -> None:
    env = {**env_of(tmp_path, "push", {}), "GITHUB_EVENT_PATH": str(tmp_path / "none.json")}
    assert "No such file" in refused(env)


@pytest.mark.parametrize(
    "name",
    ["GITHUB_EVENT_NAME", "GITHUB_EVENT_PATH", "GITHUB_REPOSITORY", "GITHUB_SHA", "GITHUB_RUN_ID"],
)
def test_a_variable_that_is_not_set_is_named(tmp_path: Path, name: str) -> None:
    env = {**env_of(tmp_path, "pull_request", pull()), name: ""}
    assert refused(env).startswith(f"{name} is not set")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_REPOSITORY", "octo"),
        ("GITHUB_REPOSITORY", "octo/repo/../../x"),
        ("GITHUB_REPOSITORY", "octo/.."),
        ("GITHUB_API_URL", "api.github.com"),
        ("GITHUB_API_URL", "https://user@host"),
        ("GITHUB_SERVER_URL", "javascript://x"),
        ("GITHUB_RUN_ID", "-1"),
        ("GITHUB_RUN_ATTEMPT", "one"),
        ("GITHUB_SHA", "HEAD"),
    ],
)
def test_a_variable_that_makes_no_sense_is_named(tmp_path: Path, name: str, value: str) -> None:
    assert name in refused({**env_of(tmp_path, "pull_request", pull()), name: value})


def test_a_branch_that_was_deleted_is_nothing_to_judge(tmp_path: Path) -> None:
    told = {"ref": "refs/heads/x", "before": A, "after": NONE}
    assert "deleted" in refused(env_of(tmp_path, "push", told))


def test_a_payload_larger_than_any_is_not_read(tmp_path: Path) -> None:
    env = env_of(tmp_path, "push", {})
    with Path(env["GITHUB_EVENT_PATH"]).open("wb") as file:
        file.truncate(33 * 1024 * 1024)
    assert "larger than any" in refused(env)
