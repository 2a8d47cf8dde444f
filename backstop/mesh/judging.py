"""Judges runs by what no store supplies, and effects before they are claimed.

What is judged is read from the ledger each time: a verdict is never read back. The judge of the
effect gate (`MeshJudge`) looks at the step that is about to act and at all that it has read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from heapq import merge
from typing import Any

import msgspec

from backstop.core.anchors import Anchors, world_of
from backstop.core.checkpoint import Checkpoint, Dep, DepKind, StepKind
from backstop.core.effectgate import Control, Place, Precondition, Unverified, judged
from backstop.core.events import EffectClaimed, Event, TrustBroken
from backstop.core.meshlog import MeshLog, RunLog
from backstop.core.shapes import fits
from backstop.core.trust import Checker, Reason, State
from backstop.core.trustbreak import Producer
from backstop.core.trustgraph import TrustGraph
from backstop.core.trustverdicts import Verdicts
from backstop.mesh.spots import Open, current
from backstop.mesh.trails import Kept
from backstop.meshports import MeshStore
from backstop.ports import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Mind:
    """What runs are judged by. Without `payloads` outputs are known by their digests alone."""

    anchors: Anchors
    clock: Clock
    payloads: Kept | None = None

    def integrity(self, record: Checkpoint) -> Reason | None:
        """Is there what the step left? What is kept is checked against its digest when read."""
        if self.payloads is None:
            return None
        return Reason.BLOB_MISSING if self.payloads.get(record.output) is None else None

    def form(self, record: Checkpoint) -> Reason | None:
        """Has the step's output the form that it must have?"""
        shape = self.anchors.shapes.get(name_of(record.step))
        if shape is None or record.kind not in {StepKind.TOOL, StepKind.MODEL, StepKind.EFFECT}:
            return None
        payload = None if self.payloads is None else self.payloads.get(record.output)
        if payload is None:
            return Reason.BLOB_MISSING
        said, value = answer_of(payload)
        if not said:
            return None  # a turn that only asks for tools answers nothing yet
        return None if fits(value, shape) else Reason.OUTPUT_SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A run as it stands: its records, what holds for each, and the control state it is under."""

    run: str
    log: RunLog
    verdicts: Verdicts
    control: Control
    whole: MeshLog

    @property
    def graph(self) -> TrustGraph:
        """The current records."""
        return self.verdicts.graph


def look(store: MeshStore, mind: Mind, run: str, *, every_break: bool = False) -> Seen:
    """Judge a run as it stands in a store. Raises `BackstopError`, and what the store raises.

    The control state is read first: what breaks later makes the epoch a stale one. Of other runs
    nothing is read, but the places of their breaks where `every_break` is asked for.
    """
    control = store.control()
    told = events_for(store, control, run, every_break=every_break)
    return seen_in(MeshLog.of(told), mind, run, control)


def events_for(
    store: MeshStore, control: Control, run: str, *, every_break: bool = False
) -> Iterator[Event]:
    """What has to be read to judge a run: its events, and the breaks that concern it, in order.

    A break of no run in particular may be one that the control state lost, so those are always
    read. What a recorder vouched for is named by places in the whole ledger, so there all of it
    is read.
    """
    concern = [one for one in control.breaks if one.run in {"", run}]
    if any(isinstance(one.broken.selector, Producer) for one in concern):
        return store.read()
    others = {"", *(one.run for one in control.breaks if every_break)} - {run}
    breaks = [filter(_is_break, store.read(other)) for other in sorted(others)]
    # A break at the very time of a record comes after it, and so names it.
    return merge(store.read(run), *breaks, key=_at)


def _is_break(event: Event) -> bool:
    return isinstance(event, TrustBroken)


def _at(event: Event) -> str:
    return event.at


def seen_in(whole: MeshLog, mind: Mind, run: str, control: Control) -> Seen:
    """Judge a run of a ledger that was read."""
    log = whole.runs.get(run, RunLog())
    world = world_of(
        mind.anchors,
        log.records,
        now=mind.clock.now().timestamp(),
        high_water=whole.high_water,
        breaks=whole.broken(control, run),
        integrity=mind.integrity if mind.payloads is not None else None,
        policy=mind.form if mind.anchors.shapes else None,
    )
    verdicts = Verdicts(log.graph(), world)
    return Seen(run=run, log=log, verdicts=verdicts, control=control, whole=whole)


class MeshJudge:
    """Judges effects before they are claimed, by the step at which they are about to be made.

    A call that no recorder sees is not judged, and so not made. `undo_of` gives the name of the
    function that takes a tool's effects back; empty where there is none.
    """

    def __init__(
        self, store: MeshStore, mind: Mind, *, undo_of: Callable[[str], str] = lambda _: ""
    ) -> None:
        self._store = store
        self._mind = mind
        self._undo_of = undo_of

    def judge(self, intent: EffectClaimed) -> Precondition | Unverified:
        """What a claim on `intent` must come with, or why it may not be made."""
        spot = current()
        if spot is None:
            return Unverified(state=State.BLOCKED, reason=Reason.MISSING_DEP, culprit=intent.tool)
        seen = look(self._store, self._mind, intent.run)
        record = self._acting(spot, intent, seen)
        seen.graph.put(record)
        world = seen.verdicts.world
        # It has left nothing yet: only what it read can be looked at.
        world = replace(
            world,
            integrity=_but(record, world.integrity),
            policy=_but(record, world.policy),
        )
        verdict = Verdicts(seen.graph, world)[record.step]
        place = Place(
            run=intent.run,
            step=spot.id,
            agent=spot.agent,
            upstream=tuple(dep.ref for dep in record.upstream),
        )
        return judged(verdict, place, epoch=seen.control.epoch, undo=self._undo_of(intent.tool))

    def _acting(self, spot: Open, intent: EffectClaimed, seen: Seen) -> Checkpoint:
        """The step as it would be on record; where nobody knows what it read, it read it all."""
        deps = set(spot.deps)
        if spot.wild:
            deps |= {
                Dep(DepKind.UPSTREAM, step, seen.graph[step].output)
                for step in seen.graph
                if step != spot.id
            }
        known = seen.graph[spot.id].gen if spot.id in seen.graph else -1
        return Checkpoint(
            run=intent.run,
            step=spot.id,
            kind=StepKind.EFFECT,
            output=intent.fingerprint or intent.key,
            producer=min(self._mind.anchors.producers, default=""),
            observed_at=seen.verdicts.world.now,
            gen=known + 1,
            deps=tuple(sorted(deps)),
            rerunnable=False,
            seq=seen.whole.size + 2,
        )


def _but(record: Checkpoint, check: Checker | None) -> Checker | None:
    """The check of all records but this one."""
    if check is None:
        return None
    return lambda one: None if one is record else check(one)


def name_of(step: str) -> str:
    """The tool or agent that a step is of: ``scout`` of ``s0/desk/scout#1``."""
    return step.rpartition("/")[2].partition("#")[0].partition("~")[0]


def answer_of(payload: bytes) -> tuple[bool, Any]:
    """Whether a step answered something, and what: a tool's result, or a model's words as JSON.

    Raises whatever a payload that is none leads to.
    """
    left = msgspec.json.decode(payload)
    texts: list[str] = []
    for part in left.get("parts", ()) if isinstance(left, dict) else ():
        form = part["form"]
        response = form.get("function_response")
        if response is not None:
            return True, response.get("response")
        if form.get("text") and not form.get("thought"):
            texts.append(form["text"])
    if not texts:
        return False, None
    try:
        return True, msgspec.json.decode("".join(texts))
    except msgspec.DecodeError:
        return True, "".join(texts)
