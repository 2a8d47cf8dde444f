"""The service story after something went wrong: doubts, lookups, late outcomes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
import pytest

from backstop.core.events import (
    CallAnswered,
    CallBlocked,
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectFenced,
    EffectInDoubt,
    EffectResolved,
)
from backstop.errors import BackstopError
from backstop.guard.claims.capability import (
    Capability,
    DidNotHappen,
    Found,
    Happened,
    Unknown,
    keyed,
    probe,
)
from backstop.guard.claims.claim import perform, perform_now
from backstop.guard.claims.desk import TURNED_AWAY, Produced
from backstop.ports import Answer, Claim, Held, InDoubt, Recorded, Settlement
from tests.unit.guard.claiming import ARGUMENTS, PAID, Down, World, Wrapped, pay


def says(found: object, asked: list[object] | None = None) -> Capability:
    """A lookup that gives `found`, or raises it."""

    def ask(key: str, arguments: Mapping[str, Any]) -> Found:
        if asked is not None:
            asked.append((key, dict(arguments)))
        if isinstance(found, Exception):
            raise found
        return found  # type: ignore[return-value]  # a user's lookup may give anything

    return probe(ask, settle="30s")


KEYED = keyed("key", retention="24h")


def test_i5_keyed_runs_again_for_whoever_comes_next() -> None:
    """I5: a dead owner's effect, and one whose owner raised."""
    world = World()
    world.dies("alice", KEYED)
    assert world.pay("bob", KEYED) == Recorded(result=PAID.result)
    assert world.paid == ["bob"]
    claimed, doubted, resolved, *_ = world.store.read()
    assert isinstance(resolved, EffectResolved)
    assert (resolved.by, resolved.to, resolved.fence) == ("keyed", "reopened", 2)
    assert world.kinds()[3:] == [EffectClaimed, EffectCommitted]
    assert (type(claimed), type(doubted)) == (EffectClaimed, EffectInDoubt)


def test_i5_keyed_runs_again_for_a_caller_that_waits() -> None:
    """I5."""

    async def call() -> Produced:
        return PAID

    world = World()
    world.dies("alice", KEYED)
    answer = asyncio.run(perform(world.store, pay("bob"), call, capability=KEYED))
    assert answer == Recorded(result=PAID.result)


def test_i5_keyed_stays_in_doubt_once_the_provider_forgot() -> None:
    """I5."""
    world = World()
    world.dies("alice", KEYED)
    world.watch.wait(86400)
    assert isinstance(world.pay("bob", KEYED), InDoubt)
    assert world.paid == []


def test_a_lookup_that_finds_the_effect_gives_its_result() -> None:
    world, asked = World(), list[object]()
    world.dies("alice")
    assert world.pay("bob", says(Happened("seen"), asked)) == Recorded(
        result=msgspec.Raw(b'"seen"')
    )
    assert asked == [("k1", ARGUMENTS)]
    assert world.paid == []
    assert world.kinds()[2:] == [EffectResolved, CallAnswered]


def test_i5_a_lookups_no_is_held_until_the_effect_would_show_and_then_runs_it() -> None:
    """I5: also for a tool that had no lookup when it was claimed."""
    world = World()
    world.dies("alice")
    assert isinstance(world.pay("bob", says(DidNotHappen())), Held)
    world.watch.wait(29)
    assert isinstance(world.pay("bob", says(DidNotHappen())), Held)
    world.watch.wait(1)
    assert isinstance(world.pay("bob", says(DidNotHappen())), Recorded)
    assert world.paid == ["bob"]


async def later(key: str, arguments: Mapping[str, Any]) -> Found:
    await asyncio.sleep(0)
    return Happened("later")


class Lookup:
    """An object that is called; what it gives is awaited."""

    async def __call__(self, key: str, arguments: Mapping[str, Any]) -> Found:
        return await later(key, arguments)


