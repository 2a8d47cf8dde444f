"""Which pull request a workflow run was for, by GitHub's word."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from backstop.adapters.github.client import Denied, GitHub
from backstop.adapters.github.event import Kind
from backstop.adapters.github.pulls import pull_of
from tests.github.fake import FakeGitHub
from tests.github.talking import EVENT

RUN = replace(EVENT, kind=Kind.WORKFLOW_RUN, head_repo="mona/repo", fork=True, number=None)


def pull(number: int, **head: Any) -> dict[str, Any]:
    told = {"label": "mona:feature", "sha": RUN.head_sha, "repo": {"full_name": "mona/repo"}}
    return {"id": number, "number": number, "head": told | head}


def test_the_pull_request_of_a_fork_is_found(fake: FakeGitHub, github: GitHub) -> None:
    fake.pulls += [pull(6, label="else:feature"), pull(7)]
    assert pull_of(github, RUN) == 7


@pytest.mark.parametrize(
    "pulls",
    [
        [],
        [pull(7, sha="d" * 40)],  # somebody pushed meanwhile
        [pull(7, repo=None)],
        [pull(7, repo={"full_name": "mona/other"})],
        [pull(7), pull(8)],
    ],
)
def test_where_it_is_not_certain_there_is_none(
    fake: FakeGitHub, github: GitHub, pulls: list[dict[str, Any]]
) -> None:
    fake.pulls += pulls
    assert pull_of(github, RUN) is None


def test_a_fork_that_is_gone_is_not_asked_for(fake: FakeGitHub, github: GitHub) -> None:
    assert pull_of(github, replace(RUN, head_repo=None)) is None
    assert pull_of(github, replace(RUN, head_ref="")) is None
    assert fake.asked == []


def test_a_token_that_sees_nothing_is_an_answer(fake: FakeGitHub, github: GitHub) -> None:
    fake.accounts.clear()
    assert isinstance(pull_of(github, RUN), Denied)
