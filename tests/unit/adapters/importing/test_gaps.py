"""What an imported ledger does not know keeps every verdict on it from a pass."""

from __future__ import annotations

from backstop.core.verdict import AgentVerdict, Decision, Policy
from backstop.gate.diff import diff
from tests.unit.adapters.importing.sessions import Told, answer, call, event, told

PAID = (
    event("user", "pay 7"),
    event("desk", call("pay", "c", order=7)),
    event("desk", answer("pay", "c", paid=7)),
)
REWOUND = event("user", actions={"rewind_before_invocation_id": "i"})


def _between(baseline: Told, candidate: Told) -> AgentVerdict:
    return diff(baseline.ledger, candidate.ledger, policy=Policy())


def test_a_ledger_without_gaps_passes_against_itself() -> None:
    assert _between(told(*PAID), told(*PAID)).decision is Decision.PASS


def test_a_gap_on_either_side_is_no_pass_and_is_named() -> None:
    whole, holed = told(*PAID), told(*PAID, REWOUND)
    for found in (_between(whole, holed), _between(holed, whole)):
        assert found.decision is Decision.INCONCLUSIVE
        assert found.counts["match"] == 1
        assert "run one: it was rewound" in found.why[0]


def test_a_header_names_so_many_gaps_and_counts_the_others() -> None:
    found = told(*(event("desk", answer("pay", f"c{number}")) for number in range(60)))
    assert len(found.gaps) == 51
    assert found.gaps[-1] == "10 more of the kind"
