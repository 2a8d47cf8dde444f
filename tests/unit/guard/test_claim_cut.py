"""The service story where the caller is cancelled, or the store waits for a network."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from backstop.core.effectgate import Precondition
from backstop.core.events import EffectClaimed, EffectCommitted, EffectFailed, EffectInDoubt
from backstop.errors import BackstopError
from backstop.guard.claims.claim import perform
from backstop.guard.claims.desk import Produced
from backstop.ports import Answer, Claim, InDoubt, Recorded, Settlement
from tests.unit.guard.claiming import PAID, Down, Slow, World, Wrapped, pay


async def cancelled_in(store: Wrapped, call: Callable[[], Awaitable[Produced]]) -> None:
    """Perform, and cancel as soon as the store or the call was reached."""
    task = asyncio.create_task(perform(store, pay(), call))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def forever() -> Produced:
    await asyncio.Event().wait()
    return PAID


@pytest.mark.parametrize("kind", [Down, Wrapped])
def test_a_cancellation_goes_on_whatever_the_store_says(kind: type[Wrapped]) -> None:
    world = World()
    asyncio.run(cancelled_in(kind(world.store), forever))
    assert world.kinds()[0] is EffectClaimed
    world.dead.add("alice")
    assert isinstance(world.store.claim(pay("bob")), InDoubt)


async def cut_while_claiming(store: Slow, *, times: int = 1) -> None:
    task = asyncio.create_task(perform(store, pay(), forever))
    await asyncio.to_thread(store.asked.wait, 5)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0.01)
    assert not task.done()  # nobody may go on without knowing what the store did
    store.go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


@pytest.mark.parametrize("times", [1, 3])
def test_a_claim_whose_caller_was_cancelled_meanwhile_is_given_back(times: int) -> None:
    world = World()
    asyncio.run(cut_while_claiming(Slow(world.store), times=times))
    assert world.kinds() == [EffectClaimed, EffectFailed]
    assert isinstance(world.pay("bob"), Recorded)


def test_a_claim_that_cannot_be_given_back_does_not_swallow_the_cancellation() -> None:
    class Lost(Slow, Down):
        pass

    world = World()
    asyncio.run(cut_while_claiming(Lost(world.store)))
    assert world.kinds() == [EffectClaimed]


@pytest.mark.parametrize("held", [True, False])
def test_a_cancelled_claim_that_was_refused_leaves_nothing_to_give_back(held: bool) -> None:
    world = World()
    if held:
        world.store.claim(pay("bob"))
    error = None if held else BackstopError("away", slug="store-unreachable")
    asyncio.run(cut_while_claiming(Slow(world.store, error)))
    assert world.kinds() == [EffectClaimed] * held


def test_a_store_that_waits_for_a_network_is_asked_beside_the_event_loop() -> None:
    async def call() -> Produced:
        return PAID

    slow = Slow(World().store)
    slow.go.set()
    assert asyncio.run(perform(slow, pay(), call)) == Recorded(result=PAID.result)
    assert slow.threads
    assert threading.get_ident() not in slow.threads


def test_a_store_that_cannot_be_reached_refuses_the_effect() -> None:
    slow = Slow(World().store, BackstopError("away", slug="store-unreachable"))
    slow.go.set()
    with pytest.raises(BackstopError) as caught:
        asyncio.run(perform(slow, pay(), forever))
    assert caught.value.slug == "store-unreachable"


def test_an_effect_whose_caller_was_cancelled_behind_a_slow_store_is_in_doubt() -> None:
    async def cancelled() -> None:
        started = asyncio.Event()

        async def call() -> Produced:
            started.set()
            return await forever()

        task = asyncio.create_task(perform(slow, pay(), call))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    world = World()
    slow = Slow(world.store)
    slow.go.set()
    asyncio.run(cancelled())
    _, doubted = world.store.read()
    assert isinstance(doubted, EffectInDoubt)
    assert doubted.running


def test_an_outcome_is_on_record_before_its_cancelled_caller_goes() -> None:
    class SlowToSettle(Slow):
        def settle(self, settlement: Settlement, *, claim: Claim | None = None) -> None:
            self.asked.set()
            assert self.go.wait(5)
            Wrapped.settle(self, settlement, claim=claim)

        def claim(
            self, intent: EffectClaimed, precondition: Precondition | None = None
        ) -> Claim | Answer:
            return Wrapped.claim(self, intent, precondition)

    async def call() -> Produced:
        return PAID

    async def cancelled() -> None:
        task = asyncio.create_task(perform(slow, pay(), call))
        await asyncio.to_thread(slow.asked.wait, 5)
        task.cancel()
        await asyncio.sleep(0.01)
        slow.go.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    world = World()
    slow = SlowToSettle(world.store)
    asyncio.run(cancelled())
    assert world.kinds() == [EffectClaimed, EffectCommitted]
