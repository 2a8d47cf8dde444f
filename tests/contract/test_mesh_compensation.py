"""What a recovery takes back, on every store: once, last made first, and what a person must see."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from backstop.core.compensation import Fate
from backstop.core.effecttrust import Trust
from backstop.core.events import CallAnswered, EffectClaimed, EffectCommitted, EffectInDoubt
from backstop.core.lifecycle import Lives
from backstop.errors import BackstopError
from backstop.guard.effect import effect
from backstop.ports import Held, Recorded
from tests.contract.bench import Bench
from tests.contract.deeds import committed, done, doubted, pay
from tests.contract.desk import CHAIN, Desk
from tests.contract.meshed import breaks, judged, leased, recovers, trusts

REDACTED = b'{"to":"hmac:v1:' + b"0" * 64 + b'"}'


def out(bench: Bench, desk: Desk, *steps: str) -> int:
    """These steps' effects went out, trust broke in all of them, and that is recovered from."""
    for step in steps:
        desk.acts(bench.store, step)
    breaks(bench.store, "b1", *steps)
    return recovers(bench.store, *steps)


def test_what_nobody_wants_any_more_is_taken_back_last_made_first(bench: Bench) -> None:
    desk = Desk()
    out(bench, desk, "order", "mail", "ship")
    settled = desk.compensates(bench.store)
    assert desk.taken_back == [("mail", "done"), ("ship", "done"), ("order", "done")]
    assert {one.fate for one in settled} == {Fate.UNDO}
    assert set(trusts(bench.store).values()) == {Trust.COMPENSATED}


def test_doing_it_again_takes_nothing_back_twice(bench: Bench) -> None:
    desk = Desk()
    out(bench, desk, *CHAIN)
    desk.compensates(bench.store)
    assert desk.compensates(bench.store, holder="worker-1") == ()
    assert len(desk.taken_back) == 3


def test_what_was_reaffirmed_is_left_alone(bench: Bench) -> None:
    desk = Desk()
    epoch = out(bench, desk, *CHAIN)
    asked = judged(epoch)
    args = msgspec.Raw(b'{"to":"mail"}')
    assert isinstance(bench.store.claim(pay("bob", key="key-mail", args=args), asked), Recorded)
    settled = desk.compensates(bench.store)
    assert [one.key for one in settled] == ["key-ship", "key-order"]
    assert trusts(bench.store)["key-mail"] is Trust.REAFFIRMED


def test_each_undo_is_an_effect_of_its_own_on_record(bench: Bench) -> None:
    desk = Desk()
    out(bench, desk, "order")
    (settled,) = desk.compensates(bench.store)
    claims = [event for event in bench.store.read("r1") if isinstance(event, EffectClaimed)]
    assert [(one.tool, one.within) for one in claims] == [("pay", ""), ("pay.undo", "key-order")]
    assert settled.note == claims[1].key
    ended = [event for event in bench.store.read("r1") if isinstance(event, EffectCommitted)]
    assert msgspec.json.decode(ended[1].result) == {"withdrawn": "order"}
    assert not any(isinstance(event, CallAnswered) for event in bench.store.read())
    lives = Lives(guarded=True)
    assert [one for event in bench.store.read() if (one := lives.follow(event))] == []


def test_a_crash_after_an_undo_does_not_repeat_it(bench: Bench) -> None:
    """The undo is committed, and the process ended before it could say so of the effect."""
    desk = Desk()
    out(bench, desk, "order")

    class Cut:
        def __getattr__(self, name: str) -> Any:
            return getattr(bench.store, name)

        def rule(self, *_: object, **__: object) -> None:
            raise BackstopError("cut off", slug="store-down")

    with pytest.raises(BackstopError, match="cut off"):
        desk.compensates(Cut())
    assert trusts(bench.store) == {"key-order": Trust.SUSPECT}
    desk.compensates(bench.store)
    assert desk.taken_back == [("order", "done")]
    assert trusts(bench.store) == {"key-order": Trust.COMPENSATED}


