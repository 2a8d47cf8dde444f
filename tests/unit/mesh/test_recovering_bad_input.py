"""Recovery of runs whose records, world or agents are bad: nothing goes out, nothing is lost."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import msgspec
import pytest

from backstop.adapters.memory import MemoryStore
from backstop.core.canon import digest
from backstop.core.checkpoint import Checkpoint, Dep, DepKind
from backstop.core.effectgate import Unverified
from backstop.core.effecttrust import Trust
from backstop.core.events import EffectClaimed
from backstop.core.trust import Reason
from backstop.errors import BackstopError
from backstop.guard.claims.undoing import Undos
from backstop.mesh.judging import MeshJudge, look
from backstop.mesh.recovering import Recovery
from tests.contract.bench import SteppingClock, header
from tests.contract.meshed import trusts
from tests.e2e.mesh.fleet import ACTION, RUN, Fleet


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


def test_an_action_that_no_recorder_sees_is_not_made(fleet: Fleet) -> None:
    intent = EffectClaimed(run=RUN, at="", step="s0", tool="publish", key="k", fingerprint="f")
    told = MeshJudge(fleet.store, fleet.mind).judge(intent)
    assert told == Unverified(state="BLOCKED", reason="missing dependency", culprit="publish")


@pytest.mark.parametrize("payload", [b"!repr", b"[]", b'{"parts":[{}]}', b'{"parts":[1]}'])
def test_a_payload_that_is_no_recorders_ends_no_recovery(fleet: Fleet, payload: bytes) -> None:
    fleet.begins()
    made = look(fleet.store, fleet.mind, RUN).graph[ACTION]
    fleet.payloads.put(digest(payload), payload)
    fleet.record(msgspec.structs.replace(made, output=digest(payload), gen=1))
    ages(fleet)
    assert recovers(fleet).stopped == ""
    assert set(fleet.states().values()) == {"V"}
