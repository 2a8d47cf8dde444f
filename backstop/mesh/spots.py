"""Where the code of a run is at, and what it read there: activations of agents, open steps.

What is read belongs to the spot that is current where it is read. The framework's tasks carry
it along, as they carry every context variable.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from backstop.core.checkpoint import NO_USAGE, Dep, StepKind, Usage


@dataclass(slots=True, kw_only=True, eq=False)
class Spot:
    """Gathers what is read; `wild` says that nobody knows what, so it is everything so far.

    `outer` is where its caller is at.
    """

    outer: Spot | None = None
    deps: dict[Dep, None] = field(default_factory=dict)
    wild: bool = False

    def reads(self, dep: Dep) -> None:
        """It read this."""
        self.deps[dep] = None

    def like(self, other: Spot) -> None:
        """It read whatever `other` has read so far: that is all that other's work is made from."""
        self.deps.update(other.deps)
        self.wild |= other.wild

    def within(self) -> Iterator[Spot]:
        """Itself, and those that it runs inside of."""
        spot: Spot | None = self
        while spot is not None:
            yield spot
            spot = spot.outer


@dataclass(slots=True, kw_only=True, eq=False)
class Open(Spot):
    """A step that goes on, or whose output is not made up yet.

    `said` counts the events that told of it; `frame` is the activation whose step it is.
    `forwarding` says that it hands its caller's state on to a run inside of it, which tells
    what it reads there by itself.
    """

    id: str
    kind: StepKind
    agent: str = ""
    frame: Frame | None = None
    left: dict[str, Any] = field(default_factory=dict)
    ttl: float | None = None
    usage: Usage = NO_USAGE
    rerunnable: bool = True
    said: int = 0
    forwarding: bool = False
    request: Any = None
    settled: Dep | None = None

    def part(self, name: str) -> Any:  # noqa: ANN401 - what a step left is of any type
        """A member of what it left, to be filled: a list of parts, a mapping by name."""
        return self.left.setdefault(name, [] if name in {"parts", "memory"} else {})


@dataclass(slots=True, kw_only=True, eq=False)
class Frame(Spot):
    """One activation of an agent: what is read between its steps is read by the next one.

    `path` names it in the run, `turns` counts its model turns, `turn` is the latest, `tools` are
    the calls of that. `custom` says that its own code decides what it does, `alone` that
    it is shown nothing of what went before, `began` how many steps the run had then.
    """

    path: str
    agent: str
    turns: int = 0
    turn: Open | None = None
    tools: list[Open] = field(default_factory=list)
    custom: bool = False
    looping: bool = False
    alone: bool = False
    began: int = 0
    ended: bool = False

    @property
    def asking(self) -> Open | None:
        """The turn whose request is made, and of whose answer nothing was heard yet."""
        turn = self.turn
        return turn if turn is not None and not turn.said and turn.settled is None else None

    def reads(self, dep: Dep) -> None:
        """It read this, or, after its end, whoever it ran inside of."""
        self.deps[dep] = None
        if self.ended and self.outer is not None:
            self.outer.reads(dep)


SPOT: Final[ContextVar[Spot | None]] = ContextVar("backstop_spot", default=None)
"""Where this context is at; None outside of agents and steps."""


def current() -> Open | None:
    """The tool call or step that runs in this context; None outside of any.

    Its `id` is the checkpoint's step, and `deps` what it was made from so far: what the gate of
    an effect has to judge before the effect is claimed.
    """
    spot = SPOT.get()
    return spot if isinstance(spot, Open) and spot.settled is None else None


def reading() -> Spot | None:
    """Who reads what is read in this context: after a tool's call, the agent that called it."""
    spot = SPOT.get()
    while isinstance(spot, Open) and spot.settled is not None:
        spot = spot.frame or spot.outer
    if isinstance(spot, Frame):
        return spot.asking or spot
    return spot
