"""The four agents of the evidence desk as records: real bytes, real signatures, real checks."""

from __future__ import annotations

import json
from collections.abc import Iterable

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from backstop.core.canon import canonical, digest
from backstop.core.checkpoint import Checkpoint, Dep, DepKind, StepKind, Usage
from backstop.core.recovery import Recovered, recover
from backstop.core.trust import Reason, Verdict, World
from backstop.core.trustbreak import TrustBreak
from backstop.core.trustgraph import TrustGraph
from backstop.core.trustverdicts import Verdicts

TOKENS = {"scout": 423, "statistician": 402, "skeptic": 468, "orchestrator": 488}
RECORDED = 100.0
NOW = 150.0


class Desk:
    """Records of one run, the bytes of their outputs, and the signatures of their recorder."""

    def __init__(self) -> None:
        self.graph = TrustGraph()
        self.blobs: dict[str, bytes] = {}
        self.signatures: dict[str, bytes] = {}
        self.key = Ed25519PrivateKey.generate()
        self.pins = {
            (DepKind.POLICY, "publishing"): digest("p1"),
            (DepKind.CODE, "agents"): digest("c1"),
            (DepKind.MODEL, "gemini"): digest("m1"),
        }
        self.revoked: set[str] = set()
        self.revoked_producers: set[str] = set()
        self.breaks: list[TrustBreak] = []

    def keep(self, answer: object) -> str:
        """The digest of an output whose bytes are kept."""
        data = canonical(answer).encode()
        self.blobs[digest(data)] = data
        return digest(data)

    def step(  # noqa: PLR0913 - what a record says
        self,
        step: str,
        kind: StepKind,
        reads: Iterable[str],
        answer: object,
        *,
        gen: int = 0,
        at: float = RECORDED,
        ttl: float | None = None,
        producer: str = "recorder",
        rerunnable: bool = True,
        signed: bool = True,
        outside: tuple[Dep, ...] | None = None,
        seq: int = 0,
    ) -> Checkpoint:
        """Record a step that read what those steps gave last."""
        pinned = tuple(Dep(kind, ref, read) for (kind, ref), read in PINNED.items())
        made = Checkpoint(
            run="r",
            step=step,
            gen=gen,
            kind=kind,
            deps=(
                *(Dep(DepKind.UPSTREAM, ref, self.output(ref)) for ref in reads),
                *(pinned if outside is None else outside),
            ),
            output=self.keep(answer),
            producer=producer,
            observed_at=at,
            ttl=ttl,
            rerunnable=rerunnable,
            seq=seq,
            usage=Usage(calls=int(step in TOKENS), input_tokens=TOKENS.get(step, 0)),
        )
        if signed:
            self.sign(made)
        self.graph.put(made)
        return made

    def output(self, step: str) -> str:
        """The digest that a step gave last; of a step that is not there, some digest."""
        return self.graph[step].output if step in self.graph else digest("nothing")

    def sign(self, made: Checkpoint, *, key: Ed25519PrivateKey | None = None) -> None:
        """Vouch for a record."""
        self.signatures[made.id] = (key or self.key).sign(made.id.encode())

    def edit(self, step: str, **changes: object) -> Checkpoint:
        """Put an altered record in the place of a step's; nobody signs it."""
        made = msgspec.structs.replace(self.graph[step], **changes)
        self.graph.put(made)
        return made

    def world(self, now: float = NOW, *, skew: float = 0.0, high_water: float = 0.0) -> World:
        """The world as it is: this desk's keys, pins and revocations."""
        return World(
            now=now,
            skew=skew,
            high_water=high_water,
            pins=self.pins,
            revoked=frozenset(self.revoked),
            producers=frozenset({"recorder"}),
            revoked_producers=frozenset(self.revoked_producers),
            breaks=tuple(self.breaks),
            integrity=self._integrity,
            provenance=self._provenance,
            policy=self._policy,
        )

    def verdicts(self, now: float = NOW, *, skew: float = 0.0, high_water: float = 0.0) -> Verdicts:
        """What holds now."""
        return Verdicts(self.graph, self.world(now, skew=skew, high_water=high_water))

    def at(self, step: str, now: float = NOW) -> Verdict:
        """What holds for a step."""
        return self.verdicts(now)[step]

    def states(self, now: float = NOW) -> dict[str, str]:
        """The first letter of each step's state."""
        return {step: verdict.state[0] for step, verdict in self.verdicts(now).items()}

    def recover(self, answers: dict[str, object], now: float, *, limit: int = 100) -> Recovered:
        """Run again what has to be; a step without a new answer answers as before."""

        def rerun(step: str, given: object) -> Checkpoint:
            assert given == {d.ref: self.output(d.ref) for d in self.graph[step].upstream}
            known = self.graph[step]
            return msgspec.structs.replace(
                self._again(known, answers.get(step), now), usage=known.usage
            )

        return recover(self.verdicts(now), rerun, limit=limit)

    def _again(self, known: Checkpoint, answer: object, now: float) -> Checkpoint:
        made = msgspec.structs.replace(
            known,
            gen=known.gen + 1,
            deps=tuple(
                Dep(dep.kind, dep.ref, self.output(dep.ref))
                if dep.kind is DepKind.UPSTREAM
                else Dep(dep.kind, dep.ref, self.pins.get((dep.kind, dep.ref), dep.digest))
                for dep in known.deps
            ),
            output=known.output if answer is None else self.keep(answer),
            observed_at=now,
            seq=known.seq + 1000,
        )
        self.sign(made)
        return made

    def _integrity(self, made: Checkpoint) -> Reason | None:
        data = self.blobs.get(made.output)
        if data is None:
            return Reason.BLOB_MISSING
        return None if digest(data) == made.output else Reason.BLOB_DIGEST

    def _provenance(self, made: Checkpoint) -> Reason | None:
        signature = self.signatures.get(made.id)
        if signature is None:
            return Reason.UNSIGNED
        try:
            self.key.public_key().verify(signature, made.id.encode())
        except InvalidSignature:
            return Reason.BAD_SIGNATURE
        return None

    def _policy(self, made: Checkpoint) -> Reason | None:
        answer = json.loads(self.blobs[made.output])
        return None if isinstance(answer, dict) and "v" in answer else Reason.OUTPUT_SCHEMA


PINNED = {
    (DepKind.POLICY, "publishing"): digest("p1"),
    (DepKind.CODE, "agents"): digest("c1"),
    (DepKind.MODEL, "gemini"): digest("m1"),
}
"""What every step of the desk was recorded under."""


def open_desk() -> Desk:
    """The desk after a run in which everything went well."""
    desk = Desk()
    desk.step("feed", StepKind.INPUT, [], {"v": "feed"}, ttl=3600, seq=1)
    desk.step("history", StepKind.INPUT, [], {"v": "history"}, ttl=200, seq=2)
    desk.step("scout", StepKind.MODEL, ["feed"], {"v": "S"}, seq=3)
    desk.step("statistician", StepKind.MODEL, ["scout", "history"], {"v": "T"}, seq=4)
    desk.step("skeptic", StepKind.MODEL, ["scout", "statistician"], {"v": "K"}, seq=5)
    reads = ["scout", "statistician", "skeptic"]
    desk.step("orchestrator", StepKind.MODEL, reads, {"v": "O"}, seq=6)
    desk.step("publish", StepKind.EFFECT, ["orchestrator"], {"v": "publish O"}, seq=7)
    return desk
