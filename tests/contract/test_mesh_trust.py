"""Effects that are out: what every store promises once trust broke in what they rest on."""

from __future__ import annotations

import msgspec
import pytest

from backstop.core.effectgate import (
    Frozen,
    Place,
    StaleEpoch,
)
from backstop.core.effecttrust import Act, Ruled, Trust
from backstop.core.lifecycle import Lives
from backstop.errors import BackstopError
from backstop.ports import Claim, Conflict, InDoubt, Recorded, Refused
from tests.contract.bench import Bench
from tests.contract.deeds import committed, done, doubted, failed, granted, pay
from tests.contract.gated import PAID, claims, executes, publishes, rule
from tests.contract.meshed import (
    PLACE,
    breaks,
    judged,
    leased,
    recovers,
    trusts,
)


def test_an_effect_that_went_out_downstream_of_a_break_is_suspect(bench: Bench) -> None:
    publishes(bench)
    mail = judged(place=Place(run="r1", step="desk/mail.0"))
    claim = bench.store.claim(pay(key="k2"), mail)
    assert isinstance(claim, Claim)
    breaks(bench.store)
    assert trusts(bench.store) == {"k1": Trust.SUSPECT, "k2": Trust.CLEAN}
    assert trusts(bench.store, "r2") == {}


def test_an_effect_that_was_under_way_when_trust_broke_is_suspect_once_it_is_out(
    bench: Bench,
) -> None:
    """M41: the call was made, and its outcome is kept; the branch that made it is not believed."""
    claim = executes(bench, judged())
    breaks(bench.store)
    bench.store.settle(committed(claim), claim=claim)
    assert trusts(bench.store) == {"k1": Trust.SUSPECT}


def test_a_rerun_that_asks_for_the_same_is_told_the_outcome_and_reaffirms_it(
    bench: Bench,
) -> None:
    publishes(bench)
    breaks(bench.store)
    epoch = recovers(bench.store)
    assert trusts(bench.store) == {"k1": Trust.SUSPECT}
    assert claims(bench, judged(epoch), "bob") == PAID
    assert trusts(bench.store) == {"k1": Trust.REAFFIRMED}
    assert breaks(bench.store, "b2") == 2
    assert trusts(bench.store) == {"k1": Trust.SUSPECT}


def test_a_rerun_that_asks_for_something_else_is_a_conflict_and_has_to_compensate(
    bench: Bench,
) -> None:
    publishes(bench)
    breaks(bench.store)
    epoch = recovers(bench.store)
    args = msgspec.Raw(b'{"to":"acme"}')
    conflict = Conflict(fingerprint="f1", args=args, compensate=True)
    assert claims(bench, judged(epoch), "bob", fingerprint="f2") == conflict
    assert trusts(bench.store) == {"k1": Trust.COMPENSATION_REQUIRED}
    assert claims(bench, judged(epoch), "bob", fingerprint="f2") == conflict
    assert claims(bench, judged(epoch), "bob") == PAID
    assert trusts(bench.store) == {"k1": Trust.REAFFIRMED}


def test_another_asking_is_no_reason_to_take_back_what_nobody_doubts(bench: Bench) -> None:
    publishes(bench)
    answer = claims(bench, judged(), "bob", fingerprint="f2")
    assert answer == Conflict(fingerprint="f1", args=msgspec.Raw(b'{"to":"acme"}'))
    assert trusts(bench.store) == {"k1": Trust.CLEAN}


def test_once_it_was_taken_back_its_key_is_free_for_what_is_wanted_now(bench: Bench) -> None:
    publishes(bench)
    breaks(bench.store)
    epoch = recovers(bench.store)
    claims(bench, judged(epoch), "bob", fingerprint="f2")
    rule(bench, Act.COMPENSATE, "undo-key")
    assert trusts(bench.store) == {"k1": Trust.COMPENSATED}
    again = claims(bench, judged(epoch), "bob", fingerprint="f2")
    assert isinstance(again, Claim)
    assert (again.fence, again.override) == (2, '{"$compensated":"undo-key","fence":1}')
    bench.store.settle(committed(again, b'"again"'), claim=again)
    for asked in (judged(epoch), None):
        said = bench.store.claim(pay("carol", fingerprint="f2"), asked)
        assert isinstance(said, Recorded)
        assert said.result == msgspec.Raw(b'"again"')
    assert isinstance(claims(bench, judged(epoch), "carol"), Conflict)
    assert trusts(bench.store) == {"k1": Trust.CLEAN}
    lives = Lives(guarded=True)
    assert [lives.follow(event) for event in bench.store.read()] == [None] * 5


def test_what_is_done_anew_after_it_was_taken_back_may_fail_and_be_tried_again(
    bench: Bench,
) -> None:
    publishes(bench)
    breaks(bench.store)
    epoch = recovers(bench.store)
    rule(bench, Act.COMPENSATE, "undo-key")
    again = executes(bench, judged(epoch), "bob")
    bench.store.settle(failed(again, final=False), claim=again)
    third = executes(bench, judged(epoch), "carol")
    assert third.fence == 3
    bench.store.settle(committed(third, b'"third"'), claim=third)
    said = claims(bench, judged(epoch), "dora")
    assert isinstance(said, Recorded)
    assert said.result == msgspec.Raw(b'"third"')


