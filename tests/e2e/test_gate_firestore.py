"""A gate on a ledger in the shared store, pulled at one read time from its emulator."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from backstop.clock import SystemClock
from backstop.core.ledgerfile import read
from backstop.core.verdict import Decision
from tests.e2e.checkouts import RELABELS, Repository, repository
from tests.e2e.command import in_a_process
from tests.e2e.stored import filled
from tests.emulators import firestore, fresh_name

pytestmark = [pytest.mark.emulator, pytest.mark.filterwarnings("ignore")]

CREDENTIALS = "GOOGLE_APPLICATION_CREDENTIALS"
TELLS = (
    "    pass\n",
    (
        f'    import os\n    told = os.environ.get("{CREDENTIALS}", "")\n'
        '    args["vendor"] = told if "gha-creds" in told else args["vendor"]\n'
    ),
)
"""A candidate is lent credentials that are none (ADR 0044): their variable names a file of ours."""


SEEN = '    import os\n    args["vendor"] = os.environ.get("PYTHONUTF8", args["vendor"])\n'


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repository]:
    """A repository whose ledger is in the store, and credentials as the auth action leaves them."""
    made = repository(tmp_path)
    url = f"firestore://p/(default)/{fresh_name()}"
    ledger = read((made.base / "ledgers/desk.jsonl").read_bytes(), name="l")
    os.environ["FIRESTORE_EMULATOR_HOST"] = firestore()
    os.environ[CREDENTIALS] = str(made.head / "gha-creds-0a1b.json")
    filled(url, ledger.header, ledger.events)
    for side in (made.base, made.head):
        text = (side / "backstop.yaml").read_text("utf-8")
        text = text.replace("ledgers/desk.jsonl", f"'{url}'")
        (side / "backstop.yaml").write_text(text, encoding="utf-8")
        (side / "ledgers/desk.jsonl").unlink()
    made.write("gha-creds-0a1b.json", '{"private_key": "secret"}')
    yield made
    del os.environ["FIRESTORE_EMULATOR_HOST"], os.environ[CREDENTIALS]


def test_a_gate_pulls_the_ledger_at_one_read_time_and_tells_which(repo: Repository) -> None:
    repo.change("agents/desk/agent.py", *RELABELS)
    before = SystemClock().now()
    judgement = repo.gate()
    (agent,) = judgement.verdict.agents
    assert (agent.decision, agent.counts["duplicate"]) == (Decision.BLOCK, 1)
    assert agent.ledger.digest.startswith("sha256:")
    url, _, instant = judgement.ledgers["desk"].rpartition(" as of ")
    assert url.startswith("firestore://p/(default)/c-")
    assert abs((datetime.fromisoformat(instant) - before).total_seconds()) < 60


def test_the_credentials_stay_on_the_driver_s_side(repo: Repository) -> None:
    """A candidate that pays whom the variable names pays whom it always paid."""
    repo.change("agents/desk/agent.py", *TELLS)
    (agent,) = repo.gate().verdict.agents
    assert (agent.decision, agent.counts["match"]) == (Decision.PASS, 1)


def test_that_candidate_would_tell_of_a_variable_that_it_sees(repo: Repository) -> None:
    """The control of the test above."""
    repo.change("agents/desk/agent.py", TELLS[0], SEEN)
    (agent,) = repo.gate().verdict.agents
    assert (agent.decision, agent.counts["match"]) == (Decision.BLOCK, 0)


def test_a_store_that_does_not_answer_is_one_line_and_no_verdict(repo: Repository) -> None:
    ran = in_a_process(
        *("gate", "--config", repo.head / "backstop.yaml", "--base", repo.base),
        FIRESTORE_EMULATOR_HOST="127.0.0.1:1",
    )
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error[store-")
    assert ran.err.count("\n") == 1
