"""Answers what an agent's code declares, for the run that it is called in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import Token
from typing import Any

from backstop.adk.code import code_digest
from backstop.core.checkpoint import Dep, DepKind, StepKind
from backstop.mesh.declare import Evidence
from backstop.mesh.sitting import Sitting
from backstop.mesh.spots import SPOT, Frame, Open, Spot, reading


class Noter:
    """Notes what is declared in one runner's run."""

    def __init__(self, sitting: Sitting) -> None:
        self.sitting = sitting

    def depends(self, name: str, value: object, evidence: Evidence | None) -> None:
        """The step that runs now read `value`."""
        recording = self.sitting.recording
        left = {"value": {"digest": recording.digester.of(value)}}
        step = recording.input(f"declared:{name}", left, evidence)
        recording.reads(reading() or recording.loose, step)

    def enter(
        self, function: Callable[..., Any], arguments: Mapping[str, Any], evidence: Evidence | None
    ) -> Doing:
        """`function` begins, as a step of its own."""
        return Doing(self.sitting, function, arguments, evidence)


class Doing:
    """One call of a declared function: it is made from what its caller handed it."""

    def __init__(
        self,
        sitting: Sitting,
        function: Callable[..., Any],
        arguments: Mapping[str, Any],
        evidence: Evidence | None,
    ) -> None:
        caller = reading()
        self._sitting = sitting
        self._caller = caller
        self._evidence = evidence
        recording = sitting.recording
        base = f"{_base(caller, sitting)}{function.__name__}"
        self._step = Open(
            id=recording.numbered(base),
            kind=StepKind.JOIN if evidence is None else StepKind.INPUT,
            outer=caller,
            ttl=None if evidence is None else evidence.ttl,
        )
        if code := code_digest(function):
            self._step.reads(Dep(DepKind.CODE, f"step:{function.__qualname__}", code))
        self._take(caller, arguments)
        self._token: Token[Spot | None] = SPOT.set(self._step)

    def _take(self, caller: Spot | None, arguments: Mapping[str, Any]) -> None:
        recording, step = self._sitting.recording, self._step
        if isinstance(caller, Open):
            step.like(caller)  # a tool's or step's own: it hands on what it read itself
            return
        if caller is not None:
            step.like(caller)
        written = self._sitting.keys.written
        for name, value in arguments.items():
            if type(value).__module__.startswith("google.adk."):
                continue
            at = [written[name]] if name in written else []
            recording.takes(step, value, at)

    def done(self, result: object) -> None:
        """It gave this."""
        recording, step = self._sitting.recording, self._step
        digest = recording.digester.of(result)
        step.left["result"] = {"digest": digest, "value": result}
        if self._evidence is not None:
            step.reads(Dep(DepKind.EVIDENCE, self._evidence.source, digest))
        dep = recording.settle(step)
        (self._caller or recording.loose).reads(dep)

    def leave(self) -> None:
        """What is read from here on is read by the caller."""
        SPOT.reset(self._token)


def _base(caller: Spot | None, sitting: Sitting) -> str:
    if isinstance(caller, Open):
        return f"{caller.id}/"
    if isinstance(caller, Frame):
        return f"{caller.path}/"
    return sitting.prefix
