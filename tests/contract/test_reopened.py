"""What a provider's memory reopened, on every store (I5)."""

from __future__ import annotations

from backstop.core.events import (
    EffectClaimed,
    EffectCommitted,
    EffectInDoubt,
    EffectResolved,
)
from backstop.core.lifecycle import Lives
from backstop.ports import Claim, InDoubt, Recorded
from tests.contract.bench import Bench

RUN, KEY = "r1", "k-reopened"


def pay(capability: str) -> EffectClaimed:
    return EffectClaimed(
        run=RUN,
        at="",
        step="s0",
        tool="pay",
        key=KEY,
        fingerprint="f",
        owner="alice",
        capability=capability,
        retention_s=86400 if capability else 0,
    )


def test_i5_what_a_providers_memory_reopened_runs_with_its_key_or_is_in_doubt_again(
    bench: Bench,
) -> None:
    """I5: a version without the capability comes first, then a person, then all hear of it."""
    store = bench.store
    first = store.claim(pay("keyed"))
    assert isinstance(first, Claim)
    doubt = EffectInDoubt(run=RUN, at="", key=KEY, reason="timeout", fence=1)
    store.settle(doubt, claim=first)
    store.settle(EffectResolved(run=RUN, at="", key=KEY, to="reopened", by="keyed", fence=2))
    answer = store.claim(pay(""))
    assert isinstance(answer, InDoubt)
    assert (answer.fence, answer.capability) == (2, "keyed")
    store.settle(EffectResolved(run=RUN, at="", key=KEY, to="reopened", by="keyed", fence=3))
    again = store.claim(pay("keyed"))
    assert isinstance(again, Claim)
    store.settle(EffectCommitted(run=RUN, at="", key=KEY, fence=again.fence), claim=again)
    assert isinstance(store.claim(pay("")), Recorded)
    lives = Lives(guarded=True)
    assert {lives.follow(event) for event in store.read(RUN)} == {None}
