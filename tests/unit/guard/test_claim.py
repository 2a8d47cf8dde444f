"""The service story: claim, execute, settle."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest

from backstop.adapters.memory import MemoryStore
from backstop.core.events import (
    CallAnswered,
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectInDoubt,
)
from backstop.guard.claims.claim import perform, perform_now
from backstop.guard.claims.desk import NotKept, Produced
from backstop.ports import Conflict, Held, InDoubt, Recorded

PAID = Produced(result=msgspec.Raw(b'"paid"'), state_delta=msgspec.Raw(b'{"paid":1}'))


class Noon:
    """It is always noon."""

    def now(self) -> datetime:
        return datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


def pay(owner: str = "alice", fingerprint: str = "f1") -> EffectClaimed:
    return EffectClaimed(
        run="r1", at="", step="s0", tool="pay", key="k1", fingerprint=fingerprint, owner=owner
    )


class Desk:
    """Pays, and counts how often; or raises what it is told to."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.paid = 0
        self.error = error

    def pay(self) -> Produced:
        self.paid += 1
        if self.error is not None:
            raise self.error
        return PAID

    async def pay_later(self) -> Produced:
        await asyncio.sleep(0)
        return self.pay()


def kinds(store: MemoryStore) -> list[type]:
    return [type(event) for event in store.read()]


def test_a_granted_call_runs_once_and_its_record_is_handed_on() -> None:
    store, desk = MemoryStore(clock=Noon()), Desk()
    done = Recorded(result=PAID.result, state_delta=PAID.state_delta)
    assert asyncio.run(perform(store, pay(), desk.pay_later)) == done
    assert asyncio.run(perform(store, pay("bob"), desk.pay_later)) == done
    assert desk.paid == 1
    assert kinds(store) == [EffectClaimed, EffectCommitted, CallAnswered]


def test_what_the_guard_did_instead_of_a_call_is_on_record() -> None:
    store, desk = MemoryStore(clock=Noon()), Desk()
    store.claim(pay("alice"))
    assert perform_now(store, pay("bob"), desk.pay) == Held(owner="alice")
    assert isinstance(perform_now(store, pay("bob", "f2"), desk.pay), Conflict)
    assert desk.paid == 0
    answered = [event for event in store.read() if isinstance(event, CallAnswered)]
    assert [event.how for event in answered] == ["held", "conflict"]


def test_an_error_that_nobody_vouches_for_leaves_the_effect_in_doubt() -> None:
    store, desk = MemoryStore(clock=Noon()), Desk(TimeoutError("no answer"))
    for owner in ("alice", "bob"):
        answer = perform_now(store, pay(owner), desk.pay)
        assert isinstance(answer, InDoubt)
        assert answer.reason == "TimeoutError: no answer"
    assert desk.paid == 1
    assert kinds(store) == [EffectClaimed, EffectInDoubt, CallAnswered]


def test_a_declared_no_effect_error_is_raised_and_may_be_tried_again() -> None:
    store, desk = MemoryStore(clock=Noon()), Desk(ConnectionRefusedError("closed"))
    with pytest.raises(ConnectionRefusedError):
        perform_now(store, pay(), desk.pay, no_effect_on=(ConnectionRefusedError,))
    desk.error = None
    assert isinstance(perform_now(store, pay(), desk.pay), Recorded)
    assert kinds(store) == [EffectClaimed, EffectFailed, EffectClaimed, EffectCommitted]


def test_what_cannot_be_kept_has_happened_whatever_its_tool_vouches_for() -> None:
    store, desk = MemoryStore(clock=Noon()), Desk(NotKept("no JSON"))
    answer = perform_now(store, pay(), desk.pay, no_effect_on=(Exception,))
    assert isinstance(answer, InDoubt)
    assert isinstance(store.claim(pay("bob")), InDoubt)


def test_a_cancelled_call_is_in_doubt_and_the_cancellation_goes_on() -> None:
    async def cancelled() -> None:
        async def forever() -> Produced:
            await asyncio.Event().wait()
            return PAID

        task = asyncio.create_task(perform(store, pay(), forever))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    store = MemoryStore(clock=Noon())
    asyncio.run(cancelled())
    assert kinds(store) == [EffectClaimed, EffectInDoubt]
    assert isinstance(store.claim(pay("bob")), InDoubt)
