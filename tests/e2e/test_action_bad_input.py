"""Whatever is wrong, the action says so in one line everywhere one looks, and it is never green."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from backstop.action.outcome import Judged
from backstop.adapters.github.retrying import Pacing
from backstop.core.divergence import Kind, Reason
from backstop.core.verdict import Verdict
from backstop.gate.request import Judgement
from tests.action_runner.runner import Ended
from tests.action_runner.town import Town, run_here, tell_here
from tests.github.fake import TOKEN, fake_github
from tests.verdicts import HOSTILE, agent_verdict, divergence, half


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    with fake_github() as github:
        town = Town(github=github, root=tmp_path)
        town.set_up()
        yield town


def said_everywhere(ended: Ended, town: Town, words: str, *, code: int = 2) -> None:
    """One clear line in log, annotation, summary and comment; the outputs say ERROR."""
    assert ended.exit_code == code
    (line,) = [line for line in ended.log.lines if line.startswith("error[")]
    (error,) = ended.log.named("error")
    (comment,) = town.comments
    for place in (line, error.data, ended.summary, comment):
        assert words in place.replace("`", "").replace("\\", ""), place
    assert "Traceback" not in ended.raw
    assert (ended.outputs["decision"], ended.outputs["exit-code"]) == ("ERROR", str(code))
    assert ended.outputs["duplicates"] == ""


def test_an_event_file_that_is_not_there(town: Town) -> None:
    """Where the pull request cannot be known, the summary and the annotation are the report."""
    ended = run_here(replace(town.step(), event=None), town.root / "run")
    assert ended.exit_code == 2
    assert "cannot be read" in ended.summary
    assert len(ended.log.named("error")) == 1
    assert ended.outputs["decision"] == "ERROR"


def test_an_event_that_no_gate_runs_on(town: Town) -> None:
    step = town.step()
    ended = run_here(replace(step, event_name="issues"), town.root / "run")
    assert ended.exit_code == 2
    assert "no gate runs on the event" in ended.summary


def test_a_token_that_may_not_read_the_base(town: Town) -> None:
    """The base cannot be had: red, with the permission that is missing."""
    step = town.step()
    town.github.commits.pop(town.base)
    ended = run_here(step, town.root / "run")
    said_everywhere(ended, town, "contents: read")


@pytest.mark.parametrize(("token", "code"), [(TOKEN, 1), ("a-token-of-nobody", 2)])
def test_a_push_whose_base_is_gone_is_not_one_whose_token_may_not_read(
    token: str, code: int, town: Town
) -> None:
    """What a force-push threw away is no loss; a permission that is missing hides the base."""
    step = town.step("push", inputs={"github-token": token})
    town.github.commits.pop(town.base)
    ended = run_here(step, town.root / "run")
    assert ended.exit_code == code
    told = ended.log.text if code == 2 else ended.summary
    assert ("contents: read" if code == 2 else "the commit before this push") in told


def test_an_input_that_means_nothing(town: Town) -> None:
    ended = town.run(inputs={"fail-on": "losses"})
    said_everywhere(ended, town, "input fail-on")


def test_a_checkout_that_was_forgotten(town: Town) -> None:
    """The first mistake of everybody: no actions/checkout before."""
    step = town.step()
    empty = town.root / "empty"
    empty.mkdir()
    ended = run_here(replace(step, workspace=empty), town.root / "run")
    said_everywhere(ended, town, "run actions/checkout")


def test_a_change_that_deletes_the_configuration(town: Town) -> None:
    (town.head / "backstop.yaml").unlink()
    said_everywhere(town.run(), town, "there is no such file in the checkout")


def test_a_change_that_breaks_the_configuration(town: Town) -> None:
    (town.head / "backstop.yaml").write_text("version: 1\nagents: [\n")
    said_everywhere(town.run(), town, "backstop.yaml")


def test_a_base_folder_that_is_not_there(town: Town) -> None:
    said_everywhere(town.run(inputs={"base": "elsewhere"}), town, "no folder elsewhere")


def test_a_ledger_in_a_store_that_cannot_be_reached(town: Town) -> None:
    """A store's URL in the base's configuration: nothing is judged without its answer."""
    for folder in (town.root / "base", town.head):
        config = folder / "backstop.yaml"
        url = "sqlite:////nowhere/at/all.db"
        config.write_text(config.read_text().replace("ledgers/vendor-onboarding.jsonl", url))
    town.base = town.github.commit_folder(town.root / "base")
    said_everywhere(town.run(), town, "/nowhere/at/all.db")


def test_github_that_is_down_is_an_error_and_no_verdict(town: Town) -> None:
    """Nothing answers; the summary says so, and the step ends within its budget."""
    step = replace(town.step(), api_url="http://127.0.0.1:9")
    ended = run_here(step, town.root / "run", pacing=Pacing(total_s=3, download_s=3))
    assert ended.exit_code == 2
    assert "github-down" in ended.summary


def test_five_thousand_findings_are_told_within_every_limit(tmp_path: Path) -> None:
    """Worst first, and the rest by number: 65,536 characters, 1 MiB, ten annotations of a level."""
    found = [
        divergence(
            Kind.DUPLICATE if place % 5 == 0 else Kind.MUTATED,
            Reason.RELABELLED if place % 5 == 0 else Reason.CHANGED,
            half({HOSTILE: place}, key=f"k{place}"),
            half({HOSTILE: -place}, key=f"n{place}"),
            tool=f"tool_{place}",
            run=f"run-{place} {HOSTILE}",
            paths=("/amount",),
        )
        for place in range(5000)
    ]
    verdict = Verdict(agents=(agent_verdict(*found, why=("1000 DUPLICATE",)),))
    with fake_github() as github:
        town = Town(github=github, root=tmp_path)
        town.set_up()
        ended = tell_here(
            Judged(judgement=Judgement(verdict=verdict)), town.step(), town.root / "run"
        )
        (comment,) = town.comments
    assert len(comment) <= 65_536
    assert len(ended.summary.encode()) <= 1024 * 1024
    levels = [command.name for command in ended.log.annotations]
    assert max(levels.count(level) for level in set(levels)) <= 10
    assert all(len(a.data) <= 4096 for a in ended.log.annotations)
    assert "more" in comment
    assert comment.index("tool_0") < comment.index("tool_5")
    assert (ended.workspace / "backstop-report" / "verdict.json").stat().st_size > 1_000_000
