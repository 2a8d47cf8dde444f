# ruff: noqa: ANN401 - the framework's values are of any type
"""One run of a runner while it is recorded: what its contexts, requests and events tell.

A runner inside of a tool's call has a sitting of its own, with the same recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from google.genai import types

from backstop.adk.control import PERSONS
from backstop.adk.requests import RequestDigester, part_form
from backstop.core.checkpoint import StepKind, Usage
from backstop.mesh.declare import is_step
from backstop.mesh.definitions import declared_deps
from backstop.mesh.quoted import FRAMING, may_be_quoted, quoted
from backstop.mesh.recording import Recording
from backstop.mesh.services import Shelf
from backstop.mesh.shown import Shown
from backstop.mesh.spots import Frame, Open, Spot
from backstop.mesh.state import Keys

_FLOW: Final = ("escalate", "transfer_to_agent", "end_of_agent", "skip_summarization")


class Asked(NamedTuple):
    """A call that a turn made: the turn, and what the call is named by in it."""

    turn: Open
    name: str


@dataclass(slots=True, kw_only=True, eq=False)
class Sitting:
    """What is known of one runner's run. `prefix` begins the names of its steps.

    `parent` is the tool's call that it runs inside of; `parts` digests parts of contents.
    """

    recording: Recording
    keys: Keys
    shelf: Shelf
    prefix: str
    parts: RequestDigester
    session: str
    outer: Sitting | None = None
    parent: Spot | None = None
    frames: dict[tuple[str, str], Frame] = field(default_factory=dict)
    asked: dict[str, Asked] = field(default_factory=dict)
    opens: dict[str, Open] = field(default_factory=dict)
    transfers: dict[str, list[Open]] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()
    """Steps of this trigger that are not made anew: they are said again, as they stand."""
    steps_of_nodes: frozenset[str] = frozenset()
    """Nodes of a workflow whose functions are steps of their own."""
    routed: bool = False
    """Whether it depends on what nodes give which others run."""
    over: bool = False

    def read_graph(self, graph: Any) -> None:
        """The run is that of a workflow: which of its nodes are steps, and whether it branches."""
        functions = {node.name: getattr(node, "_func", None) for node in graph.nodes}
        self.steps_of_nodes = frozenset(name for name, func in functions.items() if is_step(func))
        self.routed = any(getattr(edge, "route", None) is not None for edge in graph.edges)

    # --- a model's turn ---

    def read_request(self, turn: Open, *, alone: bool) -> None:
        """The turn read its request: whose words stand there, and what it is made with."""
        request, recording = turn.request, self.recording
        if request is None:
            turn.wild = True
            return
        for dep in declared_deps(request.config):
            turn.reads(dep)
        trail = recording.trail
        shown = trail.shown.setdefault(turn.agent, Shown())
        shown.look(request.contents or (), self.parts, trail.parts)
        if any(map(may_be_quoted, shown.nobodys.values())):
            self._learn_quotes()
        shown.listen(trail.heard, () if alone else trail.quiet)
        speaking = recording.speaking(shown)
        # What nobody said may come from anywhere.
        turn.wild |= any(
            digest not in speaking and part.text not in FRAMING
            for digest, part in shown.nobodys.items()
        )
        recording.shown(turn, turn.agent, shown)
        for maker in [one for said in speaking.values() for one in said]:
            recording.reads(turn, maker)

    def _learn_quotes(self) -> None:
        """Find out how others are told of what was said since this was last asked."""
        trail = self.recording.trail
        for step, left in trail.told:
            forms = [made["form"] for made in left["parts"]]
            for part in quoted(left.get("agent") or "user", forms):
                if part.text not in FRAMING:
                    trail.says(step, self.parts.part(part))
        trail.told.clear()

    def says(self, step: Open, event: Any) -> None:
        """The event tells of the step: its parts, what it wrote, what it did to the flow."""
        for part in (event.content.parts if event.content else None) or ():
            digest = self.parts.part(part)
            step.part("parts").append({"digest": digest, "form": part_form(part)})
            self.recording.live.setdefault(digest, []).append(step)
        self._acts(step, event)
        step.left["said"] = True
        usage = event.usage_metadata
        if usage is not None:
            step.usage = Usage(
                calls=1,
                input_tokens=usage.prompt_token_count or 0,
                output_tokens=usage.candidates_token_count or 0,
            )
        elif step.kind is StepKind.MODEL and not step.usage.calls:
            step.usage = Usage(calls=1)

    def _acts(self, step: Open, event: Any) -> None:
        actions = event.actions
        if actions is None:
            return
        for name, version in (actions.artifact_delta or {}).items():
            step.part("artifacts").setdefault(name, {"version": version, "digest": ""})
        for name in _FLOW:
            if getattr(actions, name, None):
                step.part("actions")[name] = getattr(actions, name)
        if event.error_code:
            step.left["error"] = str(event.error_code)
        if actions.transfer_to_agent:
            self.transfers.setdefault(actions.transfer_to_agent, []).append(step)

    def turn_said(self, frame: Frame, turn: Open, event: Any) -> None:
        """The event is a model's answer, or a part of it."""
        if not turn.said and self._is_kept(turn, event):
            turn.settled = self.recording.trail.dep(turn.id)
            turn.request, turn.said = None, 1
        else:
            if turn.said:
                turn.like(frame)  # what was read since the first answer may have shaped this one
            else:
                self.read_request(turn, alone=frame.alone)
            self.says(turn, event)
        self.keys.commit(event.actions.state_delta, [turn])
        calls: dict[str, int] = {}
        for call in event.get_function_calls():
            name = call.name or ""
            nth = calls[name] = calls.get(name, 0) + 1
            label = name if nth == 1 else f"{name}~{nth - 1}"
            self.asked[call.id or ""] = Asked(turn, f"{turn.id}/{label}")
        if turn.settled is None:
            self.recording.said(turn)

    def _is_kept(self, turn: Open, event: Any) -> bool:
        """Whether the turn is one that is kept, and no model was asked for it again."""
        return (
            turn.id in self.kept and event.usage_metadata is None and self._is_known(turn.id, event)
        )

    def _is_known(self, step: str, event: Any) -> bool:
        """Whether a step said all that the event says."""
        parts = self.recording.trail.parts
        said = (event.content.parts if event.content else None) or ()
        return bool(said) and all(step in parts.get(self.parts.part(one), ()) for one in said)

    def is_said_again(self, frame: Frame, event: Any) -> bool:
        """Whether the event only says what a kept step of the agent said: it made nothing."""
        delta = event.actions.state_delta or {}
        if event.usage_metadata is not None or event.actions.artifact_delta:
            return False
        for step in self.kept:
            if (
                step.startswith(f"{frame.path}#")
                and self._is_known(step, event)
                and all(self._wrote(step, key, value) for key, value in delta.items())
            ):
                self.keys.committing.update(delta)
                return True
        return False

    def _wrote(self, step: str, key: str, value: Any) -> bool:
        """Whether the value that a key holds is this one, and the step's."""
        written = self.keys.written.get(key)
        return (
            written is not None
            and step in written.by
            and written.digest == self.recording.digester.of(value)
        )

    # --- tools' answers ---

    def answered(self, event: Any) -> bool:
        """The event answers calls: their steps are complete. False if it answers no known one."""
        responses = event.get_function_responses()
        steps = [self.opens.pop(one.id or "", None) or self._unseen(one) for one in responses]
        if not steps or None in steps:
            return False
        made = [step for step in steps if step is not None]
        answers = [part for part in event.content.parts if part.function_response is not None]
        for step, part in zip(made, answers, strict=True):
            digest = self.parts.part(part)
            step.left["parts"] = [{"digest": digest, "form": part_form(part)}]
            self._acts(step, event)
        delta = event.actions.state_delta
        told = {key for step in made for key in step.left.get("state", ())}
        self.keys.commit({k: v for k, v in delta.items() if k not in told}, made)
        for key in told & delta.keys():
            self.keys.committing[key] = delta[key]
        self.recording.settle_all(made)
        return True

    def _unseen(self, response: Any) -> Open | None:
        """The step of a call that came to no hook of ours."""
        asked = self.asked.get(response.id or "")
        if asked is None:
            return None
        step = Open(
            id=asked.name,
            kind=StepKind.TOOL,
            agent=asked.turn.agent,
            frame=asked.turn.frame,
            outer=asked.turn.frame,
            wild=True,
        )
        self.recording.reads(step, asked.turn)
        return step

    # --- whatever else is said ---

    def joined(self, event: Any, base: str, readers: Iterable[Spot]) -> Open | None:
        """A step for what no turn and no tool said: an agent's own code did, or a node's.

        None for an event that leaves nothing.
        """
        actions = event.actions
        output = getattr(event, "output", None)
        leaves = (
            (event.content and event.content.parts)
            or output is not None
            or (actions and (actions.state_delta or actions.artifact_delta))
            or (actions and any(getattr(actions, name, None) for name in _FLOW[:2]))
        )
        if not leaves:
            return None
        recording = self.recording
        step = Open(
            id=recording.numbered(f"{base}!"),
            kind=StepKind.JOIN,
            agent=event.author,
            outer=self.parent,
            wild=True,
        )
        for reader in (*readers, recording.loose):
            step.like(reader)
        self.says(step, event)
        self.keys.commit(actions.state_delta or {}, [step])
        if output is not None:
            step.left["result"] = {"digest": recording.digester.of(_plain(output))}
        recording.settle(step)
        self.hands_on(output, step.id)
        return step

    def hands_on(self, output: Any, step: str) -> None:
        """An agent that comes next is told of an output as if a person had said it."""
        if isinstance(output, str):
            digest = self.parts.part(types.Part(text=output))
            self.recording.trail.says(step, digest)

    def is_steps_own(self, event: Any, node: str) -> bool:
        """Whether the event only hands on what a node's function gave, which is a step."""
        output = getattr(event, "output", None)
        if node not in self.steps_of_nodes or output is None:
            return False
        steps = self.recording.trail.results.get(self.recording.digester.of(_plain(output)), ())
        for step in steps:
            self.hands_on(output, step)
        for key, value in (event.actions.state_delta or {}).items():
            self.keys.committing[key] = value
        return bool(steps)

    def frame_of(self, author: str, branch: str | None) -> Frame | None:
        """The latest activation of an agent, in this branch of the conversation if there is one."""
        found = self.frames.get((author, branch or ""))
        if found is not None:
            return found
        known = [frame for (name, _), frame in self.frames.items() if name == author]
        return known[0] if len(known) == 1 else None

    def settle_frame(self, frame: Frame) -> None:
        """The activation goes on to its next step: whatever it said before is complete."""
        if frame.turn is not None and frame.turn.said:
            self.recording.settle(frame.turn)
        for tool in frame.tools:
            if tool.settled is None and "result" in tool.left:
                self.recording.settle(tool)  # it gave something, and no event told of it

    def close(self) -> None:
        """The run is over: nothing more is said."""
        self.over = True
        for frame in self.frames.values():
            if frame.turn is not None and not frame.turn.said:
                frame.turn = None  # it never answered: there is no such step
            self.settle_frame(frame)
        for step in list(self.opens.values()):
            if "result" in step.left:
                self.recording.settle(step)


def is_persons(event: Any) -> bool:
    """Whether the framework itself asks a person for something in this event."""
    return any(call.name in PERSONS for call in event.get_function_calls())


def _plain(value: Any) -> Any:
    return (
        value.model_dump(mode="json", exclude_none=True) if hasattr(value, "model_dump") else value
    )


def user_left(content: Any, parts: RequestDigester) -> Mapping[str, Any]:
    """What a person's message leaves for others to read."""
    made = [{"digest": parts.part(one), "form": part_form(one)} for one in content.parts or ()]
    return {"agent": "user", "parts": made}
