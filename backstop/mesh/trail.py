"""What is known of a run so far: who made what a later step may read.

Fed with checkpoints and what they left, live or from the record of an earlier process, it says
the same: nothing else is remembered from one invocation to the next.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from backstop.core.checkpoint import Checkpoint, Dep, DepKind, StepKind
from backstop.mesh.shown import Said, Shown

Left: TypeAlias = Mapping[str, Any]
"""What a step left, as its payload says: `agent`, `parts` (forms and digests), `state`,
`artifacts`, `memory`, `actions`, `result`, `intent`; only those that there are."""


@dataclass(slots=True, kw_only=True)
class Written:
    """A key of the session's state as it stands: by which steps, and the value's digest."""

    by: list[str]
    digest: str


@dataclass(slots=True, kw_only=True, eq=False)
class Trail:
    """One run. All of its steps are named by their ids."""

    run: str
    outputs: dict[str, str] = field(default_factory=dict)
    gens: dict[str, int] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    parts: dict[str, dict[str, None]] = field(default_factory=dict)
    """Who said a part, by its digest; `heard` is the same in its order."""
    heard: list[Said] = field(default_factory=list)
    quiet: list[str] = field(default_factory=list)
    """Steps that said nothing: had they said something, others would have read it."""
    state: dict[str, Written] = field(default_factory=dict)
    artifacts: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    remembering: list[str] = field(default_factory=list)
    """Steps that put something into the memory service."""
    results: dict[str, list[str]] = field(default_factory=dict)
    """Who gave a value, by its digest: what is handed on from node to node."""
    told: list[tuple[str, Left]] = field(default_factory=list)
    """Who said what, for as long as nobody asked how another agent is told of it."""
    joined: str | None = None
    """The latest join of everything so far, and the steps since."""
    since: dict[str, None] = field(default_factory=dict)
    shown: dict[str, Shown] = field(default_factory=dict)
    """By agent, what it was shown last."""
    triggers: int = 0
    """How many of the run's steps are on record."""
    records: list[tuple[Checkpoint, Left]] = field(default_factory=list)

    def gen(self, step: str) -> int:
        """Which attempt at the step the next one is."""
        return self.gens.get(step, -1) + 1

    def dep(self, step: str) -> Dep:
        """What it is to have read the step's output."""
        return Dep(DepKind.UPSTREAM, step, self.outputs[step])

    def before(self, trigger: str, kept: Collection[str] = ()) -> Trail:
        """The run as it was before its step `trigger`, `s0` and so on: that one is made anew.

        All but what is `kept` of it, as it was made last. Which attempts there were stays known.
        """
        earlier = Trail(run=self.run)
        for checkpoint, left in self.records:
            step = checkpoint.step
            if number_of(step) < number_of(trigger) or (
                step in kept and checkpoint.gen == self.gens[step]
            ):
                earlier.take(checkpoint, left)
        earlier.gens.update(self.gens)
        return earlier

    def says(self, step: str, digest: str) -> None:
        """A step said a part of this digest."""
        makers = self.parts.setdefault(digest, {})
        if step not in makers:
            makers[step] = None
            self.heard.append(Said(digest, step))

    def take(self, checkpoint: Checkpoint, left: Left) -> None:
        """One more step is known."""
        step = checkpoint.step
        if checkpoint.gen < self.gens.get(step, -1):
            return
        self.records.append((checkpoint, left))
        self.triggers = max(self.triggers, 1 + number_of(step))
        if step in self.outputs:
            self.order.remove(step)
        self.outputs[step] = checkpoint.output
        self.gens[step] = checkpoint.gen
        self.order.append(step)
        if "of" not in left:
            self.since[step] = None
        for made in left.get("parts", ()):
            self.says(step, made["digest"])
        if left.get("parts"):
            self.told.append((step, left))
        elif checkpoint.kind in {StepKind.MODEL, StepKind.JOIN} and "said" in left:
            _once(self.quiet, step)
        for key, value in left.get("state", {}).items():
            self.state[key] = Written(by=[step], digest=value["digest"])
        for name, version in left.get("artifacts", {}).items():
            _add(self.artifacts, (name, version["version"]), step)
        if left.get("memory"):
            _once(self.remembering, step)
        if "result" in left:
            _add(self.results, left["result"]["digest"], step)


def number_of(step: str) -> int:
    """The number of the run's step that a mesh step, or the run's step itself, is of."""
    number = step.partition("/")[0].removeprefix("s")
    return int(number) if number.isdecimal() else 0


def _add(known: dict[Any, list[str]], key: object, step: str) -> None:
    _once(known.setdefault(key, []), step)


def _once(steps: list[str], step: str) -> None:
    if step not in steps:
        steps.append(step)
