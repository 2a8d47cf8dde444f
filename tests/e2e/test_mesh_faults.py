"""The effect gate where the world fails: a shared store that answers badly, and a worker that
sleeps past its lease.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from backstop.adapters.firestore import FirestoreStore
from backstop.core.declaration import Namespace
from backstop.core.effectgate import StaleEpoch
from backstop.core.effecttrust import Trust
from backstop.core.events import EffectClaimed, TrustBroken
from backstop.errors import BackstopError
from backstop.guard.claims.claim import perform_now
from backstop.guard.claims.desk import Produced
from backstop.guard.claims.undoing import Undos
from backstop.guard.claims.watched import Watched
from backstop.mesh.compensating import compensate
from backstop.ports import Claim, Held, Recorded
from backstop.wiring.stores import open_store
from tests.contract.desk import Desk, graph
from tests.contract.meshed import breaks, judged, recovers, trusts
from tests.e2e.mesh import recoverer
from tests.e2e.test_store_faults import HEADER, PAID, Site, committed, down, kinds, pay, site, up
from tests.faults.proxy import Fault

__all__ = ["site"]

EMULATOR = pytest.mark.emulator


def claims(store: FirestoreStore, epoch: int = 0) -> Claim:
    claim = store.claim(pay(), judged(epoch))
    assert isinstance(claim, Claim)
    return claim


@EMULATOR
@pytest.mark.parametrize("fault", [Fault.REPLY_LOST, Fault.UNAVAILABLE, Fault.LATE])
def test_ones_own_gated_claim_is_recognised_whatever_became_of_the_answer(
    site: Site, fault: Fault
) -> None:
    store, other = site.store(), site.onlooker()
    site.proxy.late_s = 0.9
    site.proxy.plan(fault)
    claim = claims(store)
    assert other.claim(pay(), judged()) == Held(owner="alice")
    store.settle(committed(claim), claim=claim)
    site.proxy.plan(fault)
    breaks(store)
    time.sleep(site.proxy.late_s if fault is Fault.LATE else 0)
    epoch = recovers(other)
    site.proxy.plan(fault)
    assert store.claim(pay(), judged(epoch)) == Recorded(result=PAID)
    assert trusts(other) == {"k1": Trust.REAFFIRMED}
    assert kinds(other) == ["EffectClaimed", "EffectCommitted", "TrustBroken"]


@EMULATOR
def test_a_claim_that_lands_late_does_not_land_behind_a_break(site: Site) -> None:
    """Its answer is given up; trust breaks; and what it would have been is withheld, or suspect."""
    store, other = site.store(), site.onlooker()
    down(site.proxy, Fault.UNAVAILABLE)
    with pytest.raises(BackstopError) as caught:
        store.claim(pay(), judged())
    assert caught.value.slug == "store-down"
    breaks(other)
    up(site.proxy)
    assert store.claim(pay(), judged()) == StaleEpoch(judged=0, epoch=1)
    assert trusts(other) == {}
    assert isinstance(store.claim(pay(), judged(recovers(other))), Claim)


@EMULATOR
def test_a_claim_whose_answers_were_all_lost_is_taken_up_only_by_who_is_verified(
    site: Site,
) -> None:
    store, other = site.store(), site.onlooker()
    landed: list[str] = []

    def fault(name: str) -> Fault | None:
        """The claim lands, and from then on nobody here hears of it."""
        landed.extend([name] if name == "Commit" else [])
        return Fault.REPLY_LOST if name == "Commit" else Fault.UNAVAILABLE if landed else None

    site.proxy.fault = fault
    with pytest.raises(BackstopError):
        store.claim(pay(), judged())
    up(site.proxy)
    breaks(other)
    assert trusts(other) == {"k1": Trust.SUSPECT}
    assert store.claim(pay(), judged()) == StaleEpoch(judged=0, epoch=1)
    epoch = recovers(other)
    claim = claims(store, epoch)
    store.settle(committed(claim), claim=claim)
    assert trusts(other) == {"k1": Trust.CLEAN}
    assert kinds(other).count("EffectClaimed") == 1


@EMULATOR
def test_a_store_that_is_down_lets_nothing_out_and_verifies_nothing(site: Site) -> None:
    store = site.store()
    down(site.proxy, Fault.UNAVAILABLE)
    ran: list[str] = []

    def call() -> Produced:
        ran.append("paid")
        return Produced()

    class Asks:
        """A judge that has to ask the store in which epoch it judges."""

        def judge(self, intent: EffectClaimed) -> object:
            return judged(store.control().epoch)

    watched = Watched(store, judge=Asks(), key="k1")  # type: ignore[arg-type]  # gives a precondition
    for act in (
        lambda: perform_now(watched, pay(), call),
        lambda: store.claim(pay(), judged()),
        store.control,
        lambda: breaks(store),
        lambda: store.lease("r1", "worker", lease_s=30),
        lambda: list(store.out()),
    ):
        with pytest.raises(BackstopError) as caught:
            act()
        assert caught.value.slug == "store-down"
    assert ran == []


@EMULATOR
def test_a_break_whose_answer_was_lost_is_on_record_once(site: Site) -> None:
    store, other = site.store(), site.onlooker()
    site.proxy.plan(Fault.REPLY_LOST, Fault.REPLY_LOST)
    assert breaks(store, "b1") == 1
    assert breaks(store, "b1") == 1
    told = [event for event in other.read("r1") if isinstance(event, TrustBroken)]
    assert len(told) == 1
    assert other.control().epoch == 1


@pytest.fixture
def slept(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A worker in a process of its own, that holds the recovery and stands in its first undo."""
    url, diary = f"sqlite:///{tmp_path}/l.db", tmp_path / "diary"
    store = open_store(url, header=HEADER)
    desk = Desk(undo=recoverer.withdraw)
    for step in ("order", "ship"):
        desk.acts(store, step)
    breaks(store, "b1", "order", "ship")
    recovers(store, "order", "ship")
    with subprocess.Popen(
        [sys.executable, "-m", "tests.e2e.mesh.recoverer", url, str(diary)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "DIARY": str(diary)},
    ) as worker:
        yield worker
        worker.kill()


