"""A shared store that answers badly: nothing runs twice, and nobody waits for long."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec
import pytest

from backstop.adapters.firestore import FirestoreStore, Options
from backstop.clock import SystemClock
from backstop.core.canon import CANON_VERSION
from backstop.core.events import (
    FORMAT,
    CursorAdvanced,
    EffectClaimed,
    EffectCommitted,
    Header,
    RunOpened,
)
from backstop.core.lifecycle import Lives
from backstop.errors import BackstopError, StaleClaim
from backstop.guard.claims.claim import perform, perform_now
from backstop.guard.claims.desk import Produced
from backstop.ports import Claim, Held, Recorded
from tests.emulators import firestore, fresh_name
from tests.faults.proxy import Fault, Proxy, proxy_to

pytestmark = pytest.mark.emulator

HEADER = Header(format=FORMAT, agent="clerk", canon=CANON_VERSION, guarded=True)
PAID = msgspec.Raw(b'"paid"')
WITHIN_S = 5.0


@dataclass
class Site:
    """A ledger in an emulator, a proxy on the way to it, and stores at either side."""

    proxy: Proxy
    via: str
    direct: str
    collection: str = field(default_factory=fresh_name)
    opened: list[FirestoreStore] = field(default_factory=list)

    def store(self, *, behind: bool = True, patience_s: float = 1.2) -> FirestoreStore:
        store = FirestoreStore(
            project="p",
            database="(default)",
            collection=self.collection,
            agent="clerk",
            header=HEADER,
            clock=SystemClock(),
            emulator=self.via if behind else self.direct,
            options=Options(patience_s=patience_s),
        )
        self.opened.append(store)
        return store

    def onlooker(self) -> FirestoreStore:
        return self.store(behind=False, patience_s=30)


@pytest.fixture
def site() -> Iterator[Site]:
    host = firestore()
    with proxy_to(host) as (proxy, via):
        made = Site(proxy=proxy, via=via, direct=host)
        yield made
        for store in made.opened:
            store.close()


def pay(key: str = "k1") -> EffectClaimed:
    return EffectClaimed(
        run="r1", at="", step="s0", tool="pay", key=key, fingerprint="f1", owner="alice"
    )


def granted(store: FirestoreStore, key: str = "k1") -> Claim:
    claim = store.claim(pay(key))
    assert isinstance(claim, Claim)
    return claim


def committed(claim: Claim) -> EffectCommitted:
    return EffectCommitted(run="r1", at="", key=claim.key, fence=claim.fence, result=PAID)


def kinds(store: FirestoreStore) -> list[str]:
    return [type(event).__name__ for event in store.read()]


def down(proxy: Proxy, fault: Fault) -> None:
    proxy.fault = lambda _: fault


def up(proxy: Proxy) -> None:
    proxy.fault = lambda _: None


def timed(call: Callable[[], object]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


@pytest.mark.parametrize("fault", [Fault.REPLY_LOST, Fault.UNAVAILABLE, Fault.LATE])
def test_ones_own_claim_and_commit_are_recognised_whatever_became_of_the_answer(
    site: Site, fault: Fault
) -> None:
    store, other = site.store(), site.onlooker()
    site.proxy.late_s = 0.9
    site.proxy.plan(fault)
    claim = granted(store)
    assert other.claim(pay()) == Held(owner="alice")
    site.proxy.plan(fault)
    store.settle(committed(claim), claim=claim)
    time.sleep(site.proxy.late_s if fault is Fault.LATE else 0)
    assert other.claim(pay()) == Recorded(result=PAID)
    assert kinds(other) == ["EffectClaimed", "EffectCommitted"]


def test_a_reply_that_is_lost_over_and_over_is_told_once_it_comes(site: Site) -> None:
    store = site.store()
    site.proxy.plan(Fault.REPLY_LOST, Fault.UNAVAILABLE, Fault.REPLY_LOST)
    assert granted(store).fence == 1
    assert kinds(store) == ["EffectClaimed"]


def test_a_fact_whose_reply_was_lost_is_told_once_and_counts_as_ones_own(site: Site) -> None:
    store, other = site.store(), site.onlooker()
    said = CursorAdvanced(run="r1", at="", step="s0", cursor=1)
    site.proxy.plan(Fault.REPLY_LOST)
    assert store.append(said)
    assert not other.append(said)
    site.proxy.plan(Fault.REPLY_LOST)
    assert store.append(RunOpened(run="r2", at=""))
    assert kinds(other) == ["CursorAdvanced", "RunOpened"]


def test_another_owners_claim_behind_a_lost_reply_is_not_taken_for_ones_own(site: Site) -> None:
    store, other = site.store(), site.onlooker()
    site.proxy.plan(Fault.UNAVAILABLE, Fault.LATE)
    site.proxy.late_s = 0.5
    taking = threading.Timer(0.2, lambda: granted(other))
    taking.start()
    answer = store.claim(pay())
    taking.join()
    assert answer == Held(owner="alice")


def test_a_claim_that_lands_after_it_was_given_up_runs_nothing_and_is_taken_up(
    site: Site,
) -> None:
    store, other = site.store(patience_s=0.6), site.onlooker()
    site.proxy.late_s = 1.2
    down(site.proxy, Fault.LATE)
    with pytest.raises(BackstopError) as caught:
        store.claim(pay())
    assert caught.value.slug == "store-down"
    up(site.proxy)
    time.sleep(site.proxy.late_s + 0.3)
    assert kinds(other) == ["EffectClaimed"]
    assert other.claim(pay()) == Held(owner="alice")
    claim = granted(store)
    assert isinstance(store.claim(pay()), Held)
    store.settle(committed(claim), claim=claim)
    assert kinds(other) == ["EffectClaimed", "EffectCommitted"]


def test_an_outcome_that_the_store_did_not_take_is_brought_along_later(site: Site) -> None:
    store, other = site.store(patience_s=0.6), site.onlooker()
    claim = granted(store)
    down(site.proxy, Fault.UNAVAILABLE)
    with pytest.raises(BackstopError) as caught:
        store.settle(committed(claim), claim=claim)
    assert caught.value.slug == "store-down"
    assert isinstance(other.claim(pay()), Held)
    up(site.proxy)
    assert store.claim(pay()) == Recorded(result=PAID)
    assert kinds(other) == ["EffectClaimed", "EffectCommitted"]


def test_an_outcome_that_did_arrive_is_not_brought_along_twice(site: Site) -> None:
    store = site.store(patience_s=0.6)
    claim = granted(store)
    down(site.proxy, Fault.REPLY_LOST)
    with pytest.raises(BackstopError):
        store.settle(committed(claim), claim=claim)
    up(site.proxy)
    assert store.claim(pay()) == Recorded(result=PAID)
    assert kinds(store) == ["EffectClaimed", "EffectCommitted"]


@pytest.mark.parametrize("fault", [Fault.STALLED, Fault.UNAVAILABLE])
def test_when_the_store_is_down_effects_are_refused_within_5_s_and_reads_are_served(
    site: Site, fault: Fault
) -> None:
    store = site.store(patience_s=Options().patience_s)
    ran: list[str] = []
    served: list[float] = []

    async def body() -> Produced:
        ran.append("body")
        return Produced(result=PAID)

    async def reads() -> None:
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.01)
            served.append(time.monotonic() - began)

    async def agent() -> float:
        reading = asyncio.create_task(reads())
        began = time.monotonic()
        with pytest.raises(BackstopError) as caught:
            await perform(store, pay(), body)
        took = time.monotonic() - began
        reading.cancel()
        assert caught.value.slug == "store-down"
        return took

    down(site.proxy, fault)
    took = asyncio.run(agent())
    assert took < WITHIN_S
    assert ran == []
    # While one call waited for the store, the others of the agent went on.
    assert len(served) > 50


def test_a_store_that_nobody_serves_is_refused_within_5_s() -> None:
    def opened() -> None:
        with pytest.raises(BackstopError) as caught:
            FirestoreStore(
                project="p",
                database="(default)",
                collection="c",
                agent="clerk",
                header=HEADER,
                clock=SystemClock(),
                emulator="127.0.0.1:9",
            )
        assert caught.value.slug == "store-down"

    assert timed(opened) < WITHIN_S


@pytest.mark.parametrize(
    ("fault", "slug"), [(Fault.DENIED, "store-denied"), (Fault.FULL, "store-full")]
)
def test_a_refusal_that_waiting_does_not_mend_is_told_at_once(
    site: Site, fault: Fault, slug: str
) -> None:
    store = site.store(patience_s=30)
    down(site.proxy, fault)

    def refused() -> None:
        with pytest.raises(BackstopError) as caught:
            store.claim(pay())
        assert caught.value.slug == slug

    assert timed(refused) < WITHIN_S
    up(site.proxy)
    assert granted(store).fence == 1


def test_a_large_result_whose_pieces_were_cut_off_is_finished_later(site: Site) -> None:
    store, other = site.store(patience_s=0.6), site.onlooker()
    large = msgspec.Raw(b'"' + b"x" * 1_000_000 + b'"')
    claim = granted(store)
    commits = iter([None])
    site.proxy.fault = lambda _: next(commits, Fault.UNAVAILABLE)
    with pytest.raises(BackstopError):
        store.settle(EffectCommitted(run="r1", at="", key="k1", fence=1, result=large), claim=claim)
    with pytest.raises(BackstopError) as caught:
        other.claim(pay())
    assert caught.value.slug == "store-unreadable"
    up(site.proxy)
    assert store.claim(pay()) == Recorded(result=large)
    assert other.claim(pay()) == Recorded(result=large)


def test_a_claim_is_taken_up_though_that_is_given_up_too(site: Site) -> None:
    store = site.store(patience_s=0.6)
    down(site.proxy, Fault.REPLY_LOST)
    with pytest.raises(BackstopError):
        store.claim(pay())
    site.proxy.fault = lambda name: Fault.REPLY_LOST if name == "Commit" else None
    claim = granted(store)  # taking it up is recognised
    assert isinstance(store.claim(pay()), Held)
    up(site.proxy)
    store.settle(committed(claim), claim=claim)

    down(site.proxy, Fault.REPLY_LOST)
    with pytest.raises(BackstopError):
        store.claim(pay("k2"))
    site.proxy.fault = lambda name: Fault.UNAVAILABLE if name == "Commit" else None
    with pytest.raises(BackstopError):
        store.claim(pay("k2"))
    up(site.proxy)
    assert granted(store, "k2").fence == 1
    assert isinstance(store.claim(pay("k2")), Held)


def test_of_many_that_know_of_a_claim_that_was_given_up_one_takes_it_up(site: Site) -> None:
    store = site.store(patience_s=0.6)
    down(site.proxy, Fault.REPLY_LOST)
    with pytest.raises(BackstopError):
        store.claim(pay())
    up(site.proxy)
    gate = threading.Barrier(4)
    answers: list[object] = []

    def take() -> None:
        gate.wait()
        answers.append(store.claim(pay()))

    # Threads share what is known of the claim, as a fork does at the moment of forking.
    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(answer, Claim) for answer in answers) == 1
    assert kinds(store) == ["EffectClaimed"]


def test_a_query_that_breaks_off_goes_on_where_it_was(site: Site) -> None:
    store = site.store()
    for number in range(8):
        store.append(RunOpened(run=f"r{number}", at=""))
    broken = iter([None, Fault.REPLY_LOST, Fault.UNAVAILABLE, Fault.REPLY_LOST])
    site.proxy.fault = lambda _: next(broken, None)
    assert [event.run for event in store.read()] == [f"r{number}" for number in range(8)]


def test_under_faults_of_every_kind_no_effect_runs_twice_and_none_is_lost(site: Site) -> None:
    chance = random.Random(7)
    runs: Counter[str] = Counter()
    keys = [f"k{number}" for number in range(16)]
    faults = [Fault.REPLY_LOST, Fault.UNAVAILABLE, Fault.LATE]
    lock = threading.Lock()

    def fails(name: str) -> Fault | None:
        with lock:
            return chance.choice(faults) if chance.random() < 0.35 else None

    def worker(store: FirestoreStore, order: list[str]) -> None:
        for key in order:

            def body(key: str = key) -> Produced:
                with lock:
                    runs[key] += 1
                return Produced(result=PAID)

            try:
                perform_now(store, pay(key), body)
            except (BackstopError, StaleClaim):
                continue  # refused, or its outcome is owed: the next delivery goes on

    site.proxy.late_s = 0.5
    stores = [site.store(patience_s=0.8) for _ in range(3)]
    site.proxy.fault = fails
    orders = [chance.sample(keys, len(keys)) for _ in stores]
    threads = [
        threading.Thread(target=worker, args=pair) for pair in zip(stores, orders, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    up(site.proxy)
    time.sleep(site.proxy.late_s + 0.1)
    for store in stores:
        worker(store, keys)
    onlooker = site.onlooker()
    assert runs == Counter(keys)
    assert [onlooker.claim(pay(key)) for key in keys] == [Recorded(result=PAID)] * len(keys)
    lives = Lives(guarded=True)
    assert {lives.follow(event) for event in onlooker.read()} == {None}
