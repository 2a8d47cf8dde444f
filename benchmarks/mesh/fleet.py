"""The realistic fleet: many runs of ten steps each, as numbers, as records and as edges.

Standard library only up to `records_of`: the contenders build theirs from the same edges, in
environments without the project.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from backstop.core.checkpoint import Checkpoint
    from backstop.core.trust import World

STEPS: Final = 10
SHARING: Final = 100
"""So many runs read the same evidence."""


def reads(run: int) -> list[tuple[int, ...]]:
    """Which steps each step of a run reads: the one before, and mostly one from further above."""
    chance = random.Random(run)
    return [
        () if step == 0 else (step - 1,) if step <= 3 else (chance.randrange(1, step - 1), step - 1)
        for step in range(STEPS)
    ]


def edges(runs: int) -> Iterator[tuple[int, int]]:
    """Who was read by whom; a step's number is ten times its run's, and its own."""
    for run in range(runs):
        for step, above in enumerate(reads(run)):
            for other in above:
                yield run * STEPS + other, run * STEPS + step


def run_of(number: int) -> str:
    """What a run is called."""
    return f"run-{number}"


def name_of(step: int) -> str:
    """What a run calls its step."""
    return f"s0/agent-{step}"


def number_of(run: str, step: str) -> int:
    """The number of a run's step."""
    return int(run.removeprefix("run-")) * STEPS + int(step.removeprefix("s0/agent-"))


def evidence_of(run: str) -> str:
    """What the evidence is called that a run read."""
    return f"history-{int(run.removeprefix('run-')) // SHARING}"


def digest(told: str) -> str:
    """The digest of some words."""
    return sha256(told.encode()).hexdigest()


def records_of(run: int) -> list[Checkpoint]:
    """The checkpoints of a run: an input that reads shared evidence, turns, calls, an effect."""
    from backstop.core.checkpoint import Checkpoint, Dep, DepKind, StepKind, Usage

    outputs = [digest(f"{run}/{step}") for step in range(STEPS)]
    shared = evidence_of(run_of(run))
    evidence = Dep(DepKind.EVIDENCE, shared, digest(shared))
    policy = Dep(DepKind.POLICY, "rule", "1")
    kinds = (StepKind.INPUT, *(StepKind.MODEL, StepKind.TOOL) * (STEPS // 2 - 1), StepKind.EFFECT)
    outside = {
        StepKind.INPUT: (evidence, policy),
        StepKind.MODEL: (Dep(DepKind.MODEL, "m", "2"), Dep(DepKind.PROMPT, "p", "3"), policy),
        StepKind.TOOL: (Dep(DepKind.TOOL, "t", "4"), policy),
        StepKind.EFFECT: (Dep(DepKind.TOOL, "publish", "5"), policy),
    }
    return [
        Checkpoint(
            run=run_of(run),
            step=name_of(step),
            kind=kinds[step],
            deps=(
                *(Dep(DepKind.UPSTREAM, name_of(other), outputs[other]) for other in above),
                *outside[kinds[step]],
            ),
            output=outputs[step],
            producer="recorder",
            observed_at=0.0,
            seq=run * STEPS + step + 1,
            usage=Usage(calls=1, input_tokens=400),
        )
        for step, above in enumerate(reads(run))
    ]


def world() -> World:
    """A world in which all of it holds."""
    from backstop.core.checkpoint import DepKind
    from backstop.core.trust import World

    return World(now=1.0, pins={(DepKind.POLICY, "rule"): "1"}, producers=frozenset({"recorder"}))
