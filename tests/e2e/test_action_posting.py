"""The second of two stages: a report from a run without rights is posted, and taken for data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backstop.core.literal import literal
from backstop.core.verdict import Verdict
from backstop.reports.document import document
from backstop.reports.masking import masked
from tests.action_runner.runner import Ended
from tests.action_runner.town import Town, rows, run_here
from tests.github.fake import TOKEN, fake_github
from tests.verdicts import ATTACKED, BLOCKED


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    """A pull request from a fork, whose first stage has ended."""
    with fake_github() as github:
        town = Town(github=github, root=tmp_path)
        town.set_up()
        yield town


def artifact(town: Town, data: bytes | None, *, name: str = "verdict.json") -> None:
    """What the first stage left, where the second one downloads it to."""
    folder = town.head / "backstop-report"
    folder.mkdir()
    if data is not None:
        (folder / name).write_bytes(data)


def told(verdict: Verdict) -> bytes:
    return literal(masked(document(verdict, timing_ms={}))).encode()


def post(town: Town, *, is_open: bool = True, **more: Any) -> Ended:
    step = town.step("workflow_run", inputs={"post-from": "backstop-report"}, **more)
    if is_open:
        town.open(step.sha)
    return run_here(step, town.root / "post")


def test_a_report_is_posted_under_the_pull_request_that_github_names(town: Town) -> None:
    """G10: the comment says whose word it is; the step itself has done its work."""
    artifact(town, told(BLOCKED))
    ended = post(town)
    assert ended.exit_code == 0
    (comment,) = town.comments
    assert rows(comment, "DUPLICATE") == 3
    assert "which its author can edit" in comment


def test_the_whole_way_of_two_stages(town: Town) -> None:
    """The first stage's own report is what the second one posts; nothing is judged twice."""
    town.forget()
    first = town.run(inputs={"comment": "never"})
    assert first.exit_code == 3
    assert town.comments == []
    made = first.workspace / first.outputs["report-path"]
    (town.head / "backstop-report").mkdir()
    for path in made.iterdir():
        (town.head / "backstop-report" / path.name).write_bytes(path.read_bytes())
    assert post(town).exit_code == 0
    assert "its ledger vanished" in town.comments[0]


def test_an_error_of_the_first_stage_is_posted_too(town: Town) -> None:
    """A required check always reports, and so does its comment."""
    said = {
        "schema": "backstop.error/1",
        "slug": "no-docker",
        "message": "there is no daemon",
        "exit_code": 2,
    }
    artifact(town, json.dumps(said).encode(), name="error.json")
    assert post(town).exit_code == 0
    assert "nothing was judged" in town.comments[0]


def test_g26_a_comment_that_cannot_be_posted_is_no_work_done(town: Town) -> None:
    """G26: to post is all that this step is for; a warning that nobody reads is no report."""
    artifact(town, told(BLOCKED))
    town.github.accounts[TOKEN] = replace(town.github.accounts[TOKEN], writes=False)
    ended = post(town)
    assert ended.exit_code == 2
    assert town.comments == []
    assert any("pull-requests: write" in warning.data for warning in ended.log.named("warning"))


@pytest.mark.parametrize(
    ("head", "repo"), [("0" * 40, "stranger/repo"), (None, "somebody-else/repo")]
)
def test_only_a_pull_request_at_this_commit_of_this_fork_gets_it(
    town: Town, head: str | None, repo: str
) -> None:
    """A later push, or another fork with a branch of the same name: nobody is told."""
    artifact(town, told(BLOCKED))
    step = town.step("workflow_run", inputs={"post-from": "backstop-report"})
    town.open(head or step.sha, repo=repo)
    town.github.pulls[0]["head"]["label"] = "stranger:feature"
    ended = run_here(step, town.root / "post")
    assert ended.exit_code == 0
    assert town.comments == []


def test_a_number_in_the_artifact_is_not_looked_at(town: Town) -> None:
    body = json.loads(told(BLOCKED)) | {"number": 99, "pull_request": 99}
    artifact(town, json.dumps(body).encode())
    assert post(town).exit_code == 0
    assert len(town.comments) == 1
    assert town.github.under(99) == []


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"{}",
        b"[" * 100_000,
        b'{"schema": "backstop.verdict/1"}',
        told(BLOCKED).replace(b'"match":39', b'"match":40'),
        told(BLOCKED).replace(b'"decision":"BLOCK"', b'"decision":"PASS"'),
        told(BLOCKED)[:-100],
    ],
    ids=["none", "empty", "bare", "deep", "short", "edited", "forged", "cut"],
)
def test_what_is_no_report_is_said_so_in_the_comment(town: Town, data: bytes | None) -> None:
    """Fails closed: the step is red, and the comment says that nothing is known."""
    artifact(town, data)
    ended = post(town)
    assert ended.exit_code == 2
    (comment,) = town.comments
    assert "nothing was judged" in comment
    assert len(ended.log.named("error")) == 1


def test_a_link_in_the_artifact_is_not_followed(town: Town) -> None:
    secret = town.root / "secret"
    secret.write_bytes(told(BLOCKED))
    artifact(town, None)
    (town.head / "backstop-report" / "verdict.json").symlink_to(secret)
    assert post(town).exit_code == 2
    assert rows(town.comments[0], "DUPLICATE") == 0


def test_hostile_words_of_an_artifact_are_inert(town: Town) -> None:
    """They reach neither the runner nor the reader."""
    artifact(town, told(ATTACKED))
    ended = post(town)
    assert ended.exit_code == 0
    assert "\u202e" not in town.comments[0]
    assert "\x1b" not in ended.raw


def test_a_report_is_posted_on_workflow_run_alone(town: Town) -> None:
    artifact(town, told(BLOCKED))
    ended = town.run(inputs={"post-from": "backstop-report"})
    assert ended.exit_code == 2
    assert "posted on workflow_run" in ended.log.text
    assert rows(town.comments[0], "DUPLICATE") == 0


def test_without_the_input_no_gate_runs_on_workflow_run(town: Town) -> None:
    ended = run_here(town.step("workflow_run"), town.root / "gate")
    assert ended.exit_code == 2
    assert "post-from" in ended.log.text
