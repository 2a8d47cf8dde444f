"""`baseline write` from a report: what it takes, keeps, and says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from backstop.cli.baselining import write
from backstop.core.baseline import counts
from backstop.core.verdict import AgentVerdict, Coverage, Judged, LedgerFacts, Verdict
from backstop.gate.request import ReplayRequest
from backstop.reports.document import render_json
from backstop.wiring.accepting import BASELINE, baselines_in
from tests.accepting import NOW
from tests.verdicts import ASSUMED, CHANGED, DROPPED, NEW, RELABELLED, agent_verdict


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "backstop.yaml").write_text("version: 1\nagents: {desk: {}, till: {}}\n")
    return tmp_path


def written(folder: Path, *agents: AgentVerdict, add: bool = False) -> str:
    """What is said of a report on these agents."""
    report = folder / "report.json"
    report.write_text(render_json(Verdict(agents=agents), timing_ms={}), encoding="utf-8")
    request = ReplayRequest(config=folder / "backstop.yaml")
    return write(request, verdict=report, add=add, by="eva", now=NOW)


def held(folder: Path, agent: str = "desk") -> dict[str, int]:
    return dict(counts(baselines_in(folder / BASELINE)[agent]))


def test_what_stands_is_known_but_not_what_is_assumed_or_waived(folder: Path) -> None:
    told = written(
        folder,
        agent_verdict(
            RELABELLED,
            RELABELLED,
            CHANGED,
            ASSUMED,
            Judged(divergence=NEW, pre_existing=True),
            Judged(divergence=DROPPED, waiver="agreed"),
            agent="desk",
        ),
    )
    assert held(folder) == {
        RELABELLED.fingerprint: 2,
        CHANGED.fingerprint: 1,
        NEW.fingerprint: 1,
    }
    lines = told.splitlines()
    assert lines[0].endswith(f"{BASELINE}: written by eva")
    assert lines[1] == "desk: 4 known findings (2 DUPLICATE, 1 EXTRA, 1 MUTATED)"
    assert all(len(line) <= 80 for line in lines[1:])


def test_each_agent_has_its_own_and_one_that_was_not_judged_keeps_what_it_had(
    folder: Path,
) -> None:
    written(folder, agent_verdict(RELABELLED, agent="till"))
    unjudged = replace(agent_verdict(agent="till"), ledger=LedgerFacts())
    told = written(
        folder, agent_verdict(CHANGED, agent="desk"), unjudged, agent_verdict(agent="zzz")
    )
    assert held(folder, "till") == {RELABELLED.fingerprint: 1}
    assert held(folder, "desk") == {CHANGED.fingerprint: 1}
    assert "till: was not judged" in told
    assert "zzz: was not judged" in told
    assert set(baselines_in(folder / BASELINE)) == {"till", "desk"}


def test_a_baseline_that_is_there_gets_more_only_when_told(folder: Path) -> None:
    written(folder, agent_verdict(RELABELLED, CHANGED, agent="desk"))
    now = agent_verdict(RELABELLED, RELABELLED, NEW, agent="desk")
    told = written(folder, now)
    assert held(folder) == {RELABELLED.fingerprint: 1}
    assert "  of 2 findings before: 1 gone, 2 new not taken (--add takes them)" in told
    told = written(folder, now, add=True)
    assert held(folder) == {RELABELLED.fingerprint: 2, NEW.fingerprint: 1}
    assert "  of 1 finding before: 0 gone, 2 added" in told


def test_runs_that_were_not_compared_are_said_and_keep_what_is_held_of_them(
    folder: Path,
) -> None:
    elsewhere = replace(RELABELLED, run="r7")
    written(folder, agent_verdict(elsewhere, agent="desk"))
    gaps = Coverage(runs_compared=6, runs_total=7, not_replayable={"r7": "it hangs"})
    told = written(folder, agent_verdict(agent="desk", coverage=gaps))
    assert held(folder) == {RELABELLED.fingerprint: 1}
    assert "  compared 6 of 7 runs: what is in the others is not known, and will block" in told
