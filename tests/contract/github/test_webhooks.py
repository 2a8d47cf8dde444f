"""What GitHub says that it sends can be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backstop.adapters.github.event import Event, read_event
from backstop.errors import BackstopError
from tests.contract.github.installed import EVENTS, installed


def read(tmp_path: Path, name: str, payload: object) -> Event:
    path = tmp_path / "event.json"
    path.write_text(json.dumps(payload), encoding="utf-8")
    return read_event(
        {
            "GITHUB_EVENT_NAME": name,
            "GITHUB_EVENT_PATH": str(path),
            "GITHUB_REPOSITORY": "octo/repo",
            "GITHUB_SHA": "c" * 40,
            "GITHUB_RUN_ID": "1",
        }
    )


@pytest.mark.parametrize("name", EVENTS)
def test_every_example_is_read_or_deletes_a_branch(tmp_path: Path, name: str) -> None:
    examples = installed().payloads()[name]
    assert examples
    for payload in examples:
        if payload.get("deleted"):
            with pytest.raises(BackstopError, match="deleted its branch"):
                read(tmp_path, name, payload)
        else:
            event = read(tmp_path, name, payload)
            assert event.default_branch == payload["repository"]["default_branch"]


def test_pull_requests_say_number_and_sides(tmp_path: Path) -> None:
    for payload in installed().payloads()["pull_request"]:
        pull = payload["pull_request"]
        event = read(tmp_path, "pull_request", payload)
        assert event.number == payload["number"]
        assert (event.base_sha, event.head_sha) == (pull["base"]["sha"], pull["head"]["sha"])
        assert event.fork is (pull["head"]["repo"]["id"] != pull["base"]["repo"]["id"])
