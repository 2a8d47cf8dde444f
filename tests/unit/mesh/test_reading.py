"""What is read of a store to judge one run: its events, and the breaks that concern it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from backstop.adapters.memory import MemoryStore
from backstop.core.anchors import Anchors, Rule
from backstop.core.checkpoint import Checkpoint, Dep, DepKind, StepKind
from backstop.core.effectgate import Reach
from backstop.core.events import Checkpointed, Event, TrustBroken
from backstop.core.meshlog import MeshLog
from backstop.core.trust import Reason, State
from backstop.core.trustbreak import Inputs, Producer, Selector, Steps, TrustBreak
from backstop.mesh.judging import Mind, look, seen_in
from backstop.wiring.mesh import look_at_store
from tests.contract.bench import SteppingClock, header

EVIDENCE = Dep(DepKind.EVIDENCE, "history", "h1")
RULE = Dep(DepKind.POLICY, "rule", "1")


class Watched(MemoryStore):
    """A store that tells what was read of it."""

    asked: list[str | None]

    def read(self, run: str | None = None) -> Iterator[Event]:
        self.asked.append(run)
        return super().read(run)


class Bench:
    """Three runs of two steps each, in one store."""

    def __init__(self) -> None:
        self.clock = SteppingClock()
        self.store = Watched(clock=self.clock, header=header())
        self.store.asked = []
        anchors = Anchors(producers=frozenset({"p"}), rules={"rule": Rule(digest="1")})
        self.mind = Mind(anchors=anchors, clock=self.clock)
        for step in ("s0", "s1"):
            for run in ("r1", "r2", "r3"):
                self.record(run, step)

    def record(self, run: str, step: str, gen: int = 0) -> None:
        self.clock.jump(1)
        deps = (EVIDENCE, RULE) if step == "s0" else (Dep(DepKind.UPSTREAM, "s0", "d-s0"), RULE)
        made = Checkpoint(
            run=run,
            step=step,
            kind=StepKind.MODEL,
            output=f"d-{step}",
            producer="p",
            observed_at=self.clock.now().timestamp(),
            gen=gen,
            deps=deps,
        )
        body = msgspec.Raw(msgspec.json.encode(made))
        self.store.append(Checkpointed(run=run, at="", step=step, body=body))

    def breaks(self, run: str, selector: Selector) -> None:
        self.clock.jump(1)
        number = len(self.store.control().breaks)
        found = TrustBreak(
            id=f"b{number}", seq=0, epoch=0, detector="d", reason="r", selector=selector
        )
        self.store.break_trust(found, run=run, reach=[Reach(run=run or "r1", everything=True)])

    def states(self, run: str, *, every_break: bool = False) -> dict[str, State]:
        self.store.asked.clear()
        seen = look(self.store, self.mind, run, every_break=every_break)
        return {step: verdict.state for step, verdict in seen.verdicts.items()}

    def whole(self, run: str) -> dict[str, State]:
        seen = seen_in(MeshLog.of(self.store.read()), self.mind, run, self.store.control())
        return {step: verdict.state for step, verdict in seen.verdicts.items()}


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_of_other_runs_nothing_is_read_though_trust_broke_there(bench: Bench) -> None:
    bench.breaks("r2", Steps(steps=("s0",)))
    assert set(bench.states("r1").values()) == {State.VERIFIED}
    assert None not in bench.store.asked, "the whole ledger was read for one run"
    assert set(bench.store.asked) == {"r1", ""}
    assert set(bench.states("r2").values()) == {State.INVALIDATED, State.RECOMPUTE}


def test_a_plan_of_one_run_reads_that_run(bench: Bench) -> None:
    bench.breaks("r2", Steps(steps=("s0",)))
    looked = look_at_store(bench.store, bench.mind, name="s", run="r2", whole=False)
    assert list(looked.runs) == ["r2"]
    assert None not in bench.store.asked
    look_at_store(bench.store, bench.mind, name="s", run="r2")
    assert None in bench.store.asked, "the control: the whole of it is read where that is asked for"


def test_a_break_of_no_run_stands_between_what_was_before_it_and_what_came_after(
    bench: Bench,
) -> None:
    bench.breaks("", Inputs(kind=DepKind.EVIDENCE, ref="history"))
    assert bench.states("r1") == {"s0": State.INVALIDATED, "s1": State.RECOMPUTE}
    bench.record("r1", "s0", gen=1)
    assert set(bench.states("r1").values()) == {State.VERIFIED}
    assert bench.states("r3") == {"s0": State.INVALIDATED, "s1": State.RECOMPUTE}
    assert None not in bench.store.asked


def test_a_break_at_the_very_time_of_a_record_names_it(bench: Bench) -> None:
    found = Inputs(kind=DepKind.EVIDENCE, ref="history")
    broken = TrustBreak(id="b", seq=0, epoch=0, detector="d", reason="r", selector=found)
    bench.store.break_trust(broken, run="", reach=[Reach(run="r1", everything=True)])
    assert bench.states("r3")["s0"] is State.INVALIDATED


def test_a_break_that_the_control_state_lost_counts_though_it_is_of_no_run(bench: Bench) -> None:
    bench.breaks("", Inputs(kind=DepKind.EVIDENCE, ref="history"))
    lost = Bench()
    for event in [one for one in bench.store.read() if isinstance(one, TrustBroken)]:
        lost.store.append(event)
    assert not lost.store.control().breaks
    assert lost.states("r1")["s0"] is State.INVALIDATED


def test_places_that_a_break_names_are_looked_up_in_the_whole_ledger(bench: Bench) -> None:
    bench.breaks("", Producer(producer="p", first=1, last=2))  # the first steps of r1 and of r2
    assert bench.states("r1")["s0"] is State.INVALIDATED
    assert bench.store.asked == [None]
    assert set(bench.states("r3").values()) == {State.VERIFIED}


@pytest.mark.parametrize("run", ["r1", "r2", "r3"])
def test_one_run_alone_is_judged_as_in_the_whole_ledger(bench: Bench, run: str) -> None:
    bench.breaks("r1", Steps(steps=("s1",)))
    bench.breaks("", Inputs(kind=DepKind.EVIDENCE, ref="history"))
    bench.record("r2", "s0", gen=1)
    bench.breaks("r3", Steps(steps=("s0",)))
    bench.record("r3", "s0", gen=1)
    assert bench.states(run) == bench.states(run, every_break=True) == bench.whole(run)


def test_a_recovery_knows_the_places_of_every_break(bench: Bench) -> None:
    bench.breaks("r2", Steps(steps=("s0",)))
    bench.record("r1", "s0", gen=1)
    seen = look(bench.store, bench.mind, "r1", every_break=True)
    record = seen.graph["s0"]
    assert seen.whole.places["b0"] < record.seq
    assert seen.verdicts["s0"].reason is Reason.OK
    assert None not in bench.store.asked
