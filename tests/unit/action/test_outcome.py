"""What a step comes to: what is told and how the step ends are one answer."""

from __future__ import annotations

import pytest

from backstop.action.outcome import Judged, outcome_of, outputs_of
from backstop.core.verdict import AgentVerdict, Coverage, Decision, LedgerFacts, Verdict
from backstop.gate.request import Judgement
from backstop.reports.body import State, state_of


def agent(name: str, decision: Decision, *, neutral: bool = False, runs: int = 0) -> AgentVerdict:
    return AgentVerdict(
        agent=name,
        decision=decision,
        ledger=LedgerFacts(),
        coverage=Coverage(runs_compared=runs, runs_total=runs),
        counts={},
        judged=(),
        neutral=neutral,
    )


CARRIED = agent("old", Decision.PASS)


@pytest.mark.parametrize(
    ("other", "decision", "code", "state"),
    [
        (agent("new", Decision.INCONCLUSIVE, neutral=True), "PASS", "0", State.EMPTY),
        (agent("other", Decision.PASS, runs=2), "PASS", "0", State.PASSED),
        (agent("other", Decision.INCONCLUSIVE), "INCONCLUSIVE", "3", State.INCONCLUSIVE),
        (agent("other", Decision.BLOCK), "BLOCK", "1", State.BLOCKED),
    ],
)
def test_g09_what_is_told_beside_a_carried_agent_is_how_the_step_ends(
    other: AgentVerdict, decision: str, code: str, state: State
) -> None:
    """G09, D5: an agent that is new has nothing to be judged by, and does not count."""
    outcome = outcome_of(Judgement(verdict=Verdict(agents=(CARRIED, other)), carried=("old",)))
    assert isinstance(outcome, Judged)
    told = outputs_of(outcome, report_path="")
    assert (told["decision"], told["exit-code"]) == (decision, code)
    assert state_of(outcome.verdict, ("old",)) is state


def test_d5_an_agent_that_is_new_and_alone_is_no_pass() -> None:
    """D5: with nothing beside it there is nothing that was judged."""
    new = agent("new", Decision.PASS, neutral=True)
    outcome = outcome_of(Judgement(verdict=Verdict(agents=(new,))))
    assert isinstance(outcome, Judged)
    told = outputs_of(outcome, report_path="")
    assert (told["decision"], told["exit-code"]) == ("INCONCLUSIVE", "3")