@pytest.mark.parametrize("found", [Unknown(), LookupError("away"), None, "yes", True], ids=repr)
def test_a_lookup_that_knows_nothing_leaves_the_doubt(found: object) -> None:
    world = World()
    world.dies("alice")

    async def call() -> Produced:
        world.paid.append("bob")
        return PAID

    assert isinstance(world.pay("bob", says(found)), InDoubt)
    answer = asyncio.run(perform(world.store, pay("bob"), call, capability=says(found)))
    assert isinstance(answer, InDoubt)
    assert world.paid == []


@pytest.mark.parametrize("ask", [later, Lookup()])
def test_a_lookup_may_wait_where_the_caller_can(ask: Callable[..., Awaitable[Found]]) -> None:
    world = World()
    world.dies("alice")
    capability = probe(ask, settle="0s")

    async def call() -> Produced:
        raise AssertionError

    assert isinstance(world.pay("bob", capability), InDoubt)
    answer = asyncio.run(perform(world.store, pay("bob"), call, capability=capability))
    assert answer == Recorded(result=msgspec.Raw(b'"later"'))


def test_a_lookup_that_does_not_wait_is_asked_beside_the_event_loop() -> None:
    world, threads = World(), list[int]()
    world.dies("alice")

    def ask(key: str, arguments: Mapping[str, Any]) -> Found:
        threads.append(threading.get_ident())
        return Happened()

    async def call() -> Produced:
        raise AssertionError

    asyncio.run(perform(world.store, pay("bob"), call, capability=probe(ask, settle="0s")))
    assert threads
    assert threads[0] != threading.get_ident()


def test_of_two_that_resolve_at_once_the_second_hears_what_the_first_said() -> None:
    world = World()
    world.dies("alice")

    def ask(key: str, arguments: Mapping[str, Any]) -> Found:
        if len(world.kinds()) == 2:  # meanwhile a person says
            world.store.settle(
                EffectResolved(run="r1", at="", key="k1", to="committed", by="ada", fence=1)
            )
        return Happened("found")

    assert world.pay("bob", probe(ask, settle="0s")) == Recorded()
    assert world.kinds()[2:] == [EffectResolved, CallAnswered]


@pytest.mark.parametrize(
    ("found", "why"), [(OSError("no line"), "OSError: no line"), (True, "it gave a bool, not Hap")]
)
def test_a_lookup_that_is_of_no_use_says_why_in_the_log(
    caplog: pytest.LogCaptureFixture, found: Any, why: str
) -> None:
    """Its effect stays in doubt, and whoever wrote it would look for the reason in vain."""
    world = World()
    world.dies("alice")
    assert isinstance(world.pay("bob", says(found)), InDoubt)
    assert why in caplog.text


def test_a_resolution_that_the_store_cannot_take_is_raised() -> None:
    world = World()
    world.dies("alice")
    with pytest.raises(BackstopError) as caught:
        perform_now(Down(world.store), pay("bob"), lambda: PAID, capability=says(Happened()))
    assert caught.value.slug == "store-unreachable"


def test_a_doubt_that_comes_back_each_time_is_given_up_on() -> None:
    """Others take it and die, as fast as it is reopened: the next delivery looks again."""
    world = World()
    world.dies("alice", KEYED)

    class Contested(Wrapped):
        def settle(self, settlement: Settlement, *, claim: Claim | None = None) -> None:
            super().settle(settlement, claim=claim)
            if isinstance(settlement, EffectResolved):
                world.dies("mallory", KEYED)

    async def call() -> Produced:
        return PAID

    store = Contested(world.store)
    answer = perform_now(store, pay("bob"), lambda: PAID, capability=KEYED)
    assert isinstance(answer, InDoubt)
    assert sum(kind is EffectResolved for kind in world.kinds()) == 3
    answer = asyncio.run(perform(store, pay("bob"), call, capability=KEYED))
    assert isinstance(answer, InDoubt)
    assert sum(kind is EffectResolved for kind in world.kinds()) == 6


