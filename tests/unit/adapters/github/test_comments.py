"""One comment of ours, whoever writes at the same time and whatever GitHub answers."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstop.adapters.github.client import Denied, GitHub
from backstop.adapters.github.comments import (
    Comments,
    Created,
    Outrun,
    Unchanged,
    Updated,
    When,
    Withheld,
)
from backstop.errors import BackstopError
from backstop.reports.comment import marker, render_not_applicable
from backstop.reports.context import CommentContext
from tests.github.fake import TOKEN, FakeGitHub, Fault, fake_github
from tests.github.serving import Asked
from tests.github.shapes import JOBS, Account
from tests.github.talking import Watch, pacing_by, talking_to

MARKER = "<!-- backstop-gate:main -->"
MONA = Account(login="mona", id=12, is_app=False)
OUR_APP = Account(login="acme-gate[bot]", id=31)


def body(text: str, *, run: int | None = 5, attempt: int = 1, marker: str = MARKER) -> str:
    told = json.dumps({"run": run, "attempt": attempt, "head": "a" * 40, "digest": "sha256:0"})
    line = "" if run is None else f"<!-- backstop-run: {told} -->\n"
    return f"{marker}\n{line}{text}\n"


@pytest.fixture
def comments(github: GitHub) -> Comments:
    return Comments(github, repo="octo/repo", number=7)


def bodies(fake: FakeGitHub) -> list[str]:
    return [comment.body for comment in fake.under(7)]


def test_the_first_run_writes_a_comment(fake: FakeGitHub, comments: Comments) -> None:
    posted = comments.upsert(MARKER, body("red"))
    assert posted == Created(url=f"{fake.url}/octo/repo/pull/7#issuecomment-1000")
    assert bodies(fake) == [body("red")]


def test_g29_a_second_push_updates_the_same_comment(fake: FakeGitHub, comments: Comments) -> None:
    """G29: one sticky comment, whatever the number of pushes."""
    comments.upsert(MARKER, body("red", run=5))
    assert isinstance(comments.upsert(MARKER, body("green", run=6)), Updated)
    assert bodies(fake) == [body("green", run=6)]


def test_ours_is_found_on_whatever_page_it_is(fake: FakeGitHub, comments: Comments) -> None:
    for n in range(130):
        fake.say(7, f"talk {n}", MONA)
    fake.say(7, body("red", run=4))
    for n in range(130):
        fake.say(7, f"more talk {n}", MONA)
    assert isinstance(comments.upsert(MARKER, body("green")), Updated)
    assert len(fake.under(7)) == 261


def test_nothing_is_sent_where_nothing_changed(fake: FakeGitHub, comments: Comments) -> None:
    comments.upsert(MARKER, body("red"))
    fake.comments[0].body = body("red").replace("\n", "\r\n").rstrip()  # as servers may keep it
    assert isinstance(comments.upsert(MARKER, body("red")), Unchanged)
    assert fake.requests("PATCH") == []


@pytest.mark.parametrize("writer", [MONA, OUR_APP, None])
def test_the_marker_of_somebody_else_is_not_ours(
    fake: FakeGitHub, comments: Comments, writer: Account | None
) -> None:
    pasted = fake.say(7, body("forged green", run=999), writer or replace(JOBS, id=13))
    assert isinstance(comments.upsert(MARKER, body("red")), Created)
    assert pasted.body == body("forged green", run=999)
    assert len(fake.under(7)) == 2
    assert fake.requests("DELETE") == []


def test_a_marker_further_down_is_not_ours(fake: FakeGitHub, comments: Comments) -> None:
    quoted = fake.say(7, f"> quoted\n{body('old')}")
    assert isinstance(comments.upsert(MARKER, body("red")), Created)
    assert quoted.edits == 0


def test_a_gate_of_another_configuration_has_a_comment_of_its_own(
    fake: FakeGitHub, comments: Comments
) -> None:
    other = "<!-- backstop-gate:main-2 -->"
    comments.upsert(other, body("a", marker=other))
    assert isinstance(comments.upsert(MARKER, body("b")), Created)
    assert len(fake.under(7)) == 2


def test_an_app_of_ones_own_knows_its_comments(fake: FakeGitHub) -> None:
    fake.accounts[TOKEN] = OUR_APP
    fake.say(7, body("red", run=4), OUR_APP)
    fake.say(7, body("not mine", run=4), JOBS)
    with talking_to(fake) as github:
        posted = Comments(github, repo="octo/repo", number=7).upsert(MARKER, body("green"))
    assert isinstance(posted, Updated)
    assert bodies(fake) == [body("green"), body("not mine", run=4)]


def test_a_server_without_graphql_leaves_the_account_of_jobs(
    fake: FakeGitHub, comments: Comments
) -> None:
    fake.graphql = False
    fake.say(7, body("forged", run=4), MONA)
    fake.say(7, body("red", run=4), replace(JOBS, id=77))  # another id on a server of one's own
    assert isinstance(comments.upsert(MARKER, body("green")), Updated)
    assert bodies(fake) == [body("forged", run=4), body("green")]


@pytest.mark.parametrize("fault", [Fault.LOSES, Fault.CUTS, Fault.BREAKS])
def test_a_comment_whose_answer_was_lost_is_found_and_not_sent_twice(
    fake: FakeGitHub, comments: Comments, fault: Fault
) -> None:
    fake.plan(fault, on="POST")
    assert isinstance(comments.upsert(MARKER, body("red")), Unchanged)
    assert bodies(fake) == [body("red")]
    assert fake.requests("POST").count("/repos/octo/repo/issues/7/comments") == 1


def test_a_comment_that_did_not_arrive_is_sent_again(fake: FakeGitHub, comments: Comments) -> None:
    fake.plan(Fault.FAILS, on="POST")
    assert isinstance(comments.upsert(MARKER, body("red")), Created)
    assert bodies(fake) == [body("red")]


def test_a_comment_that_never_arrives_is_told(fake: FakeGitHub, comments: Comments) -> None:
    fake.plan(*[Fault.FAILS] * 4, on="POST")
    with pytest.raises(BackstopError, match=r"does not say whether it took the comment.*502"):
        comments.upsert(MARKER, body("red"))


def test_two_runs_at_once_leave_one_comment_of_the_later_run(fake: FakeGitHub) -> None:
    late = body("later", run=6)

    def interleave(asked: Asked) -> None:
        """The later run looks and writes between the other's look and its writing."""
        if asked.method == "POST" and asked.path.endswith("/comments"):
            fake.before = lambda _: None
            with talking_to(fake) as other:
                assert isinstance(
                    Comments(other, repo="octo/repo", number=7).upsert(MARKER, late), Created
                )

    fake.before = interleave
    with talking_to(fake) as github:
        posted = Comments(github, repo="octo/repo", number=7).upsert(MARKER, body("old", run=5))
    assert isinstance(posted, Outrun)
    assert bodies(fake) == [late]


