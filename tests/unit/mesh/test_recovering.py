"""Recovery of a run: the break first, then exactly what has to be done again, and once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import msgspec
import pytest

from backstop.adapters.memory import MemoryStore
from backstop.core.anchors import Rule
from backstop.core.canon import digest
from backstop.core.checkpoint import Checkpoint, Dep, DepKind
from backstop.core.effectgate import Unverified
from backstop.core.effecttrust import Trust
from backstop.core.events import EffectClaimed, Recovered, TrustBroken
from backstop.core.trust import Reason
from backstop.core.trustbreak import Steps, TrustBreak
from backstop.errors import BackstopError
from backstop.guard.claims.undoing import Undos
from backstop.mesh.judging import MeshJudge, look
from backstop.mesh.recovering import Point, Recovery
from backstop.mesh.standing import reach_of
from backstop.meshports import MeshStore
from backstop.ports import Held
from tests.contract.bench import SteppingClock, header
from tests.contract.meshed import trusts
from tests.e2e.mesh.fleet import ACTION, P1, RULE, RUN, Fleet


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


def test_a_cached_malformed_output_is_never_served_again(fleet: Fleet) -> None:
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


def test_what_is_blocked_by_itself_waits_for_a_person(fleet: Fleet) -> None:
    fleet.begins(act=False)
    fleet.record(torn(fleet, "s0/scout#0"))
    done = recovers(fleet)
    assert done.stopped == "s0/scout#0 is BLOCKED: schema"
    assert fleet.ran == []


def torn(fleet: Fleet, step: str) -> Checkpoint:
    made = look(fleet.store, fleet.mind, RUN).graph[step]
    return msgspec.structs.replace(made, schema=99, gen=made.gen + 1)


def test_two_bodies_for_one_step_wait_for_a_person(fleet: Fleet) -> None:
    fleet.begins(act=False)
    made = look(fleet.store, fleet.mind, RUN).graph["s0/scout#0"]
    fleet.record(msgspec.structs.replace(made, output=digest("other")))
    assert recovers(fleet).stopped == "s0/scout#0 is BLOCKED: duplicate"
    assert not fleet.acts()


@pytest.mark.parametrize(
    ("deps", "why"),
    [
        ((Dep(DepKind.UPSTREAM, "s0/nowhere", "d"),), "missing dependency"),
        ((Dep(DepKind.UPSTREAM, "s0/scout#0", "d"),), "cycle"),
    ],
)
def test_a_dangling_reference_and_a_cycle_let_nothing_out(
    fleet: Fleet, deps: tuple[Dep, ...], why: str
) -> None:
    fleet.begins(act=False)
    made = look(fleet.store, fleet.mind, RUN).graph["s0/scout#0"]
    fleet.record(msgspec.structs.replace(made, deps=deps, gen=1))
    done = recovers(fleet)
    assert done.stopped.endswith(f"is BLOCKED: {why}")
    assert not fleet.acts()
    assert fleet.sent == []


def test_a_clock_that_was_turned_back_blocks_everything(fleet: Fleet) -> None:
    fleet.begins(act=False)
    assert isinstance(fleet.clock, SteppingClock)
    fleet.clock.jump(-86_400)
    assert set(fleet.states().values()) == {"B"}
    assert not fleet.acts()


def test_an_output_of_50_mb_is_not_kept_and_its_step_not_trusted(fleet: Fleet) -> None:
    fleet.begins(act=False)
    huge = msgspec.json.encode({"parts": "x" * 50_000_000})
    fleet.payloads.put(digest(huge), huge)
    made = look(fleet.store, fleet.mind, RUN).graph["s0/scout#0"]
    fleet.record(msgspec.structs.replace(made, output=digest(huge), gen=1))
    assert fleet.states()["scout"] == "I"
    assert not fleet.acts()
    assert recovers(fleet).stopped == ""


def test_a_checker_that_raises_blocks(fleet: Fleet) -> None:
    fleet.begins(act=False)

    class Raising:
        def get(self, digest: str) -> bytes | None:
            raise OSError(digest)

    mind = replace(fleet.mind, payloads=Raising())
    seen = look(fleet.store, mind, RUN)
    assert {verdict.reason for _, verdict in seen.verdicts.items()} == {Reason.CHECK_ERROR}


def test_a_step_that_is_not_there_after_it_was_run_again_ends_the_recovery(fleet: Fleet) -> None:
    fleet.begins(act=False)
    ages(fleet)

    class Idle(Fleet):
        async def rerun(self, run: str, step: str, given: object) -> None:
            pass

    done = recovers(fleet, rerunner=Idle(store=fleet.store, clock=fleet.clock))
    assert done.stopped == "running s0/history again gave no later attempt at it"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("secret"), "running s0/history again failed: ValueError"),
        (BackstopError("no network"), "running s0/history again failed: no network"),
    ],
)
def test_an_agent_that_raises_ends_the_recovery_and_nothing_is_lost(
    fleet: Fleet, error: Exception, told: str
) -> None:
    fleet.begins(act=False)
    ages(fleet)

    class Raising(Fleet):
        async def rerun(self, run: str, step: str, given: object) -> None:
            raise error

    done = recovers(fleet, rerunner=Raising(store=fleet.store, clock=fleet.clock))
    assert done.stopped == told
    assert recovers(fleet).stopped == ""


def test_without_anybody_to_run_steps_what_is_left_is_said(fleet: Fleet) -> None:
    fleet.begins()
    ages(fleet)
    assert "nobody here can" in recovers(fleet, rerunner=None).stopped
    fleet.history = "h2"
    for step in ("s0/history", "s0/statistician#0", "s0/skeptic#0", "s0/orchestrator#0"):
        fleet.makes(step)
    told = recovers(fleet, rerunner=None).stopped
    assert told == f"{ACTION} may go out again, and nobody here can ask for it"
    fleet.unwanted = True
    told = recovers(fleet, undoer=None).stopped
    assert told == "1 effect is to be taken back, and nobody here can"
    assert recovers(fleet).stopped == ""
    assert fleet.taken_back == fleet.sent


def test_an_undo_that_fails_is_told_and_goes_to_a_person(fleet: Fleet) -> None:
    fleet.begins()
    ages(fleet)
    fleet.history, fleet.unwanted = "h2", True

    def undo(what: str) -> None:
        raise ConnectionError(what)

    known = fleet.declared.undo
    assert known is not None
    undo.__module__, undo.__qualname__ = known.__module__, known.__qualname__
    declared = replace(fleet.declared, undo=undo)
    done = recovers(fleet, undoer=Undos(fleet.store, known=lambda: [declared]))
    assert "nobody knows whether its undo" in done.stopped
    assert set(trusts(fleet.store).values()) == {Trust.ESCALATED}


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


def test_an_action_that_no_recorder_sees_is_not_made(fleet: Fleet) -> None:
    intent = EffectClaimed(run=RUN, at="", step="s0", tool="publish", key="k", fingerprint="f")
    told = MeshJudge(fleet.store, fleet.mind).judge(intent)
    assert told == Unverified(state="BLOCKED", reason="missing dependency", culprit="publish")


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
