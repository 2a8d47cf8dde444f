"""What every store promises of facts: said once, in order, and no cursor over open effects."""

from __future__ import annotations

import pytest

from backstop.core.events import (
    AttemptStarted,
    CursorAdvanced,
    Event,
    ModelAnswered,
    RunClosed,
    RunOpened,
    StepStarted,
)
from backstop.errors import BackstopError
from backstop.ports import Claim, InDoubt, LedgerStore
from tests.contract.bench import Bench, header
from tests.contract.deeds import committed, done, doubted, failed, granted, pay, resolved


def cursor(*effects: str, step: str = "s0") -> CursorAdvanced:
    return CursorAdvanced(run="r1", at="", step=step, cursor=1, effects=effects)


def held(store: LedgerStore, event: CursorAdvanced) -> bool:
    before = len(list(store.read("r1")))
    try:
        return not store.append(event)
    except BackstopError as error:
        if error.slug != "cursor-held":
            raise
    assert len(list(store.read("r1"))) == before
    return True


@pytest.mark.parametrize(
    "event",
    [
        RunOpened(run="r1", at=""),
        StepStarted(run="r1", at="", step="s0", cursor=0),
        AttemptStarted(run="r1", at="", step="s0", attempt=1),
        cursor(),
        RunClosed(run="r1", at="", status="complete"),
    ],
    ids=lambda event: type(event).__name__,
)
def test_what_a_run_says_once_is_on_record_once(bench: Bench, event: Event) -> None:
    assert bench.store.append(event) is True
    assert bench.store.append(event) is False
    assert bench.reopen(header()).append(event) is False
    assert len(list(bench.store.read())) == 1


def test_another_run_may_say_the_same(bench: Bench) -> None:
    assert bench.store.append(RunOpened(run="r1", at=""))
    assert bench.store.append(RunOpened(run="r2", at=""))
    assert bench.store.append(AttemptStarted(run="r1", at="", step="s0", attempt=1))
    assert bench.store.append(AttemptStarted(run="r1", at="", step="s0", attempt=2))
    assert bench.store.append(AttemptStarted(run="r1", at="", step="s1", attempt=1))


def test_what_may_recur_is_on_record_each_time(bench: Bench) -> None:
    event = ModelAnswered(run="r1", at="", step="s0", agent="a", ordinal=0)
    assert bench.store.append(event)
    assert bench.store.append(event)
    assert len(list(bench.store.read("r1"))) == 2


def test_a_cursor_waits_for_an_effect_of_its_step_that_runs(bench: Bench) -> None:
    """I4: by whatever attempt it was claimed, and whether or not it is named."""
    claim = granted(bench.store, pay(attempt=2))
    assert held(bench.store, cursor())
    assert held(bench.reopen(header()), cursor())
    bench.store.settle(committed(claim), claim=claim)
    assert not held(bench.store, cursor())


def test_a_cursor_waits_for_an_effect_in_doubt(bench: Bench) -> None:
    claim = granted(bench.store, pay())
    bench.store.settle(doubted(claim), claim=claim)
    assert held(bench.store, cursor())
    bench.store.settle(resolved("reopened", fence=2))
    assert held(bench.store, cursor())
    again = granted(bench.store, pay())
    bench.store.settle(failed(again, final=True), claim=again)
    assert not held(bench.store, cursor("k1"))


def test_a_cursor_passes_what_failed_for_now(bench: Bench) -> None:
    """A call that asked a person first is free to be made, and may stay so."""
    claim = granted(bench.store, pay())
    bench.store.settle(failed(claim, final=False), claim=claim)
    assert not held(bench.store, cursor())


def test_a_cursor_does_not_vouch_for_what_was_never_claimed(bench: Bench) -> None:
    assert held(bench.store, cursor("never"))


def test_a_cursor_waits_for_an_open_effect_elsewhere_that_it_names(bench: Bench) -> None:
    claim = granted(bench.store, pay(run="r2", step="s7"))
    assert held(bench.store, cursor("k1"))
    bench.store.settle(committed(claim), claim=claim)
    assert not held(bench.store, cursor("k1"))


def test_a_cursor_does_not_wait_for_other_steps_and_runs(bench: Bench) -> None:
    granted(bench.store, pay(step="s1"))
    granted(bench.store, pay(key="k2", run="r2"))
    done(bench.store, pay(key="k3"))
    assert not held(bench.store, cursor("k3"))


def test_an_effect_that_is_claimed_anew_counts_in_the_step_that_claims_it(bench: Bench) -> None:
    first = granted(bench.store, pay())
    bench.store.settle(failed(first, final=False), claim=first)
    granted(bench.store, pay(run="r2"))
    assert not held(bench.store, cursor())


def test_a_clock_that_jumps_back_an_hour_does_not_put_events_back(bench: Bench) -> None:
    bench.store.append(RunOpened(run="r1", at=""))
    claim = granted(bench.store, pay())
    bench.clock.jump(-3600)
    bench.store.settle(committed(claim), claim=claim)
    other = bench.reopen(header())
    list(other.read("r1"))  # a worker that takes a run up looks first where it stands
    other.append(StepStarted(run="r1", at="", step="s1", cursor=1))
    assert isinstance(other.claim(pay(key="k2", step="s1")), Claim)
    told = list(bench.store.read())
    assert [event.at for event in told] == sorted(event.at for event in told)
    assert [type(event).__name__ for event in told] == [
        "RunOpened",
        "EffectClaimed",
        "EffectCommitted",
        "StepStarted",
        "EffectClaimed",
    ]


def test_a_clock_that_jumps_back_does_not_end_a_lease(bench: Bench) -> None:
    granted(bench.store, pay("alice", lease_s=60))
    bench.hide("alice")
    bench.clock.jump(-3600)
    assert not isinstance(bench.store.claim(pay("bob")), Claim | InDoubt)
