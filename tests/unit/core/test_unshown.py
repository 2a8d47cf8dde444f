"""What no replay shows may be accepted by a person: this very change, and nothing else (D4, D7)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from backstop.core.divergence import Kind
from backstop.core.unshown import Lack, Sort, Unshown, found, gap
from backstop.core.verdict import AgentVerdict, Coverage, Decision
from backstop.core.waivers import ByCall, ByKey, Standing, Waiver
from tests.accepting import TODAY, WHOLE, baseline, decided, standings, waiver
from tests.comparing import NAMESPACE, ask, call, compared, out, rules

BODY = Unshown(
    sort=Sort.BODY,
    subject="refund",
    told="what refund does inside changed; no replay runs it",
    before="aa",
    after="bb",
)
NAME = BODY.fingerprint(NAMESPACE.agent)
AGAIN = Unshown(sort=Sort.BODY, subject="refund", told=BODY.told, before="aa", after="cc")
DUPLICATE = compared(
    [out(call("pay", vendor="acme"), guarded=False)],
    [ask(call("pay", vendor="ACME"))],
    rules(replayed=False),
).divergences


def lacking(*unshown: Unshown, more: tuple[str, ...] = ()) -> Coverage:
    """Coverage in which these are missing, and `more` that nobody may accept."""
    told = (*more, *(one.told for one in unshown))
    return replace(WHOLE, uncovered=told, unshown=found(NAMESPACE.agent, unshown))


def on(*waivers: Waiver, coverage: Coverage | None = None) -> AgentVerdict:
    return decided([], *waivers, coverage=coverage or lacking(BODY))


def test_d7_an_accepted_change_of_a_body_is_no_gap_and_is_told() -> None:
    """D7: without this, nobody could ever merge a pull request that edits a tool's body."""
    assert on().decision is Decision.INCONCLUSIVE
    verdict = on(waiver(NAME, kind=Lack.UNCOVERED))
    assert (verdict.decision, verdict.why) == (Decision.PASS, ())
    assert standings(verdict) == [Standing.USED]
    (use,) = verdict.waivers
    assert (use.matched, use.waived, use.unshown) == (1, 1, 1)
    assert verdict.coverage.accepted == 1
    assert verdict.coverage.uncovered == (BODY.told,)
    (one,) = verdict.coverage.unshown
    assert one.waiver == "agreed (eva, until 2026-12-14)"
    assert on(waiver(NAME)).decision is Decision.PASS


def test_d7_one_more_edit_of_the_body_and_the_waiver_no_longer_holds() -> None:
    """The control: it was agreed to another change."""
    verdict = on(waiver(NAME, kind=Lack.UNCOVERED), coverage=lacking(AGAIN))
    assert verdict.decision is Decision.INCONCLUSIVE
    assert verdict.why == (f"not covered: {BODY.told}",)
    assert standings(verdict) == [Standing.UNUSED]
    assert verdict.coverage.accepted == 0


def test_d4_a_waiver_that_ran_out_or_reaches_too_far_ahead_accepts_no_change() -> None:
    late = waiver(NAME, expires=TODAY - timedelta(days=1))
    far = waiver(NAME, expires=TODAY + timedelta(days=91))
    for one, standing in ((late, Standing.EXPIRED), (far, Standing.TOO_BROAD)):
        verdict = on(one)
        assert verdict.decision is Decision.INCONCLUSIVE
        assert standings(verdict) == [standing]
        assert verdict.waivers[0].unshown == 0


def test_d4_a_pattern_or_another_kind_accepts_no_change() -> None:
    patterns = (ByKey(key=f"{NAME}*"), ByCall(tool="refund"))
    for one in (
        *(waiver(names, kind=Lack.UNCOVERED) for names in patterns),
        waiver(NAME, kind=Kind.DUPLICATE),
    ):
        assert on(one).decision is Decision.INCONCLUSIVE


def test_d4_accepting_a_change_hides_no_finding() -> None:
    accepts = waiver(NAME, kind=Lack.UNCOVERED)
    verdict = decided(DUPLICATE, accepts, coverage=lacking(BODY))
    assert verdict.decision is Decision.BLOCK
    assert not any(one.is_tempered for one in verdict.judged)
    wrong = replace(waiver(DUPLICATE[0]), kind=Lack.UNCOVERED)
    assert decided(DUPLICATE, wrong).decision is Decision.BLOCK
    held = decided(DUPLICATE, held=baseline(DUPLICATE), coverage=lacking(BODY))
    assert held.decision is Decision.INCONCLUSIVE


def test_d7_what_a_replay_could_show_is_accepted_by_nobody_even_in_the_same_words() -> None:
    coverage = lacking(BODY, more=(BODY.told, "the candidate was not isolated"))
    verdict = on(waiver(NAME), coverage=coverage)
    assert sorted(verdict.why) == [
        "not covered: the candidate was not isolated",
        f"not covered: {BODY.told}",
    ]


def test_a_gap_of_an_imported_ledger_is_named_by_its_text() -> None:
    one, other = gap("run r1: no answers"), gap("run r2: no answers")
    verdict = on(waiver(one.fingerprint(NAMESPACE.agent)), coverage=lacking(one, other))
    assert verdict.why == ("not covered: the ledger is incomplete: run r2: no answers",)
