"""What to do after a trust break: the plan, its steps one by one, and the receipt.

A plan is exact: what is VERIFIED is kept, and only what cannot be is run again, each step
once its inputs are VERIFIED. A step that comes out as before leaves everything behind it
alone (early cutoff): that cuts running it again, never looking at it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from backstop.core.checkpoint import NO_USAGE, Checkpoint, StepKind, Usage
from backstop.core.trust import Badness, Reason, State
from backstop.core.trustgraph import TrustGraph
from backstop.core.trustverdicts import Verdicts


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryPlan:
    """What happens to each step of a run, each list in an order in which it can be done.

    `rerun` may turn out shorter: a step whose inputs come out as before is kept. `hold` needs a
    person or a new record, `frozen` are effects that may not go out, `unknown` are steps from
    before checkpoints were kept.
    """

    rerun: tuple[str, ...] = ()
    reuse: tuple[str, ...] = ()
    hold: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def plan(verdicts: Verdicts) -> RecoveryPlan:
    """The plan for what the verdicts say."""
    graph = verdicts.graph
    order, cyclic = graph.order()
    lists: dict[str, list[str]] = {
        "rerun": [],
        "reuse": [],
        "hold": [],
        "frozen": [],
        "unknown": [],
    }
    for step in (node.step for node in (*order, *cyclic)):
        badness, kind = verdicts[step].badness, graph[step].kind
        if badness and kind is StepKind.EFFECT:
            lists["frozen"].append(step)
        lists[_list_of(badness, kind)].append(step)
    return RecoveryPlan(**{name: tuple(steps) for name, steps in lists.items()})


def _list_of(badness: Badness, kind: StepKind) -> str:
    match badness:
        case Badness.CLEAN:
            return "reuse"
        case Badness.UNKNOWN:
            return "unknown"
        case Badness.REPAIRABLE if kind is not StepKind.EFFECT:
            return "rerun"
        case _:
            return "hold"


Rerun = Callable[[str, Mapping[str, str]], Checkpoint]
"""Runs a step again, given its inputs' digests by step, and gives the new attempt's record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What a recovery did: the plan it began with, the steps it ran, and what they cost.

    `stopped` says why it ended before everything planned was VERIFIED; empty where it did not.
    """

    plan: RecoveryPlan
    executed: tuple[str, ...]
    spent: Mapping[str, Usage] = field(default_factory=dict)
    stopped: str = ""


def recover(verdicts: Verdicts, rerun: Rerun, *, limit: int) -> Recovered:
    """Run what has to be run again, in order, judging anew after each step.

    At most `limit` steps are run: nobody tries again until it passes. No step is run while an
    input of it is not VERIFIED, and none twice. The graph takes each new record; one that is no
    later attempt at its step ends the recovery.
    """
    begun = plan(verdicts)
    graph = verdicts.graph
    executed: list[str] = []
    spent: dict[str, Usage] = {}
    stopped = ""
    for step in begun.rerun:
        if not is_ready(verdicts, step):
            continue
        if len(executed) == limit:
            stopped = f"{limit} steps were run, and {step} is still to be run"
            break
        made = rerun(step, {dep.ref: graph[dep.ref].output for dep in graph[step].upstream})
        if made.step != step or not graph.put(made):
            stopped = f"running {step} again gave no later attempt at it"
            break
        executed.append(step)
        spent[step] = made.usage
        verdicts.update({step})
    left = [step for step in begun.rerun if verdicts[step].state is not State.VERIFIED]
    if left and not stopped:
        verdict = verdicts[left[0]]
        stopped = f"{left[0]} is {verdict.state}: {verdict.reason}"
    return Recovered(plan=begun, executed=tuple(executed), spent=spent, stopped=stopped)


def is_ready(verdicts: Verdicts, step: str) -> bool:
    """Is the step still to be run, and can it be: are all its inputs VERIFIED?"""
    if verdicts[step].badness is not Badness.REPAIRABLE:
        return False
    inputs = verdicts.graph[step].upstream
    return all(verdicts[dep.ref].state is State.VERIFIED for dep in inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What one recovery cost, and what it did not: of this run, and no claim about others.

    `spent` was measured as the steps ran. `restart` and `avoided` are what the steps cost when
    they were recorded: all of them, and those that were not run again.
    """

    spent: Usage
    avoided: Usage
    restart: Usage
    steps_run: int
    steps_kept: int
    cut_off: int

    @property
    def saved(self) -> float:
        """The part of a restart's input tokens that was not spent, in percent."""
        whole = self.restart.input_tokens
        return 100.0 * (whole - self.spent.input_tokens) / whole if whole else 0.0


def receipt(before: Mapping[str, Checkpoint], done: Recovered) -> Receipt:
    """The receipt of a recovery; `before` are the records of the run as they stood."""
    kept = [record for step, record in before.items() if step not in done.spent]
    return Receipt(
        spent=total(done.spent.values()),
        avoided=total(record.usage for record in kept),
        restart=total(record.usage for record in before.values()),
        steps_run=len(done.executed),
        steps_kept=len(kept),
        cut_off=len(set(done.plan.rerun) - set(done.executed)),
    )


def total(usages: Iterable[Usage]) -> Usage:
    """The sum of what several steps cost."""
    summed = NO_USAGE
    for usage in usages:
        summed = Usage(
            calls=summed.calls + usage.calls,
            input_tokens=summed.input_tokens + usage.input_tokens,
            output_tokens=summed.output_tokens + usage.output_tokens,
        )
    return summed


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One link of the chain from a step to what is wrong: its verdict, and which digest moved.

    `read` is the digest that the step read of the next link's output, `now` the one that it
    has; both empty where no digest tells the two apart.
    """

    step: str
    state: State
    reason: Reason
    read: str = ""
    now: str = ""


def why(verdicts: Verdicts, step: str) -> tuple[Link, ...]:
    """The chain from a step to the culprit (M06): each link names the input that it has it from.

    Raises `KeyError` for a step that is not recorded.
    """
    return tuple(_links(verdicts, step))


def _links(verdicts: Verdicts, step: str) -> Iterator[Link]:
    graph: TrustGraph = verdicts.graph
    while True:
        verdict = verdicts[step]
        moved = _moved(verdicts, step)
        yield Link(
            step=step, state=verdict.state, reason=verdict.reason, read=moved[0], now=moved[1]
        )
        if verdict.reason is not Reason.INPUT_STATE:
            return
        # The nearest way: an input that has it from nobody else comes first.
        step = min(
            (
                dep.ref
                for dep in graph[step].upstream
                if verdicts[dep.ref].culprit == verdict.culprit
            ),
            key=lambda ref: (verdicts[ref].reason is Reason.INPUT_STATE, ref),
        )


def _moved(verdicts: Verdicts, step: str) -> tuple[str, str]:
    verdict, graph = verdicts[step], verdicts.graph
    match verdict.reason:
        case Reason.INPUT_DIGEST:
            read = next(
                dep.digest
                for dep in sorted(graph[step].upstream)
                if dep.ref == verdict.culprit and dep.digest != graph[dep.ref].output
            )
            return read, graph[verdict.culprit or ""].output
        case Reason.PIN | Reason.POLICY_STALE:
            pins = verdicts.world.pins
            dep = next(
                dep
                for dep in graph[step].outside
                if pins.get((dep.kind, dep.ref), dep.digest) != dep.digest
            )
            return dep.digest, pins[dep.kind, dep.ref]
        case _:
            return "", ""
