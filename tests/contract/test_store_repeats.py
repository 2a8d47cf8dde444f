"""What every store promises of deliberate repeats: once for each reason, at a higher fence."""

from __future__ import annotations

import msgspec

from backstop.core.lifecycle import Lives
from backstop.ports import Conflict, InDoubt, Recorded, Refused
from tests.contract.bench import Bench
from tests.contract.deeds import done, doubted, failed, granted, pay, resolved

ONE, TWO = '{"again":"lost in the mail"}', '{"again":"and once more"}'


def result_of(answer: object) -> bytes:
    assert isinstance(answer, Recorded)
    return bytes(answer.result)


def test_an_override_leads_out_of_committed_once(bench: Bench) -> None:
    done(bench.store, pay(), b'"first"')
    assert done(bench.store, pay(override=ONE), b'"second"').fence == 2
    assert result_of(bench.store.claim(pay("bob", override=ONE))) == b'"second"'
    assert result_of(bench.store.claim(pay("bob"))) == b'"first"'


def test_each_reason_is_good_for_one_repeat(bench: Bench) -> None:
    done(bench.store, pay(), b'"first"')
    done(bench.store, pay(override=ONE), b'"second"')
    assert done(bench.store, pay(override=TWO), b'"third"').fence == 3
    for said in (None, ONE, TWO):
        assert isinstance(bench.store.claim(pay("bob", override=said)), Recorded)
    assert result_of(bench.store.claim(pay("bob", override=TWO))) == b'"third"'


def test_the_first_call_is_answered_from_the_record_while_a_repeat_runs(bench: Bench) -> None:
    done(bench.store, pay(), b'"first"')
    claim = granted(bench.store, pay(override=ONE))
    assert result_of(bench.store.claim(pay("bob"))) == b'"first"'
    bench.store.settle(doubted(claim), claim=claim)
    assert result_of(bench.store.claim(pay("bob"))) == b'"first"'
    doubt = bench.store.claim(pay("bob", override=ONE))
    assert isinstance(doubt, InDoubt)
    assert (doubt.override, doubt.repeats) == (ONE, True)


def test_a_repeat_that_failed_leaves_what_was_done_before(bench: Bench) -> None:
    done(bench.store, pay(), b'"first"')
    claim = granted(bench.store, pay(override=ONE))
    bench.store.settle(failed(claim, final=True), claim=claim)
    assert isinstance(bench.store.claim(pay("bob", override=ONE)), Refused)
    assert result_of(bench.store.claim(pay("bob"))) == b'"first"'


def test_a_repeat_begins_to_age_anew(bench: Bench) -> None:
    done(bench.store, pay())
    bench.wait(1000)
    claim = granted(bench.store, pay(override=ONE, capability="keyed", retention_s=60))
    bench.store.settle(doubted(claim), claim=claim)
    doubt = bench.store.claim(pay("bob", override=ONE))
    assert isinstance(doubt, InDoubt)
    assert doubt.claim_age_s < 60


def test_an_override_does_not_lead_past_other_arguments(bench: Bench) -> None:
    done(bench.store, pay())
    other = bench.store.claim(pay(override=ONE, fingerprint="f2"))
    assert other == Conflict(fingerprint="f1", args=msgspec.Raw(b'{"to":"acme"}'))


def test_repeats_follow_the_lifecycle_with_their_reason_on_record(bench: Bench) -> None:
    done(bench.store, pay())
    claim = granted(bench.store, pay(override=ONE))
    bench.store.settle(doubted(claim), claim=claim)
    bench.store.settle(resolved("reopened", fence=3))
    done(bench.store, pay(override=ONE))
    done(bench.store, pay(override=TWO))
    lives = Lives(guarded=True)
    told = list(bench.store.read())
    assert [lives.follow(event) for event in told] == [None] * len(told)
    said = [getattr(event, "override", None) for event in told]
    assert [one for one in said if one] == [ONE, ONE, TWO]
