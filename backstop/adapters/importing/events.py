"""What the events of one ADK session tell: a conversation, and what it leaves open.

Partial events are no part of it, an event that stands twice counts once, and what cannot be
known (what a compaction or a rewind took away, what an agent that is a tool did) is a gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from backstop.adapters.importing.conversation import Answered, Conversation, Item, Message, Spoken
from backstop.adapters.importing.fields import instant, member, members, objects, text
from backstop.adapters.told import Call, ImportRefused, Result
from backstop.adk.control import PERSONS, STEERING
from backstop.adk.flow import CONFIRM
from backstop.core.canon import Json

_REJECTED: Final = "This tool call is rejected."
_NEVER_BEGAN: Final = ")` failed as the following mandatory input parameters are not present"
_FLOW: Final = ("end_of_agent", "escalate", "skip_summarization", "transfer_to_agent")
_PASSING_STATE: Final = "temp:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A session as it was stored, and its events in their order. `place` names it in its store.

    `state` is that of the session at its end.
    """

    app: str
    user: str
    id: str
    events: Iterable[Mapping[str, Json]]
    place: str
    state: Mapping[str, Json] = field(default_factory=dict)


def conversation(stored: Stored, *, run: str, declared: Iterable[str]) -> Conversation | None:
    """The conversation of a session; None for one without any event that counts.

    `declared` are the tools that the configuration speaks of. Raises `ImportRefused` for an
    event that has not the form of ADK's.
    """
    reading = _Reading(place=stored.place, declared=frozenset(declared))
    for number, event in enumerate(stored.events):
        where = f"event {number}"
        try:
            reading.read(event, place=where)
        except ImportRefused as error:
            raise ImportRefused(f"{stored.place}, {where}: {error}", slug=error.slug) from error
    if not reading.items:
        return None
    return Conversation(
        run=run,
        at=reading.items[0].at,
        items=reading.items,
        place=stored.place,
        user=stored.user or "user",
        state={
            name: value
            for name, value in stored.state.items()
            if name not in reading.changed and not name.startswith(_PASSING_STATE)
        },
        gaps=list(dict.fromkeys(reading.gaps)),
    )


