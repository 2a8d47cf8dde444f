"""Recovery of any run, cut off anywhere and as often as it may be: what a restart would give.

And no more than that: what did not change is not run again, and nobody runs a step twice.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from backstop.adapters.memory import MemoryStore
from backstop.core.anchors import Anchors
from backstop.core.canon import canonical, digest
from backstop.core.checkpoint import Checkpoint, Dep, DepKind, StepKind
from backstop.core.declaration import Namespace
from backstop.core.events import Checkpointed
from backstop.core.trust import State
from backstop.core.trustbreak import Steps, TrustBreak
from backstop.mesh.judging import Mind, Seen, look
from backstop.mesh.recovering import Coordinator, Point, Recovery
from backstop.mesh.standing import reach_of
from tests.contract.bench import SteppingClock, header

RUN = "r"
Reads = tuple[tuple[int, ...], ...]


@st.composite
def runs(draw: st.DrawFn) -> Reads:
    """Of each step, which earlier ones it reads."""
    size = draw(st.integers(1, 7))
    return tuple(
        tuple(sorted(draw(st.sets(st.integers(0, at - 1), max_size=3)))) if at else ()
        for at in range(size)
    )


@dataclass(kw_only=True)
class Making:
    """A run whose steps say a digest of what they read, and of what the world tells each."""

    reads: Reads
    coarse: frozenset[int]
    """Steps that answer the same whatever they read."""
    world: dict[int, str] = field(default_factory=dict)
    ran: Counter[int] = field(default_factory=Counter)
    clock: SteppingClock = field(default_factory=SteppingClock)

    def __post_init__(self) -> None:
        self.store = MemoryStore(clock=self.clock, header=header())
        self.mind = Mind(anchors=Anchors(producers=frozenset({"p"})), clock=self.clock)
        for step in range(len(self.reads)):
            self.make(step)
        self.ran.clear()

    def says(self, step: int, read: list[str]) -> str:
        known = ["coarse"] if step in self.coarse else read
        return digest(canonical([step, self.world.get(step, ""), known]))

    def make(self, step: int) -> None:
        seen = self.seen()
        read = [seen.graph[f"s{one}"].output for one in self.reads[step]]
        name = f"s{step}"
        made = Checkpoint(
            run=RUN,
            step=name,
            kind=StepKind.MODEL,
            output=self.says(step, read),
            producer="p",
            observed_at=self.clock.now().timestamp(),
            gen=seen.graph[name].gen + 1 if name in seen.graph else 0,
            deps=tuple(
                Dep(DepKind.UPSTREAM, f"s{one}", output)
                for one, output in zip(self.reads[step], read, strict=True)
            ),
        )
        body = msgspec.Raw(msgspec.json.encode(made))
        self.store.append(Checkpointed(run=RUN, at="", step=name, body=body))
        self.ran[step] += 1

    def seen(self) -> Seen:
        return look(self.store, self.mind, RUN)

    def breaks(self, steps: frozenset[int]) -> None:
        found = TrustBreak(
            id="b",
            seq=0,
            epoch=0,
            detector="person:ada",
            reason="bad",
            selector=Steps(steps=tuple(f"s{one}" for one in sorted(steps))),
        )
        self.store.break_trust(found, run=RUN, reach=[reach_of(self.seen(), found)])

    async def rerun(self, run: str, step: str, given: Mapping[str, str]) -> None:
        assert (run, len(given)) == (RUN, len(self.reads[int(step[1:])]))
        self.make(int(step[1:]))

    async def act(self, run: str, step: str) -> bool:
        raise AssertionError(f"{run} has no action {step}")

    def recovers(self, dies_at: int | None) -> Recovery | None:
        """Recover, or die at that point of it."""
        left = [dies_at]

        def watch(_: Point, __: str) -> None:
            if left[0] is not None:
                left[0] -= 1
                if left[0] < 0:
                    raise KeyboardInterrupt

        worker = Coordinator(
            store=self.store,
            mind=self.mind,
            namespace=Namespace(agent="clerk"),
            holder="worker",
            rerunner=self,
            watch=watch,
        )
        with contextlib.suppress(KeyboardInterrupt):
            done = asyncio.run(worker.recover(RUN))
            assert isinstance(done, Recovery)
            return done
        return None

    def restarted(self) -> list[str]:
        outputs: list[str] = []
        for step, reads in enumerate(self.reads):
            outputs.append(self.says(step, [outputs[one] for one in reads]))
        return outputs


@given(
    reads=runs(),
    coarse=st.frozensets(st.integers(0, 6)),
    broken=st.frozensets(st.integers(0, 6), min_size=1),
    changed=st.booleans(),
    deaths=st.lists(st.integers(0, 12), max_size=2),
)
def test_recovery_gives_what_a_restart_would_and_runs_no_step_twice(
    reads: Reads,
    coarse: frozenset[int],
    broken: frozenset[int],
    changed: bool,
    deaths: list[int],
) -> None:
    run = Making(reads=reads, coarse=coarse)
    steps = frozenset(one for one in broken if one < len(reads)) or frozenset({0})
    before = run.restarted()
    run.breaks(steps)
    if changed:
        run.world.update(dict.fromkeys(steps, "new"))
    for at in deaths:
        run.recovers(at)
    done = run.recovers(None)
    assert done is not None
    assert done.stopped == ""
    after = run.seen()
    assert [after.graph[f"s{one}"].output for one in range(len(reads))] == run.restarted()
    assert {verdict.state for _, verdict in after.verdicts.items()} == {State.VERIFIED}
    moved = {
        at for at, (old, new) in enumerate(zip(before, run.restarted(), strict=True)) if old != new
    }
    due = {at for at, read in enumerate(reads) if at in steps or moved & set(read)}
    assert run.ran == Counter(due)
    assert not any(one.frozen for one in run.store.control().breaks)