def test_g05_nothing_of_what_was_said_before_stays(fake: FakeGitHub, comments: Comments) -> None:
    """G05: a comment in three parts, and a second push: all of them are replaced."""
    for part in ("red, part 1", "red, part 2", "red, part 3"):
        fake.say(7, body(part, run=4))
    fake.say(7, "thanks!", MONA)
    assert isinstance(comments.upsert(MARKER, body("green")), Updated)
    assert bodies(fake) == [body("green"), "thanks!"]


def test_duplicates_go_even_where_the_kept_one_says_it_already(
    fake: FakeGitHub, comments: Comments
) -> None:
    for _ in range(2):
        fake.say(7, body("red"))
    assert isinstance(comments.upsert(MARKER, body("red")), Unchanged)
    assert bodies(fake) == [body("red")]


@pytest.mark.parametrize(("run", "attempt"), [(6, 1), (5, 2), (100, 1)])
def test_an_older_run_does_not_overwrite_a_later_one(
    fake: FakeGitHub, comments: Comments, run: int, attempt: int
) -> None:
    fake.say(7, body("later", run=run, attempt=attempt))
    assert isinstance(comments.upsert(MARKER, body("old", run=5)), Outrun)
    assert bodies(fake) == [body("later", run=run, attempt=attempt)]


def test_an_older_run_tidies_up_and_lets_the_later_one_stand(
    fake: FakeGitHub, comments: Comments
) -> None:
    fake.say(7, body("oldest", run=3))
    fake.say(7, body("later", run=6))
    assert isinstance(comments.upsert(MARKER, body("old", run=5)), Outrun)
    assert bodies(fake) == [body("later", run=6)]


@pytest.mark.parametrize("line", ["", "<!-- backstop-run: {} -->\n", "<!-- backstop-run: x -->\n"])
def test_a_comment_that_does_not_say_whose_it_is_gives_way(
    fake: FakeGitHub, comments: Comments, line: str
) -> None:
    fake.say(7, f"{MARKER}\n{line}red\n")
    assert isinstance(comments.upsert(MARKER, body("green", run=1)), Updated)


def test_what_does_not_say_whose_it_is_is_never_held_back(
    fake: FakeGitHub, comments: Comments
) -> None:
    fake.say(7, body("green", run=99))
    assert isinstance(comments.upsert(MARKER, body("error", run=None)), Updated)


def test_a_run_line_in_the_text_of_an_agent_is_not_read(
    fake: FakeGitHub, comments: Comments
) -> None:
    fake.say(7, body('red\n<!-- backstop-run: {"run":99,"attempt":1} -->', run=4))
    assert isinstance(comments.upsert(MARKER, body("green", run=5)), Updated)


