"""Edges of matching and deciding that the cases of the rules do not reach."""

from __future__ import annotations

import msgspec

from backstop.core.covering import cover
from backstop.core.erasure import ERASED
from backstop.core.history import Outcome
from backstop.core.intents import Answered, RunReplayed
from backstop.core.verdict import Coverage, Decision, LedgerFacts, Policy, decide
from tests.comparing import DECLARED, ask, call, compared, found, out, rules

ACME = call("pay", vendor="acme", amount=10)


def test_g1_asked_before_every_record_of_it_the_first_record_is_meant() -> None:
    """G1, G5: recorded in two later steps, asked in an earlier one."""
    result = compared([out(ACME, step="s2"), out(ACME, step="s3")], [ask(ACME, step="s1")])
    assert found(result) == ["MUTATED moved earlier", "MISSING dropped"]
    assert [one.step for one in result.divergences] == ["s1", "s3"]


def test_an_erased_call_of_another_fingerprint_is_mutated_and_shows_that_it_was_erased() -> None:
    """Its key is still known, so it is the same target; what went out nobody can say."""
    recorded = out(ACME)
    recorded.args = ERASED
    result = compared([recorded], [ask(call("pay", vendor="acme", amount=12))])
    assert found(result) == ["MUTATED changed"]
    (half,) = [one.recorded for one in result.divergences]
    assert half is not None
    assert half.args == {"backstop": "erased"}


def test_a3_a_stand_in_does_not_pair_with_another_target_in_another_step() -> None:
    """A3: an argument that holds a stand-in is ignored, the others still have to fit."""
    intent = ask(call("pay", vendor="zeta", amount=1), step="s2", holes=("/amount",))
    assert found(compared([out(ACME)], [intent])) == ["MISSING dropped", "EXTRA new"]


def test_k3_another_value_under_a_changed_rule_goes_out_again() -> None:
    """K3: the guard looks for the new key, and finds nothing to conflict with."""
    slug = msgspec.structs.replace(DECLARED["pay"], fields={"vendor": ("slug",)})
    changed = {**DECLARED, "pay": slug}
    recorded = out(call("pay", vendor="Acme Corp", amount=10))
    intent = ask(call("pay", vendor="acme-corp", amount=12), declared=changed)
    assert found(compared([recorded], [intent], rules(candidate=changed))) == ["DUPLICATE rekeyed"]
    looking = rules(candidate=changed, finds_old_keys=frozenset({"pay"}))
    # Under the old rule this spelling had another key: a guard that looks finds nothing, too.
    assert found(compared([recorded], [intent], looking)) == ["DUPLICATE rekeyed"]
    alike = ask(call("pay", vendor="Acme Corp", amount=12), declared=changed)
    assert found(compared([recorded], [alike], looking)) == ["MUTATED changed"]


def test_k3_a_former_rule_that_cannot_name_the_call_finds_nothing() -> None:
    """K3: the old identity had an argument that the call no longer has."""
    wide = msgspec.structs.replace(DECLARED["pay"], identity=("vendor", "region"))
    narrow = {**DECLARED, "pay": msgspec.structs.replace(wide, identity=("vendor",))}
    old = {**DECLARED, "pay": wide}
    recorded = out(call("pay", vendor="acme", region="eu"), declared=old)
    intent = ask(call("pay", vendor="acme"), declared=narrow)
    looking = rules(declared=old, candidate=narrow, finds_old_keys=frozenset({"pay"}))
    assert found(compared([recorded], [intent], looking)) == ["DUPLICATE rekeyed"]


def test_an_intent_whose_arguments_are_no_object_is_not_compared_and_says_so() -> None:
    intent = msgspec.structs.replace(ask(ACME), key="", args=msgspec.Raw(b"[1]"))
    result = compared([out(ACME)], [intent])
    (unkeyed,) = result.unkeyed
    assert "are no JSON object" in unkeyed.why


def test_a_served_pair_of_another_tool_is_not_believed() -> None:
    """G3: the driver's pair holds only as far as the two are one tool under these rules."""
    failed = out(call("mail", to="q"), outcome=Outcome.FAILED)
    new = ask(call("pay", vendor="new", amount=1), by=0, how=Answered.SUBSTITUTED)
    assert found(compared([failed], [new])) == ["EXTRA new"]
    committed = out(call("mail", to="q"))
    assert found(compared([committed], [new])) == ["MISSING dropped", "EXTRA new"]


def test_runs_that_nobody_speaks_for_are_no_pass() -> None:
    verdict = decide(
        "desk",
        compared([out(ACME)], [ask(ACME)]),
        Coverage(runs_compared=1, runs_total=2),
        Policy(),
        ledger=LedgerFacts(),
    )
    assert verdict.decision is Decision.INCONCLUSIVE
    assert verdict.why == ("only 1 of 2 runs were compared",)


def test_a5_what_drifted_is_told_by_agent_over_all_runs() -> None:
    """A5: request parts are named by the agent that asked."""
    one = RunReplayed(run="r1", drift="drifted", drifted={"planner": ("tools",)})
    two = RunReplayed(run="r2", drift="drifted", drifted={"planner": ("instruction",)})
    coverage = cover({"r1": one, "r2": two, "r9": RunReplayed(run="r9")}, ["r1", "r2"])
    assert coverage.drift == "drifted"
    assert dict(coverage.drifted) == {"planner": ("instruction", "tools")}
    assert coverage.runs_compared == 2
