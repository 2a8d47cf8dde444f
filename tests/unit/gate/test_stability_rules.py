"""What a version's replays in other worlds come to (ADR 0035): each rule, and its control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from backstop.core.declaration import Declaration
from backstop.core.divergence import Kind
from backstop.core.intents import Intent, RunReplayed
from backstop.core.verdict import AgentVerdict, Decision, Policy
from backstop.gate.comparing import Asked
from tests.comparing import DECLARED, ask, call, out
from tests.unit.gate.test_decision_rules import asked, judged, recorded

PAY = call("pay", vendor="acme", ref="r-0")
"""`pay` is named by its vendor; `ref` is no part of its key."""
RECORD = recorded([out(PAY)])
ALL_KINDS = Policy(fail_on=frozenset(Kind))


def told(first: Sequence[Intent], *others: Sequence[Intent], version: str = "v2") -> Asked:
    """What one version asked for, in the recorded world first."""
    again = [asked(intents, version=version) for intents in others]
    return replace(asked(first, version=version), again=again)


def refs(*values: str, vendor: str = "acme", version: str = "v2") -> Asked:
    """One call a replay, each with another reference."""
    return told(
        *([ask(PAY.but(vendor=vendor, ref=value), by=0)] for value in values), version=version
    )


def vendors(*values: str, version: str = "v2") -> Asked:
    """One call a replay, each with another target."""
    return told(*([ask(PAY.but(vendor=value), by=0)] for value in values), version=version)


def named(found: AgentVerdict) -> list[tuple[str, str, bool]]:
    return [(one.tool, one.path, one.names_target) for one in found.unstable]


def test_replays_that_agree_change_nothing_but_the_count() -> None:
    once, twice = judged(RECORD, refs("r-0")), judged(RECORD, refs("r-0", "r-0"))
    assert (once.decision, once.replays, twice.replays) == (Decision.PASS, 1, 2)
    assert twice == replace(once, replays=2)


def test_a_field_beside_the_key_that_differs_is_a_warning_and_named() -> None:
    found = judged(RECORD, refs("r-7", "r-8"))
    assert named(found) == [("pay", "/ref", False)]
    assert ([one.unstable for one in found.judged], found.decision) == ([True], Decision.PASS)
    assert found.counts["unstable"] == 1


def test_where_its_kind_blocks_it_is_inconclusive_and_never_a_block() -> None:
    found = judged(RECORD, refs("r-7", "r-8"), policies=[ALL_KINDS])
    assert found.decision is Decision.INCONCLUSIVE
    field, finding = found.why
    assert field.startswith("unstable where it could hide what blocks: pay /ref; ")
    assert finding.startswith("1 MUTATED in nothing but what comes out otherwise in each replay")
    control = judged(RECORD, refs("r-7", "r-7"), policies=[ALL_KINDS])
    assert control.decision is Decision.BLOCK  # it differs from the record, and so each time


def test_an_identity_that_is_drawn_is_no_duplicate_of_the_pull_requests() -> None:
    found = judged(RECORD, vendors("acme-1", "acme-2"))
    assert named(found) == [("pay", "/vendor", True)]
    assert found.decision is Decision.INCONCLUSIVE
    assert judged(RECORD, vendors("acme-1", "acme-1")).decision is Decision.BLOCK


def test_an_identity_that_is_drawn_is_no_pass_even_where_it_met_the_record() -> None:
    """A redelivery would get another key: the guard would not know it again."""
    found = judged(RECORD, vendors("acme", "acme-2"))
    assert (found.judged, found.decision) == ((), Decision.INCONCLUSIVE)
    field_beside = judged(RECORD, refs("r-0", "r-8"))
    assert (field_beside.judged, field_beside.decision) == ((), Decision.PASS)


def test_what_the_base_version_draws_as_well_is_no_news() -> None:
    base = vendors("acme", "acme-3", version="v1")
    found = judged(RECORD, vendors("acme", "acme-2"), control=base)
    assert [one.in_base for one in found.unstable] == [True]
    assert found.decision is Decision.PASS
    steady = vendors("acme", "acme", version="v1")
    fresh = judged(RECORD, vendors("acme", "acme-2"), control=steady)
    assert [one.in_base for one in fresh.unstable] == [False]
    assert fresh.decision is Decision.INCONCLUSIVE


def test_chance_in_another_step_than_the_bases_is_news() -> None:
    """A change that makes a second call depend on the day, say, behind one that did already."""
    later = call("pay", vendor="beta", ref="r-1")
    record = recorded([out(PAY), out(later, step="s1")])

    def paid(version: str, first: str, second: str) -> Asked:
        steady = [ask(PAY, by=0), ask(later, step="s1", by=1)]
        there = [ask(PAY.but(vendor=first), by=0), ask(later.but(vendor=second), step="s1", by=1)]
        return told(steady, there, version=version)

    base = paid("v1", "acme-2", "beta")
    assert judged(record, paid("v2", "acme-2", "beta"), control=base).decision is Decision.PASS
    for first, second in (("acme", "beta-2"), ("acme-2", "beta-2")):
        found = judged(record, paid("v2", first, second), control=base)
        assert [one.in_base for one in found.unstable] == [False]
        assert found.decision is Decision.INCONCLUSIVE


def test_a_relabelled_target_beside_chance_blocks() -> None:
    found = judged(RECORD, refs("r-7", "r-8", vendor="ACME"))
    assert named(found) == [("pay", "/ref", False)]
    assert ([one.unstable for one in found.judged], found.decision) == ([False], Decision.BLOCK)


def test_without_a_declared_identity_every_argument_counts() -> None:
    """Where only the drawn one differs nobody is to blame; where another does, it blocks."""
    mail = call("mail", to="bo", tag="a")
    ledger = recorded([out(mail)])
    drawn = told([ask(mail.but(tag="b"))], [ask(mail.but(tag="c"))])
    assert judged(ledger, drawn).decision is Decision.INCONCLUSIVE
    both = told([ask(mail.but(tag="b", to="BO"))], [ask(mail.but(tag="c", to="BO"))])
    assert judged(ledger, both).decision is Decision.BLOCK


def test_what_is_declared_generated_may_differ() -> None:
    declared = {
        **DECLARED,
        "pay": Declaration(tool="pay", identity=("vendor",), fields={"ref": ("generated",)}),
    }
    ledger = recorded([out(PAY, declared=declared)], declared=declared)
    found = judged(ledger, refs("r-7", "r-8"), declarations=[declared], policies=[ALL_KINDS])
    assert (found.decision, found.unstable) == (Decision.PASS, ())


def test_the_order_of_a_set_is_named_as_such_and_may_be_declared() -> None:
    one, other = PAY.but(items=["a", "b"]), PAY.but(items=["b", "a"])
    ledger = recorded([out(one)])
    found = judged(ledger, told([ask(one, by=0)], [ask(other, by=0)]))
    assert [(field.path, field.is_order) for field in found.unstable] == [("/items", True)]
    deep, turned = PAY.but(note={"of/b": [1, 2]}), PAY.but(note={"of/b": [2, 1]})
    found = judged(recorded([out(deep)]), told([ask(deep, by=0)], [ask(turned, by=0)]))
    assert [(field.path, field.is_order) for field in found.unstable] == [("/note/of~1b", True)]
    longer = PAY.but(note={"of/b": [2, 1, {"c": 1}]})
    found = judged(recorded([out(deep)]), told([ask(deep, by=0)], [ask(longer, by=0)]))
    assert not any(field.is_order for field in found.unstable)
    declared: Mapping[str, Declaration] = {
        **DECLARED,
        "pay": Declaration(tool="pay", identity=("vendor",), fields={"items": ("set",)}),
    }
    meant = judged(ledger, told([ask(one, by=0)], [ask(other, by=0)]), declarations=[declared])
    assert meant.unstable == ()


@pytest.mark.parametrize("swapped", [False, True], ids=["left-out", "added"])
def test_a_call_that_comes_and_goes_makes_its_run_inconclusive(swapped: bool) -> None:
    both, one = [ask(PAY, by=0), ask(call("remind", to="bo"))], [ask(PAY, by=0)]
    found = judged(RECORD, told(one, both) if swapped else told(both, one))
    assert found.decision is Decision.INCONCLUSIVE
    (why,) = found.why
    assert why.startswith("run r1 is unstable: remind is asked for in step s0 in some replays")
    assert judged(RECORD, told(both, both)).decision is Decision.PASS  # EXTRA only warns


def test_a_finding_in_an_unstable_run_that_every_replay_shows_blocks() -> None:
    """The control: a run that is unstable elsewhere is no hiding place."""
    twice = [ask(PAY.but(vendor="ACME"), by=0), ask(call("remind", to="bo"))]
    assert judged(RECORD, told(twice, twice[:1])).decision is Decision.BLOCK


def test_what_another_replay_asks_for_is_not_missing() -> None:
    strict = Policy(fail_on=frozenset({Kind.MISSING}))
    found = judged(RECORD, told([], [ask(PAY)]), policies=[strict])
    assert ([one.unstable for one in found.judged], found.decision) == (
        [True],
        Decision.INCONCLUSIVE,
    )
    assert judged(RECORD, told([], []), policies=[strict]).decision is Decision.BLOCK


def test_a_run_that_ends_early_in_another_world_is_unstable() -> None:
    first = asked([ask(PAY, by=0)])
    broken = asked([], runs=[RunReplayed(run="r1", not_replayable="it raised")])
    found = judged(RECORD, replace(first, again=[broken]))
    assert found.decision is Decision.INCONCLUSIVE
    assert "replayed again, it did not come to its end: it raised" in found.why[0]


def test_rows_of_its_own_that_the_base_misses_by_chance_alone_are_to_be_trusted() -> None:
    """D3: what hangs on chance says nothing against the replay; anything else does."""
    base = refs("r-5", "r-6", version="v1")
    assert judged(RECORD, refs("r-7", "r-8"), control=base).decision is Decision.PASS
    steady = refs("r-5", "r-5", version="v1")
    doubted = judged(RECORD, refs("r-7", "r-8"), control=steady)
    assert doubted.decision is Decision.INCONCLUSIVE
    assert "does not reproduce its own record" in doubted.why[0]


def test_many_unstable_fields_and_runs_are_counted_after_the_first() -> None:
    runs = [RunReplayed(run=f"r{number}", steps_total=1) for number in range(30)]
    rows = [out(PAY, run=run.run) for run in runs]
    more = [ask(call("remind", to="bo"), run=run.run) for run in runs]
    usual = [ask(PAY, run=run.run) for run in runs]
    first = asked(usual, runs=runs)
    found = judged(recorded(rows), replace(first, again=[asked([*usual, *more], runs=runs)]))
    assert found.why[-1] == "5 more runs are unstable"
    wide = PAY.but(**{f"f{number}": "a" for number in range(7)})
    other = PAY.but(**{f"f{number}": "b" for number in range(7)})
    many = told([ask(wide)], [ask(other)])
    fields = judged(recorded([out(wide)]), many, policies=[ALL_KINDS])
    assert "pay /f4 and 2 more; what this version" in fields.why[0]


def test_three_replays_count_a_call_once_and_a_third_that_leaves_it_out() -> None:
    thrice = judged(RECORD, refs("r-7", "r-8", "r-9"))
    assert [one.times for one in thrice.unstable] == [1]
    gone = [told([ask(PAY, by=0)], [ask(PAY.but(ref="x"))], []),
            told([ask(PAY, by=0)], [], [ask(PAY.but(ref="x"))])]  # fmt: skip
    for one in gone:
        assert judged(RECORD, one).decision is Decision.INCONCLUSIVE
    twice = told(
        [ask(PAY.but(ref="a")), ask(PAY.but(ref="a"), step="s1")],
        [ask(PAY.but(ref="b")), ask(PAY.but(ref="b"), step="s1")],
    )
    assert [(one.times, one.step) for one in judged(RECORD, twice).unstable] == [(2, "s0")]


def test_a_callers_own_key_that_is_drawn_names_the_target() -> None:
    declared = {**DECLARED, "pay": Declaration(tool="pay", key=("nonce",))}
    paid = PAY.but(nonce="t-0")
    ledger = recorded([out(paid, declared=declared)], declared=declared)
    first, other = (
        replace(asked([ask(paid.but(nonce=nonce), declared=declared)]), keyed_under=declared)
        for nonce in ("t-0", "t-9")
    )
    found = judged(ledger, replace(first, again=[other]), declarations=[declared])
    assert named(found) == [("pay", "/nonce", True)]
    assert found.decision is Decision.INCONCLUSIVE
