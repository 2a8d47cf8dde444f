"""One run of the desk: it is made behind guard, recorder and judge, and can be recovered.

A recovery runs the desk again for one agent at a time. All that holds is said again as it
stands, in place of the agents and models that said it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from backstop.adk.code import code_digest
from backstop.core.anchors import Anchors, Rule
from backstop.core.canon import CANON_VERSION, digest
from backstop.core.checkpoint import DepKind
from backstop.core.declaration import Declaration, Namespace
from backstop.core.effectgate import Precondition, Unverified
from backstop.core.events import FORMAT, EffectClaimed, Header
from backstop.errors import BackstopError
from backstop.guard.claims.undoing import Undos
from backstop.guard.effect import declarations
from backstop.guard.journal import Journal
from backstop.guard.plugin.recorder import RecordingPlugin
from backstop.mesh.books import Books, Payloads
from backstop.mesh.definitions import definitions_of
from backstop.mesh.judging import MeshJudge, Mind, Seen, look
from backstop.mesh.recovering import Coordinator, Recovery
from backstop.mesh.reusing import ReusePlugin, kept_of, state_of
from backstop.mesh.trail import Left
from backstop.meshports import MeshStore
from backstop.ports import Held
from backstop.wiring.meshing import recorder
from examples.evidence_mesh import agents
from examples.evidence_mesh.outside import WORLD, World

AGENT: Final = "evidence-desk"
RUN: Final = "shift-313"
TRIGGER: Final = "s0"
RULE: Final = "publishing"
ACTION: Final = "s0/desk/orchestrator#0/publish_action"
_MESSAGE: Final = "Anything to stop?"


Pins: TypeAlias = Mapping[tuple[DepKind, str], str]
"""Digests of definitions, by kind and name."""

_PUBLISHES: Final = next(
    one for one in declarations() if one.function.__module__ == agents.__name__
)
DECLARED: Final = {_PUBLISHES.tool: Declaration(tool=_PUBLISHES.tool, identity=_PUBLISHES.identity)}


def header() -> Header:
    """The ledger's first line."""
    return Header(
        format=FORMAT,
        agent=AGENT,
        canon=CANON_VERSION,
        guarded=True,
        tools={name: one.digest for name, one in DECLARED.items()},
        declarations={one.digest: one for one in DECLARED.values()},
    )


async def pins_of_today() -> Pins:
    """The definitions that a person allows: those of the agents as they stand here."""
    pins = await definitions_of(agents.desk())
    for seen in (agents.feed, agents.history):
        pins[DepKind.CODE, f"step:{seen.__qualname__}"] = code_digest(seen)
    return pins


