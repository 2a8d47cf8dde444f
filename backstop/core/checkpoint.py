"""What the mesh knows of one material step: its checkpoint, and what it was made from.

A checkpoint is one model turn, one tool call, one input, one join or one effect. It names
its inputs by the digests of the bytes that were read, which is what lets a recomputed step
with an equal output leave everything behind it untouched. Nothing in a record says that it
can be trusted: `backstop.core.trust` decides that, from the record and from what the world
outside the store says.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from backstop.core.canon import canonical, digest

CHECKPOINT_SCHEMA: Final = 1
"""Version of the record's form. One with another number is never trusted."""


class StepKind(StrEnum):
    """What a step is."""

    INPUT = "input"
    TOOL = "tool"
    MODEL = "model"
    JOIN = "join"
    EFFECT = "effect"


class DepKind(StrEnum):
    """What an input is. `UPSTREAM` is another step's output; all others lie outside the mesh."""

    UPSTREAM = "upstream"
    EVIDENCE = "evidence"
    TOOL = "tool"
    POLICY = "policy"
    MODEL = "model"
    PROMPT = "prompt"
    CODE = "code"

    # A member is looked up with every input that is judged; an enum's own hash runs Python code.
    __hash__ = str.__hash__


class Dep(msgspec.Struct, frozen=True, gc=False, order=True):
    """One input: what it is, its name (for `UPSTREAM` a step), and the digest of what was read.

    A policy is one dependency a rule, so that a rule which changes touches only what it judged.
    """

    kind: DepKind
    ref: str
    digest: str


class Usage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a step cost, as its model said."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


NO_USAGE: Final = Usage()


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt at a step, as its recorder saw it.

    `step` names the step in its run, the same in every attempt; `gen` counts the attempts.
    `output` is the digest of all that the step left: answer, state writes, artifacts, and what
    an effect would send; empty for a step from before checkpoints were kept. `producer` is the
    id of the recorder that vouches for it. `observed_at` is that recorder's clock in Unix
    seconds, and `ttl` how many seconds what it saw stays fresh; None is for ever. `seq` is the
    record's place in its log. `rerunnable` says that code may run the step again by itself.
    """

    run: str
    step: str
    kind: StepKind
    output: str
    producer: str
    observed_at: float
    gen: int = 0
    deps: tuple[Dep, ...] = ()
    ttl: float | None = None
    rerunnable: bool = True
    seq: int = 0
    usage: Usage = NO_USAGE
    schema: int = CHECKPOINT_SCHEMA

    @property
    def id(self) -> str:
        """Digest of all that the record says but its place in the log; order of inputs is none."""
        body = {name: getattr(self, name) for name in self.__struct_fields__ if name != "seq"}
        body["deps"] = [[dep.kind.value, dep.ref, dep.digest] for dep in sorted(self.deps)]
        body["kind"] = self.kind.value
        body["usage"] = [self.usage.calls, self.usage.input_tokens, self.usage.output_tokens]
        return digest(canonical(body))

    @property
    def upstream(self) -> tuple[Dep, ...]:
        """The inputs that are other steps' outputs."""
        return tuple(dep for dep in self.deps if dep.kind is DepKind.UPSTREAM)

    @property
    def outside(self) -> tuple[Dep, ...]:
        """The inputs that are no step's output, in one order whatever order they were read in."""
        return tuple(sorted(dep for dep in self.deps if dep.kind is not DepKind.UPSTREAM))

    @property
    def unsteady(self) -> Dep | None:
        """An input that was read before with other bytes: it changed while the step ran.

        Which of the two made the output, nobody knows (M01).
        """
        if len({dep.ref for dep in self.deps}) == len(self.deps):
            return None  # nothing was read twice, as mostly
        read: dict[tuple[DepKind, str], str] = {}
        for dep in self.deps:
            if read.setdefault((dep.kind, dep.ref), dep.digest) != dep.digest:
                return dep
        return None
