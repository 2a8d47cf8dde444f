"""Runs of small deterministic steps, for the laws of trust: whatever a step reads decides it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from backstop.core.canon import canonical, digest
from backstop.core.checkpoint import Checkpoint, Dep, DepKind, StepKind, Usage
from backstop.core.trust import Checker, World

RULE = Dep(DepKind.POLICY, "rule", "rule-1")
NOW = 10.0


def read(value: object) -> str:
    """The digest of a step's value."""
    return digest(canonical(value))


@dataclass(frozen=True)
class Fleet:
    """Step `i` reads the steps `reads[i]`, all below it; one that reads nothing is an input.

    Values are taken modulo `moduli[i]`: a small one makes equal answers from other inputs.
    """

    reads: tuple[tuple[int, ...], ...]
    moduli: tuple[int, ...]
    inputs: Mapping[int, int]

    def __len__(self) -> int:
        return len(self.reads)

    def value(self, step: int, inputs: Mapping[int, int], answers: Mapping[int, int]) -> int:
        """What step `step` answers."""
        if not self.reads[step]:
            return inputs[step]
        return (sum(answers[other] for other in self.reads[step]) * 7 + step) % self.moduli[step]

    def restart(self, inputs: Mapping[int, int]) -> dict[int, int]:
        """What all steps answer if everything is run."""
        answers: dict[int, int] = {}
        for step in range(len(self)):
            answers[step] = self.value(step, inputs, answers)
        return answers

    def below(self, steps: Iterable[int]) -> set[int]:
        """These steps and all made from them, by the definition."""
        found = set(steps)
        for step in range(len(self)):
            if found & set(self.reads[step]):
                found.add(step)
        return found


@st.composite
def fleets(draw: st.DrawFn, *, most: int = 9) -> Fleet:
    """Fleets of two to `most` steps."""
    size = draw(st.integers(2, most))
    reads = tuple(
        tuple(sorted(draw(st.sets(st.integers(0, step - 1), max_size=min(3, step)))))
        if step
        else ()
        for step in range(size)
    )
    moduli = tuple(draw(st.sampled_from((2, 3, 1000))) for _ in range(size))
    inputs = {step: draw(st.integers(0, 5)) for step in range(size) if not reads[step]}
    return Fleet(reads=reads, moduli=moduli, inputs=inputs)


def name(step: int) -> str:
    """The id of a step."""
    return f"s{step}"


def number(step: str) -> int:
    """The number of a step's id."""
    return int(step[1:])


def record(
    fleet: Fleet,
    step: int,
    answers: Mapping[int, int],
    *,
    gen: int = 0,
    ttl: float | None = None,
    answer: object = None,
) -> Checkpoint:
    """The checkpoint of a step that read and gave these answers; `answer` stands for its own."""
    given = answers[step] if answer is None else answer
    return Checkpoint(
        run="r",
        step=name(step),
        gen=gen,
        kind=StepKind.MODEL if fleet.reads[step] else StepKind.INPUT,
        deps=(
            *(Dep(DepKind.UPSTREAM, name(o), read(answers[o])) for o in fleet.reads[step]),
            RULE,
        ),
        output=read(given),
        producer="recorder",
        observed_at=0.0,
        ttl=ttl,
        usage=Usage(calls=1, input_tokens=10 + step) if fleet.reads[step] else Usage(),
    )


def records(fleet: Fleet, *, ttls: Mapping[int, float | None] | None = None) -> list[Checkpoint]:
    """The checkpoints of a run of the whole fleet."""
    answers = fleet.restart(fleet.inputs)
    lasting = ttls or {}
    return [record(fleet, step, answers, ttl=lasting.get(step)) for step in range(len(fleet))]


def world(
    now: float = NOW,
    *,
    rule: str = RULE.digest,
    skew: float = 0.0,
    high_water: float = 0.0,
    integrity: Checker | None = None,
    provenance: Checker | None = None,
    policy: Checker | None = None,
) -> World:
    """A world in which all that `record` says is pinned and allowed."""
    return World(
        now=now,
        skew=skew,
        high_water=high_water,
        pins={(RULE.kind, RULE.ref): rule},
        producers=frozenset({"recorder"}),
        integrity=integrity,
        provenance=provenance,
        policy=policy,
    )
