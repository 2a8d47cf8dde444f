"""What a provider's memory reopened, and a call that did nothing after it (I5)."""

from __future__ import annotations

from typing import Final

import msgspec
import pytest

from backstop.core.effectgate import Precondition
from backstop.core.events import EffectClaimed, EffectFailed, EffectInDoubt, EffectResolved
from backstop.errors import BackstopError
from backstop.guard.claims.capability import claimed_with, keyed
from backstop.guard.claims.claim import perform_now
from backstop.guard.claims.desk import Desk, Produced
from backstop.ports import Answer, Claim, Held, InDoubt, Recorded
from tests.unit.guard.claiming import PAID, World, Wrapped, pay

KEYED: Final = keyed("key", retention="24h")


def refused() -> Produced:
    raise ConnectionRefusedError


def reopened(world: World, by: str) -> None:
    """Alice's call may have happened; her doubt is reopened, and nobody claims it yet."""
    world.dies("alice", KEYED)
    assert isinstance(world.store.claim(claimed_with(pay("bob"), KEYED)), InDoubt)
    world.store.settle(EffectResolved(run="r1", at="", key="k1", to="reopened", by=by, fence=2))


def given_back(world: World, owner: str) -> None:
    """A keyed call whose caller let go before it began."""
    intent = claimed_with(pay(owner), KEYED)
    claim = world.store.claim(intent)
    assert isinstance(claim, Claim)
    Desk(store=world.store, intent=intent, no_effect_on=()).unstarted(claim)


def test_i5_a_call_that_did_nothing_leaves_the_doubt_about_the_one_before_it() -> None:
    """I5: else it could be sent again, as a call like any, long after the provider forgot."""
    world = World()
    world.dies("alice", KEYED)
    for owner in ("bob", "carol"):
        with pytest.raises(ConnectionRefusedError):
            perform_now(
                world.store,
                pay(owner),
                refused,
                no_effect_on=(ConnectionRefusedError,),
                capability=KEYED,
            )
        assert world.kinds()[-1] is EffectInDoubt
    world.watch.wait(86400)
    assert isinstance(world.pay("dave", KEYED), InDoubt)
    assert world.paid == []


def test_calls_that_did_nothing_are_free_to_be_made_however_often() -> None:
    world = World()
    for owner in "abcd":
        given_back(world, owner)
        assert world.kinds()[-1] is EffectFailed
    world.watch.wait(86400)
    assert isinstance(world.pay("dave", KEYED), Recorded)


def test_a_call_that_did_nothing_after_a_person_reopened_it_is_free_again() -> None:
    world = World()
    reopened(world, "ada")
    given_back(world, "bob")
    assert world.kinds()[-1] is EffectFailed


def test_a_repeat_that_did_nothing_is_free_again_whatever_the_first_call_went_through() -> None:
    world = World()
    reopened(world, "keyed")
    assert isinstance(world.pay("bob", KEYED), Recorded)
    intent = msgspec.structs.replace(claimed_with(pay("carol"), KEYED), override='"again"')
    claim = world.store.claim(intent)
    assert isinstance(claim, Claim)
    Desk(store=world.store, intent=intent, no_effect_on=()).unstarted(claim)
    assert world.kinds()[-1] is EffectFailed


def test_a_call_whose_history_is_another_runs_is_not_said_to_have_done_nothing() -> None:
    world = World()
    given_back(world, "alice")
    given_back(world, "bob")
    intent = msgspec.structs.replace(claimed_with(pay("carol"), KEYED), run="r2")
    claim = world.store.claim(intent)
    assert isinstance(claim, Claim)
    Desk(store=world.store, intent=intent, no_effect_on=()).unstarted(claim)
    assert world.kinds()[-1] is EffectInDoubt


def test_a_claim_whose_other_keys_cannot_be_barred_is_given_back() -> None:
    class Falters(Wrapped):
        def claim(
            self, intent: EffectClaimed, precondition: Precondition | None = None
        ) -> Claim | Answer:
            if intent.key == "k1":
                raise BackstopError("out of reach", slug="store-unreachable")
            return super().claim(intent, precondition)

    world = World()
    new = msgspec.structs.replace(pay("bob"), key="k2")
    with pytest.raises(BackstopError):
        perform_now(Falters(world.store), new, lambda: PAID, bars=[pay("bob")])
    assert isinstance(world.store.claim(msgspec.structs.replace(new, owner="carol")), Claim)


def test_what_may_have_gone_out_under_another_key_is_not_barred_but_in_doubt() -> None:
    """A version with another key rule comes between a reopening and its claim."""
    world = World()
    reopened(world, "keyed")
    new = msgspec.structs.replace(pay("bob"), key="k2")
    bar = claimed_with(pay("bob"), KEYED)
    answer = perform_now(world.store, new, lambda: PAID, capability=KEYED, bars=[bar])
    assert isinstance(answer, Held)
    assert isinstance(world.store.claim(bar), InDoubt)
