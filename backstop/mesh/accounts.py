"""What a recovery costs, worked out from the ledger: the same for whoever takes it over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from backstop.core.canon import canonical, digest
from backstop.core.checkpoint import Checkpoint, StepKind, Usage
from backstop.core.meshlog import Rerun, RunLog
from backstop.core.recovery import Receipt, Recovered, RecoveryPlan, plan, receipt, total
from backstop.core.trust import Badness
from backstop.core.trustgraph import TrustGraph
from backstop.core.trustverdicts import Verdicts
from backstop.mesh.judging import Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A recovery that goes on, or is to begin: its plan from the start, and its receipt so far.

    `begun` says that a step of it was run again.
    """

    plan: RecoveryPlan
    receipt: Receipt
    begun: bool


def given_to(seen: Seen, step: str) -> str:
    """The digest of all that a step is run again on: outputs, and the definitions of today.

    What a model is asked is the same question whenever it is asked. What is seen of the world
    is not, so there the epoch counts too.
    """
    record, pins = seen.graph[step], seen.verdicts.world.pins
    upstream = sorted([dep.ref, seen.graph[dep.ref].output] for dep in record.upstream)
    outside = [
        [dep.kind.value, dep.ref, pins.get((dep.kind, dep.ref), dep.digest)]
        for dep in record.outside
    ]
    epoch = -1 if record.kind is StepKind.MODEL else seen.control.epoch
    return digest(canonical([upstream, outside, epoch]))


def account(seen: Seen) -> Account:
    """The account of a run's latest recovery: of one that has ended only until another is due."""
    first = _beginning(seen.log)
    if first is None:
        planned = plan(seen.verdicts)
        before = {step: seen.graph[step] for step in seen.graph}
        told = _receipt(seen, before, Recovered(plan=planned, executed=()))
        return Account(plan=planned, receipt=told, begun=False)
    earlier = TrustGraph()
    for record in seen.log.records:
        if record.seq < first:
            earlier.put(record)
    planned = plan(Verdicts(earlier, seen.verdicts.world))
    spent = _spent(seen.log, first)
    done = Recovered(plan=planned, executed=tuple(spent), spent=spent)
    before = {step: earlier[step] for step in earlier}
    return Account(plan=planned, receipt=_receipt(seen, before, done), begun=True)


def _receipt(seen: Seen, before: Mapping[str, Checkpoint], done: Recovered) -> Receipt:
    """The receipt so far: what does not hold yet is neither spent nor avoided."""
    open_ = {step for step, verdict in seen.verdicts.items() if verdict.badness > Badness.UNKNOWN}
    kept = [record for step, record in before.items() if step not in done.spent.keys() | open_]
    return replace(
        receipt(before, done),
        avoided=total(record.usage for record in kept),
        steps_kept=len(kept),
        cut_off=len(set(done.plan.rerun) - set(done.executed) - open_),
    )


def _beginning(log: RunLog) -> int | None:
    """The place of the first step that the latest recovery ran again; None if it ran none."""
    first: int | None = None
    for place, note in log.notes:
        if isinstance(note, Rerun):
            first = place if first is None else first
        elif not note.stopped:
            first = None
    return first


def _spent(log: RunLog, first: int) -> dict[str, Usage]:
    """What each step cost since: all of its attempts, also those that came to nothing."""
    begun = [note.step for place, note in log.notes if place >= first and isinstance(note, Rerun)]
    triggers = {_trigger(step) for step in begun}
    made: dict[str, list[Checkpoint]] = {}
    for record in log.records:
        if record.seq > first and (record.gen or _trigger(record.step) in triggers):
            made.setdefault(record.step, []).append(record)
    return {step: total(one.usage for one in records) for step, records in made.items()}


def _trigger(step: str) -> str:
    """The run's step, ``s0`` and so on, that a step is of."""
    return step.partition("/")[0]