def late(
    world: World, to: str, produced: Produced = PAID, error: Exception | None = None
) -> Answer:
    """Alice is thought dead and her doubt resolved, while her call still runs."""

    def call() -> Produced:
        world.dead.add("alice")
        assert isinstance(world.store.claim(pay("bob")), InDoubt)
        if to:
            fence = 1 + (to == "reopened")
            world.store.settle(
                EffectResolved(
                    run="r1", at="", key="k1", to=to, by="ada", fence=fence,
                    result=msgspec.Raw(b'"said"'),
                )
            )  # fmt: skip
        if error is not None:
            raise error
        return produced

    return perform_now(world.store, pay("alice"), call, no_effect_on=(ConnectionRefusedError,))


def test_a_late_owner_commits_what_is_in_doubt() -> None:
    world = World()
    assert late(world, "") == Recorded(result=PAID.result)
    assert world.kinds() == [EffectClaimed, EffectInDoubt, EffectCommitted]


@pytest.mark.parametrize("to", ["reopened", "failed"])
def test_an_effect_that_happened_against_what_was_decided_is_never_hidden(to: str) -> None:
    world = World()
    answer = late(world, to)
    assert isinstance(answer, InDoubt)
    assert "this call did happen" in answer.reason
    *_, fenced = world.store.read()
    assert isinstance(fenced, EffectFenced)
    assert (fenced.fence, fenced.result) == (1, PAID.result)


def test_a_late_owner_whose_effect_a_person_saw_gets_what_is_on_record() -> None:
    world = World()
    assert late(world, "committed") == Recorded(result=msgspec.Raw(b'"said"'))
    assert world.kinds() == [EffectClaimed, EffectInDoubt, EffectResolved]


@pytest.mark.parametrize("to", ["", "committed", "reopened"])
def test_a_late_error_leaves_what_others_decided(to: str) -> None:
    world = World()
    answer = late(world, to, error=TimeoutError("no answer"))
    assert isinstance(answer, InDoubt)
    assert answer.reason == "TimeoutError: no answer"
    assert world.kinds()[-1] is (EffectResolved if to else EffectInDoubt)


def test_a_late_error_without_an_effect_is_raised_all_the_same() -> None:
    world = World()
    with pytest.raises(ConnectionRefusedError):
        late(world, "reopened", error=ConnectionRefusedError("closed"))
    assert world.kinds()[-1] is EffectResolved


def test_a_late_question_to_a_person_is_not_put() -> None:
    world = World()
    answer = late(world, "reopened", Produced(asked="pay acme?"))
    assert isinstance(answer, InDoubt)
    assert "did nothing" in answer.reason
    assert CallBlocked not in world.kinds()


def test_a_tool_that_asks_first_leaves_the_call_free_to_be_made() -> None:
    world = World()
    asked = Produced(result=msgspec.Raw(b'"wait"'), asked="pay acme?")
    answer = perform_now(world.store, pay(), lambda: asked)
    assert answer == Recorded(result=asked.result)
    assert world.kinds() == [EffectClaimed, EffectFailed, CallBlocked]
    assert isinstance(world.pay("alice"), Recorded)
    assert world.paid == ["alice"]


def test_f22_a_call_that_was_turned_away_is_told_so_and_leaves_the_key_free() -> None:
    """F22: the framework refused its arguments; with others it is made."""
    world = World()
    away = Produced(result=msgspec.Raw(b'{"error":"amount?"}'), turned_away=True)
    assert perform_now(world.store, pay(), lambda: away) == Recorded(result=away.result)
    *_, failed, kept = world.store.read()
    assert isinstance(failed, EffectFailed)
    assert (failed.error.type, failed.final, failed.result) == (TURNED_AWAY, False, away.result)
    assert isinstance(kept, CallBlocked)  # nobody has to make the call, so a cursor may pass it
    assert isinstance(world.pay("alice"), Recorded)
    assert world.paid == ["alice"]


def test_a_call_that_is_turned_away_late_did_nothing() -> None:
    answer = late(World(), "reopened", Produced(turned_away=True))
    assert isinstance(answer, InDoubt)
    assert "turned away" in answer.reason


def test_an_error_that_cannot_be_put_on_record_is_raised() -> None:
    def call() -> Produced:
        raise TimeoutError

    with pytest.raises(BackstopError) as caught:
        perform_now(Down(World().store), pay(), call)
    assert caught.value.slug == "store-unreachable"
