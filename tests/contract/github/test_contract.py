"""Client and fake, each held to GitHub's own description of its API by a proxy between them.

A request that GitHub does not describe is answered 422, an answer that it would not give 500:
either fails the test. The controls show that the proxy bites.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from backstop.adapters.github.archive import Archive, Checkout
from backstop.adapters.github.client import Denied, GitHub
from backstop.adapters.github.comments import Comments, Created, Outrun, Unchanged, Updated
from backstop.adapters.github.event import Kind
from backstop.adapters.github.pulls import pull_of
from backstop.errors import BackstopError
from tests.contract.github.installed import (
    DESCRIPTIONS,
    OPERATIONS,
    TARBALL,
    installed,
    validating,
)
from tests.github.fake import TOKEN, FakeGitHub, Fault, fake_github
from tests.github.serving import Asked
from tests.github.shapes import JOBS
from tests.github.talking import EVENT, talking_to

MARKER: Final = "<!-- backstop-gate:main -->"
LEDGER: Final = "ledgers/desk.jsonl"
NUMBERS: Final = itertools.count(1)


class Bench:
    """A fake behind a proxy, and everything that went through in this module."""

    def __init__(self, name: str, fake: FakeGitHub, proxy: str) -> None:
        self.name = name
        self.fake = fake
        self.proxy = proxy
        self.passed: set[tuple[str, str]] = set()

    def note(self, asked: Asked) -> None:
        """Take down which operation this is."""
        for path in OPERATIONS:
            pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path))
            if re.fullmatch(pattern, asked.path):
                self.passed.add((path, asked.method.lower()))


@pytest.fixture(scope="module", params=DESCRIPTIONS)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    with fake_github() as fake, validating(fake.url, request.param) as proxy:
        bench = Bench(request.param, fake, proxy)
        fake.before = bench.note
        yield bench


@pytest.fixture
def github(bench: Bench) -> Iterator[GitHub]:
    bench.fake.accounts[TOKEN] = JOBS
    with talking_to(bench.fake, api=bench.proxy) as client:
        yield client


@pytest.fixture
def comments(github: GitHub) -> Comments:
    return Comments(github, repo="octo/repo", number=next(NUMBERS))


def body(text: str, run: int = 5) -> str:
    return f'{MARKER}\n<!-- backstop-run: {{"run":{run},"attempt":1}} -->\n{text}\n'


def test_a_comment_is_created_updated_and_left_alone(comments: Comments) -> None:
    assert isinstance(comments.upsert(MARKER, body("red")), Created)
    assert isinstance(comments.upsert(MARKER, body("green", 6)), Updated)
    assert isinstance(comments.upsert(MARKER, body("green", 6)), Unchanged)
    assert isinstance(comments.upsert(MARKER, body("red", 5)), Outrun)
    assert comments.previous(MARKER) == body("green", 6)


def test_pages_and_duplicates(bench: Bench, github: GitHub) -> None:
    number = next(NUMBERS)
    for n in range(120):
        bench.fake.say(number, body("red", 4) if n in {3, 110} else "talk")
    posted = Comments(github, repo="octo/repo", number=number).upsert(MARKER, body("green"))
    assert isinstance(posted, Updated)
    assert [c.body for c in bench.fake.under(number) if c.body != "talk"] == [body("green")]


def test_a_lost_answer_is_looked_for(bench: Bench, comments: Comments) -> None:
    bench.fake.plan(Fault.LOSES, on="POST /repos")
    assert isinstance(comments.upsert(MARKER, body("red")), Unchanged)


def test_a_token_that_only_reads(bench: Bench, comments: Comments) -> None:
    bench.fake.accounts[TOKEN] = replace(JOBS, writes=False)
    assert isinstance(comments.upsert(MARKER, body("red")), Denied)


def test_a_commit_and_its_history(bench: Bench, github: GitHub) -> None:
    archive = Archive(github, repo="octo/repo")
    with_it = bench.fake.commit({LEDGER: b"{}"})
    tip = bench.fake.commit({"a": b""}, with_it)
    assert archive.last_with(LEDGER, tip) == with_it
    head = bench.fake.commit({"b": b""}, with_it)
    merged = bench.fake.commit({}, tip, head)
    event = replace(EVENT, head_sha=head, merged_sha=merged)
    assert archive.base_of(event) == tip


def test_the_pull_request_of_a_fork_is_found(bench: Bench, github: GitHub) -> None:
    examples = installed().description_of(bench.name)["components"]["examples"]
    (pull,) = examples["pull-request-simple-items"]["value"]
    pull["requested_teams"] = []  # GitHub's example is older than its schema of a team
    head = pull["head"]
    owner, _, _ = head["repo"]["full_name"].partition("/")
    head |= {"label": f"{owner}:{EVENT.head_ref}", "sha": EVENT.head_sha}
    bench.fake.pulls[:] = [pull]
    event = replace(EVENT, kind=Kind.WORKFLOW_RUN, head_repo=head["repo"]["full_name"])
    assert pull_of(github, event) == pull["number"]


def test_an_archive_is_a_redirect_as_described(bench: Bench, tmp_path: Path) -> None:
    """Beside the proxy: that follows redirects by itself, and would take the archive for text."""
    described = installed().description_of(bench.name)["paths"][TARBALL]["get"]["responses"]
    assert list(described) == ["302"]
    assert "Location" in described["302"]["headers"]
    sha = bench.fake.commit({"a": b""})
    with talking_to(bench.fake) as direct:
        checkout = Archive(direct, repo="octo/repo").fetch_checkout(sha, tmp_path / "base")
    assert isinstance(checkout, Checkout)
    assert {asked.token for asked in bench.fake.asked_for_archives} == {None}


def test_every_operation_goes_through(bench: Bench, github: GitHub, tmp_path: Path) -> None:
    """What this does not send through, a description that lacks it would not show."""
    bench.passed.clear()
    number = next(NUMBERS)
    comments = Comments(github, repo="octo/repo", number=number)
    comments.upsert(MARKER, body("red"))
    bench.fake.say(number, body("red"))
    comments.upsert(MARKER, body("green", 6))
    test_a_commit_and_its_history(bench, github)
    test_an_archive_is_a_redirect_as_described(bench, tmp_path)
    test_the_pull_request_of_a_fork_is_found(bench, github)
    assert bench.passed == {(path, how) for path in OPERATIONS for how in OPERATIONS[path]}


@pytest.mark.parametrize("wrong", [{}, {"body": 7}, {"body": None}])
def test_the_control_a_request_against_the_description_fails(github: GitHub, wrong: object) -> None:
    with pytest.raises(BackstopError, match="422") as failed:
        github.post("/repos/octo/repo/issues/1/comments", wrong)
    assert failed.value.slug == "github-refused"


def test_the_control_an_answer_against_the_description_fails(bench: Bench, github: GitHub) -> None:
    number = next(NUMBERS)
    bench.fake.say(number, "talk")
    bench.fake.plan(*[Fault.MISSHAPES] * 20, on="GET")
    with pytest.raises(BackstopError, match="500") as failed:
        github.get(f"/repos/octo/repo/issues/{number}/comments")
    assert failed.value.slug == "github-down"
    bench.fake.forget()