def test_an_undo_that_fails_goes_to_a_person_with_all_that_it_rests_on(
    bench: Bench,
) -> None:
    tried: list[str] = []

    def withdraw(to: str) -> None:
        tried.append(to)
        if to == "ship":
            raise ConnectionError("no answer")

    desk = Desk(undo=withdraw)
    out(bench, desk, *CHAIN)
    settled = desk.compensates(bench.store)
    assert tried == ["mail", "ship"]
    assert [one.fate for one in settled] == [Fate.UNDO, Fate.ESCALATE, Fate.ESCALATE]
    assert "nobody knows whether its undo" in settled[1].note
    assert "key-ship" in settled[2].note
    assert trusts(bench.store) == {
        "key-order": Trust.ESCALATED,
        "key-ship": Trust.ESCALATED,
        "key-mail": Trust.COMPENSATED,
    }
    assert sum(isinstance(event, EffectInDoubt) for event in bench.store.read("r1")) == 1
    assert desk.compensates(bench.store) == ()
    assert tried == ["mail", "ship"]


@pytest.mark.parametrize("undo", ["", "another.module.withdraw"])
def test_an_effect_without_an_undo_here_goes_to_a_person(bench: Bench, undo: str) -> None:
    desk = Desk()
    desk.acts(bench.store, "ship", undo=undo)
    desk.acts(bench.store, "order")
    breaks(bench.store, "b1", "ship", "order")
    recovers(bench.store, "ship", "order")
    settled = desk.compensates(bench.store)
    assert {one.fate for one in settled} == {Fate.ESCALATE}
    assert desk.taken_back == []
    assert "undo" in settled[0].note


async def needs_more(to: str, reason: str) -> None:
    raise AssertionError((to, reason))


@pytest.mark.parametrize(
    ("undo", "args", "why"),
    [
        pytest.param(needs_more, b'{"to":"x"}', "'reason'", id="a parameter nobody recorded"),
        pytest.param(None, b'{"backstop":"erased"}', "erased", id="erased arguments"),
        pytest.param(None, REDACTED, "redacted", id="redacted"),
        pytest.param(None, b'{"to":1,"to":2}', "cannot be read", id="unreadable"),
    ],
)
def test_an_undo_that_cannot_be_called_goes_to_a_person(
    bench: Bench, undo: Any, args: bytes, why: str
) -> None:
    desk = Desk(undo=undo)
    claim = bench.store.claim(
        pay(key="k", args=msgspec.Raw(args)), judged(undo=desk.declared.undo_name)
    )
    bench.store.settle(committed(claim), claim=claim)  # type: ignore[arg-type]  # granted
    breaks(bench.store)
    (settled,) = desk.compensates(bench.store)
    assert settled.fate is Fate.ESCALATE
    assert why in settled.note
    assert desk.taken_back == []


def test_an_effect_nobody_knows_of_goes_to_a_person(bench: Bench) -> None:
    desk = Desk()
    claim = bench.store.claim(pay(key="k"), judged(undo=desk.declared.undo_name))
    bench.store.settle(doubted(claim), claim=claim)  # type: ignore[arg-type]  # granted
    breaks(bench.store)
    (settled,) = desk.compensates(bench.store)
    assert settled.fate is Fate.ESCALATE
    assert trusts(bench.store) == {"k": Trust.ESCALATED}


def test_an_effect_that_is_being_done_is_waited_for(bench: Bench) -> None:
    desk = Desk()
    claim = bench.store.claim(pay(key="k"), judged(undo=desk.declared.undo_name))
    breaks(bench.store)
    (settled,) = desk.compensates(bench.store)
    assert settled.fate is Fate.WAIT
    assert trusts(bench.store) == {"k": Trust.SUSPECT}
    bench.store.settle(committed(claim), claim=claim)  # type: ignore[arg-type]  # granted
    (settled,) = desk.compensates(bench.store)
    assert settled.fate is Fate.UNDO


