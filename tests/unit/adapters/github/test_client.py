"""What is asked again and what is not, where the token goes, and what an error says."""

from __future__ import annotations

import io
import logging
import os
import socket
import subprocess
import sys
import textwrap
from dataclasses import replace

import httpx
import msgspec
import pytest

from backstop.adapters.github.client import Denied, GitHub, InDoubt
from backstop.adapters.github.retrying import Pacing
from backstop.adapters.github.wire import Astray, Reply, onward
from backstop.errors import BackstopError
from tests.conftest import ROOT
from tests.github.fake import KEY, TOKEN, FakeGitHub, Fault
from tests.github.serving import Answer, Asked, serving
from tests.github.shapes import JOBS
from tests.github.talking import Watch, pacing_by, talking_to

COMMENTS = "/repos/octo/repo/issues/7/comments"


@pytest.mark.parametrize("fault", [Fault.FAILS, Fault.LOSES, Fault.CUTS])
def test_a_look_is_repeated_after_a_fault(
    fake: FakeGitHub, github: GitHub, watch: Watch, fault: Fault
) -> None:
    fake.plan(fault, fault)
    assert isinstance(github.get(COMMENTS), Reply)
    assert watch.naps == [0.5, 1.0]


def test_the_pauses_double_and_are_spread_by_chance(fake: FakeGitHub) -> None:
    watch = Watch()
    fake.plan(*[Fault.FAILS] * 7)
    with talking_to(fake, pacing=pacing_by(watch, total_s=600, chance=1.0)) as github:
        github.get(COMMENTS)
    assert watch.naps == [1, 2, 4, 8, 16, 30, 30]


def test_a_change_that_comes_to_the_same_is_repeated(fake: FakeGitHub, github: GitHub) -> None:
    comment = fake.say(7, "before")
    fake.plan(Fault.LOSES)
    github.patch(f"/repos/octo/repo/issues/comments/{comment.id}", {"body": "after"})
    assert (comment.body, comment.edits) == ("after", 2)


def test_a_delete_whose_answer_was_lost_finds_nothing_the_second_time(
    fake: FakeGitHub, github: GitHub
) -> None:
    comment = fake.say(7, "x")
    fake.plan(Fault.LOSES)
    answer = github.delete(f"/repos/octo/repo/issues/comments/{comment.id}")
    assert isinstance(answer, Denied)
    assert answer.status == 404
    assert fake.comments == []


@pytest.mark.parametrize("fault", [Fault.FAILS, Fault.LOSES, Fault.CUTS])
def test_a_post_of_unknown_outcome_is_not_repeated(
    fake: FakeGitHub, github: GitHub, fault: Fault
) -> None:
    fake.plan(fault, on="POST")
    assert isinstance(github.post(COMMENTS, {"body": "x"}), InDoubt)
    assert len(fake.requests("POST")) == 1


def test_a_post_that_was_turned_away_unread_is_repeated(fake: FakeGitHub, github: GitHub) -> None:
    fake.plan(Fault.SECONDARY, on="POST")
    assert isinstance(github.post(COMMENTS, {"body": "x"}), Reply)
    assert len(fake.comments) == 1


