"""The effect gate: what every store promises of claims that come with a precondition."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Barrier, Thread

import msgspec
import pytest

from backstop.core.effectgate import (
    Frozen,
    LeaseLost,
    PastHorizon,
    Place,
    Precondition,
    Reach,
    StaleEpoch,
)
from backstop.core.effecttrust import Act, Ruled, Trust
from backstop.core.events import EffectClaimed, TrustBroken
from backstop.core.lifecycle import Lives
from backstop.errors import BackstopError
from backstop.ports import Answer, Claim, Conflict, Held, InDoubt, Recorded, Refused
from tests.contract.bench import START, Bench, header
from tests.contract.deeds import committed, done, doubted, failed, granted, pay
from tests.contract.meshed import (
    PLACE,
    STEP,
    breaks,
    found,
    judged,
    leased,
    recovers,
    trusts,
)

PAID = Recorded(result=msgspec.Raw(b'"paid"'), state_delta=msgspec.Raw(b'{"paid":1}'))
NOW = START.timestamp()


def claims(
    bench: Bench, asked: Precondition, owner: str = "alice", *, fingerprint: str = "f1"
) -> Claim | Answer:
    return bench.store.claim(pay(owner, fingerprint=fingerprint), asked)


def executes(bench: Bench, asked: Precondition, owner: str = "alice") -> Claim:
    claim = claims(bench, asked, owner)
    assert isinstance(claim, Claim)
    return claim


def publishes(bench: Bench, asked: Precondition | None = None) -> Claim:
    """The effect is claimed and committed."""
    claim = executes(bench, asked or judged())
    bench.store.settle(committed(claim), claim=claim)
    return claim


def rule(bench: Bench, act: Act, note: str = "", *, lease: bool = True) -> None:
    ruled = [Ruled(key="k1", act=act, note=note)]
    bench.store.rule(ruled, lease=leased(bench.store) if lease else None)


def test_a_ledger_without_a_mesh_has_an_empty_control_state(bench: Bench) -> None:
    control = bench.store.control()
    assert (control.epoch, control.breaks) == (0, ())
    assert trusts(bench.store) == {}
    assert list(bench.store.read()) == []


def test_a_free_key_is_executed_as_without_a_mesh(bench: Bench) -> None:
    assert claims(bench, judged()) == Claim(run="r1", key="k1", owner="alice", fence=1)
    assert claims(bench, judged(), "bob") == Held(owner="alice")
    assert trusts(bench.store) == {"k1": Trust.CLEAN}


def test_a_verdict_of_an_earlier_epoch_is_stale_wherever_trust_broke(bench: Bench) -> None:
    assert breaks(bench.store, "b1", "elsewhere") == 1
    assert claims(bench, judged(0)) == StaleEpoch(judged=0, epoch=1)
    assert [type(event) for event in bench.store.read()] == [TrustBroken]
    assert isinstance(claims(bench, judged(1)), Claim)


def test_a_verdict_of_an_epoch_that_never_was_is_stale_as_well(bench: Bench) -> None:
    assert claims(bench, judged(7)) == StaleEpoch(judged=7, epoch=0)


def test_a_frozen_step_is_withheld_until_it_is_recovered(bench: Bench) -> None:
    breaks(bench.store)
    assert claims(bench, judged(1)) == Frozen(broken="b1", reason="the history snapshot is stale")
    assert trusts(bench.store) == {}
    assert isinstance(claims(bench, judged(recovers(bench.store))), Claim)


@pytest.mark.parametrize(
    "reach",
    [
        pytest.param(Reach(run="r1", everything=True), id="the whole run"),
        pytest.param(Reach(everything=True), id="every run"),
        pytest.param(Reach(run="r1", agents=frozenset({"desk"})), id="its agent"),
        pytest.param(Reach(run="r1", steps=frozenset({"stats/model.0"})), id="what it read"),
    ],
)
def test_an_effect_is_frozen_by_its_run_its_agent_or_what_it_was_made_from(
    bench: Bench, reach: Reach
) -> None:
    bench.store.break_trust(found(), run="r1", reach=[reach])
    assert isinstance(claims(bench, judged(1)), Frozen)
    lease = leased(bench.store)
    assert bench.store.thaw([reach], lease=lease, epoch=1)
    assert isinstance(claims(bench, judged(1)), Claim)


def test_what_another_run_or_agent_does_is_not_frozen(bench: Bench) -> None:
    elsewhere = [
        Reach(run="r2", everything=True),
        Reach(run="r1"),
        Reach(run="r1", agents=frozenset({"scout"})),
        Reach(run="r1", steps=frozenset({"scout/history.0"})),
    ]
    bench.store.break_trust(found(), run="r1", reach=elsewhere)
    assert isinstance(claims(bench, judged(1)), Claim)


def test_an_older_recovery_does_not_let_go_what_a_later_break_froze(bench: Bench) -> None:
    first, second = breaks(bench.store, "b1"), breaks(bench.store, "b2")
    reach = [Reach(run="r1", steps=frozenset({STEP}))]
    assert not bench.store.thaw(reach, lease=leased(bench.store), epoch=first)
    assert isinstance(claims(bench, judged(second)), Frozen)
    assert bench.store.thaw(reach, lease=leased(bench.store), epoch=second)
    assert isinstance(claims(bench, judged(second)), Claim)


def test_part_of_what_is_frozen_can_be_let_go(bench: Bench) -> None:
    epoch = breaks(bench.store, "b1", STEP, "desk/mail.0")
    recovers(bench.store, "desk/mail.0")
    assert isinstance(claims(bench, judged(epoch)), Frozen)
    mail = judged(epoch, place=Place(run="r1", step="desk/mail.0"))
    assert isinstance(bench.store.claim(pay(key="k2"), mail), Claim)


def test_a_verdict_holds_before_its_horizon_and_not_at_it(bench: Bench) -> None:
    far = judged(horizon=4e9)  # of the service's time, which nobody here sets
    assert isinstance(claims(bench, far), Claim)
    past = claims(bench, judged(horizon=NOW - 1), "bob")
    assert isinstance(past, PastHorizon)
    assert past.horizon == NOW - 1
    assert past.now >= past.horizon


def test_nothing_is_written_by_a_claim_that_is_withheld(bench: Bench) -> None:
    claims(bench, judged(horizon=NOW - 1))
    claims(bench, judged(3))
    assert list(bench.store.read()) == []
    assert list(bench.store.standings("k1")) == []
    assert trusts(bench.store) == {}
    granted(bench.store, pay())


def test_not_even_a_recorded_outcome_is_told_to_who_is_not_verified(bench: Bench) -> None:
    publishes(bench)
    breaks(bench.store)
    assert isinstance(claims(bench, judged(0), "bob"), StaleEpoch)
    assert isinstance(claims(bench, judged(1), "bob"), Frozen)
    assert trusts(bench.store) == {"k1": Trust.SUSPECT}


def test_a_break_is_kept_for_good_and_told_once(bench: Bench) -> None:
    assert breaks(bench.store, "b1") == 1
    assert breaks(bench.store, "b1", "something/else.0") == 1
    assert breaks(bench.store, "b2") == 2
    other = bench.reopen(header())
    assert other.control() == bench.store.control()
    assert [one.broken.id for one in other.control().breaks] == ["b1", "b2"]
    assert [one.broken.epoch for one in other.control().breaks] == [1, 2]
    told = [event for event in other.read("r1") if isinstance(event, TrustBroken)]
    assert [msgspec.json.decode(event.body)["broken"]["id"] for event in told] == ["b1", "b2"]


def test_a_person_who_only_looks_sees_the_breaks(bench: Bench) -> None:
    breaks(bench.store)
    publishes(bench, judged(recovers(bench.store)))
    seen = bench.reopen(None)
    assert seen.control().epoch == 1
    assert trusts(seen) == {"k1": Trust.CLEAN}


def test_a_break_that_names_nothing_is_refused_and_changes_nothing(bench: Bench) -> None:
    nothing = msgspec.structs.replace(found(), id="")
    with pytest.raises(BackstopError) as caught:
        bench.store.break_trust(nothing, run="r1", reach=[Reach(run="r1")])
    assert caught.value.slug == "trust-break"
    assert bench.store.control().epoch == 0
    assert list(bench.store.read()) == []


def test_a_large_break_is_kept_whole(bench: Bench) -> None:
    steps = [f"agent/step.{number:06}" for number in range(20_000)]
    breaks(bench.store, "b1", *steps)
    breaks(bench.store, "b2", "agent/last.0")
    seen = bench.reopen(header()).control()
    assert seen.breaks[0].frozen[0].steps == frozenset(steps)
    place = Place(run="r1", step=steps[-1])
    assert isinstance(claims(bench, judged(2, place=place)), Frozen)
    assert isinstance(claims(bench, judged(2)), Claim)


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


def test_of_many_gated_claims_at_once_one_is_granted(bench: Bench) -> None:
    answers: list[object] = []
    gate = Barrier(6)

    def race(owner: str) -> None:
        gate.wait()
        answers.append(bench.store.claim(pay(owner), judged()))

    threads = [Thread(target=race, args=(f"owner-{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(answer, Claim) for answer in answers) == 1
    assert sum(isinstance(answer, Held) for answer in answers) == 5


def raced(claim: Callable[[], Claim | Answer], other: Callable[[], object]) -> Claim | Answer:
    """What the claim comes to that is made at the same time as something else."""
    gate = Barrier(2)
    answers: list[Claim | Answer] = []

    def first() -> None:
        gate.wait()
        answers.append(claim())

    def second() -> None:
        gate.wait()
        other()

    threads = [Thread(target=first), Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (answer,) = answers
    return answer


def test_a_break_that_races_a_claim_is_before_it_or_the_effect_is_suspect(bench: Bench) -> None:
    """None goes out that is neither withheld nor known to be suspect."""
    for number in range(6):
        key, name = f"key-{number}", f"break-{number}"
        epoch = bench.store.control().epoch
        place = Place(run="r1", step=f"step-{number}")
        asked = judged(epoch, place=place)
        answer = raced(
            partial(bench.store.claim, pay(key=key), asked),
            partial(breaks, bench.store, name, place.step),
        )
        if isinstance(answer, Claim):
            assert trusts(bench.store)[key] is Trust.SUSPECT
        else:
            assert isinstance(answer, StaleEpoch)
            assert key not in trusts(bench.store)
    assert bench.store.control().epoch == 6


def test_what_the_gate_lets_through_is_in_the_ledger_like_any_claim(bench: Bench) -> None:
    publishes(bench)
    kinds = [type(event) for event in bench.store.read("r1")]
    assert kinds[0] is EffectClaimed
    pulled = [
        each
        for part in bench.store.parts(bench.clock.now())
        for each in bench.store.pull(part, at=bench.clock.now())
    ]
    assert len(pulled) == 2


def test_the_recovery_of_a_run_is_one_workers_until_its_lease_is_over(bench: Bench) -> None:
    first = leased(bench.store, "worker-1")
    assert first.fence == 1
    assert bench.store.lease("r1", "worker-2", lease_s=30) == Held(owner="worker-1")
    assert bench.store.lease("r2", "worker-2", lease_s=30) != Held(owner="worker-1")
    bench.wait(60)
    assert leased(bench.store, "worker-2").fence == 2


def test_whoever_slept_past_its_lease_writes_nothing_more(bench: Bench) -> None:
    publishes(bench)
    epoch = breaks(bench.store)
    slept = leased(bench.store, "worker-1")
    bench.wait(60)
    leased(bench.store, "worker-2")
    reach = [Reach(run="r1", everything=True)]
    for late in (
        lambda: bench.store.rule([Ruled(key="k1", act=Act.COMPENSATE)], lease=slept),
        lambda: bench.store.thaw(reach, lease=slept, epoch=epoch),
    ):
        with pytest.raises(BackstopError) as caught:
            late()
        assert caught.value.slug == "stale-lease"
    undo = judged(epoch, undoes="k1", lease=slept)
    assert bench.store.claim(pay(key="k1-undo"), undo) == LeaseLost(fence=2)
    assert bench.store.lease("r1", "worker-1", lease_s=30, held=slept) == Held(owner="worker-2")
    bench.store.release(slept)
    assert bench.store.lease("r1", "worker-3", lease_s=30) == Held(owner="worker-2")
    assert trusts(bench.store) == {"k1": Trust.SUSPECT}


def test_whoever_slept_and_was_not_missed_goes_on(bench: Bench) -> None:
    publishes(bench)
    breaks(bench.store)
    slept = leased(bench.store, "worker-1")
    bench.wait(60)
    bench.store.rule([Ruled(key="k1", act=Act.COMPENSATE, note="u")], lease=slept)
    assert trusts(bench.store) == {"k1": Trust.COMPENSATED}


def test_a_recovery_is_gone_on_with_given_back_and_taken_anew(bench: Bench) -> None:
    first = leased(bench.store, "worker-1")
    bench.wait(20)
    assert bench.store.lease("r1", "worker-1", lease_s=30, held=first) == first
    bench.wait(20)
    assert bench.store.lease("r1", "worker-2", lease_s=30) == Held(owner="worker-1")
    again = leased(bench.store, "worker-1")
    assert again.fence == 2
    bench.store.release(again)
    assert leased(bench.store, "worker-2").fence == 3


def test_who_recovers_a_run_is_told_while_they_hold_it(bench: Bench) -> None:
    assert bench.store.recovering("r1") is None
    lease = leased(bench.store)
    assert bench.store.recovering("r1") == lease
    assert bench.store.recovering("r2") is None
    bench.store.release(lease)
    assert bench.store.recovering("r1") is None
    leased(bench.store)
    bench.wait(60)
    assert bench.store.recovering("r1") is None
