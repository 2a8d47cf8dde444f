"""The recorder misses nothing: each input is changed in turn, and the record has to explain it.

The controls are recorders that lack one of their senses: the oracle finds each of them.
"""

from __future__ import annotations

from typing import Any

import pytest

from backstop.core.checkpoint import Dep, DepKind
from backstop.mesh.books import Books
from backstop.mesh.declare import NOTING
from backstop.mesh.recorder import MeshPlugin
from backstop.mesh.spots import SPOT, Frame, Open
from tests.e2e.echoing import TOPOLOGIES, World
from tests.e2e.oracle import MODES, ask, faults, record

pytestmark = [
    # The agents are those that users have: the framework says that a workflow is to come for them.
    pytest.mark.filterwarnings("ignore:.* is deprecated in favor of:DeprecationWarning"),
    # What the framework's own tool that is an agent does.
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning"),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_whatever_changes_lies_where_the_record_says_that_it_may(topology: str, mode: str) -> None:
    asked = ask(topology, mode)
    assert faults(asked) == {}
    assert sum(found.changed for found in asked.values()) > 10


@pytest.mark.parametrize("topology", ["sequential", "agent_tool"])
def test_a_second_message_to_the_session_is_told_as_well(topology: str) -> None:
    asked = ask(topology, "shown", said=2)
    assert faults(asked) == {}


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_same_run_is_recorded_alike(topology: str) -> None:
    one, other = (record(World(), topology, MODES["shown"]) for _ in range(2))
    assert {step: kept.id for step, kept in one.items()} == {
        step: kept.id for step, kept in other.items()
    }


# --- controls: each lacks one sense ---


class NoState(MeshPlugin):
    """Sees no reads of the session's state."""

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        await super().before_run_callback(invocation_context=invocation_context)
        session = invocation_context.session
        session.state = {**session.state}


class NoTurnBehindTools(MeshPlugin):
    """Forgets that a turn chose a call's arguments."""

    async def before_tool_callback(self, **named: Any) -> None:
        await super().before_tool_callback(**named)
        step = SPOT.get()
        assert isinstance(step, Open)
        for dep in [dep for dep in step.deps if dep.kind is DepKind.UPSTREAM]:
            del step.deps[dep]


class ResultOnly(MeshPlugin):
    """Takes what a tool says for all that it leaves, and what it writes for nothing."""

    async def after_tool_callback(self, **named: Any) -> None:
        await super().after_tool_callback(**named)
        step = SPOT.get()
        assert isinstance(step, Open)
        for left in step.left.get("state", {}).values():
            left.clear()
            left["digest"] = ""


class NoContents(MeshPlugin):
    """Never looks at what a model is shown of the conversation."""

    async def before_model_callback(self, **named: Any) -> None:
        request = named["llm_request"]
        blind = request.model_copy(update={"contents": []})
        await super().before_model_callback(**named | {"llm_request": blind})


class LateReads(MeshPlugin):
    """Loses what is read between a turn and the next: the next one's instruction."""

    async def before_model_callback(self, **named: Any) -> None:
        frame = SPOT.get()
        if isinstance(frame, Frame):
            frame.deps.clear()
        await super().before_model_callback(**named)


class NoServices(MeshPlugin):
    """Sees neither artifacts nor memory."""

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        artifacts, memory = (
            invocation_context.artifact_service,
            invocation_context.memory_service,
        )
        await super().before_run_callback(invocation_context=invocation_context)
        invocation_context.artifact_service = artifacts
        invocation_context.memory_service = memory


class NoDefinitions(MeshPlugin):
    """Does not know what agents are made with."""

    def _made_with(self, agent: Any) -> list[Dep]:
        return []


class NoDeclarations(MeshPlugin):
    """Hears nothing of what code declares."""

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        await super().before_run_callback(invocation_context=invocation_context)
        NOTING.set(None)


class NoDecisions(MeshPlugin):
    """Does not see what decided that an agent runs."""

    async def before_agent_callback(self, **named: Any) -> None:
        await super().before_agent_callback(**named)
        frame = SPOT.get()
        assert isinstance(frame, Frame)
        frame.deps.clear()
        frame.wild = False


@pytest.mark.parametrize(
    ("blind", "topology"),
    [
        (NoState, "sequential"),
        (NoTurnBehindTools, "sequential"),
        (ResultOnly, "sequential"),
        (NoContents, "sequential"),
        (LateReads, "sequential"),
        (NoServices, "injected"),
        (NoServices, "sequential"),
        (NoDefinitions, "injected"),
        (NoDeclarations, "sequential"),
        (NoDecisions, "custom"),
        (NoDecisions, "loop"),
    ],
)
def test_a_recorder_without_one_of_its_senses_is_found_out(
    blind: type[MeshPlugin], topology: str
) -> None:
    assert any(faults(ask(topology, mode, blind)) for mode in ("coarse", "alone"))


def test_the_control_of_the_controls_is_found_nowhere() -> None:
    class Whole(MeshPlugin):
        def __init__(self, kept: Books) -> None:
            super().__init__(kept)

    assert faults(ask("injected", "shown", Whole)) == {}
