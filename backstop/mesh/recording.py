# ruff: noqa: ANN401 - what steps read and leave is of any type
"""One step of a run while it is recorded: turns what was read and left into checkpoints.

Knows no framework. A checkpoint is made when its step is *settled*: once its output is
complete, or earlier where another step has to say that it read it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import Any, Final

import msgspec

from backstop.core.canon import digest
from backstop.core.checkpoint import Checkpoint, Dep, DepKind, StepKind
from backstop.mesh.declare import Evidence
from backstop.mesh.shown import Shown
from backstop.mesh.spelling import Digester, payload_of
from backstop.mesh.spots import Frame, Open, Spot
from backstop.mesh.state import Written
from backstop.mesh.trail import Trail

SO_FAR: Final = "so-far"
"""Name of the joins that stand for everything that the run has done until then."""
SHOWN: Final = 32
"""Steps of a conversation that a turn names one by one."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint on its way into the ledger, and its payload, whose digest is its output."""

    checkpoint: Checkpoint
    payload: bytes


class Recording:
    """Makes checkpoints of what a run does about `trigger`, its step ``s0`` and so on.

    `producer` is the recorder's id, `now` its clock in Unix seconds. `made` is what has yet to
    be written.
    """

    def __init__(
        self,
        trail: Trail,
        *,
        trigger: str,
        producer: str,
        now: Callable[[], float],
        digester: Digester,
    ) -> None:
        self.trail = trail
        self.trigger = trigger
        self.digester = digester
        self.made: list[Kept] = []
        self.writing = Lock()
        self.broken = False
        """Something went wrong while it was looked: nothing more is recorded."""
        self.loose = Spot()
        """Reads outside of any agent or step: any later node may be made from them."""
        self.live: dict[str, list[Open]] = {}
        """Who said a part, by its digest, and is not settled yet."""
        self._producer = producer
        self._now = now
        self._names: Counter[str] = Counter()
        self._seen: dict[str, list[str]] = {}
        self._speaking: dict[int, Open] = {}

    # --- names ---

    def activation(self, path: str) -> str:
        """The name of one more activation of what `path` names: the first bears it plainly."""
        number = self._names[path]
        self._names[path] += 1
        return f"{path}~{number}" if number else path

    def numbered(self, base: str) -> str:
        """The name of one more step of those that `base` names."""
        number = self._names[base]
        self._names[base] += 1
        return f"{base}#{number}"

    # --- inputs and everything so far ---

    def input(self, name: str, left: Mapping[str, Any], evidence: Evidence | None = None) -> str:
        """The step that stands for what was there before the run, or outside of it.

        Seen again with the same content it is the same one.
        """
        payload = payload_of(left)
        output = digest(payload)
        known = self._seen.setdefault(name, [])
        for step in known:
            if self.trail.outputs.get(step) == output:
                return step
        step = f"{self.trigger}/{name}" + (f"~{len(known)}" if known else "")
        known.append(step)
        if self.trail.outputs.get(step) == output:
            return step  # it was kept from an earlier attempt
        deps = [] if evidence is None else [Dep(DepKind.EVIDENCE, evidence.source, output)]
        ttl = None if evidence is None else evidence.ttl
        self._make(step, StepKind.INPUT, output, deps, left, payload, ttl=ttl)
        return step

    def so_far(self) -> Dep | None:
        """Everything that the run has done until now, as one join; None if that is nothing."""
        for turn in list(self._speaking.values()):
            self.settle(turn)
        trail = self.trail
        if trail.since:
            before = [] if trail.joined is None else [trail.joined]
            deps = [trail.dep(step) for step in (*before, *trail.since)]
            trail.joined = self._join(self.numbered(f"{self.trigger}/{SO_FAR}"), deps)
            trail.since.clear()
        return None if trail.joined is None else trail.dep(trail.joined)

    def shown(self, spot: Spot, agent: str, shown: Shown) -> None:
        """`spot` was shown this. A long conversation is read as a join of it.

        Each turn is shown what the one before was, and more: to name all of it each time would
        cost the square of its length.
        """
        trail = self.trail
        if len(shown.fresh) > SHOWN:
            before = [] if shown.joined is None else [shown.joined]
            deps = [trail.dep(step) for step in (*before, *sorted(shown.fresh))]
            shown.join(self._join(self.numbered(f"{self.trigger}/shown:{agent}"), deps))
        if shown.joined is not None:
            spot.reads(trail.dep(shown.joined))
        for step in shown.fresh:
            spot.reads(trail.dep(step))

    def speaking(self, shown: Shown) -> dict[str, list[Open]]:
        """Who said parts of what is shown, by their digests, and may go on."""
        for name, said in list(self.live.items()):
            said[:] = [one for one in said if one.settled is None]
            if not said:
                del self.live[name]
        return {name: said for name, said in self.live.items() if name in shown}

    def _join(self, name: str, deps: list[Dep]) -> str:
        left = {"of": [[dep.ref, dep.digest] for dep in deps]}
        payload = payload_of(left)
        self._make(name, StepKind.JOIN, digest(payload), deps, left, payload)
        return name

    # --- who read from whom ---

    def reads(self, spot: Spot, maker: str | Spot) -> None:
        """`spot` read what `maker` left: a step by its id, or one that may still go on."""
        if isinstance(maker, str):
            spot.reads(self.trail.dep(maker))
        elif maker is spot:
            return
        elif isinstance(maker, Open) and (maker.settled or self._may_settle(maker, spot)):
            spot.reads(self.settle(maker))
        else:
            # It goes on: what it left until now was made from what it read until now.
            spot.like(maker)

    def _may_settle(self, maker: Open, spot: Spot) -> bool:
        return bool(maker.said) and all(one is not maker for one in spot.within())

    def said(self, turn: Open) -> None:
        """An event told of the turn; more may follow."""
        turn.said += 1
        self._speaking[id(turn)] = turn

    # --- steps ---

    def settle(self, step: Open) -> Dep:
        """Make the step's checkpoint of what it read and left; what it does later is no part."""
        if step.settled is not None:
            return step.settled
        self._speaking.pop(id(step), None)
        if step.wild and (everything := self.so_far()) is not None:
            step.reads(everything)
        left = {"agent": step.agent, **step.left}
        payload = payload_of(left)
        output = digest(payload)
        step.settled = Dep(DepKind.UPSTREAM, step.id, output)
        step.request = None
        self._make(
            step.id,
            step.kind,
            output,
            step.deps,
            left,
            payload,
            ttl=step.ttl,
            rerunnable=step.rerunnable,
            usage=step.usage,
        )
        for outer in (step.frame or step).within():
            # A run inside of a tool's call: the call gives what its steps left.
            if isinstance(outer, Open) and outer is not step and outer.settled is None:
                outer.reads(step.settled)
                break
        return step.settled

    def settle_all(self, steps: Iterable[Open]) -> None:
        """Settle those that are not settled yet."""
        for step in steps:
            self.settle(step)

    def _make(
        self,
        step: str,
        kind: StepKind,
        output: str,
        deps: Iterable[Dep],
        left: Mapping[str, Any],
        payload: bytes,
        **about: Any,
    ) -> None:
        checkpoint = Checkpoint(
            run=self.trail.run,
            step=step,
            kind=kind,
            output=output,
            producer=self._producer,
            observed_at=self._now(),
            gen=self.trail.gen(step),
            deps=tuple(sorted(deps)),
            **about,
        )
        self.trail.take(checkpoint, left)
        self.made.append(Kept(checkpoint=checkpoint, payload=payload))

    def takes(self, spot: Spot, value: Any, written: Iterable[Written] = ()) -> None:
        """`spot` was handed this value by code that nobody watched: who gave it is looked up.

        `written` are the values in the session's state that it may be.
        """
        given = self.digester.of(value)
        makers: list[str | Spot] = [*self.trail.results.get(given, ())]
        for one in written:
            if one.digest == given:
                makers += one.by
        if not makers or isinstance(value, bool | int | float):
            # Nobody gave it; or many may have given the same flag or number.
            spot.wild = True
        for maker in makers:
            self.reads(spot, maker)


def frame_of(spot: Spot | None) -> Frame | None:
    """The activation that `spot` is in."""
    for one in spot.within() if spot is not None else ():
        if isinstance(one, Frame):
            return one
    return None