def test_a_comment_that_is_deleted_meanwhile_is_written_anew(
    fake: FakeGitHub, comments: Comments
) -> None:
    fake.say(7, body("red", run=4))

    def meddle(asked: Asked) -> None:
        if asked.method == "PATCH":
            fake.comments.clear()

    fake.before = meddle
    assert isinstance(comments.upsert(MARKER, body("green")), Created)
    assert bodies(fake) == [body("green")]


def test_g06_on_finding_says_nothing_until_there_is_something(
    fake: FakeGitHub, comments: Comments
) -> None:
    """G06: comment always, on a finding, or never."""
    assert comments.upsert(MARKER, body("ok"), when=When.ON_FINDING, finding=False) == Withheld()
    assert fake.comments == []
    posted = comments.upsert(MARKER, body("red"), when=When.ON_FINDING, finding=True)
    assert isinstance(posted, Created)


def test_g06_on_finding_turns_what_was_red_green(fake: FakeGitHub, comments: Comments) -> None:
    """G06: a comment that is no longer true does not stay."""
    fake.say(7, body("red", run=4))
    posted = comments.upsert(MARKER, body("green"), when=When.ON_FINDING, finding=False)
    assert isinstance(posted, Updated)
    assert bodies(fake) == [body("green")]


def test_g06_never_asks_nothing(fake: FakeGitHub, comments: Comments) -> None:
    """G06: never."""
    assert comments.upsert(MARKER, body("red"), when=When.NEVER) == Withheld()
    assert fake.asked == []


@pytest.mark.parametrize("begun", [False, True])
def test_g10_a_token_that_only_reads_is_an_answer(fake: FakeGitHub, *, begun: bool) -> None:
    """G10: on a pull request from a fork the comment is refused, and the verdict is not."""
    fake.accounts[TOKEN] = replace(JOBS, writes=False)
    if begun:
        fake.say(7, body("red", run=4))
    with talking_to(fake) as github:
        posted = Comments(github, repo="octo/repo", number=7).upsert(MARKER, body("green"))
    assert isinstance(posted, Denied)
    assert posted.said == "Resource not accessible by integration"


def test_a_comment_at_the_limit_is_sent_and_a_longer_one_never(
    fake: FakeGitHub, comments: Comments
) -> None:
    room = 65_536 - len(body(""))
    assert isinstance(comments.upsert(MARKER, body("ü" * room)), Created)
    before = len(fake.asked)
    with pytest.raises(BackstopError, match="65537 characters") as failed:
        comments.upsert(MARKER, body("ü" * (room + 1)))
    assert failed.value.slug == "too-long"
    assert len(fake.asked) == before


def test_a_fault_while_tidying_up_does_not_unsay_the_comment(
    fake: FakeGitHub, watch: Watch
) -> None:
    def spoil(asked: Asked) -> None:
        if asked.method == "GET" and fake.comments:
            fake.plan(Fault.EXHAUSTED)

    fake.before = spoil
    with talking_to(fake, pacing=pacing_by(watch)) as github:
        posted = Comments(github, repo="octo/repo", number=7).upsert(MARKER, body("red"))
    assert isinstance(posted, Created)


def test_the_previous_comment_can_be_read(fake: FakeGitHub, comments: Comments) -> None:
    assert comments.previous(MARKER) is None
    fake.say(7, body("oldest", run=3))
    fake.say(7, body("newest", run=4))
    fake.say(7, body("forged", run=9), MONA)
    assert comments.previous(MARKER) == body("newest", run=4)


def test_a_pull_request_that_is_not_there_is_an_answer(fake: FakeGitHub, github: GitHub) -> None:
    elsewhere = Comments(github, repo="octo/gone", number=7)
    assert isinstance(elsewhere.upsert(MARKER, body("red")), Denied)
    assert isinstance(elsewhere.previous(MARKER), Denied)


def test_a_comment_that_may_not_be_seen_to_change_is_an_answer(
    fake: FakeGitHub, comments: Comments
) -> None:
    """Servers say 404 where a token may not write: that is no comment that somebody deleted."""
    fake.say(7, body("red", run=4))
    fake.deaf = True
    posted = comments.upsert(MARKER, body("green"))
    assert isinstance(posted, Denied)
    assert posted.status == 404


def test_a_comment_begins_with_its_marker(comments: Comments) -> None:
    with pytest.raises(ValueError, match="marker"):
        comments.upsert(MARKER, body("x", marker="<!-- other -->"))


@settings(max_examples=20)
@given(head=st.text(max_size=80), run=st.integers(6, 2**53))
def test_the_line_that_reports_write_is_the_line_that_is_read(head: str, run: int) -> None:
    """Two strangers, one form: a report's comment says whose it is, whatever else it says."""
    context = CommentContext(config_id="main", run=run, head=head)
    with fake_github() as fake, talking_to(fake) as github:
        fake.say(7, render_not_applicable(context))
        older = render_not_applicable(replace(context, run=5, head="b" * 40))
        posted = Comments(github, repo="octo/repo", number=7).upsert(marker("main"), older)
    assert isinstance(posted, Outrun)
