"""`--changed-only`: agents that a change leaves alone are carried forward, and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from backstop.core.verdict import Decision
from backstop.gate.request import Judgement
from tests.e2e.checkouts import RELABELS, Repository, repository
from tests.e2e.command import backstop

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    """A repository with two agents; its head changes nothing."""
    made = repository(tmp_path, "desk", "till")
    return Repository(folder=made.folder, options={"changed_only": True})


def decisions(judgement: Judgement) -> dict[str, Decision]:
    return {one.agent: one.decision for one in judgement.verdict.agents}


def refuse(done: int, total: int) -> None:
    raise AssertionError("a run was replayed")


def test_g20_a_change_that_concerns_no_agent_is_done_at_once_and_says_so(
    repo: Repository,
) -> None:
    """G20: exit 0, nothing replayed, not applicable."""
    repo.write("docs/how.md", "Words.\n")
    judgement = repo.gate(progress=refuse)
    assert judgement.verdict.exit_code == 0
    assert judgement.carried == ("desk", "till")
    assert not judgement.is_applicable
    for agent in judgement.verdict.agents:
        assert agent.why == (
            "carried forward: the change concerns nothing that this agent is made of",
        )
        assert agent.ledger.runs == 1


def test_g09_only_the_agent_that_a_change_concerns_is_judged(repo: Repository) -> None:
    """G09: the other is carried forward, and none of its work is MISSING."""
    repo.change("agents/desk/agent.py", *RELABELS)
    judgement = repo.gate()
    assert judgement.carried == ("till",)
    assert judgement.is_applicable
    assert decisions(judgement) == {"desk": Decision.BLOCK, "till": Decision.PASS}
    assert judgement.remarks == ("desk: concerned, since agents/desk/agent.py changed",)
    assert [agent.counts["missing"] for agent in judgement.verdict.agents] == [0, 0]


def test_g32_an_agent_without_a_ledger_that_a_change_concerns_is_told(repo: Repository) -> None:
    """G32, D5: it does not count, and nobody says that no agent is touched."""
    for side in (repo.base, repo.head):
        config = side / "backstop.yaml"
        text = config.read_text("utf-8").replace(", ledger: ledgers/till.jsonl", "")
        config.write_text(text, encoding="utf-8")
    assert not repo.gate(progress=refuse).is_applicable
    repo.change("agents/till/agent.py", *RELABELS)
    judgement = repo.gate(progress=refuse)
    assert (judgement.is_applicable, judgement.carried) == (True, ("desk",))
    (_, till) = judgement.verdict.agents
    assert (till.agent, till.neutral) == ("till", True)
    assert till.why == ("it has no ledger: nothing of it is judged",)


def test_without_the_option_every_agent_is_judged(repo: Repository) -> None:
    with pytest.raises(AssertionError, match="replayed"):
        repo.gate(changed_only=False, progress=refuse)


@pytest.mark.parametrize("path", ["requirements.txt", "shared/tax.py", "agents/till/uv.lock"])
def test_g09_no_agent_is_carried_past_a_lock_file_or_shared_code(
    path: str, repo: Repository
) -> None:
    """G09: who imports what, nobody knows before it runs."""
    repo.write(path, "x\n")
    with pytest.raises(AssertionError, match="replayed"):
        repo.gate(progress=refuse)


def test_g12_an_agent_with_no_history_is_not_carried_to_a_pass(repo: Repository) -> None:
    """G12: nothing was ever compared, so nothing is carried forward."""
    text = (repo.base / "backstop.yaml").read_text("utf-8")
    without = text.replace(", ledger: ledgers/desk.jsonl", "")
    without = without.replace(", ledger: ledgers/till.jsonl", "")
    for side in (repo.base, repo.head):
        (side / "backstop.yaml").write_text(without, encoding="utf-8")
    judgement = repo.gate(progress=refuse)
    assert judgement.verdict.exit_code == 3
    assert judgement.carried == ()


def test_g12_nor_is_one_whose_ledger_holds_no_run(repo: Repository) -> None:
    """G12: 0 histories replayed."""
    from backstop.core.ledgerfile import read
    from backstop.core.sealing import seal_lines

    for name in ("desk", "till"):
        header = read((repo.base / f"ledgers/{name}.jsonl").read_bytes(), name="l").header
        for side in (repo.base, repo.head):
            (side / f"ledgers/{name}.jsonl").write_bytes(b"".join(seal_lines(header, [])))
    judgement = repo.gate(progress=refuse)
    assert judgement.verdict.exit_code == 3
    assert judgement.carried == ()


def test_the_command_line_says_why_an_agent_was_judged_or_not(repo: Repository) -> None:
    repo.write("README.md", "# Words\n")
    asked: list[Any] = ["gate", "--config", repo.head / "backstop.yaml", "--base", repo.base]
    ran = backstop(*asked, "--changed-only", "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    told = json.loads(ran.out)
    assert [agent["decision"] for agent in told["agents"]] == ["PASS", "PASS"]
    repo.write("backstop-waivers.yaml", "version: 1\nwaivers: []\n")
    ran = backstop(*asked, "--changed-only", "--agent", "desk")
    assert "note: desk: concerned, since backstop-waivers.yaml changed\n" in ran.err
