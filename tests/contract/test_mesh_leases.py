"""Who recovers a run: what every store promises of the lease, and of what a sleeper writes."""

from __future__ import annotations

import pytest

from backstop.core.effectgate import (
    LeaseLost,
    Reach,
)
from backstop.core.effecttrust import Act, Ruled, Trust
from backstop.errors import BackstopError
from backstop.ports import Held
from tests.contract.bench import Bench
from tests.contract.deeds import pay
from tests.contract.gated import publishes
from tests.contract.meshed import (
    breaks,
    judged,
    leased,
    trusts,
)


def test_the_recovery_of_a_run_is_one_workers_until_its_lease_is_over(bench: Bench) -> None:
    first = leased(bench.store, "worker-1")
    assert first.fence == 1
    assert bench.store.lease("r1", "worker-2", lease_s=30) == Held(owner="worker-1")
    assert bench.store.lease("r2", "worker-2", lease_s=30) != Held(owner="worker-1")
    bench.wait(60)
    assert leased(bench.store, "worker-2").fence == 2


def test_whoever_slept_past_its_lease_writes_nothing_more(bench: Bench) -> None:
    publishes(bench)
    epoch = breaks(bench.store)
    slept = leased(bench.store, "worker-1")
    bench.wait(60)
    leased(bench.store, "worker-2")
    reach = [Reach(run="r1", everything=True)]
    for late in (
        lambda: bench.store.rule([Ruled(key="k1", act=Act.COMPENSATE)], lease=slept),
        lambda: bench.store.thaw(reach, lease=slept, epoch=epoch),
    ):
        with pytest.raises(BackstopError) as caught:
            late()
        assert caught.value.slug == "stale-lease"
    undo = judged(epoch, undoes="k1", lease=slept)
    assert bench.store.claim(pay(key="k1-undo"), undo) == LeaseLost(fence=2)
    assert bench.store.lease("r1", "worker-1", lease_s=30, held=slept) == Held(owner="worker-2")
    bench.store.release(slept)
    assert bench.store.lease("r1", "worker-3", lease_s=30) == Held(owner="worker-2")
    assert trusts(bench.store) == {"k1": Trust.SUSPECT}


def test_whoever_slept_and_was_not_missed_goes_on(bench: Bench) -> None:
    publishes(bench)
    breaks(bench.store)
    slept = leased(bench.store, "worker-1")
    bench.wait(60)
    bench.store.rule([Ruled(key="k1", act=Act.COMPENSATE, note="u")], lease=slept)
    assert trusts(bench.store) == {"k1": Trust.COMPENSATED}


def test_a_recovery_is_gone_on_with_given_back_and_taken_anew(bench: Bench) -> None:
    first = leased(bench.store, "worker-1")
    bench.wait(20)
    assert bench.store.lease("r1", "worker-1", lease_s=30, held=first) == first
    bench.wait(20)
    assert bench.store.lease("r1", "worker-2", lease_s=30) == Held(owner="worker-1")
    again = leased(bench.store, "worker-1")
    assert again.fence == 2
    bench.store.release(again)
    assert leased(bench.store, "worker-2").fence == 3


def test_who_recovers_a_run_is_told_while_they_hold_it(bench: Bench) -> None:
    assert bench.store.recovering("r1") is None
    lease = leased(bench.store)
    assert bench.store.recovering("r1") == lease
    assert bench.store.recovering("r2") is None
    bench.store.release(lease)
    assert bench.store.recovering("r1") is None
    leased(bench.store)
    bench.wait(60)
    assert bench.store.recovering("r1") is None