def test_what_was_claimed_without_an_outcome_is_in_doubt_and_not_done_again(bench: Bench) -> None:
    executes(bench, judged(), "alice")
    bench.kill("alice")
    breaks(bench.store)
    epoch = recovers(bench.store)
    assert isinstance(claims(bench, judged(epoch), "bob"), InDoubt)
    assert isinstance(claims(bench, judged(epoch), "bob"), InDoubt)
    assert trusts(bench.store) == {"k1": Trust.SUSPECT}


def test_an_effect_that_failed_for_now_is_judged_anew_as_it_is_tried_again(bench: Bench) -> None:
    claim = executes(bench, judged())
    bench.store.settle(failed(claim, final=False), claim=claim)
    breaks(bench.store)
    assert isinstance(claims(bench, judged(1), "bob"), Frozen)
    again = executes(bench, judged(recovers(bench.store)), "bob")
    assert again.fence == 2
    assert trusts(bench.store) == {"k1": Trust.CLEAN}


def test_an_effect_that_failed_for_good_stays_failed(bench: Bench) -> None:
    claim = executes(bench, judged())
    bench.store.settle(failed(claim, final=True), claim=claim)
    assert isinstance(claims(bench, judged(), "bob"), Refused)


def test_an_effect_from_before_the_mesh_is_taken_in_when_it_is_asked_for(bench: Bench) -> None:
    done(bench.store, pay())
    assert claims(bench, judged(), "bob") == PAID
    assert trusts(bench.store) == {"k1": Trust.CLEAN}
    breaks(bench.store)
    assert trusts(bench.store) == {"k1": Trust.SUSPECT}


def test_without_a_precondition_a_claim_is_what_it_always_was(bench: Bench) -> None:
    breaks(bench.store)
    claim = granted(bench.store, pay())
    bench.store.settle(committed(claim), claim=claim)
    assert bench.store.claim(pay("bob")) == PAID
    assert trusts(bench.store) == {}


def test_an_effect_that_is_taken_back_passes_what_is_frozen_and_is_never_suspect_itself(
    bench: Bench,
) -> None:
    publishes(bench)
    epoch = breaks(bench.store)
    undo = judged(epoch, undoes="k1")
    assert isinstance(bench.store.claim(pay(key="k1-undo"), undo), Claim)
    assert trusts(bench.store) == {"k1": Trust.SUSPECT}
    stale = judged(epoch - 1, undoes="k1")
    assert isinstance(bench.store.claim(pay(key="k2-undo"), stale), StaleEpoch)


def test_what_a_recovery_rules_is_all_written_or_nothing(bench: Bench) -> None:
    publishes(bench)
    breaks(bench.store)
    ruled = [Ruled(key="k1", act=Act.ESCALATE, note="no undo"), Ruled(key="k9", act=Act.ESCALATE)]
    with pytest.raises(BackstopError) as caught:
        bench.store.rule(ruled, lease=leased(bench.store))
    assert caught.value.slug == "effect-trust"
    assert trusts(bench.store) == {"k1": Trust.SUSPECT}
    bench.store.rule(ruled[:1], lease=leased(bench.store))
    assert trusts(bench.store) == {"k1": Trust.ESCALATED}
    (effect,) = bench.store.out()
    assert (effect.gated.note, effect.gated.place, effect.gated.undo) == (
        "no undo",
        PLACE,
        "desk.withdraw",
    )


def test_what_was_ruled_may_be_ruled_again_and_changes_nothing(bench: Bench) -> None:
    publishes(bench)
    breaks(bench.store)
    for _ in range(2):
        rule(bench, Act.COMPENSATE, "undo-key")
    assert trusts(bench.store) == {"k1": Trust.COMPENSATED}
    with pytest.raises(BackstopError, match="COMPENSATED"):
        rule(bench, Act.ESCALATE)


@pytest.mark.parametrize(
    ("act", "after"), [(Act.KEEP, Trust.REAFFIRMED), (Act.TAKE_BACK, Trust.COMPENSATED)]
)
def test_a_person_decides_what_was_escalated_without_a_recovery(
    bench: Bench, act: Act, after: Trust
) -> None:
    publishes(bench)
    breaks(bench.store)
    rule(bench, Act.ESCALATE, "no undo is declared")
    rule(bench, act, "person:ann", lease=False)
    assert trusts(bench.store) == {"k1": after}


def test_nobody_else_rules_without_a_recovery(bench: Bench) -> None:
    publishes(bench)
    breaks(bench.store)
    with pytest.raises(BackstopError) as caught:
        rule(bench, Act.COMPENSATE, "undo-key", lease=False)
    assert caught.value.slug == "stale-lease"
    assert trusts(bench.store) == {"k1": Trust.SUSPECT}


def test_ruling_about_an_effect_leaves_its_record_and_its_age_alone(bench: Bench) -> None:
    claim = executes(bench, judged())
    bench.store.settle(doubted(claim), claim=claim)
    breaks(bench.store)
    before = list(bench.store.read())
    rule(bench, Act.ESCALATE, "nobody knows whether it happened")
    assert list(bench.store.read()) == before
    bench.store.settle(committed(claim), claim=claim)
    assert bench.store.claim(pay("bob")) == PAID
    assert trusts(bench.store) == {"k1": Trust.ESCALATED}
