"""What every ledger store promises, whichever it is: `benches` holds a module for each."""

from __future__ import annotations

from threading import Barrier, Thread

import msgspec
import pytest

from backstop.core.events import (
    EffectClaimed,
    EffectInDoubt,
    Event,
    Failure,
    RunOpened,
)
from backstop.core.lifecycle import Lives
from backstop.errors import BackstopError, StaleClaim
from backstop.ports import (
    Claim,
    Conflict,
    Held,
    InDoubt,
    Recorded,
    Refused,
)
from tests.contract.bench import Bench
from tests.contract.deeds import committed, doubted, failed, granted, pay, resolved


def test_the_first_claim_is_granted_at_fence_one(bench: Bench) -> None:
    assert granted(bench.store, pay()) == Claim(run="r1", key="k1", owner="alice", fence=1)


def test_a_second_claim_is_held_while_the_first_owner_lives(bench: Bench) -> None:
    granted(bench.store, pay("alice"))
    assert bench.store.claim(pay("bob")) == Held(owner="alice")


def test_a_committed_effect_returns_its_recorded_result_and_state(bench: Bench) -> None:
    claim = granted(bench.store, pay())
    bench.store.settle(committed(claim), claim=claim)
    assert bench.store.claim(pay("bob")) == Recorded(
        result=msgspec.Raw(b'"paid"'), state_delta=msgspec.Raw(b'{"paid":1}')
    )


def test_other_arguments_under_the_same_key_are_a_conflict_in_every_phase(bench: Bench) -> None:
    other = Conflict(fingerprint="f1", args=msgspec.Raw(b'{"to":"acme"}'))
    claim = granted(bench.store, pay())
    assert bench.store.claim(pay("bob", fingerprint="f2")) == other
    bench.store.settle(committed(claim), claim=claim)
    assert bench.store.claim(pay("bob", fingerprint="f2")) == other


def test_a_dead_owners_claim_is_in_doubt_and_never_granted_again(bench: Bench) -> None:
    granted(bench.store, pay("alice"))
    bench.kill("alice")
    first = bench.store.claim(pay("bob"))
    assert isinstance(first, InDoubt)
    assert "alice" in first.reason
    again = bench.store.claim(pay("bob"))
    assert isinstance(again, InDoubt)
    assert (again.reason, again.fence, again.gone) == (first.reason, 1, True)
    kinds = [type(event) for event in bench.store.read("r1")]
    assert kinds == [EffectClaimed, EffectInDoubt]


def test_an_effect_that_failed_for_now_is_claimed_again_at_a_higher_fence(bench: Bench) -> None:
    claim = granted(bench.store, pay())
    bench.store.settle(failed(claim, final=False), claim=claim)
    assert granted(bench.store, pay("bob")).fence == 2


def test_f22_an_effect_that_failed_for_now_may_be_claimed_with_other_arguments(
    bench: Bench,
) -> None:
    """F22: nothing has happened, so whoever corrects the arguments is in no conflict."""
    claim = granted(bench.store, pay())
    bench.store.settle(failed(claim, final=False), claim=claim)
    other = granted(bench.store, pay("bob", fingerprint="f2", args=msgspec.Raw(b'{"to":"b"}')))
    bench.store.settle(committed(other), claim=other)
    assert isinstance(bench.store.claim(pay("carol", fingerprint="f2")), Recorded)
    assert bench.store.claim(pay("carol")) == Conflict(
        fingerprint="f2", args=msgspec.Raw(b'{"to":"b"}')
    )


def test_an_effect_that_failed_for_good_answers_with_its_failure(bench: Bench) -> None:
    claim = granted(bench.store, pay())
    bench.store.settle(failed(claim, final=True), claim=claim)
    assert bench.store.claim(pay("bob")) == Refused(error=Failure(type="Closed", message="no"))


def test_a_superseded_claim_cannot_settle(bench: Bench) -> None:
    claim = granted(bench.store, pay("alice"))
    bench.store.settle(doubted(claim), claim=claim)
    bench.store.settle(resolved("reopened", fence=2))
    again = granted(bench.store, pay("bob"))
    assert again.fence == 3
    with pytest.raises(StaleClaim):
        bench.store.settle(committed(claim), claim=claim)
    bench.store.settle(committed(again), claim=again)


