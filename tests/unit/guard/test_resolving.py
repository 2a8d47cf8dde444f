"""What a person may say of an effect, and when it is believed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from backstop.adapters.memory import MemoryStore
from backstop.core.effectgate import Precondition
from backstop.core.events import (
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectInDoubt,
    EffectResolved,
    Failure,
)
from backstop.core.lifecycle import Phase
from backstop.errors import BackstopError
from backstop.guard.claims.resolving import Word, find, resolve
from backstop.ports import Answer, Claim, Recorded, Refused

YES = Word(to="committed", by="person:ana", reason="seen", result=msgspec.Raw(b'{"id":7}'))
NO = Word(to="failed", by="person:ana", reason="the bank says no")
AGAIN = Word(to="reopened", by="person:ana")
FORCED = Word(to="reopened", by="person:ana", force=True)


class World:
    """A store, its clock, and who of its owners lives."""

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)
        self.dead: set[str] = set()
        self.unseen = False
        self.store = MemoryStore(clock=self, is_alive=self.seen)

    def seen(self, owner: str) -> bool | None:
        return None if self.unseen else owner not in self.dead

    def now(self) -> datetime:
        return self.time

    def wait(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)

    def claim(
        self,
        key: str = "ab12cd",
        *,
        settle_s: float = 0,
        lease_s: float = 0,
        override: str | None = None,
    ) -> Claim:
        intent = EffectClaimed(
            run="r1",
            at="",
            step="s0",
            tool="pay",
            key=key,
            fingerprint="f1",
            owner="alice",
            settle_s=settle_s,
            lease_s=lease_s,
            override=override,
        )
        claim = self.store.claim(intent)
        assert isinstance(claim, Claim)
        return claim

    def doubt(self, *, key: str = "ab12cd", running: bool = False, settle_s: float = 0) -> Claim:
        claim = self.claim(key, settle_s=settle_s)
        event = EffectInDoubt(run="r1", at="", key=claim.key, reason="late", running=running)
        self.store.settle(event, claim=claim)
        return claim

    def refused(self, slug: str, key: str, word: Word) -> str:
        before = list(self.store.read())
        with pytest.raises(BackstopError) as caught:
            resolve(self.store, key, word)
        assert caught.value.slug == slug
        assert list(self.store.read()) == before
        return str(caught.value)


@pytest.fixture
def world() -> World:
    return World()


def test_a_person_says_that_it_happened(world: World) -> None:
    world.doubt()
    assert resolve(world.store, "ab", YES).phase is Phase.COMMITTED
    last = list(world.store.read())[-1]
    assert isinstance(last, EffectResolved)
    assert (last.by, last.reason, last.fence) == ("person:ana", "seen", 1)
    again = world.store.claim(EffectClaimed(run="r1", at="", step="s0", tool="pay", key="ab12cd",
                                            fingerprint="f1", owner="bob"))  # fmt: skip
    assert again == Recorded(result=YES.result)


def test_a_person_says_that_it_did_not_happen(world: World) -> None:
    world.doubt()
    assert resolve(world.store, "ab12cd", NO).phase is Phase.FAILED
    again = world.store.claim(EffectClaimed(run="r1", at="", step="s0", tool="pay", key="ab12cd",
                                            fingerprint="f1", owner="bob"))  # fmt: skip
    assert again == Refused(error=Failure(type="Resolved", message="the bank says no"))


def test_i5_a_retry_waits_until_what_was_under_way_has_shown(world: World) -> None:
    """I5: a person's REOPEN waits settle too."""
    world.doubt(settle_s=90)
    world.wait(60)
    assert "for 30 s yet" in world.refused("effect-settling", "ab", AGAIN)
    world.wait(30)
    assert resolve(world.store, "ab", AGAIN).phase is Phase.REOPENED
    assert world.claim().fence == 3


def test_i5_without_a_declared_time_a_retry_waits_thirty_seconds(world: World) -> None:
    """I5: the default of settle."""
    world.doubt()
    world.wait(29)
    assert "for 1 s yet" in world.refused("effect-settling", "ab", AGAIN)
    world.wait(1)
    assert resolve(world.store, "ab", AGAIN).fence == 2


def test_i5_a_call_that_was_only_cancelled_is_not_made_again_while_its_owner_lives(
    world: World,
) -> None:
    """I5: a REOPEN must know whether the owner is alive, and wait from when it was not."""
    world.doubt(running=True)
    world.wait(3600)
    assert "alice is alive" in world.refused("effect-owner", "ab", AGAIN)
    world.dead.add("alice")
    with pytest.raises(BackstopError, match="for 30 s yet"):
        resolve(world.store, "ab", AGAIN)  # refused, and the end of the owner is noted
    world.wait(29)
    assert "for 1 s yet" in world.refused("effect-settling", "ab", AGAIN)
    world.wait(1)
    assert resolve(world.store, "ab", AGAIN).phase is Phase.REOPENED


def test_force_overrules_both(world: World) -> None:
    world.doubt(running=True)
    assert resolve(world.store, "ab", FORCED).phase is Phase.REOPENED


