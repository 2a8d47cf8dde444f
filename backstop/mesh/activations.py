# ruff: noqa: ANN401 - agents and contexts are the framework's
"""An agent begins: what decided that it does, and under which name."""

from __future__ import annotations

from typing import Any, Final

from backstop.mesh.definitions import path_of
from backstop.mesh.sitting import Sitting
from backstop.mesh.spots import SPOT, Frame, Open, Spot

_OWN: Final = "google.adk."


def activate(sitting: Sitting, agent: Any, context: Any) -> Frame:
    """A further activation of `agent`, which was made from what decided that it runs."""
    recording = sitting.recording
    parent = _parent(sitting, agent)
    frame = Frame(
        path=recording.activation(f"{sitting.prefix}{path_of(agent)}"),
        agent=agent.name,
        outer=parent,
        custom=not type(agent).__module__.startswith(_OWN),
        looping=type(agent).__name__ == "LoopAgent",
        alone=getattr(agent, "include_contents", "default") == "none",
        began=len(recording.trail.order),
    )
    for one in parent.within() if parent is not None else ():
        if isinstance(one, Frame):
            _decides(sitting, one, frame)
    for step in sitting.transfers.get(agent.name, ()):
        recording.reads(frame, step)
    if sitting.routed or _goes_on(sitting, agent, parent):
        frame.wild = True
    sitting.frames[agent.name, context.branch or ""] = frame
    return frame


def _goes_on(sitting: Sitting, agent: Any, parent: Spot | None) -> bool:
    """Whether what was said in earlier runs decided that it is this agent's turn."""
    below = getattr(agent, "parent_agent", None) is not None
    return below and parent is None and not sitting.frames and sitting.outer is None


def _parent(sitting: Sitting, agent: Any) -> Spot | None:
    above = getattr(getattr(agent, "parent_agent", None), "name", None)
    spot = SPOT.get()
    for one in spot.within() if spot is not None else ():
        if isinstance(one, Open) and one.settled is None:
            return one
        if isinstance(one, Frame) and one.agent == above and not one.ended:
            return one
    return sitting.parent


def _decides(sitting: Sitting, outer: Frame, frame: Frame) -> None:
    """What `outer` read, and did, decides that `frame` runs."""
    frame.like(outer)
    recording = sitting.recording
    if outer.turn is not None:
        recording.settle_all([one for one in (outer.turn, *outer.tools) if one.said or one.settled])
        for one in (outer.turn, *outer.tools):
            if one.settled is not None:
                frame.reads(one.settled)
    if outer.custom or (outer.looping and len(recording.trail.order) > outer.began):
        # Its own code may have looked at anything; a loop goes on as long as no step ends it.
        frame.wild = True