def test_an_undo_that_another_worker_is_at_is_waited_for(bench: Bench) -> None:
    async def story() -> None:
        begun, over = asyncio.Event(), asyncio.Event()

        async def withdraw(to: str) -> None:
            begun.set()
            await over.wait()

        desk = Desk(undo=withdraw)
        out(bench, desk, "order")
        first = asyncio.ensure_future(desk.compensating(bench.store))
        await begun.wait()
        bench.wait(60)  # the first one sleeps past its lease
        (second,) = await desk.compensating(bench.store, holder="worker-2")
        assert second.fate is Fate.WAIT
        over.set()
        with pytest.raises(BackstopError) as caught:
            await first
        assert caught.value.slug == "stale-lease"
        (third,) = await desk.compensating(bench.store, holder="worker-2")
        assert third.fate is Fate.UNDO

    asyncio.run(story())
    undone = [e for e in bench.store.read("r1") if isinstance(e, EffectClaimed) and e.within]
    assert len(undone) == 1


def test_whoever_lost_the_recovery_undoes_nothing(bench: Bench) -> None:
    desk = Desk()
    out(bench, desk, "order")

    class TakenOver:
        """Another worker takes the run over as soon as this one has looked."""

        def __getattr__(self, name: str) -> Any:
            return getattr(bench.store, name)

        def out(self, run: str | None = None) -> Any:
            found = list(bench.store.out(run))
            bench.wait(60)
            assert leased(bench.store, "worker-2").fence > 1
            return iter(found)

    late = TakenOver()
    (settled,) = desk.compensates(late)
    assert settled.fate is Fate.WAIT
    assert desk.taken_back == []
    assert trusts(bench.store) == {"key-order": Trust.SUSPECT}


def test_where_trust_breaks_again_the_next_recovery_sees_to_it(bench: Bench) -> None:
    desk = Desk()
    out(bench, desk, "order")

    class BreaksAgain:
        def __getattr__(self, name: str) -> Any:
            return getattr(bench.store, name)

        def out(self, run: str | None = None) -> Any:
            found = list(bench.store.out(run))
            breaks(bench.store, "b2", "order")
            return iter(found)

    (settled,) = desk.compensates(BreaksAgain())
    assert settled.fate is Fate.WAIT
    assert desk.taken_back == []
    (settled,) = desk.compensates(bench.store)
    assert settled.fate is Fate.UNDO


def test_what_was_taken_back_may_be_done_anew_and_taken_back_anew(bench: Bench) -> None:
    desk = Desk()
    out(bench, desk, "order")
    desk.compensates(bench.store)
    desk.acts(bench.store, "order", epoch=bench.store.control().epoch)
    breaks(bench.store, "b2", "order")
    (settled,) = desk.compensates(bench.store)
    assert settled.fate is Fate.UNDO
    assert len(desk.taken_back) == 2


def test_an_undo_that_is_guarded_itself_is_called_straight(bench: Bench) -> None:
    taken: list[str] = []

    @effect
    def withdraw(to: str) -> None:
        taken.append(to)

    desk = Desk(undo=withdraw)
    out(bench, desk, "order")
    (settled,) = desk.compensates(bench.store)
    assert (settled.fate, taken) == (Fate.UNDO, ["order"])


def test_an_undo_that_gives_what_cannot_be_kept_has_happened_all_the_same(
    bench: Bench,
) -> None:
    def withdraw(**arguments: Any) -> object:
        assert set(arguments) == {"to", "result"}
        return object()

    desk = Desk(undo=withdraw)
    out(bench, desk, "order")
    (settled,) = desk.compensates(bench.store)
    assert settled.fate is Fate.UNDO


def test_effects_that_never_passed_the_gate_are_not_touched(bench: Bench) -> None:
    done(bench.store, pay(key="k9"))
    breaks(bench.store)
    assert Desk().compensates(bench.store) == ()
    assert bench.store.lease("r1", "worker-9", lease_s=1) == Held(owner="worker-1")
