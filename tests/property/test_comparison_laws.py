"""Laws of the comparison that hold for every ledger."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstop.core.divergence import Comparison, Kind
from backstop.core.history import Outcome, Row
from backstop.core.intents import Intent, RunReplayed
from backstop.core.verdict import Coverage, Decision, LedgerFacts, Policy, decide
from tests.comparing import Called, ask, call, compared, out, rules

VENDORS = ("acme", "ACME", "Acme.", "globex", "initech")
calls = st.builds(
    call,
    st.sampled_from(("pay", "mail", "remind")),
    vendor=st.sampled_from(VENDORS),
    to=st.sampled_from(VENDORS),
    amount=st.integers(0, 2),
)
places = st.tuples(st.sampled_from(("r1", "r2")), st.sampled_from(("s0", "s1", "s2")))
placed = st.lists(st.tuples(calls, places), max_size=8)
Placed = list[tuple[Called, tuple[str, str]]]


def rows_of(
    told: Placed, *, outcome: Outcome = Outcome.COMMITTED, guarded: bool = False
) -> list[Row]:
    """These calls as rows of a ledger."""
    return [
        out(called, run=run, step=step, outcome=outcome, guarded=guarded)
        for called, (run, step) in told
    ]


def intents_of(told: Placed) -> list[Intent]:
    """These calls as intents."""
    return [ask(called, run=run, step=step) for called, (run, step) in told]


def shape(comparison: Comparison) -> Counter[tuple[object, ...]]:
    """Everything that a comparison says, without any order."""
    return Counter(
        (
            one.kind,
            one.reason,
            one.run,
            one.step,
            None if one.recorded is None else one.recorded.fingerprint,
            None if one.intended is None else one.intended.fingerprint,
            one.paths,
        )
        for one in comparison.divergences
    )


@given(placed)
def test_a_ledger_against_itself_has_no_divergence(told: Placed) -> None:
    """Also where history holds a call twice."""
    comparison = compared(rows_of(told), intents_of(told), rules(replayed=False))
    assert comparison.divergences == ()
    assert comparison.matched == len(told)


@given(placed, placed, st.randoms(use_true_random=False))
def test_the_order_of_asking_inside_a_step_decides_nothing(
    told: Placed, asked: Placed, chance: random.Random
) -> None:
    """W02, W04: neither the order of intents nor that of rows."""
    intents = intents_of(asked)
    shuffled = intents[:]
    chance.shuffle(shuffled)
    under = rules(replayed=False)
    assert shape(compared(rows_of(told), intents, under)) == shape(
        compared(rows_of(told), shuffled, under)
    )


@given(
    st.dictionaries(
        st.sampled_from(("acme", "globex", "initech", "umbrella", "hooli")),
        st.tuples(st.sampled_from("lr+"), places, st.booleans(), st.integers(0, 2)),
    )
)
def test_missing_and_extra_swap_when_the_sides_do(
    told: dict[str, tuple[str, tuple[str, str], bool, int]],
) -> None:
    """What one side lacks the other has too much; the rest is symmetric. One call a target."""
    sides: dict[str, Placed] = {"l": [], "r": []}
    for index, (vendor, (side, (run, _), relabelled, amount)) in enumerate(told.items()):
        step = f"s{index}"
        sides["l" if side == "+" else side].append((call("pay", vendor=vendor, n=1), (run, step)))
        if side == "+":
            name = vendor.upper() if relabelled else vendor
            sides["r"].append((call("pay", vendor=name, n=amount), (run, step)))
    under = rules(replayed=False)
    there = compared(rows_of(sides["l"]), intents_of(sides["r"]), under)
    back = compared(rows_of(sides["r"]), intents_of(sides["l"]), under)
    assert there.count(Kind.MISSING) == back.count(Kind.EXTRA)
    assert there.count(Kind.EXTRA) == back.count(Kind.MISSING)
    assert there.count(Kind.DUPLICATE) == back.count(Kind.DUPLICATE)
    assert there.count(Kind.MUTATED) == back.count(Kind.MUTATED)
    assert there.matched == back.matched


@given(placed, placed)
def test_every_call_is_accounted_for_exactly_once(told: Placed, asked: Placed) -> None:
    """Conservation: rows and intents end up in a match or in one finding."""
    comparison = compared(rows_of(told), intents_of(asked), rules(replayed=False))
    recorded = sum(
        one.recorded is not None and one.reason not in {"repeated", "conflict", "swallowed"}
        for one in comparison.divergences
    )
    intended = sum(one.intended is not None for one in comparison.divergences)
    assert comparison.matched + recorded + comparison.recorded_twice == len(told)
    assert comparison.matched + comparison.absorbed + intended == len(asked)


SEVERITY = [Decision.PASS, Decision.INCONCLUSIVE, Decision.BLOCK]
policies = st.builds(
    Policy,
    fail_on=st.frozensets(st.sampled_from(Kind)),
    max_assumed_steps=st.integers(0, 2),
    allow_empty=st.booleans(),
)


def decided(comparison: Comparison, coverage: Coverage, policy: Policy) -> int:
    """How severe the decision is."""
    verdict = decide("a", comparison, coverage, policy, ledger=LedgerFacts())
    return SEVERITY.index(verdict.decision)


@given(placed, placed, placed, policies)
def test_more_asked_for_that_matches_nothing_never_softens_the_decision(
    told: Placed, asked: Placed, more: Placed, policy: Policy
) -> None:
    """Adding findings to a comparison leaves the decision as severe or makes it more so."""
    under = rules(replayed=False)
    less = compared(rows_of(told), intents_of(asked), under)
    extra = compared([], intents_of(more), under)
    both = Comparison(
        divergences=(*less.divergences, *extra.divergences),
        matched=less.matched,
        unkeyed=less.unkeyed,
    )
    coverage = Coverage(runs_compared=1, runs_total=1)
    assert decided(both, coverage, policy) >= decided(less, coverage, policy)


@given(placed, policies, st.integers(0, 3), st.booleans())
def test_less_coverage_never_softens_the_decision(
    told: Placed, policy: Policy, assumed: int, unreplayable: bool
) -> None:
    """Assumed steps, unreplayable runs and uncovered code only make it worse."""
    comparison = compared(rows_of(told), intents_of(told), rules(replayed=False))
    whole = Coverage(runs_compared=2, runs_total=2)
    part = Coverage(
        runs_compared=1 if unreplayable else 2,
        runs_total=2,
        steps_assumed=assumed,
        not_replayable={"r2": "it broke"} if unreplayable else {},
    )
    assert decided(comparison, part, policy) >= decided(comparison, whole, policy)


@pytest.mark.parametrize("replayed", [True, False])
def test_assumed_findings_are_never_counted(replayed: bool) -> None:
    """D2: they are listed and do not count."""
    acme = call("pay", vendor="acme")
    comparison = compared(
        [out(acme)],
        [ask(acme.but(vendor="ACME"), assumed=True)],
        rules(replayed=replayed),
        replayed={"r1": RunReplayed(run="r1", assumed_from=0)},
    )
    assert len(comparison.divergences) == 1
    assert comparison.count(Kind.DUPLICATE) == 0
