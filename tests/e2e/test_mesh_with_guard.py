"""The recorder beside the guard: one ledger tells of both, and neither is in the other's way."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from google.adk.tools.agent_tool import AgentTool

from backstop.adapters.payloads import FolderPayloads
from backstop.clock import SystemClock
from backstop.core.canon import CANON_VERSION
from backstop.core.checkpoint import Checkpoint, StepKind
from backstop.core.events import FORMAT, AttemptStarted, Checkpointed, EffectClaimed, Header
from backstop.mesh.books import Books
from backstop.mesh.recorder import MeshPlugin
from backstop.wiring.meshing import recorder
from backstop.wiring.stores import open_store
from tests.e2e.till import PAY, Till, calls, says

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def till(tmp_path: Path) -> Till:
    return Till(folder=tmp_path)


def recorded(till: Till) -> MeshPlugin:
    """A recorder into the guard's own store."""
    header = Header(format=FORMAT, agent="till", canon=CANON_VERSION)
    payloads = FolderPayloads(till.folder / "payloads")
    store = open_store(till.url, header=header)
    return recorder(Books(store=store, payloads=payloads, clock=SystemClock(), producer="recorder"))


def kept(till: Till) -> dict[str, Checkpoint]:
    rows: list[Checkpointed] = till.rows(Checkpointed)
    found = [msgspec.json.decode(row.body, type=Checkpoint) for row in rows]
    return {one.step: one for one in found}


def test_one_ledger_tells_of_effects_and_of_what_they_were_made_from(till: Till) -> None:
    mesh = recorded(till)
    root = till.agent(PAY, says("paid"), calls(("look", {"order": "7"})), says("there"))
    till.chat(root, "pay", "look", plugins=[mesh, till.plugin()])
    assert (till.sent, mesh.faults) == ([("7", 10)], 0)
    steps = kept(till)
    assert [(step, one.kind) for step, one in steps.items() if one.kind is not StepKind.MODEL] == [
        ("s0/user", StepKind.INPUT),
        ("s0/till#0/pay", StepKind.EFFECT),
        ("s1/user", StepKind.INPUT),
        ("s1/till#0/look", StepKind.TOOL),
    ]
    assert {one.run for one in steps.values()} == {"till:u:c1"}
    # The turn that asked for it is on record before the effect is claimed.
    told = [
        event.step if isinstance(event, Checkpointed) else "claim"
        for event in till.events()
        if isinstance(event, Checkpointed | EffectClaimed)
    ]
    places = [told.index(name) for name in ("s0/till#0", "claim", "s0/till#0/pay")]
    assert places == sorted(places)
    till.verified()


def test_a_repeat_that_the_guard_absorbs_is_a_step_like_any_other(till: Till) -> None:
    mesh = recorded(till)
    root = till.agent(PAY, says("paid"), PAY, says("again"))
    till.chat(root, "pay", "pay once more", plugins=[till.plugin(), mesh])
    assert (till.sent, mesh.faults) == ([("7", 10)], 0)
    assert {"s0/till#0/pay", "s1/till#0/pay"} <= kept(till).keys()


def test_an_agent_in_a_tool_is_guarded_and_recorded(till: Till) -> None:
    mesh = recorded(till)
    child = till.agent(PAY, says("paid"))
    child.name = "cashier"
    root = till.agent(
        calls(("cashier", {"request": "pay"})), says("done"), tools=[AgentTool(child)]
    )
    till.chat(root, "pay", plugins=[till.plugin(), mesh])
    assert (till.sent, mesh.faults) == ([("7", 10)], 0)
    steps = kept(till)
    assert steps["s0/till#0/cashier/cashier#0/pay"].kind is StepKind.EFFECT
    assert steps["s0/till#0/cashier"].kind is StepKind.TOOL


def test_a_run_that_the_guard_cannot_name_is_named_by_its_session(till: Till) -> None:
    mesh = recorded(till)
    till.chat(till.agent(says("hello")), "hello", plugins=[mesh])
    assert {one.run for one in kept(till).values()} == {"c1"}
    assert till.rows(AttemptStarted) == []


def test_without_a_guard_that_serves_them_all_calls_are_taken_for_effects(till: Till) -> None:
    mesh = recorded(till)
    till.chat(till.agent(calls(("look", {"order": "7"})), says("ok")), "look", plugins=[mesh])
    assert kept(till)["s0/till#0/look"].kind is StepKind.EFFECT