def test_a_claim_of_the_same_owner_under_an_old_fence_cannot_settle(bench: Bench) -> None:
    first = granted(bench.store, pay("alice"))
    bench.store.settle(failed(first, final=False), claim=first)
    granted(bench.store, pay("alice"))
    with pytest.raises(StaleClaim):
        bench.store.settle(committed(first), claim=first)


def test_nobody_settles_without_a_claim(bench: Bench) -> None:
    claim = granted(bench.store, pay())
    with pytest.raises(StaleClaim):
        bench.store.settle(committed(claim))


def test_what_was_never_claimed_cannot_be_settled(bench: Bench) -> None:
    with pytest.raises(BackstopError) as caught:
        bench.store.settle(resolved("committed"))
    assert caught.value.slug == "illegal-move"


def test_a_late_owner_may_still_commit_what_is_in_doubt(bench: Bench) -> None:
    claim = granted(bench.store, pay("alice"))
    bench.kill("alice")
    assert isinstance(bench.store.claim(pay("bob")), InDoubt)
    bench.store.settle(committed(claim), claim=claim)
    assert isinstance(bench.store.claim(pay("bob")), Recorded)


def test_committed_is_an_end(bench: Bench) -> None:
    claim = granted(bench.store, pay())
    bench.store.settle(committed(claim), claim=claim)
    for event in (committed(claim), failed(claim, final=True), doubted(claim)):
        with pytest.raises(BackstopError):
            bench.store.settle(event, claim=claim)
    with pytest.raises(BackstopError):
        bench.store.settle(resolved("failed"))
    assert len(list(bench.store.read())) == 2


@pytest.mark.parametrize(
    ("to", "answer"),
    [
        ("committed", Recorded(result=msgspec.Raw(b'"seen"'))),
        ("failed", Refused(error=Failure(type="Resolved", message="they say so"))),
    ],
)
def test_a_person_decides_what_is_in_doubt(
    bench: Bench, to: str, answer: Recorded | Refused
) -> None:
    claim = granted(bench.store, pay())
    bench.store.settle(doubted(claim), claim=claim)
    bench.store.settle(resolved(to))
    assert bench.store.claim(pay("bob")) == answer


def test_what_is_not_in_doubt_cannot_be_resolved(bench: Bench) -> None:
    granted(bench.store, pay())
    with pytest.raises(BackstopError) as caught:
        bench.store.settle(resolved("committed"))
    assert caught.value.slug == "illegal-move"


def test_effects_are_claimed_and_settled_never_appended(bench: Bench) -> None:
    with pytest.raises(BackstopError) as caught:
        bench.store.append(pay())
    assert caught.value.slug == "illegal-move"
    assert list(bench.store.read()) == []


def test_events_are_read_in_order_with_the_stores_time(bench: Bench) -> None:
    bench.store.append(RunOpened(run="r1", at="1999-01-01T00:00:00Z"))
    bench.store.append(RunOpened(run="r2", at=""))
    granted(bench.store, pay())
    every: list[Event] = list(bench.store.read())
    assert [event.run for event in every] == ["r1", "r2", "r1"]
    assert [event.at for event in every] == sorted({event.at for event in every})
    assert every[0].at.startswith("2026-03-02T06:00:01")
    assert [event.run for event in bench.store.read("r2")] == ["r2"]


def test_what_a_store_writes_follows_the_lifecycle(bench: Bench) -> None:
    first = granted(bench.store, pay("alice"))
    bench.store.settle(failed(first, final=False), claim=first)
    second = granted(bench.store, pay("alice"))
    bench.store.settle(doubted(second), claim=second)
    bench.store.settle(resolved("reopened", fence=3))
    third = granted(bench.store, pay("bob"))
    bench.store.settle(committed(third), claim=third)
    lives = Lives(guarded=True)
    assert [lives.follow(event) for event in bench.store.read()] == [None] * 7


def test_of_many_claims_at_once_one_is_granted(bench: Bench) -> None:
    answers: list[object] = []
    gate = Barrier(8)

    def race(owner: str) -> None:
        gate.wait()
        answers.append(bench.store.claim(pay(owner)))

    threads = [Thread(target=race, args=(f"owner-{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(answer, Claim) for answer in answers) == 1
    assert sum(isinstance(answer, Held) for answer in answers) == 7