def test_of_two_workers_one_that_was_stopped_past_its_lease_takes_nothing_back_twice(
    slept: subprocess.Popen[str], tmp_path: Path
) -> None:
    url, diary = f"sqlite:///{tmp_path}/l.db", tmp_path / "diary"
    assert slept.stdout is not None
    assert slept.stdout.readline() == "undoing\n"  # the ship, and the process holds on in it
    os.kill(slept.pid, signal.SIGSTOP)
    store = open_store(url, header=HEADER)
    lease = store.lease("r1", "worker-2", lease_s=60)
    while isinstance(lease, Held):  # until the other one's second is over
        time.sleep(0.1)
        lease = store.lease("r1", "worker-2", lease_s=60)
    assert lease.fence == 3
    undos = Undos(store, known=lambda: [Desk(undo=recoverer.withdraw).declared])
    steps = graph({"order": "", "ship": "order"})
    namespace = Namespace(agent="clerk")
    first = asyncio.run(compensate(store, undos, steps, lease=lease, namespace=namespace))
    assert {one.fate for one in first} == {"wait"}
    os.kill(slept.pid, signal.SIGCONT)
    assert slept.stdout.readline() == "stale-lease\n"
    assert slept.wait(timeout=30) == 0
    assert trusts(store)["key-ship"] is Trust.SUSPECT
    os.environ["DIARY"] = str(diary)
    second = asyncio.run(compensate(store, undos, steps, lease=lease, namespace=namespace))
    assert {one.fate for one in second} == {"undo"}
    assert diary.read_text().split() == ["ship", "order"]
    assert set(trusts(store).values()) == {Trust.COMPENSATED}
