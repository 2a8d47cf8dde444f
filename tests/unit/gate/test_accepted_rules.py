"""What is accepted, under several rules and beside a control run (D1, D3, D4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backstop.core.accepted import Accepted
from backstop.core.baseline import AgentBaseline
from backstop.core.declaration import Declaration
from backstop.core.divergence import Kind
from backstop.core.verdict import AgentVerdict, Decision, Policy
from backstop.core.waivers import Standing, Waiver
from backstop.gate.comparing import Asked
from backstop.gate.lacking import Lacking
from tests.accepting import TODAY, baseline, standings, waiver
from tests.comparing import DECLARED, ask, call, out
from tests.unit.gate.test_decision_rules import asked, judged, recorded

ACME = call("pay", vendor="acme-corp", amount=10)
AGAIN = ACME.but(vendor="ACME Corp")
OTHERWISE = ACME.but(amount=11)
WHOLE = {**DECLARED, "pay": Declaration(tool="pay", identity=("vendor", "amount"))}


def decided(
    candidate: Asked,
    *waivers: Waiver,
    held: AgentBaseline | None = None,
    control: Asked | Lacking = Lacking.UNNAMED,
    declarations: Sequence[Mapping[str, Declaration]] = (DECLARED,),
    fail_on: Sequence[frozenset[Kind]] = (frozenset({Kind.DUPLICATE}),),
    subtract: bool = True,
) -> AgentVerdict:
    accepted = Accepted(today=TODAY, waivers=waivers, baseline=held)
    return judged(
        recorded([out(ACME, v="v0")]),
        candidate,
        control=control,
        declarations=declarations,
        policies=[Policy(fail_on=kinds, accepted=accepted) for kinds in fail_on],
        subtract=subtract,
    )


def test_d1_one_waiver_serves_under_both_rules_since_rules_do_not_rename_a_finding() -> None:
    """D1, D4: a change of the key rule would else need a waiver for each of the two."""
    both = (DECLARED, WHOLE)
    blocked = decided(asked([ask(AGAIN)]), declarations=both)
    assert blocked.decision is Decision.BLOCK
    prints = {
        decided(asked([ask(AGAIN)]), declarations=[one]).judged[0].divergence.fingerprint
        for one in both
    }
    assert len(prints) == 1
    verdict = decided(asked([ask(AGAIN)]), waiver(prints.pop()), declarations=both)
    assert verdict.decision is Decision.PASS
    assert standings(verdict) == [Standing.USED]


def test_d1_a_waiver_lets_pass_under_every_policy_or_not_at_all() -> None:
    """D1: what the base's policy blocks, the head's does not let pass; a waiver may."""
    policies = (frozenset[Kind](), frozenset({Kind.MUTATED}))
    candidate = asked([ask(OTHERWISE)])
    blocked = decided(candidate, fail_on=policies)
    assert (blocked.decision, blocked.why) == (Decision.BLOCK, ("1 MUTATED",))
    verdict = decided(candidate, waiver(blocked.judged[0].divergence), fail_on=policies)
    assert verdict.decision is Decision.PASS


def test_d3_what_is_pre_existing_uses_up_no_waiver_and_leaves_it_in_place() -> None:
    """D3, D4: on a pull request the waiver is idle; before a deploy it is what lets pass."""
    control = asked([ask(AGAIN)], version="v1")
    candidate = asked([ask(AGAIN)])
    (one,) = decided(candidate, control=control).judged
    weighed = waiver(one.divergence)
    verdict = decided(candidate, weighed, control=control)
    assert (verdict.decision, standings(verdict)) == (Decision.PASS, [Standing.IDLE])
    pushed = decided(candidate, weighed, control=control, subtract=False)
    assert (pushed.decision, standings(pushed)) == (Decision.PASS, [Standing.USED])
    assert decided(candidate, control=control, subtract=False).decision is Decision.BLOCK


def test_d2_what_is_assumed_needs_no_waiver_and_stays_inconclusive() -> None:
    """D2, D4: no finding is what makes it so, and no waiver takes it away."""
    candidate = asked([ask(AGAIN, assumed=True)])
    (one,) = decided(candidate).judged
    verdict = decided(candidate, waiver(one.divergence), held=baseline([one.divergence]))
    assert verdict.decision is Decision.INCONCLUSIVE
    assert (verdict.counts["waived"], verdict.counts["known"]) == (0, 0)