@dataclass(slots=True, kw_only=True)
class _Reading:
    """One session, event by event. `changed` are the names in its state that it changed."""

    place: str
    declared: frozenset[str]
    items: list[Item] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    _seen: dict[str, Mapping[str, Json]] = field(default_factory=dict)
    _asked: set[str] = field(default_factory=set)
    _invocation: str = ""
    _past: set[str] = field(default_factory=set)

    def read(self, event: Mapping[str, Json], *, place: str) -> None:
        if member(event, "partial") is True or self._is_repeated(event):
            return
        actions = members(event, "actions")
        self.changed.update(members(actions, "state_delta"))
        self._follow(text(event, "invocation_id"))
        if member(actions, "compaction") is not None:
            self.gaps.append("its history was compacted: what was said before is not all there")
            return
        if member(actions, "rewind_before_invocation_id") is not None:
            self.gaps.append(
                "it was rewound: what had been done stays done, and a replay does not rewind"
            )
            return
        at = instant(event, "timestamp")
        content = members(event, "content")
        if text(event, "author") == "user":
            self._handed(content, actions, at=at, place=place)
        else:
            self._answers(content, actions, at=at, place=place)
            self._says(event, content, at=at, place=place)

    def _is_repeated(self, event: Mapping[str, Json]) -> bool:
        """I1: an event is known by its id only."""
        name = text(event, "id")
        if not name:
            return False
        if name not in self._seen:
            self._seen[name] = event
            return False
        if self._seen[name] != event:
            self.gaps.append(f"event {name} stands in it twice, and not alike; the first counts")
        return True

    def _follow(self, invocation: str) -> None:
        """Two invocations that take turns were two servers at one session."""
        if not invocation or invocation == self._invocation:
            return
        if invocation in self._past:
            self.gaps.append("two of its invocations are interleaved: nobody knows which saw what")
        self._past.add(self._invocation)
        self._invocation = invocation

    def _handed(
        self,
        content: Mapping[str, Json],
        actions: Mapping[str, Json],
        *,
        at: str,
        place: str,
    ) -> None:
        """What came from outside: words, or the answer to a call that was left open."""
        if members(actions, "state_delta"):
            self.gaps.append("its state was changed from outside, which a replay does not do")
        if not content:
            return
        for part in objects(content, "parts"):
            response = members(part, "function_response")
            if response and text(response, "name") not in PERSONS:
                # What the tool itself gave was nothing; this is handed to the agent instead.
                known = text(response, "id") in self._asked
                self._answer(response, Result(value=None), at=at, place=place, again=known)
        self.items.append(Message(at=at, content=dict(content), place=place))

    def _answers(
        self,
        content: Mapping[str, Json],
        actions: Mapping[str, Json],
        *,
        at: str,
        place: str,
    ) -> None:
        responses = [
            response
            for part in objects(content, "parts")
            if (response := members(part, "function_response"))
        ]
        # Answers of one turn share an event, and what they did to the state is told as one.
        delta = members(actions, "state_delta")
        for response in responses:
            done = _actions_of(response, actions, alone=len(responses) == 1)
            result = _result(_given(response), delta, done)
            self._answer(response, result, at=at, place=place)
            delta = {}

    def _answer(
        self,
        response: Mapping[str, Json],
        result: Result,
        *,
        at: str,
        place: str,
        again: bool = False,
    ) -> None:
        call, tool = text(response, "id"), text(response, "name")
        self.items.append(
            Answered(
                at=at,
                result=result,
                call=call or None,
                tool=tool or None,
                again=again,
                place=place,
            )
        )

    def _says(
        self, event: Mapping[str, Json], content: Mapping[str, Json], *, at: str, place: str
    ) -> None:
        """What a model said; the framework's own questions to persons are none of it."""
        parts: list[Json | Call] = []
        for part in objects(content, "parts"):
            if member(part, "function_response") is not None:
                continue
            if member(part, "executable_code") is not None:
                self.gaps.append("it executed code; what that did is not in its events")
            if call := members(part, "function_call"):
                if text(call, "name") not in PERSONS:
                    parts.append(self._call(call))
            else:
                parts.append(dict(part))
        failed = text(event, "error_code")
        if parts or failed:
            more: dict[str, Json] = {"error_code": failed} if failed else {}
            if failed and (why := text(event, "error_message")):
                more["error_message"] = why
            who = text(event, "author")
            self.items.append(Spoken(at=at, parts=parts, agent=who, more=more, place=place))

    def _call(self, call: Mapping[str, Json]) -> Call:
        tool, arguments = text(call, "name"), members(call, "args")
        if not tool:
            raise ImportRefused("a function call without a name; give the record as it was stored")
        steering = tool not in self.declared and tool in STEERING
        if tool not in self.declared and not steering and _looks_like_agent(arguments):
            steering = True
            self.gaps.append(
                f"{tool} looks like an agent that is a tool, and what such an agent does is not "
                "among the session's events; declare it in backstop.yaml if it is none"
            )
        self._asked.add(text(call, "id"))
        return Call(id=text(call, "id"), tool=tool, arguments=arguments, steering=steering)


def _looks_like_agent(arguments: Mapping[str, Json]) -> bool:
    """An agent that is a tool takes one text, its request."""
    return list(arguments) == ["request"] and isinstance(arguments["request"], str)


def _given(response: Mapping[str, Json]) -> Json:
    return member(response, "response")


def _actions_of(
    response: Mapping[str, Json], actions: Mapping[str, Json], *, alone: bool
) -> dict[str, Json]:
    """What the body of one answered call did to the flow of its run."""
    done: dict[str, Json] = {}
    if alone and text(response, "name") not in STEERING:
        done = {name: value for name in _FLOW if (value := member(actions, name)) is not None}
    asked = members(actions, "requested_tool_confirmations").get(text(response, "id"))
    if isinstance(asked, dict):
        hint = member(asked, "hint")
        done[CONFIRM] = {"hint": hint or "", "payload": member(asked, "payload")}
    return done


def _result(value: Json, delta: Mapping[str, Json], done: Mapping[str, Json]) -> Result:
    """What a call gave; what the framework said in a tool's place is known by its words."""
    said = value.get("error") if isinstance(value, dict) and len(value) == 1 else None
    declined = said == _REJECTED
    failed = isinstance(said, str) and _NEVER_BEGAN in said
    return Result(value=value, failed=failed, declined=declined, state_delta=delta, actions=done)
