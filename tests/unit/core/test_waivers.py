"""What a waiver covers: what it names, as often as was agreed, until its day (D4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from backstop.core.divergence import Kind, Reason
from backstop.core.verdict import Coverage, Decision
from backstop.core.waivers import (
    ByCall,
    ByFingerprint,
    ByKey,
    Names,
    Standing,
    Waiver,
    WaiverUse,
    breadth,
    fits,
    merged,
)
from tests.accepting import TODAY, UNTIL, baseline, decided, standings, waiver
from tests.comparing import ask, call, compared, out
from tests.verdicts import CHANGED, DROPPED, NEW, RELABELLED, divergence, half

LONG = "0123456789abcdef"
MAILED = divergence(
    Kind.EXTRA, Reason.NEW, None, half({"to": "a@b.org", "n": 3}, key=LONG, tool="mail"), run="r7"
)


def test_a_waived_finding_does_not_block_and_every_other_one_does() -> None:
    """The control of these tests: without the waiver it blocks, and so does its neighbour."""
    assert decided([RELABELLED]).decision is Decision.BLOCK
    verdict = decided([RELABELLED], waiver(RELABELLED))
    assert verdict.decision is Decision.PASS
    assert verdict.counts["waived"] == 1
    assert verdict.counts["duplicate"] == 1
    assert verdict.judged[0].waiver == "agreed (eva, until 2026-12-14)"
    both = decided([RELABELLED, CHANGED], waiver(RELABELLED))
    assert (both.decision, both.why) == (Decision.BLOCK, ("1 MUTATED",))


def test_d4_a_waiver_never_makes_up_for_coverage() -> None:
    """D4: what was not compared stays inconclusive, whatever is waived."""
    gaps = Coverage(runs_compared=1, runs_total=2)
    verdict = decided([RELABELLED], waiver(RELABELLED), coverage=gaps)
    assert verdict.decision is Decision.INCONCLUSIVE
    assert decided([RELABELLED], coverage=gaps).decision is Decision.BLOCK


def test_g16_an_expired_waiver_waives_nothing_and_is_told() -> None:
    """G16: the day on which it expires is the last one on which it counts."""
    one = waiver(RELABELLED)
    assert decided([RELABELLED], one, today=UNTIL).decision is Decision.PASS
    late = decided([RELABELLED], one, today=UNTIL + timedelta(days=1))
    assert late.decision is Decision.BLOCK
    assert standings(late) == [Standing.EXPIRED]
    assert late.waivers[0].note.startswith("expired on 2026-12-14")


def test_a_waiver_for_one_does_not_swallow_five() -> None:
    """By count, and all or nothing: whoever agreed to one has not seen five."""
    five = [RELABELLED] * 5
    verdict = decided(five, waiver(RELABELLED))
    assert (verdict.decision, verdict.why) == (Decision.BLOCK, ("5 DUPLICATE",))
    assert standings(verdict) == [Standing.EXCEEDED]
    assert (verdict.waivers[0].matched, verdict.waivers[0].waived) == (5, 0)
    enough = decided(five, waiver(RELABELLED, count=5))
    assert (enough.decision, enough.waivers[0].waived) == (Decision.PASS, 5)


def test_an_unused_waiver_is_told() -> None:
    verdict = decided([RELABELLED], waiver("0" * 32), waiver(RELABELLED))
    assert standings(verdict) == [Standing.UNUSED, Standing.USED]
    assert "remove it" in verdict.waivers[0].note
    assert verdict.waivers[1].note == ""


@pytest.mark.parametrize("fault", ["assumed", "known"])
def test_a_waiver_of_what_does_not_count_anyway_is_idle_and_not_unused(fault: str) -> None:
    """Else it would be taken out, and missed where the finding counts again."""
    one = replace(RELABELLED, assumed=fault == "assumed")
    held = baseline([one]) if fault == "known" else None
    verdict = decided([one], waiver(one), held=held)
    assert standings(verdict) == [Standing.IDLE]
    assert verdict.counts["waived"] == 0
    assert verdict.judged[0].waiver is None


def test_a_baseline_makes_no_waiver_reach_further() -> None:
    """What is known counts for what a waiver was agreed for, though it needs none."""
    pattern = waiver(ByCall(tool="*rde*"), kind=Kind.DUPLICATE)
    two = [RELABELLED, replace(RELABELLED, fingerprint="another")]
    assert decided(two[:1], pattern).decision is Decision.PASS
    verdict = decided(two, pattern, held=baseline(two[:1]))
    assert standings(verdict) == [Standing.EXCEEDED]
    assert verdict.why == ("1 DUPLICATE",)


@pytest.mark.parametrize(
    ("names", "met"),
    [
        (ByKey(key=LONG), True),
        (ByKey(key="01234567*"), True),
        (ByKey(key="x1234567*"), False),
        (ByCall(tool="mail"), True),
        (ByCall(tool="m*l"), True),
        (ByCall(tool="post"), False),
        (ByCall(tool="mail", run="r7"), True),
        (ByCall(tool="mail", run="r8"), False),
        (ByCall(tool="mail", args={"to": "*@b.org"}), True),
        (ByCall(tool="mail", args={"to": "*@c.org"}), False),
        (ByCall(tool="mail", args={"n": "3"}), True),
        (ByCall(tool="mail", args={"to": "*", "cc": "*"}), False),
    ],
)
def test_a_pattern_names_calls_by_what_their_key_is_made_of(names: Names, met: bool) -> None:
    call_of_r7 = replace(MAILED, intended=replace(MAILED.intended or half({}), run="r7"))
    assert waiver(names, kind=Kind.EXTRA).matches(call_of_r7) is met
    assert not waiver(names, kind=Kind.MISSING).matches(call_of_r7)


def test_a_pattern_looks_at_the_call_that_would_go_out_before_the_recorded_one() -> None:
    asked = waiver(ByCall(tool="order", args={"vendor_id": "ACME*"}), kind=Kind.DUPLICATE)
    recorded = waiver(ByCall(tool="order", args={"vendor_id": "acme*"}), kind=Kind.DUPLICATE)
    assert asked.matches(RELABELLED)
    assert not recorded.matches(RELABELLED)
    assert waiver(ByCall(tool="pay", args={"to": "m*"}), kind=Kind.MISSING).matches(DROPPED)
    assert waiver(ByKey(key="k-old"), kind=Kind.DUPLICATE).matches(RELABELLED)
    assert waiver(ByKey(key="k-new"), kind=Kind.DUPLICATE).matches(RELABELLED)
    nothing = divergence(Kind.EXTRA, Reason.NEW, None, None)
    assert not waiver(ByCall(tool="pay"), kind=Kind.EXTRA).matches(nothing)


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (waiver(ByCall(tool="order")), "names no kind"),
        (waiver(ByKey(key=LONG)), "names no kind"),
        (waiver(ByKey(key="ab*"), kind=Kind.EXTRA), "fewer than 6 letters"),
        (waiver(ByKey(key="*"), kind=Kind.EXTRA), "fewer than 6 letters"),
        (waiver(ByKey(key="*0*1*2*3*4*5*"), kind=Kind.EXTRA), "fewer than 6 letters"),
        (waiver(ByCall(tool="**"), kind=Kind.EXTRA), "names no tool"),
        (waiver(ByCall(tool="*r*e*"), kind=Kind.EXTRA, count=99), "names no tool"),
        (waiver(RELABELLED, expires=TODAY + timedelta(days=91)), "later than 90 days"),
    ],
)
def test_a_waiver_that_reaches_too_far_waives_nothing_and_is_told(one: Waiver, why: str) -> None:
    verdict = decided([RELABELLED, NEW, MAILED], one)
    assert standings(verdict) == [Standing.TOO_BROAD]
    assert why in verdict.waivers[0].note
    assert verdict.counts["waived"] == 0


@pytest.mark.parametrize(
    "one",
    [
        waiver(RELABELLED, expires=TODAY + timedelta(days=90)),
        waiver(ByKey(key="abcdef*"), kind=Kind.EXTRA),
        waiver(ByCall(tool="order"), kind=Kind.DUPLICATE),
    ],
)
def test_a_waiver_within_bounds_is_not_called_broad(one: Waiver) -> None:
    assert breadth(one, today=TODAY, max_days=90) is None


def test_what_a_waiver_is_about_is_told_without_values() -> None:
    """G24: names of arguments, never what they hold."""
    told = [
        waiver(names).about
        for names in (
            ByFingerprint(fingerprint="ab" * 16),
            ByKey(key="abcdef*"),
            ByCall(tool="order", args={"b": "secret", "a": "x"}),
            ByCall(tool="order", run="r*"),
        )
    ]
    assert told == ["ab" * 16, "key abcdef*", "order(a, b)", "order() in run r*"]


@pytest.mark.parametrize(
    ("pattern", "text", "met"),
    [
        ("", "", True),
        ("a", "a", True),
        ("a", "ab", False),
        ("*", "", True),
        ("*", "line\nbreak", True),
        ("a*", "ba", False),
        ("*a", "ab", False),
        ("a*a", "a", False),
        ("a*b*c", "a-b-c", True),
        ("a*b*c", "a-c", False),
        ("*b*b*", "abab", True),
        ("*b*b*", "ab", False),
        ("[a]?", "[a]?", True),
        ("[a]?", "ab", False),
    ],
)
def test_a_star_stands_for_any_text_and_nothing_else_is_special(
    pattern: str, text: str, met: bool
) -> None:
    assert fits(pattern, text) is met


def test_a_pattern_of_many_stars_is_no_trap() -> None:
    assert not fits("a*" * 200 + "b", "a" * 20_000)


def test_d1_what_is_found_under_other_rules_only_is_not_called_unused() -> None:
    """D1: the verdict shown is that of the worse rules; the waiver may serve the others."""
    one, two = waiver("0" * 32), waiver("1" * 32)
    unused = [WaiverUse(waiver=each, standing=Standing.UNUSED) for each in (one, two)]
    other = [WaiverUse(waiver=one, standing=Standing.USED, matched=1, waived=1), unused[1]]
    told = merged(unused, unused, other)
    assert [use.standing for use in told] == [Standing.IDLE, Standing.UNUSED]
    assert merged(other, other) == tuple(other)


def test_g19_a_fingerprint_is_the_same_whatever_else_is_in_the_ledger_and_in_whatever_order() -> (
    None
):
    """G19: neither place nor order names a finding; tool, target, run and arguments do."""
    acme, mail = call("pay", vendor="acme", amount=1), call("mail", to="x")
    again = acme.but(vendor="ACME")
    alone = compared([out(acme)], [ask(again)])
    among = compared(
        [out(mail, run="r0"), out(mail), out(acme, v="v9")],
        [ask(mail), ask(again), ask(mail, run="r0")],
    )
    (one,) = alone.divergences
    (same,) = among.divergences
    assert one.fingerprint == same.fingerprint
    others = [
        compared([out(acme)], [ask(again.but(amount=2))]),
        compared([out(acme)], [ask(again.but(vendor="Acme"))]),
        compared([out(acme, run="r2")], [ask(again, run="r2")]),
        compared([], [ask(again)]),
        compared([out(acme)], []),
    ]
    prints = {each.divergences[0].fingerprint for each in others}
    assert len(prints | {one.fingerprint}) == len(others) + 1


def test_g19_findings_of_an_import_without_keys_are_told_apart() -> None:
    """G19: rows that no store keyed get their key from the rules, not one name for all."""
    acme, other = call("pay", vendor="acme"), call("pay", vendor="globex")
    rows = [out(acme, guarded=False), out(other, guarded=False)]
    for row in rows:
        row.key = row.fingerprint = ""
    missing = compared(rows, []).divergences
    assert [one.kind for one in missing] == [Kind.MISSING] * 2
    assert missing[0].fingerprint != missing[1].fingerprint
