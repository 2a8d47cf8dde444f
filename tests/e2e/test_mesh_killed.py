"""A worker that is killed at any point of a recovery: whoever takes over goes on where it ended."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from backstop.core.effecttrust import Trust
from backstop.core.events import Checkpointed, EffectClaimed, EffectCommitted, TrustBroken
from backstop.core.trustbreak import Steps, TrustBreak
from backstop.mesh.judging import look
from backstop.mesh.recovering import Point, Recovery
from backstop.mesh.standing import reach_of
from backstop.ports import Held
from tests.contract.meshed import trusts
from tests.e2e.command import ROOT
from tests.e2e.mesh.fleet import RUN, Fleet
from tests.e2e.mesh.rerunning import opened

KILLED = sorted(set(Point) - {Point.REAFFIRMED, Point.BROKEN})
"""Points that a recovery passes whose break a person made, and whose action is another now."""


def breaks(fleet: Fleet) -> None:
    found = TrustBreak(
        id="b1",
        seq=0,
        epoch=0,
        detector="person:ada",
        reason="poisoned",
        selector=Steps(steps=("s0/history",)),
    )
    seen = look(fleet.store, fleet.mind, RUN)
    fleet.store.break_trust(found, run=RUN, reach=[reach_of(seen, found)])


def takes_over(fleet: Fleet) -> Recovery:
    """Once the lease of the one that was killed has lapsed."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        done = asyncio.run(fleet.coordinator("worker-2").recover(RUN))
        if not isinstance(done, Held):
            return done
        time.sleep(0.05)
    raise AssertionError("the lease of a worker that is gone never lapsed")


@pytest.mark.parametrize("point", KILLED)
def test_a_worker_that_is_killed_leaves_nothing_half_done(tmp_path: Path, point: Point) -> None:
    fleet = opened(tmp_path)
    fleet.begins()
    breaks(fleet)
    ran = subprocess.run(
        [sys.executable, "-m", "tests.e2e.mesh.killed", str(tmp_path), point.value],
        cwd=ROOT,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == -9, ran.stderr.decode()
    fleet.history, fleet.key = "h2", "another"
    done = takes_over(fleet)
    assert done.stopped == ""
    assert set(fleet.states().values()) == {"V"}
    events = list(fleet.store.read(RUN))
    made = Counter(one.step for one in events if isinstance(one, Checkpointed))
    assert made["s0/scout#0"] == 1
    assert {made["s0/history"], made["s0/statistician#0"], made["s0/skeptic#0"]} == {2}
    tools = {one.key: one.tool for one in events if isinstance(one, EffectClaimed)}
    out = Counter(tools[one.key] for one in events if isinstance(one, EffectCommitted))
    assert out == {"publish": 2, "publish.undo": 1}
    assert sorted(trusts(fleet.store).values()) == [Trust.CLEAN, Trust.COMPENSATED]
    assert sum(isinstance(one, TrustBroken) for one in events) == 1
    receipt = done.receipt
    if point is not Point.NOTED and point is not Point.RELEASED:
        assert (receipt.spent.calls, receipt.spent.input_tokens) == (3, 1358)


def test_two_processes_that_recover_at_once_do_everything_once(tmp_path: Path) -> None:
    fleet = opened(tmp_path)
    fleet.begins()
    breaks(fleet)
    words = [sys.executable, "-m", "tests.e2e.mesh.killed", str(tmp_path), "nowhere"]
    workers = [
        subprocess.Popen([*words, f"worker-{number}"], cwd=ROOT, stderr=subprocess.DEVNULL)
        for number in range(2)
    ]
    codes = {worker.wait(timeout=120) for worker in workers}
    assert 0 in codes  # the other one is told that it is held, or that nothing is left
    assert set(fleet.states().values()) == {"V"}
    events = list(fleet.store.read(RUN))
    made = Counter(one.step for one in events if isinstance(one, Checkpointed))
    assert (made["s0/history"], made["s0/orchestrator#0"]) == (2, 2)
    tools = {one.key: one.tool for one in events if isinstance(one, EffectClaimed)}
    out = Counter(tools[one.key] for one in events if isinstance(one, EffectCommitted))
    assert out == {"publish": 2, "publish.undo": 1}
