"""The oracle of dependency capture: what changes must lie where the record says that it may.

One input of a run is changed at a time. A step that then gives something else, or comes or goes,
must lie in the blast radius that the record of the first run predicts; and no step may give
something else whose recorded inputs are what they were.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from google.adk.agents import run_config
from google.adk.apps import App
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.events import Event
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.runners import Runner
from google.adk.sessions import Session
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from backstop.adapters.memory import MemoryStore
from backstop.core.canon import CANON_VERSION
from backstop.core.checkpoint import Checkpoint, DepKind, StepKind
from backstop.core.events import FORMAT, Checkpointed, Header
from backstop.core.trustgraph import TrustGraph
from backstop.mesh.books import Books
from backstop.mesh.recorder import MeshPlugin
from tests.e2e.echoing import TOPOLOGIES, Mode, World, changed

HOME: Final[dict[str, Any]] = {"app_name": "desk", "user_id": "u"}

MODES: Final = {
    "shown": Mode(),
    "alone": Mode(include="none"),
    "coarse": Mode(coarse=True),
    "streamed": Mode(stream=True),
}

_STREAMING: Final = {
    False: run_config.StreamingMode.NONE,  # type: ignore[attr-defined]  # it is not re-exported
    True: run_config.StreamingMode.SSE,  # type: ignore[attr-defined]
}


class Still:
    """A clock that stands."""

    def now(self) -> datetime:
        """Always the same."""
        return datetime(2026, 3, 2, tzinfo=UTC)


class Held:
    """Payloads in a dictionary."""

    def __init__(self) -> None:
        self.by: dict[str, bytes] = {}

    def put(self, digest: str, payload: bytes) -> None:
        """Keep it."""
        self.by[digest] = payload

    def get(self, digest: str) -> bytes | None:
        """What was kept."""
        return self.by.get(digest)

    def sync(self) -> None:
        """Nothing outlives the process."""


def books() -> Books:
    """Empty ones."""
    store = MemoryStore(
        header=Header(format=FORMAT, agent="desk", canon=CANON_VERSION), clock=Still()
    )
    return Books(store=store, payloads=Held(), clock=Still(), producer="recorder")


def steps_of(kept: Books, run: str = "r") -> dict[str, Checkpoint]:
    """The latest checkpoint of each step of a run."""
    found: dict[str, Checkpoint] = {}
    for row in kept.store.read(run):
        if isinstance(row, Checkpointed):
            checkpoint = msgspec.json.decode(row.body, type=Checkpoint)
            found[checkpoint.step] = checkpoint
    return found


async def _run(world: World, topology: str, mode: Mode, plugin: MeshPlugin, said: int) -> None:
    root = TOPOLOGIES[topology](world, mode)
    sessions, artifacts, memory = (
        InMemorySessionService(),
        InMemoryArtifactService(),
        InMemoryMemoryService(),
    )
    runner = Runner(
        app=App(name="desk", root_agent=root, plugins=[plugin]),
        session_service=sessions,
        artifact_service=artifacts,
        memory_service=memory,
    )
    await sessions.create_session(**HOME, session_id="r", state=dict(world.state))
    await artifacts.save_artifact(
        **HOME, session_id="r", filename="brief.txt", artifact=types.Part(text=world.brief)
    )
    content = types.Content(role="user", parts=[types.Part(text=world.memory)])
    earlier = Event(id="e", author="user", content=content, timestamp=1.0)
    await memory.add_session_to_memory(
        Session(id="old", appName="desk", userId="u", events=[earlier])  # type: ignore[call-arg]  # by alias
    )
    config = run_config.RunConfig(streaming_mode=_STREAMING[mode.stream])
    for number in range(said):
        text = world.user if number == 0 else f"and {number}"
        message = types.Content(role="user", parts=[types.Part(text=text)])
        async for _ in runner.run_async(
            user_id="u", session_id="r", new_message=message, run_config=config
        ):
            pass


def record(
    world: World,
    topology: str,
    mode: Mode,
    make: Callable[[Books], MeshPlugin] = MeshPlugin,
    said: int = 1,
) -> dict[str, Checkpoint]:
    """What is on record of a run in this world, of `said` messages."""
    kept = books()
    plugin = make(kept)
    asyncio.run(_run(world, topology, mode, plugin, said))
    assert not plugin.faults
    return steps_of(kept)


@dataclass(kw_only=True)
class Found:
    """What the oracle saw: how many steps changed, and what the record did not tell of them.

    `missed` lie outside of the radius, `unexplained` have the recorded inputs that they had;
    `wider` counts steps of the radius that did not change.
    """

    changed: int = 0
    wider: int = 0
    missed: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)


_BEHIND: Final = {
    "scout": DepKind.PROMPT,
    "model": DepKind.MODEL,
    "doc": DepKind.TOOL,
}


def roots(steps: dict[str, Checkpoint], what: str) -> set[str]:
    """The steps that a changed input is, or that are made from it at first hand."""
    if what in _BEHIND:
        kind = _BEHIND[what]
        return {
            step.step
            for step in steps.values()
            for dep in step.deps
            if dep.kind is kind and (what == "model" or dep.ref.endswith(_NAMED[what]))
        }
    ends = {
        "user": "/user",
        "brief": "/artifact:brief.txt@0",
        "rate": "/declared:rate",
        "lookup": "/lookup",
    }
    within = {"memory": "/memory:", "feed": "/feed#"}
    return {
        step
        for step in steps
        if step.endswith(ends.get(what, f"/{what}")) or (what in within and within[what] in step)
    }


_NAMED: Final = {"scout": "scout", "doc": "report"}


def judge(before: dict[str, Checkpoint], after: dict[str, Checkpoint], what: str) -> Found:
    """Compare two runs between which one input was changed."""
    graph = TrustGraph()
    for step in before.values():
        graph.put(step)
    begun = roots(before, what)
    radius = set(graph.blast(begun)) | begun
    found = Found()
    others = {
        step for step in before.keys() & after.keys() if before[step].output != after[step].output
    }
    gone = {
        step
        for step in before.keys() - after.keys()
        if before[step].kind is not StepKind.INPUT and "/so-far#" not in step
    }
    found.changed = len(others | gone)
    found.wider = len(radius - others - gone - begun)
    found.missed = sorted((others | gone) - radius)
    found.unexplained = sorted(
        step
        for step in others - begun
        if before[step].kind is not StepKind.INPUT and _reads_alike(step, before, after)
    )
    return found


def _reads_alike(step: str, before: dict[str, Checkpoint], after: dict[str, Checkpoint]) -> bool:
    """Whether all that the step is said to have read is the same in both runs."""
    one, other = before[step], after[step]
    return one.outside == other.outside and all(
        dep.ref in after and after[dep.ref].output == dep.digest for dep in one.upstream
    )


def ask(
    topology: str,
    mode: str,
    make: Callable[[Books], MeshPlugin] = MeshPlugin,
    said: int = 1,
) -> dict[str, Found]:
    """Change each input in turn; what was found, by the input's name."""
    before = record(World(), topology, MODES[mode], make, said)
    return {
        what: judge(before, record(world, topology, MODES[mode], make, said), what)
        for what, world in changed().items()
    }


def faults(asked: dict[str, Found]) -> dict[str, Any]:
    """What the record did not tell, by the input's name; nothing where it told all."""
    return {
        what: {"missed": found.missed, "unexplained": found.unexplained}
        for what, found in asked.items()
        if found.missed or found.unexplained
    }
