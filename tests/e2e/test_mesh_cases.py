"""Cases of other people's meshes that need a run of the real framework, or more than a verdict.

Those that are about verdicts alone stand in `tests/unit/core/mesh`, those about the effect gate
in `tests/unit/guard/test_mesh_gate.py`. The same file runs on the newest framework and, by
`test_mesh_oldest.py`, on the oldest.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from google.adk.agents import LlmAgent

from backstop.core.canon import digest
from backstop.core.checkpoint import Dep, DepKind, StepKind
from backstop.core.declaration import Declaration
from backstop.core.effectgate import Break
from backstop.core.events import AttemptEnded, CursorAdvanced, TrustBroken
from backstop.core.trust import Reason, State
from backstop.mesh.declare import depends_on
from backstop.mesh.definitions import definitions_of
from examples.evidence_mesh import agents
from tests.e2e.command import ROOT
from tests.e2e.mesh.desking import Floor, answers, broken, pins, recovered, rows, states
from tests.e2e.mesh.hosted import recorded
from tests.e2e.oracle import steps_of
from tests.unit.core.mesh.desk import Desk as Records
from tests.unit.core.mesh.desk import open_desk
from tests.unit.mesh.runs import House, desk

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")

FEED, SKEPTIC = "s0/desk/scout/feed#0", "s0/desk/skeptic#0"


@pytest.fixture
def floor(tmp_path: Path) -> Floor:
    return Floor(folder=tmp_path)


def test_m01_a_file_that_is_edited_while_a_step_runs_invalidates_the_step() -> None:
    """M01: read as v1, and another when it ended: which of the two made the output?"""
    records: Records = open_desk()
    before, after = (Dep(DepKind.EVIDENCE, "in.txt", digest(one)) for one in ("v1", "v2"))
    parts = records.graph["scout"].outside
    steady = (*parts, before, before)
    records.step("scout", StepKind.MODEL, ["feed"], {"v": "S"}, gen=1, outside=steady)
    assert records.at("scout").state is State.VERIFIED
    edited = (*parts, before, after)
    records.step("scout", StepKind.MODEL, ["feed"], {"v": "S"}, gen=2, outside=edited)
    assert records.at("scout").state is State.INVALIDATED
    assert records.at("publish").state is State.BLOCKED


def test_m02_a_dependency_that_was_removed_is_a_change(floor: Floor) -> None:
    """M02: from {weighed} of {scouted} to {weighed} alone: the step is to be made anew."""
    made = floor.begun()
    assert set(states(made).values()) == {"V"}
    changed = agents.desk()
    skeptic = changed.find_agent("skeptic")
    assert isinstance(skeptic, LlmAgent)
    skeptic.instruction = "Doubt {weighed}"
    made.pins = {**pins(), **asyncio.run(definitions_of(changed))}
    verdict = made.seen().verdicts[SKEPTIC]
    assert (verdict.state, verdict.reason) == (State.RECOMPUTE, Reason.PIN)
    assert [name for name, state in states(made).items() if state != "V"] == [
        "skeptic",
        "orchestrator",
        "publish_action",
    ]


def test_m12_what_is_declared_of_the_environment_is_in_the_digest() -> None:
    """M12: a step prints TZ, and says so: another TZ is another input."""

    def run(zone: str) -> dict[str, str]:
        def tell() -> str:
            """Tell the zone."""
            depends_on("TZ", zone)
            return f"in {zone}"

        house = House()
        house.say(desk([("tell", {}), "done"], [tell]))
        steps = steps_of(house.kept)
        read = {dep.ref: dep.digest for dep in steps["s0/desk#0/tell"].upstream}
        return {"TZ": read["s0/declared:TZ"], "user": steps["s0/user"].output}

    a, b, again = run("A"), run("B"), run("A")
    assert a == again
    assert a["TZ"] != b["TZ"]
    assert a["user"] == b["user"]


def test_m13_facts_of_the_host_are_in_no_digest(tmp_path: Path) -> None:
    """M13: a laptop and a runner record the same, to the last digest."""
    home = tmp_path / "home"
    home.mkdir()
    elsewhere = {
        **os.environ,
        "HOME": str(home),
        "TMPDIR": str(home),
        "USER": "runner",
        "HOSTNAME": "runner-7",
        "TZ": "Pacific/Auckland",
        "LANG": "C",
        "PYTHONHASHSEED": "7",
        "PATH": f"/opt/runner/bin{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    ran = subprocess.run(
        [sys.executable, str(ROOT / "tests/e2e/appended.py"), "tests.e2e.mesh.hosted"],
        capture_output=True,
        text=True,
        check=True,
        cwd=home,
        env=elsewhere,
    )
    here = recorded(tmp_path)
    assert json.loads(ran.stdout) == here
    assert len(here) > 20


def test_m22_a_tool_that_nobody_vouches_for_is_not_trusted(floor: Floor) -> None:
    """M22: unknown means an effect that is guarded, and code that nobody allowed."""
    assert Declaration(tool="terminal").effect
    unknown = {key: one for key, one in pins().items() if key[1] != "tool:publish_action"}
    made = floor.desk()
    made.pins = unknown
    asyncio.run(made.begin())
    assert floor.world.published == []
    assert answers(made) == ["withheld"]
    assert states(made)["publish_action"] == "B"
    made.pins = pins()
    assert recovered(made).stopped == ""
    assert len(floor.world.published) == 1


def test_m38_words_alone_are_no_verdict_and_a_quarantine_says_who_why_and_what(
    floor: Floor,
) -> None:
    """M38: a security log speaks of threats; what a person stops is told, and can be let go."""
    floor.world.feed = "log of host 4: 'rm -rf /' was denied"
    made = floor.begun()
    assert set(states(made).values()) == {"V"}
    assert len(floor.world.published) == 1
    broken(made, FEED, reason="speaks of rm -rf")
    assert states(made)["feed"] == "I"
    (row,) = rows(made, TrustBroken)
    told = msgspec.json.decode(row.body, type=Break)
    assert (told.broken.detector, told.broken.reason) == ("person:ada", "speaks of rm -rf")
    assert told.broken.selector.steps == (FEED,)  # type: ignore[union-attr]
    assert made.store.control().breaks[0].frozen
    assert recovered(made).stopped == ""
    assert not any(one.frozen for one in made.store.control().breaks)
    assert set(states(made).values()) == {"V"}
    assert len(floor.world.published) == 1


def test_m43_that_a_run_is_done_and_that_its_result_holds_are_two_things(floor: Floor) -> None:
    """M43: the run is completed, its result is not valid: a recovery does not return at once."""
    made = floor.begun()
    assert [event.outcome for event in rows(made, AttemptEnded)] == ["done"]
    assert len(rows(made, CursorAdvanced)) == 1
    broken(made, SKEPTIC, reason="not approved")
    assert states(made)["skeptic"] == "I"
    assert [event.outcome for event in rows(made, AttemptEnded)] == ["done"]
    floor.world.asked.clear()
    done = recovered(made)
    assert done.stopped == ""
    assert floor.world.asked == ["skeptic"]
    assert set(states(made).values()) == {"V"}
