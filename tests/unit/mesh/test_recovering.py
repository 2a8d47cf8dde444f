"""Recovery of a run: the break first, then exactly what has to be done again, and once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import pytest

from backstop.adapters.memory import MemoryStore
from backstop.core.anchors import Rule
from backstop.core.canon import digest
from backstop.core.effecttrust import Trust
from backstop.core.events import Recovered, TrustBroken
from backstop.core.trustbreak import Steps, TrustBreak
from backstop.errors import BackstopError
from backstop.mesh.judging import look
from backstop.mesh.recovering import Point, Recovery
from backstop.mesh.standing import reach_of
from backstop.meshports import MeshStore
from backstop.ports import Held
from tests.contract.bench import SteppingClock, header
from tests.contract.meshed import trusts
from tests.e2e.mesh.fleet import P1, RULE, RUN, Fleet


@pytest.fixture
def fleet() -> Fleet:
    clock = SteppingClock()
    return Fleet(store=MemoryStore(clock=clock, header=header()), clock=clock)


def recovers(fleet: Fleet, **said: object) -> Recovery:
    return asyncio.run(fleet.recovers(**said))


def ages(fleet: Fleet) -> None:
    """The evidence is older than it may be."""
    assert isinstance(fleet.clock, SteppingClock)
    fleet.clock.jump(4000)


def test_stale_evidence_runs_three_agents_again_and_the_action_once_they_hold(
    fleet: Fleet,
) -> None:
    fleet.begins(act=False)
    ages(fleet)
    assert not fleet.acts()
    fleet.ran.clear()
    fleet.history = "h2"
    done = recovers(fleet)
    assert done.stopped == ""
    assert fleet.ran == ["history", "statistician", "skeptic", "orchestrator"]
    assert len(fleet.sent) == 1
    assert set(fleet.states().values()) == {"V"}
    told = done.receipt
    assert (told.restart.calls, told.restart.input_tokens) == (4, 1781)
    assert (told.spent.calls, told.spent.input_tokens) == (3, 1358)
    assert (told.avoided.calls, told.avoided.input_tokens) == (1, 423)


def test_an_equal_answer_costs_one_call_and_what_is_out_stays(fleet: Fleet) -> None:
    fleet.says = {"statistician": "as ever"}
    fleet.begins()
    ages(fleet)
    fleet.history = "h2"
    done = recovers(fleet)
    assert (done.stopped, fleet.ran) == ("", ["history", "statistician"])
    assert (done.receipt.spent.calls, done.receipt.spent.input_tokens) == (1, 402)
    assert (done.receipt.steps_run, done.receipt.cut_off) == (2, 2)
    assert len(fleet.sent) == 1
    assert fleet.taken_back == []
    assert set(trusts(fleet.store).values()) == {Trust.REAFFIRMED}


def test_an_action_that_the_new_branch_asks_for_otherwise_is_taken_back(fleet: Fleet) -> None:
    fleet.begins()
    ages(fleet)
    fleet.history = "h2"
    done = recovers(fleet)
    assert fleet.taken_back == fleet.sent[:1]
    assert done.stopped == ""
    assert set(trusts(fleet.store).values()) == {Trust.COMPENSATED}
    assert fleet.acts()
    assert len(set(fleet.sent)) == 2


def test_an_action_that_nobody_wants_any_more_is_taken_back(fleet: Fleet) -> None:
    fleet.begins()
    ages(fleet)
    fleet.history, fleet.unwanted = "h2", True
    assert recovers(fleet).stopped == ""
    assert fleet.taken_back == fleet.sent
    assert len(fleet.sent) == 1


def test_an_action_under_another_key_leaves_the_old_one_to_be_taken_back(fleet: Fleet) -> None:
    """Control: only what came out as it was is stood by without being asked for."""
    fleet.begins()
    ages(fleet)
    fleet.history, fleet.key = "h2", "another"
    assert recovers(fleet).stopped == ""
    assert len(fleet.sent) == 2
    assert fleet.taken_back == fleet.sent[:1]


def test_the_break_is_on_record_before_anything_is_planned(fleet: Fleet) -> None:
    fleet.begins()
    ages(fleet)
    points: list[Point] = []
    recovers(fleet, watch=lambda point, _: points.append(point))
    assert points[:3] == [Point.BROKEN, Point.LEASED, Point.PLANNED]
    (told,) = [event for event in fleet.store.read() if isinstance(event, TrustBroken)]
    assert b"evidence age" in bytes(told.body)


def test_a_run_in_which_all_holds_is_left_alone(fleet: Fleet) -> None:
    fleet.begins()
    before = list(fleet.store.read())
    done = recovers(fleet)
    assert (done.stopped, done.executed, fleet.ran) == ("", (), [])
    assert list(fleet.store.read()) == before


def test_nobody_tries_until_it_passes(fleet: Fleet) -> None:
    """A step that gives what it may not is run again a bounded number of times, ever."""
    fleet.begins(act=False)
    ages(fleet)
    fleet.shapes = {"statistician": {"type": "object", "required": ["of"]}}
    fleet.says, fleet.history = {"statistician": "no"}, "h2"
    told = [recovers(fleet).stopped for _ in range(5)]
    assert told[:3] == ["s0/statistician#0 is INVALIDATED: output schema"] * 3
    assert "nobody tries until it passes" in told[3]
    assert told[3] == told[4]
    assert fleet.ran.count("statistician") == 3
    begun = [
        e
        for e in fleet.store.read()
        if isinstance(e, Recovered) and b'"type":"rerun"' in bytes(e.body)
    ]
    assert sum(b"statistician" in bytes(one.body) for one in begun) == 3
    assert not fleet.acts()


def test_m25_a_cached_malformed_output_is_never_served_again(fleet: Fleet) -> None:
    """M25: what has not its form is a break, and fixing its step is enough."""
    fleet.shapes = {"scout": {"type": "object", "required": ["of"]}}
    fleet.says = {"scout": "torn"}
    fleet.begins(act=False)
    assert not fleet.acts()
    fleet.says = {}
    assert recovers(fleet).stopped == ""
    assert set(fleet.states().values()) == {"V"}


def test_a_stricter_rule_holds_at_once_and_a_looser_one_for_new_runs_only(fleet: Fleet) -> None:
    fleet.begins(act=False)
    fleet.rules = {RULE: Rule(digest=digest("p2"), loosens=frozenset({P1}))}
    assert set(fleet.states().values()) == {"V"}
    fleet.rules = {RULE: Rule(digest=digest("p3"))}
    assert fleet.states()["scout"] == "I"
    assert not fleet.acts()
    assert recovers(fleet).stopped == ""
    assert set(fleet.states().values()) == {"V"}


def test_two_workers_recover_one_run_once(fleet: Fleet) -> None:
    fleet.begins(act=False)
    ages(fleet)
    assert not fleet.acts()
    fleet.history = "h2"

    async def both() -> list[Recovery | Held]:
        workers = [fleet.coordinator(f"worker-{number}") for number in range(2)]
        return list(await asyncio.gather(*(one.recover(RUN) for one in workers)))

    done = asyncio.run(both())
    assert sum(isinstance(one, Held) for one in done) == 1
    assert fleet.ran.count("statistician") == 1
    assert len(fleet.sent) == 1
    assert sum(isinstance(event, TrustBroken) for event in fleet.store.read()) == 1


def test_a_worker_that_was_taken_over_does_nothing_more(fleet: Fleet) -> None:
    fleet.begins(act=False)
    ages(fleet)

    def taken(point: Point, _: str) -> None:
        if point is Point.RERUN:
            fleet.clock.jump(600)  # type: ignore[attr-defined]
            assert not isinstance(fleet.store.lease(RUN, "worker-2", lease_s=60), Held)

    with pytest.raises(BackstopError, match="was taken over by worker-2") as caught:
        recovers(fleet, watch=taken)
    assert caught.value.slug == "stale-lease"
    assert fleet.ran == ["history"]
    assert fleet.sent == []


def test_trust_that_breaks_again_meanwhile_is_recovered_from_too(fleet: Fleet) -> None:
    fleet.begins(act=False)
    ages(fleet)
    once: list[Point] = []

    def again(point: Point, _: str) -> None:
        if point is Point.RERUN and not once:
            once.append(point)
            breaks(fleet, "s0/scout#0")

    assert recovers(fleet, watch=again).stopped == ""
    assert fleet.ran.count("scout") == 1
    assert set(fleet.states().values()) == {"V"}
    assert fleet.acts()


def test_trust_that_breaks_for_ever_ends_the_recovery(fleet: Fleet) -> None:
    fleet.begins(act=False)
    ages(fleet)

    def again(point: Point, _: str) -> None:
        if point is Point.RERUN:
            breaks(fleet, "s0/scout#0")

    assert "trust broke 3 times" in recovers(fleet, watch=again).stopped
    assert fleet.sent == []


def breaks(fleet: Fleet, *steps: str) -> None:
    control = fleet.store.control()
    found = TrustBreak(
        id=f"b{control.epoch}",
        seq=0,
        epoch=0,
        detector="person:ada",
        reason="it is poisoned",
        selector=Steps(steps=steps),
    )
    seen = look(fleet.store, fleet.mind, RUN)
    fleet.store.break_trust(found, run=RUN, reach=[reach_of(seen, found)])


def test_a_long_step_keeps_its_worker_from_being_missed(fleet: Fleet) -> None:
    fleet.begins(act=False)
    ages(fleet)
    beaten, leases = asyncio.Event(), 0

    class Slow(Fleet):
        async def rerun(self, run: str, step: str, given: Mapping[str, str]) -> None:
            await asyncio.wait_for(beaten.wait(), timeout=60)
            await super().rerun(run, step, given)

    class Counting:
        def __getattr__(self, name: str) -> object:
            return getattr(fleet.store, name)

        def lease(self, *args: object, **named: object) -> object:
            nonlocal leases
            leases += 1
            if leases > 4:  # taken, and gone on with before the step: these are beats
                beaten.set()
            return fleet.store.lease(*args, **named)  # type: ignore[arg-type]

    slow = Slow(store=fleet.store, clock=fleet.clock, payloads=fleet.payloads)
    coordinator = replace(
        fleet.coordinator(rerunner=slow, lease_s=0.01), store=cast("MeshStore", Counting())
    )
    done = asyncio.run(coordinator.recover(RUN))
    assert isinstance(done, Recovery)


@pytest.mark.parametrize("point", list(Point))
def test_whoever_takes_over_after_a_crash_goes_on_where_it_ended(
    fleet: Fleet, point: Point
) -> None:
    """Crash at every point of a recovery that reruns, asks again and takes back."""
    other = Fleet(store=fleet.store, clock=fleet.clock, payloads=fleet.payloads)
    reaffirmed = point is Point.REAFFIRMED
    if reaffirmed:
        fleet.says = other.says = {"statistician": "as ever"}
    fleet.begins()
    ages(fleet)
    fleet.history = other.history = "h2"
    if not reaffirmed:
        fleet.key = other.key = "another"

    def dies(at: Point, _: str) -> None:
        if at is point:
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        recovers(fleet, watch=dies)
    fleet.clock.jump(120)  # type: ignore[attr-defined]
    done = asyncio.run(other.recovers(holder="worker-2"))
    assert done.stopped == ""
    assert fleet.ran.count("statistician") + other.ran.count("statistician") == 1
    assert len(fleet.sent) + len(other.sent) == (1 if reaffirmed else 2)
    assert [*fleet.taken_back, *other.taken_back] == ([] if reaffirmed else fleet.sent[:1])
    assert set(other.states().values()) == {"V"}
