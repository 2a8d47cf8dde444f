"""D7 through the real Runner: what a pull request changes and no run reaches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from backstop.core.ledgerfile import Ledger
from backstop.core.verdict import AgentVerdict, Decision
from backstop.replay.service import Replay
from tests.e2e.replaying import findings, replayed, verdict
from tests.e2e.test_replay_clerk import Office

pytestmark = pytest.mark.filterwarnings("ignore")

BEFORE = '''    """Looks at each call."""
    if args.get("amount", 0) > 1000:
        refuse(args)
    keep(args)


def keep(args):
    args["amount"] = args.get("amount", 0) if "amount" in args else None
    if args["amount"] is None:
        del args["amount"]


def refuse(args):
    args["amount"] = 0


HINTS = (pathlib.Path(__file__).parent / "hints.txt").read_text()
'''
ASIDE = 'refunds = LlmAgent(name="refunds", model="gemini-3.5-flash", instruction="Pay back.")'
START = (
    ("    pass\n", BEFORE),
    ("root_agent = LlmAgent(", f"{ASIDE}\nroot_agent = LlmAgent(\n    sub_agents=[refunds],"),
    ("from google.adk.agents import", "import pathlib\n\nfrom google.adk.agents import"),
)


@dataclass(frozen=True, kw_only=True)
class Desk:
    """A base version with what it recorded and what it replays as, and versions beside it."""

    office: Office
    ledger: Ledger
    base: Replay

    def gated(self, name: str, *changes: tuple[str, str], **files: str) -> AgentVerdict:
        """The verdict on a version with texts replaced and data files of its own."""
        agent = version(self.office, name, *changes, **files)
        return verdict(self.ledger, replayed(self.ledger, agent, base=self.base), control=self.base)


def version(office: Office, name: str, *changes: tuple[str, str], **files: str) -> Path:
    agent = office.version(name, *START, *changes)
    for stem, content in {"hints": "be kind", "notes": "none", **files}.items():
        (agent / f"{stem}.txt").write_text(content)
    return agent


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    office = Office(folder=tmp_path_factory.mktemp("desk"))
    agent = version(office, "v1")
    ledger = office.ledger(agent, closed=True)
    return Desk(office=office, ledger=ledger, base=replayed(ledger, agent, is_control=True))


def test_d7_a_change_that_no_run_reaches_is_inconclusive_and_named(desk: Desk) -> None:
    """D7: nothing differs in the replay, so without this it would pass in silence."""
    found = desk.gated("v2", ('args["amount"] = 0', 'args["amount"] = 1'))
    assert not findings(found)
    assert found.coverage.uncovered == ("agent.py:37 refuse changed and no run reached it",)
    assert found.decision is Decision.INCONCLUSIVE


def test_d7_a_changed_helper_that_runs_and_a_comment_cost_nothing(desk: Desk) -> None:
    found = desk.gated(
        "v3",
        ("    keep(args)\n", "    keep(args=args)\n"),
        ("def refuse(args):\n", "# Too much.\n\n\ndef refuse(args):\n    '''Refuses.'''\n"),
        hints="be kinder",
    )
    assert not findings(found)
    assert found.coverage.uncovered == ()
    assert found.decision is Decision.PASS


def test_d7_tool_bodies_branches_and_unread_files_are_each_named_once(desk: Desk) -> None:
    found = desk.gated(
        "v4",
        ("        refuse(args)\n", "        refuse(dict(args))\n"),
        ('    return {"sent": to}', '    return {"mailed": to}'),
        notes="some",
    )
    assert found.coverage.uncovered == (
        "what mail does inside changed; no replay runs it",
        "agent.py:27 before: a branch changed and no run reached it",
        "notes.txt changed and no run read it",
    )
    assert found.decision is Decision.INCONCLUSIVE


def test_d7_an_agent_that_no_run_asks_is_named_with_what_changed_in_it(desk: Desk) -> None:
    found = desk.gated("v5", (ASIDE, ASIDE.replace("Pay back.", "Pay twice.")))
    assert not findings(found)
    assert found.coverage.uncovered == ("agent refunds changed and no run asked it",)
    assert found.decision is Decision.INCONCLUSIVE
