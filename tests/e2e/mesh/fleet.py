"""A fleet of four agents in one run, as records in a store: it can be made, broken and recovered.

What each step says follows from what it read, so that whoever runs it again gets the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from backstop.adapters.payloads import MemoryPayloads
from backstop.core.anchors import Anchors, Rule
from backstop.core.canon import canonical, digest
from backstop.core.checkpoint import Checkpoint, Dep, DepKind, StepKind, Usage
from backstop.core.declaration import Namespace
from backstop.core.effectgate import Unverified
from backstop.core.events import Checkpointed, EffectClaimed, EffectCommitted, RunOpened
from backstop.guard.claims.undoing import Undos
from backstop.guard.effect import Declared
from backstop.mesh.books import Payloads
from backstop.mesh.judging import MeshJudge, Mind, look
from backstop.mesh.recovering import Coordinator, Point, Recovery
from backstop.mesh.spots import SPOT, Open
from backstop.meshports import MeshStore
from backstop.ports import Claim, Clock

RUN: Final = "r1"
AGENT: Final = "clerk"
READS: Final[Mapping[str, tuple[StepKind, tuple[str, ...]]]] = {
    "s0/user": (StepKind.INPUT, ()),
    "s0/history": (StepKind.TOOL, ()),
    "s0/scout#0": (StepKind.MODEL, ("s0/user",)),
    "s0/statistician#0": (StepKind.MODEL, ("s0/scout#0", "s0/history")),
    "s0/skeptic#0": (StepKind.MODEL, ("s0/scout#0", "s0/statistician#0")),
    "s0/orchestrator#0": (
        StepKind.MODEL,
        ("s0/scout#0", "s0/statistician#0", "s0/skeptic#0"),
    ),
}
ACTION: Final = "s0/orchestrator#0/publish"
TOKENS: Final = {"scout": 423, "statistician": 402, "skeptic": 468, "orchestrator": 488}
RULE: Final = "publishing"
P1: Final = digest("p1")
C1: Final = digest("c1")
CODE: Final = (DepKind.CODE, "tool:publish")


def withdraw(what: str) -> None:
    """Stands for the undo; who takes back is told by `Fleet.withdraw`."""
    raise NotImplementedError(what)


@dataclass(kw_only=True)
class Fleet:
    """The run, its world and whoever runs its steps again. Give it back to the same store.

    `history` is what the world says, `says` may answer for an agent instead of it. `sent` and
    `taken_back` are what the world saw of effects.
    """

    store: MeshStore
    clock: Clock
    payloads: Payloads = field(default_factory=MemoryPayloads)
    history: str = "h1"
    says: dict[str, object] = field(default_factory=dict)
    rules: dict[str, Rule] = field(default_factory=lambda: {RULE: Rule(digest=P1)})
    shapes: dict[str, dict[str, object]] = field(default_factory=dict)
    revoked: frozenset[str] = frozenset()
    ran: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    taken_back: list[str] = field(default_factory=list)
    unwanted: bool = False
    key: str = "publish"
    ttl: float | None = 3600.0

    @property
    def mind(self) -> Mind:
        anchors = Anchors(
            producers=frozenset({"recorder"}),
            pins={CODE: C1},
            rules=self.rules,
            revoked=self.revoked,
            shapes=self.shapes,
        )
        return Mind(anchors=anchors, clock=self.clock, payloads=self.payloads)

    def begins(self, *, act: bool = True) -> None:
        """The run goes well, and its action goes out."""
        self.store.append(RunOpened(run=RUN, at=""))
        for step in READS:
            self.makes(step)
        if act:
            assert self.acts()
        self.ran.clear()

    def makes(self, step: str) -> Checkpoint:
        """One more attempt at a step, on record."""
        kind, reads = READS[step]
        outputs = self.outputs()
        deps = [Dep(DepKind.UPSTREAM, one, outputs[one]) for one in reads]
        if kind is StepKind.MODEL:
            deps.append(Dep(DepKind.POLICY, RULE, self.rules[RULE].digest))
        name = step.split("/")[1].partition("#")[0]
        said = self.says.get(name, {"of": [outputs[one] for one in reads]})
        if name == "history":
            said, deps = self.history, [Dep(DepKind.EVIDENCE, "history", digest(self.history))]
        left = {"agent": name, "parts": [{"form": {"text": canonical(said)}, "digest": ""}]}
        self.ran.append(name)
        return self.keep(
            step,
            kind,
            left,
            deps,
            ttl=self.ttl if name == "history" else None,
            usage=Usage(calls=int(name in TOKENS), input_tokens=TOKENS.get(name, 0)),
        )

    def keep(
        self, step: str, kind: StepKind, left: object, deps: list[Dep], **about: object
    ) -> Checkpoint:
        payload = msgspec.json.encode(left, order="sorted")
        seen = look(self.store, self.mind, RUN)
        made = Checkpoint(
            run=RUN,
            step=step,
            kind=kind,
            output=digest(payload),
            producer="recorder",
            observed_at=self.clock.now().timestamp(),
            gen=seen.graph[step].gen + 1 if step in seen.graph else 0,
            deps=tuple(deps),
            **about,  # type: ignore[arg-type]
        )
        self.payloads.put(made.output, payload)
        self.record(made)
        return made

    def record(self, made: Checkpoint) -> None:
        body = msgspec.Raw(msgspec.json.encode(made))
        self.store.append(Checkpointed(run=RUN, at="", step=made.step, body=body))

    def outputs(self) -> dict[str, str]:
        graph = look(self.store, self.mind, RUN).graph
        return {step: graph[step].output for step in graph}

    def anchors(self, folder: Path) -> Path:
        """The anchors as a file, beside the folder of what steps left."""
        file = folder / "backstop-mesh.yaml"
        told = {
            "version": 1,
            "payloads": "payloads",
            "producers": ["recorder"],
            "pins": {"code": {CODE[1]: C1}},
            "rules": {
                name: {"digest": rule.digest, "loosens": sorted(rule.loosens)}
                for name, rule in self.rules.items()
            },
            "outputs": self.shapes,
            "revoked": sorted(self.revoked),
        }
        file.write_text(json.dumps(told), encoding="utf-8")
        return file

    def states(self) -> dict[str, str]:
        """The first letter of each step's state, by the name of who made it."""
        verdicts = look(self.store, self.mind, RUN).verdicts
        return {
            step.rpartition("/")[2].partition("#")[0]: v.state[0] for step, v in verdicts.items()
        }

    # --- the action ---

    def acts(self) -> bool:
        """Ask for the action through the gate; whether it is out, by this call or an earlier."""
        read = Dep(DepKind.UPSTREAM, "s0/orchestrator#0", self.outputs()["s0/orchestrator#0"])
        code = Dep(*CODE, C1)
        spot = Open(
            id=ACTION, kind=StepKind.EFFECT, agent="orchestrator", deps={read: None, code: None}
        )
        intent = EffectClaimed(
            run=RUN,
            at="",
            step="s0",
            tool="publish",
            key=digest(self.key),
            fingerprint=read.digest,
            args=msgspec.Raw(canonical({"what": read.digest}).encode()),
            owner="worker",
        )
        token = SPOT.set(spot)
        try:
            asked = MeshJudge(
                self.store, self.mind, undo_of=lambda _: self.declared.undo_name
            ).judge(intent)
        finally:
            SPOT.reset(token)
        answer = asked if isinstance(asked, Unverified) else self.store.claim(intent, asked)
        if isinstance(answer, Claim):
            self.sent.append(read.digest)
            done = EffectCommitted(run=RUN, at="", key=answer.key, fence=answer.fence)
            self.store.settle(done, claim=answer)
        self.answer = answer
        left = {"intent": {"tool": "publish", "args": read.digest}}
        self.keep(ACTION, StepKind.EFFECT, left, [read, code], rerunnable=False)
        return type(answer).__name__ in {"Claim", "Recorded"}

    @property
    def declared(self) -> Declared:
        def undo(what: str) -> str:
            self.taken_back.append(what)
            return "gone"

        return Declared(tool="publish", function=withdraw, undo=undo)

    # --- recovery ---

    async def rerun(self, run: str, step: str, given: Mapping[str, str]) -> None:
        assert (run, dict(given)) == (
            RUN,
            {one: self.outputs()[one] for one in READS[step][1]},
        )
        self.makes(step)

    async def act(self, run: str, step: str) -> bool:
        assert (run, step) == (RUN, ACTION)
        if self.unwanted:
            return False
        self.acts()
        return True

    def coordinator(
        self,
        holder: str = "worker-1",
        watch: Callable[[Point, str], None] | None = None,
        **said: object,
    ) -> Coordinator:
        named = {} if watch is None else {"watch": watch}
        about = {
            "rerunner": self,
            "undoer": Undos(self.store, known=lambda: [self.declared]),
            **named,
            **said,
        }
        return Coordinator(
            store=self.store,
            mind=self.mind,
            namespace=Namespace(agent=AGENT),
            holder=holder,
            **about,  # type: ignore[arg-type]
        )

    async def recovers(self, **said: object) -> Recovery:
        done = await self.coordinator(**said).recover(RUN)  # type: ignore[arg-type]
        assert isinstance(done, Recovery)
        return done