def test_an_effect_whose_owner_lives_cannot_be_resolved(world: World) -> None:
    world.claim()
    for word in (YES, NO, FORCED):
        assert "alice has it, it is alive" in world.refused("effect-running", "ab", word)


def test_of_an_owner_that_nobody_can_see_only_the_lease_tells(world: World) -> None:
    world.unseen = True
    world.claim(lease_s=300)
    world.wait(100)
    assert "its lease ends in 200 s" in world.refused("effect-running", "ab", NO)
    world.wait(200)
    assert resolve(world.store, "ab", NO).phase is Phase.FAILED


def test_i5_a_retry_is_refused_where_nobody_can_see_whether_the_owner_lives(world: World) -> None:
    """I5: a REOPEN of what may still be going on needs a person's force."""
    world.unseen = True
    world.doubt()
    world.wait(3600)
    assert "cannot be seen from here" in world.refused("effect-owner", "ab", AGAIN)
    assert resolve(world.store, "ab", FORCED).phase is Phase.REOPENED


def test_an_effect_whose_owner_is_gone_is_doubted_first(world: World) -> None:
    world.claim()
    world.dead.add("alice")
    assert resolve(world.store, "ab", YES).phase is Phase.COMMITTED
    kinds = [type(event) for event in world.store.read()]
    assert kinds == [EffectClaimed, EffectInDoubt, EffectResolved]


def test_a_deliberate_repeat_whose_owner_is_gone_is_doubted_too(world: World) -> None:
    claim = world.claim()
    world.store.settle(EffectCommitted(run="r1", at="", key=claim.key), claim=claim)
    world.claim(override='{"again":true}')
    world.dead.add("alice")
    assert resolve(world.store, "ab", NO).phase is Phase.FAILED


def test_a_retry_of_what_is_left_behind_waits_from_the_doubt_on(world: World) -> None:
    world.claim()
    world.dead.add("alice")
    world.wait(3600)
    with pytest.raises(BackstopError, match="for 30 s yet") as caught:
        resolve(world.store, "ab", AGAIN)
    assert caught.value.slug == "effect-settling"
    assert find(world.store, "ab").phase is Phase.IN_DOUBT


def test_what_is_decided_stays_so(world: World) -> None:
    claim = world.claim()
    world.store.settle(EffectCommitted(run="r1", at="", key=claim.key), claim=claim)
    assert "it is decided" in world.refused("effect-not-in-doubt", "ab", NO)


def fails_for_now(world: World) -> None:
    claim = world.claim()
    error = Failure(type="Closed")
    world.store.settle(
        EffectFailed(run="r1", at="", key=claim.key, error=error, final=False), claim=claim
    )


def test_what_failed_for_now_needs_nobody(world: World) -> None:
    fails_for_now(world)
    assert "whoever asks for it" in world.refused("effect-not-in-doubt", "ab", YES)


def test_a_person_gives_up_what_failed_for_now_and_is_asked_for_no_more(world: World) -> None:
    fails_for_now(world)
    assert resolve(world.store, "ab", NO).phase is Phase.FAILED
    again = world.store.claim(EffectClaimed(run="r1", at="", step="s0", tool="pay", key="ab12cd",
                                            fingerprint="f1", owner="bob"))  # fmt: skip
    assert again == Refused(error=Failure(type="Resolved", message="the bank says no"))


def test_a_key_that_means_several_effects_is_refused_by_name(world: World) -> None:
    world.doubt(key="ab12cd")
    world.doubt(key="ab12ef")
    told = world.refused("effect-ambiguous", "AB12", YES)
    assert "ab12cd, ab12ef" in told
    assert find(world.store, "ab12e").claimed.key == "ab12ef"


def test_a_whole_key_means_itself_even_where_another_begins_like_it(world: World) -> None:
    world.doubt(key="ab12")
    world.doubt(key="ab12ef")
    assert find(world.store, "ab12").claimed.key == "ab12"


@pytest.mark.parametrize("key", ["ff", "", " "])
def test_an_unknown_key_says_where_to_look(world: World, key: str) -> None:
    world.doubt()
    assert "effects list" in world.refused("effect-unknown", key, YES)


class Racing(MemoryStore):
    """Something happens just before each claim."""

    def __init__(self, world: World, before: Callable[[MemoryStore], None]) -> None:
        super().__init__(clock=world, is_alive=lambda _: False)
        self._before = before

    def claim(
        self, intent: EffectClaimed, precondition: Precondition | None = None
    ) -> Claim | Answer:
        if intent.owner != "alice":
            self._before(self)
        return super().claim(intent, precondition)


def test_an_effect_that_failed_for_now_between_two_looks_is_given_back(world: World) -> None:
    def fail(store: MemoryStore) -> None:
        held = Claim(run="r1", key="ab12cd", owner="alice", fence=1)
        error = Failure(type="Closed")
        store.settle(
            EffectFailed(run="r1", at="", key=held.key, error=error, final=False), claim=held
        )

    world.store = Racing(world, fail)
    world.claim()
    with pytest.raises(BackstopError) as caught:
        resolve(world.store, "ab", YES)
    assert caught.value.slug == "effect-not-in-doubt"
    assert find(world.store, "ab").phase is Phase.RETRYABLE