@dataclass(kw_only=True)
class Desk:
    """The run in `store`, as worker `holder` has it. It is also who runs its steps again.

    `rules`, `shapes` and `revoked` are a person's: which rule holds today, which form an agent's
    words must have, and which bytes nobody may rest on.
    """

    store: MeshStore
    payloads: Payloads
    world: World
    pins: Pins
    holder: str = "worker-1"
    rules: dict[str, Rule] = field(default_factory=lambda: {RULE: Rule(digest=digest("p1"))})
    shapes: dict[str, Mapping[str, object]] = field(default_factory=dict)
    revoked: frozenset[str] = frozenset()

    # --- what it is judged by ---

    @property
    def mind(self) -> Mind:
        """The definitions of today, and what a person vouches for."""
        anchors = Anchors(
            producers=frozenset({"recorder"}),
            pins=self.pins,
            rules=self.rules,
            revoked=self.revoked,
            shapes=self.shapes,
        )
        return Mind(anchors=anchors, clock=self.world.clock, payloads=self.payloads)

    def seen(self) -> Seen:
        """The run as it stands."""
        return look(self.store, self.mind, RUN)

    def judge(self, intent: EffectClaimed) -> Precondition | Unverified:
        """Judge an action by what holds at that moment."""
        judge = MeshJudge(self.store, self.mind, undo_of=lambda _: _PUBLISHES.undo_name)
        return judge.judge(intent)

    # --- it is run, and recovered ---

    async def begin(self) -> None:
        """The first attempt: all agents are asked."""
        self._journal.open_run(RUN, app=AGENT, user="floor", state={})
        await self._attempt(agents.AGENTS, {}, skipped=())

    async def recover(self, **said: Any) -> Recovery | Held:
        """Recover the run as far as can be."""
        coordinator = Coordinator(
            store=self.store,
            mind=self.mind,
            namespace=Namespace(agent=AGENT),
            holder=self.holder,
            rerunner=self,
            undoer=Undos(self.store),
            **said,
        )
        token = WORLD.set(self.world)
        try:
            return await coordinator.recover(RUN)
        finally:
            WORLD.reset(token)

    async def rerun(self, run: str, step: str, given: Mapping[str, str]) -> None:  # noqa: ARG002 - the coordinator's signature
        """Run the agent again that the step is of, on what holds, and no further than the step."""
        target = next((one for one in agents.AGENTS if _is_of(step, one)), None)
        if target is None:
            raise BackstopError(f"{step} is no agent's: a person has to give it again")
        before = agents.AGENTS[: agents.AGENTS.index(target)]
        kept = kept_of(self.seen(), self.payloads)
        asking = step.startswith(f"{TRIGGER}/desk/{target}#")
        await self._attempt((*before, target), kept, skipped=before, asking=asking, acting=False)

    async def act(self, run: str, step: str) -> bool:  # noqa: ARG002 - the coordinator's signature
        """Ask for the action again, as the agent that holds now asked for it."""
        kept = kept_of(self.seen(), self.payloads)
        await self._attempt(agents.AGENTS, kept, skipped=agents.AGENTS[:-1])
        return True

    @property
    def _journal(self) -> Journal:
        return Journal(
            store=self.store,
            namespace=Namespace(agent=AGENT),
            declarations=DECLARED,
            version="v1",
            owner=self.holder,
        )

    async def _attempt(
        self,
        named: tuple[str, ...],
        kept: Mapping[str, Left],
        *,
        skipped: Sequence[str],
        asking: bool = True,
        acting: bool = True,
    ) -> None:
        """One more attempt at the run's only step, in a session of its own."""
        journal = self._journal
        paths = [f"desk/{one}" for one in skipped]
        reuse = ReusePlugin(TRIGGER, kept, skipped=paths, asking=asking, acting=acting)
        books = Books(
            store=self.store, payloads=self.payloads, clock=self.world.clock, producer="recorder"
        )
        plugins = [
            RecordingPlugin(journal, judge=self),
            recorder(books, rules=self._rules, kept=kept),
            reuse,
        ]
        app = App(name="desk", root_agent=agents.desk(named), plugins=plugins)
        message = types.Content(role="user", parts=[types.Part(text=_MESSAGE)])
        told = message.model_dump(mode="json", exclude_none=True)
        attempt = journal.begin(RUN, cursor=0, trigger="tick", message=told, state={})
        token = WORLD.set(self.world)
        try:
            with journal.within(attempt):
                await _ran(app, message, state_of(kept.values()))
        except Exception as error:
            journal.end(attempt, outcome="held" if reuse.held else "error")
            if not reuse.held:
                raise BackstopError(f"the desk failed: {error}") from error
        else:
            done = attempt.unfinished is None
            journal.end(attempt, outcome="done" if done else "held")
            if done:
                journal.advance(attempt)
        finally:
            WORLD.reset(token)

    def _rules(self, name: str) -> Mapping[str, str]:
        return {RULE: self.rules[RULE].digest} if name in agents.AGENTS else {}


async def _ran(app: App, message: types.Content, state: dict[str, Any]) -> None:
    sessions = InMemorySessionService()
    session = await sessions.create_session(app_name="desk", user_id="floor", state=state)
    runner = Runner(app=app, session_service=sessions)
    async for _ in runner.run_async(user_id="floor", session_id=session.id, new_message=message):
        pass


def _is_of(step: str, agent: str) -> bool:
    path = f"{TRIGGER}/desk/{agent}"
    return step.startswith((f"{path}/", f"{path}#"))