def test_a_post_that_found_no_connection_is_repeated(watch: Watch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and deaf: a connection is refused
        api = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with (
            GitHub(api=api, graphql=api, token=TOKEN, pacing=pacing_by(watch)) as github,
            pytest.raises(BackstopError, match=r"cannot be reached.*refused") as failed,
        ):
            github.post(COMMENTS, {"body": "x"})
    assert failed.value.slug == "github-down"
    assert len(watch.naps) > 3
    assert sum(watch.naps) < 120


@pytest.mark.parametrize(
    ("fault", "waited"), [(Fault.SECONDARY, 1.0), (Fault.SPENT, 8.0), (Fault.UNTIMED, 60.5)]
)
def test_a_limit_is_waited_for_as_long_as_it_asks(
    fake: FakeGitHub, github: GitHub, watch: Watch, fault: Fault, waited: float
) -> None:
    fake.plan(fault)
    assert isinstance(github.get(COMMENTS), Reply)
    assert watch.naps == [waited]


def test_a_limit_that_renews_too_late_is_told_at_once(
    fake: FakeGitHub, github: GitHub, watch: Watch
) -> None:
    fake.plan(Fault.EXHAUSTED)
    with pytest.raises(BackstopError, match=r"for 2401 s .*rate limit exceeded") as failed:
        github.get(COMMENTS)
    assert failed.value.slug == "github-limit"
    assert watch.naps == []


def test_one_budget_holds_for_everything_a_client_asks(fake: FakeGitHub, watch: Watch) -> None:
    with talking_to(fake, pacing=pacing_by(watch, total_s=10)) as github:
        fake.plan(Fault.FAILS, Fault.FAILS, Fault.FAILS)
        github.get(COMMENTS)
        assert watch.at == 3.5
        watch.at += 1000  # what the gate does meanwhile is not talk
        fake.plan(*[Fault.FAILS] * 9)
        with pytest.raises(BackstopError, match="cannot be reached, or fails each time"):
            github.get(COMMENTS)
    assert watch.at - 1000 < 10


@pytest.mark.parametrize("fault", [Fault.STALLS, Fault.DRIPS])
def test_an_answer_that_does_not_end_is_given_up(fake: FakeGitHub, fault: Fault) -> None:
    fake.plan(fault, fault, fault)
    fake.say(7, "x" * 2000)
    pacing = Pacing(total_s=1.5, try_s=1.0, chance=lambda: 1.0)
    with talking_to(fake, pacing=pacing) as github, pytest.raises(BackstopError) as failed:
        github.get(COMMENTS)
    assert failed.value.slug == "github-down"


@pytest.mark.parametrize("token", [None, "ghs_unknown", "reads"])
def test_a_token_without_rights_is_an_answer(fake: FakeGitHub, token: str | None) -> None:
    fake.accounts["reads"] = replace(JOBS, writes=False)
    with talking_to(fake, token=token) as github:
        answer = github.post(COMMENTS, {"body": "x"})
    assert isinstance(answer, Denied)
    assert answer.status in {401, 403}
    assert answer.said


def test_a_refusal_without_words_is_a_refusal() -> None:
    with (
        serving(lambda _: Answer(404, {}, b"<html>"), "127.0.0.1") as url,
        GitHub(api=url, graphql=url, token=TOKEN, pacing=pacing_by(Watch())) as github,
    ):
        assert github.get("/x") == Denied(status=404, said="")


def test_what_github_finds_wrong_is_told_with_its_words(fake: FakeGitHub, github: GitHub) -> None:
    with pytest.raises(BackstopError, match=r"POST /repos.* wrong \(422: Validation Failed\)"):
        github.post(COMMENTS, {"body": "x" * 65_537})


def test_the_page_of_a_proxy_is_no_answer(fake: FakeGitHub, github: GitHub) -> None:
    fake.plan(Fault.GARBLES)
    answer = github.get(COMMENTS)
    assert isinstance(answer, Reply)
    with pytest.raises(BackstopError, match="GITHUB_API_URL") as failed:
        github.read(answer, list[msgspec.Raw])
    assert failed.value.slug == "github-answer"


def test_all_pages_are_read_also_those_that_are_short(fake: FakeGitHub, github: GitHub) -> None:
    said = [fake.say(7, str(n)) for n in range(250)]
    fake.hidden = frozenset({said[0].id, said[120].id})
    found: list[msgspec.Raw] = []
    for page in github.pages(COMMENTS):
        assert isinstance(page, Reply)
        found += github.read(page, list[msgspec.Raw])
    assert len(found) == 248
    assert len(fake.asked) == 3


def test_a_list_that_leads_back_is_told() -> None:
    asked: list[Asked] = []

    def answer(request: Asked) -> Answer:
        asked.append(request)
        return Answer(200, {"link": '<http://elsewhere/x?page=1>; rel="next"'}, b"[]")

    with (
        serving(answer, "127.0.0.1") as url,
        GitHub(api=url, graphql=url, token=TOKEN, pacing=pacing_by(Watch())) as github,
        pytest.raises(BackstopError, match="does not end"),
    ):
        list(github.pages("/x"))
    assert len(asked) == 1


def test_a_renamed_repository_is_followed_with_the_token(fake: FakeGitHub, github: GitHub) -> None:
    fake.renamed_from = "octo/old"
    fake.say(7, "x")
    old = COMMENTS.replace("octo/repo", "octo/old")
    answer = github.get(old, {"per_page": "1"})
    assert isinstance(answer, Reply)
    assert len(github.read(answer, list[msgspec.Raw])) == 1
    assert isinstance(github.post(old, {"body": "y"}), Reply)
    assert len(fake.comments) == 2
    assert {asked.token for asked in fake.asked} == {TOKEN}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_the_token_goes_to_no_other_host(fake: FakeGitHub, status: int) -> None:
    moved = {"location": f"{fake.url}{COMMENTS}"}
    with (
        serving(lambda _: Answer(status, moved, b""), "127.0.0.1") as elsewhere,
        talking_to(fake, api=elsewhere) as github,
    ):
        github.get(COMMENTS)
        assert [asked.token for asked in fake.asked] == [None]
        with pytest.raises(BackstopError, match="would send a change on to"):
            github.post(COMMENTS, {"body": "x"})
        with pytest.raises(BackstopError, match="would send a change on to"):
            github.patch(COMMENTS, {"body": "x"})
    assert len(fake.asked) == 1


@pytest.mark.parametrize("location", ["", "ftp://x/y", "/again", "file:///etc/passwd"])
def test_a_redirect_to_nowhere_is_told(location: str) -> None:
    with (
        serving(lambda _: Answer(302, {"location": location}, b""), "127.0.0.1") as url,
        GitHub(api=url, graphql=url, token=TOKEN, pacing=pacing_by(Watch())) as github,
        pytest.raises(BackstopError) as failed,
    ):
        github.get("/again")
    assert failed.value.slug == "github-answer"


def test_an_endless_answer_is_cut_off() -> None:
    with (
        serving(lambda _: Answer(200, {}, b"x" * (64 * 1024 * 1024 + 1)), "127.0.0.1") as url,
        GitHub(api=url, graphql=url, token=TOKEN, pacing=pacing_by(Watch())) as github,
        pytest.raises(BackstopError, match="is longer than"),
    ):
        github.get("/x")


def echoing(status: int) -> Answer:
    said = msgspec.json.encode({"message": f"no {TOKEN} here"})
    return Answer(status, {"content-type": "application/json"}, said)


@pytest.mark.parametrize("status", [403, 422, 500])
def test_the_token_is_in_no_error_log_or_repr(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with (
        serving(lambda _: echoing(status), "127.0.0.1") as url,
        GitHub(api=url, graphql=url, token=TOKEN, pacing=pacing_by(Watch())) as github,
    ):
        try:
            told = str(github.get("/x"))
        except BackstopError as error:
            told = repr(error) + str(error.__cause__) + str(error.__context__)
        assert "no *** here" in told
        assert TOKEN not in told + repr(github) + repr(vars(github)) + caplog.text
    assert "httpx" in caplog.text  # the control: what it logs was seen


@pytest.mark.parametrize("token", ["ghs_a\nb", "with a blank", "tök", "x\0"])
def test_a_token_that_cannot_be_one_is_refused_without_being_shown(token: str) -> None:
    with pytest.raises(BackstopError) as failed:
        GitHub(api="http://x", graphql="http://x", token=token, pacing=Pacing())
    assert failed.value.slug == "github-token"
    assert token not in str(failed.value)


def test_the_key_in_the_address_of_an_archive_is_in_no_error_and_no_log(
    fake: FakeGitHub, github: GitHub, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    fake.plan(*[Fault.FAILS] * 40, on="legacy")
    sha = fake.commit({})
    with pytest.raises(BackstopError) as failed:
        github.download(f"/repos/octo/repo/tarball/{sha}", io.BytesIO(), most=1000)
    assert len(fake.asked_for_archives) > 3
    assert KEY not in str(failed.value) + caplog.text
    assert "legacy.tar.gz" in caplog.text  # the control: the address was logged
    assert all(asked.query["token"] == KEY for asked in fake.asked_for_archives)


def told_by(script: str, **environment: str) -> str:
    """What a process of its own prints: it reads its proxies from its own environment."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={"PATH": os.environ["PATH"], **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_nothing_of_a_download_that_broke_off_stays() -> None:
    answers = iter([Answer(200, {}, b"x" * 1000, breaks_off=True), Answer(200, {}, b"short")])
    into = io.BytesIO()
    with (
        serving(lambda _: next(answers), "127.0.0.1") as url,
        GitHub(api=url, graphql=url, token=TOKEN, pacing=pacing_by(Watch())) as github,
    ):
        github.download("/x", into, most=1000)
    assert into.getvalue() == b"short"


def redirect(status: int, location: str) -> Reply:
    return Reply(status=status, headers={"location": location}, body=b"")


HOME = httpx.URL("https://api.example.com")


@pytest.mark.parametrize(
    "location",
    ["http://api.example.com/x", "http://elsewhere/x?token=KEY", "https://x:port/y", "data:x"],
)
def test_a_look_is_not_led_astray(location: str) -> None:
    with pytest.raises(Astray) as failed:
        onward("GET", HOME.join("/a"), redirect(302, location), home=HOME)
    assert "KEY" not in str(failed.value)


def test_a_change_stays_on_the_host_of_the_api() -> None:
    there = onward("PATCH", HOME.join("/a"), redirect(307, "/b"), home=HOME)
    assert there == HOME.join("/b")
    same = onward("PATCH", HOME, redirect(308, "https://api.example.com:443/b"), home=HOME)
    assert same.path == "/b"
    for status, location in [
        (302, "/b"),
        (307, "https://api.example.com:444/b"),
        (307, "https://api.example.com.evil/b"),
    ]:
        with pytest.raises(Astray, match="a change"):
            onward("PATCH", HOME, redirect(status, location), home=HOME)


SCRIPT = """
    from backstop.adapters.github.client import GitHub
    from backstop.adapters.github.retrying import Pacing
    from backstop.errors import BackstopError
    pacing = Pacing(total_s=0.1)
    try:
        with GitHub(api="http://api.invalid", graphql="", token="ghs_x", pacing=pacing) as github:
            print(github.get("/x"))
    except BackstopError as error:
        print(error.slug, error)
"""


def test_a_proxy_of_the_environment_is_used() -> None:
    def proxy(asked: Asked) -> Answer:
        return Answer(403, {}, msgspec.json.encode({"message": asked.headers["host"]}))

    with serving(proxy, "127.0.0.1") as url:
        assert "GitHub answers 403: api.invalid" in told_by(SCRIPT, HTTP_PROXY=url)


@pytest.mark.parametrize("proxy", ["ftp://user:geheim@host", "http://user:geheim@host:99999"])
def test_a_proxy_that_cannot_be_used_is_told_without_its_password(proxy: str) -> None:
    told = told_by(SCRIPT, HTTP_PROXY=proxy)
    assert told.startswith("github-down ")
    assert "geheim" not in told
    assert "PROXY" in told


def test_a_proxy_that_lets_nothing_through_is_told() -> None:
    with serving(lambda _: Answer(200, {}, b""), "127.0.0.1") as url:  # it knows no CONNECT
        told = told_by(SCRIPT.replace("http://", "https://"), HTTPS_PROXY=url)
    assert "the proxy does not let it through" in told


def test_certificates_that_are_not_there_are_told() -> None:
    told = told_by(SCRIPT, SSL_CERT_FILE="/nowhere/ca.pem")
    assert told.startswith("github-down ")
    assert "SSL_CERT_FILE" in told
