"""Laws of what is accepted: it lets pass what it names, and touches nothing else."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from backstop.core.divergence import Comparison, Divergence, Kind
from backstop.core.verdict import AgentVerdict, Coverage, Decision, Judged
from backstop.core.waivers import ByCall, ByKey, Standing, Waiver
from tests.accepting import TODAY, baseline, decided, waiver
from tests.comparing import Called, ask, call, compared, out, rules

VENDORS = ("acme", "ACME", "globex")
calls = st.builds(
    call,
    st.sampled_from(("pay", "mail", "remind")),
    vendor=st.sampled_from(VENDORS),
    to=st.sampled_from(VENDORS),
    amount=st.integers(0, 1),
)
places = st.tuples(st.sampled_from(("r1", "r2")), st.sampled_from(("s0", "s1")), st.booleans())
placed = st.lists(st.tuples(calls, places), max_size=6)
Placed = list[tuple[Called, tuple[str, str, bool]]]
Situation = tuple[Comparison, list[Waiver], Waiver, list[Divergence]]
SEVERITY = [Decision.PASS, Decision.INCONCLUSIVE, Decision.BLOCK]


@st.composite
def comparisons(draw: st.DrawFn) -> Comparison:
    """What comes of some calls recorded and some asked for, a few of them assumed."""
    recorded: Placed = draw(placed)
    asked: Placed = draw(placed)
    return compared(
        [out(one, run=run, step=step, guarded=False) for one, (run, step, _) in recorded],
        [ask(one, run=run, step=step, assumed=odd) for one, (run, step, odd) in asked],
        rules(replayed=False),
    )


@st.composite
def waivers_of(draw: st.DrawFn, found: tuple[Divergence, ...]) -> Waiver:
    """A waiver that may or may not name some of these findings."""
    names = [one.fingerprint for one in found]
    keys = [side.key for one in found for side in (one.recorded, one.intended) if side]
    choices: list[st.SearchStrategy[Waiver]] = [
        st.builds(
            lambda tool, run, vendor, kind, count: waiver(
                ByCall(tool=tool, run=run, args={"vendor": vendor}), kind=kind, count=count
            ),
            st.sampled_from(("pay", "m*", "*")),
            st.sampled_from(("r1", "*")),
            st.sampled_from(("ac*", "*")),
            st.sampled_from((*Kind, None)),
            st.integers(1, 3),
        ),
        st.builds(waiver, st.just("0" * 32)),
    ]
    if names:
        days = st.integers(-2, 100)
        choices += [
            st.builds(
                lambda name, count, day: waiver(
                    name, count=count, expires=TODAY + timedelta(days=day)
                ),
                st.sampled_from(names),
                st.integers(1, 3),
                days,
            ),
            st.builds(
                lambda key, kind: waiver(ByKey(key=key[:20] + "*"), kind=kind),
                st.sampled_from(keys),
                st.sampled_from(Kind),
            ),
        ]
    return draw(st.one_of(choices))


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    """A comparison, waivers, one more waiver, and findings that are known."""
    comparison = draw(comparisons())
    found = comparison.divergences
    several = draw(st.lists(waivers_of(found), max_size=3))
    held = draw(st.lists(st.sampled_from(found), max_size=3)) if found else []
    return comparison, several, draw(waivers_of(found)), held


def passing(verdict: AgentVerdict) -> list[bool]:
    """Of each finding, whether anything lets it pass."""
    return [one.is_tempered for one in verdict.judged]


@given(situations())
def test_one_more_waiver_changes_nothing_for_what_it_does_not_name(told: Situation) -> None:
    """Neither for findings nor for other waivers; and an unrelated one changes nothing at all."""
    comparison, several, more, known = told
    held = baseline(known)
    before = decided(comparison, *several, held=held)
    after = decided(comparison, *several, more, held=held)
    for one, other in zip(before.judged, after.judged, strict=True):
        if one != other:
            assert more.matches(one.divergence)
            assert (one.is_tempered, other.is_tempered) == (False, True)
    assert before.waivers == after.waivers[:-1]
    assert SEVERITY.index(after.decision) <= SEVERITY.index(before.decision)
    if not any(map(more.matches, comparison.divergences)):
        assert after.judged == before.judged
        assert (after.decision, after.why) == (before.decision, before.why)
        assert after.waivers[-1].waived == 0


@given(situations())
def test_the_order_of_waivers_decides_nothing(told: Situation) -> None:
    comparison, several, more, known = told
    one = decided(comparison, *several, more, held=baseline(known))
    other = decided(comparison, more, *reversed(several), held=baseline(known))
    assert passing(one) == passing(other)
    assert one.decision is other.decision


@given(situations(), comparisons())
def test_more_findings_never_soften_the_decision_whatever_is_accepted(
    told: Situation, extra: Comparison
) -> None:
    comparison, several, more, known = told
    both = Comparison(
        divergences=(*comparison.divergences, *extra.divergences), unkeyed=comparison.unkeyed
    )
    less = decided(comparison, *several, more, held=baseline(known))
    worse = decided(both, *several, more, held=baseline(known))
    assert SEVERITY.index(worse.decision) >= SEVERITY.index(less.decision)


@given(situations())
def test_knowing_more_lets_nothing_else_pass(told: Situation) -> None:
    """Also where a waiver's count was too small for what is known now."""
    comparison, several, more, known = told
    before = decided(comparison, *several, more)
    after = decided(comparison, *several, more, held=baseline(known))
    names = {one.fingerprint for one in known}
    for one, other in zip(before.judged, after.judged, strict=True):
        if one.divergence.fingerprint not in names:
            assert one == other


@given(situations())
def test_what_lets_pass_is_exactly_what_may(told: Situation) -> None:
    """The definition again, said in another way: for each finding on its own."""
    comparison, several, more, known = told
    weighed = [*several, more]
    verdict = decided(comparison, *weighed, held=baseline(known))

    def may(one: Judged) -> bool:
        return any(
            use.standing is Standing.USED and use.waiver.matches(one.divergence)
            for use in verdict.waivers
        )

    for one in verdict.judged:
        assert one.divergence.assumed or one.known or may(one) == (one.waiver is not None)
    for use in verdict.waivers:
        standing = [
            one
            for one in verdict.judged
            if use.waiver.matches(one.divergence) and not one.divergence.assumed
        ]
        if use.standing is Standing.USED:
            assert len(standing) <= use.waiver.count
            assert use.waiver.expires >= TODAY


@given(situations())
def test_nothing_that_is_accepted_makes_up_for_coverage(told: Situation) -> None:
    comparison, several, more, known = told
    gaps = Coverage(runs_compared=1, runs_total=2)
    verdict = decided(comparison, *several, more, held=baseline(known), coverage=gaps)
    assert verdict.decision is not Decision.PASS
