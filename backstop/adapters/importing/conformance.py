"""Reads the recordings of ``adk conformance``: one run a file, one step a user message.

ADK leaves out of them every call that raised or that had no answer yet, so a call without a
recording is told as never answered; when anything happened is not told at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from backstop.adapters.importing.contents import (
    Tools,
    executes,
    given_of,
    last_words,
    moment,
    object_of,
)
from backstop.adapters.importing.conversation import Answered, Conversation, Item, Message, Spoken
from backstop.adapters.importing.fields import members, objects, text
from backstop.adapters.importing.yamljson import parse_yaml
from backstop.adapters.told import Call, ImportRefused, Result
from backstop.core.canon import Json


def read_recordings(
    data: bytes, *, name: str, run: str, tools: Tools, at: datetime
) -> Conversation:
    """The run that a ``generated-recordings.yaml`` tells; its items are a second apart.

    An agent that was called as a tool is told by its own recordings.
    Raises `ImportRefused` (``import-not-yaml``, ``import-shape``).
    """
    document = parse_yaml(data, name=name)
    recordings = document.get("recordings") if isinstance(document, dict) else None
    if not isinstance(recordings, list) or not recordings:
        raise ImportRefused(
            f"{name}: no list under 'recordings'; give what adk conformance record wrote"
        )
    agents = [one.get("agent_name") for one in recordings if isinstance(one, dict)]
    named = frozenset(agent for agent in agents if isinstance(agent, str))
    telling = _Telling(tools=replace(tools, agents=named), began=at)
    for number, one in enumerate(recordings):
        telling.place = f"recording {number}"
        try:
            telling.take(object_of(one, "it"))
        except ImportRefused as error:
            raise ImportRefused(f"{name}, {telling.place}: {error}", slug=error.slug) from error
    return Conversation(
        run=run, at=moment(at, 0), items=telling.items, place=name, gaps=telling.gaps()
    )


@dataclass(slots=True, kw_only=True)
class _Telling:
    """The recordings told so far; `step` is the place of the user's message in hand."""

    tools: Tools
    began: datetime
    place: str = ""
    step: int = -1
    wordless: int = 0
    coded: int = 0
    items: list[Item] = field(default_factory=list)
    waiting: list[Call] = field(default_factory=list)

    def gaps(self) -> list[str]:
        """What the recordings cannot tell."""
        gaps = []
        if waiting := sum(not call.steering for call in self.waiting):
            gaps.append(
                f"{waiting} of its calls have no recording: they raised, or had no answer yet"
            )
        if self.wordless:
            gaps.append(f"what the user said is not told for {self.wordless} of its steps")
        if self.coded:
            gaps.append(f"{self.coded} of its answers executed code; what that did is not told")
        return gaps

    def take(self, recording: Mapping[str, Json]) -> None:
        """One recording: of a model's answer, or of a tool's."""
        asked, called = recording.get("llm_recording"), recording.get("tool_recording")
        if (asked is None) == (called is None):
            raise ImportRefused("neither, or both, of 'llm_recording' and 'tool_recording'")
        request = object_of(asked, "'llm_recording'").get("llm_request") if asked else None
        self._step(recording.get("user_message_index"), request)
        agent = text(recording, "agent_name")
        if asked is None:
            self._tool(object_of(called, "'tool_recording'"), agent=agent)
        else:
            self._model(object_of(asked, "'llm_recording'"), agent=agent)

    def _step(self, index: Json, request: Json) -> None:
        if isinstance(index, bool) or not isinstance(index, int) or index < 0:
            raise ImportRefused("'user_message_index' is no whole number")
        if index < self.step:
            raise ImportRefused(
                f"it is of user message {index}, after one of message {self.step}; recordings "
                "stand in order of time"
            )
        if index == self.step:
            return
        self.step = index
        contents = objects(object_of(request, "'llm_request'"), "contents") if request else []
        words = last_words(contents)
        self.wordless += words is None
        content: Json = {"role": "user", "parts": words or [{"text": ""}]}
        self.items.append(Message(at=self._now, place=self.place, content=content))

    def _model(self, given: Mapping[str, Json], *, agent: str) -> None:
        """The answers to one request; parts of a streamed one come again in its last (A04)."""
        for response in objects(given, "llm_responses"):
            content = None if response.get("partial") is True else response.get("content")
            parts = self.tools.said(content)
            if parts:
                self._spoken(parts, agent=agent)

    def _tool(self, given: Mapping[str, Json], *, agent: str) -> None:
        call = self.tools.called(members(given, "tool_call"))
        if (asked := self._asked(call)) is None:
            # Not a model but code asked: nobody else says that it did.
            self._spoken([call], agent=agent)
            asked = call
        if given.get("tool_response") is None:
            return
        self.waiting.remove(asked)
        answer = given_of(members(given, "tool_response"))
        self.items.append(
            Answered(
                at=self._now,
                result=Result(value=answer.value),
                call=asked.id or None,
                tool=asked.tool,
                place=self.place,
            )
        )

    def _asked(self, call: Call) -> Call | None:
        """The nearest earlier call of that id and tool (semantics.md I1)."""
        alike = (one for one in self.waiting[::-1] if (one.id, one.tool) == (call.id, call.tool))
        return next(alike, None)

    def _spoken(self, parts: list[Json | Call], *, agent: str) -> None:
        self.coded += executes(parts)
        self.waiting += [part for part in parts if isinstance(part, Call)]
        self.items.append(Spoken(at=self._now, parts=parts, agent=agent, place=self.place))

    @property
    def _now(self) -> str:
        return moment(self.began, len(self.items))
