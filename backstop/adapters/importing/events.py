"""What the events of one ADK session tell: a conversation, and what it leaves open.

Partial events are no part of it, an event that stands twice counts once, and what cannot be
known (what a compaction or a rewind took away, what an agent that is a tool did) is a gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from backstop.adapters.importing.conversation import Answered, Conversation, Item, Message, Spoken
from backstop.adapters.importing.fields import (
    as_object,
    as_text,
    instant,
    member,
    objects,
    spelled_out,
)
from backstop.adapters.importing.unseen import (
    OF_EVENT,
    OF_PART,
    is_a_piece,
    unseen_in_event,
    unseen_in_part,
)
from backstop.adapters.told import Call, ImportRefused, Result
from backstop.adk.control import PERSONS, STEERING
from backstop.adk.flow import CONFIRM
from backstop.core.canon import Json

_REJECTED: Final = "This tool call is rejected."
_NEVER_BEGAN: Final = ")` failed as the following mandatory input parameters are not present"
_FLOW: Final = ("end_of_agent", "escalate", "skip_summarization", "transfer_to_agent")
_PASSING_STATE: Final = "temp:"
_NO_MEMBERS: Final[Mapping[str, Json]] = {}


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

    It is not over if the agent never said a word to what it was handed last. `declared` are the
    tools that the configuration speaks of. Raises `ImportRefused` for an event that has not the
    form of ADK's.
    """
    reading = _Reading(declared=frozenset(declared))
    for number, event in enumerate(stored.events):
        try:
            reading.read(event, number)
        except ImportRefused as error:
            where = f"{stored.place}, event {number}"
            raise ImportRefused(f"{where}: {error}", slug=error.slug) from error
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
        over=not isinstance(reading.items[-1], Message),
    )


@dataclass(slots=True, kw_only=True)
class _Reading:
    """One session, event by event. `changed` are the names in its state that it changed."""

    declared: frozenset[str]
    items: list[Item] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    _seen: dict[str, Mapping[str, Json]] = field(default_factory=dict)
    _asked: set[str] = field(default_factory=set)
    _invocation: str = ""
    _past: set[str] = field(default_factory=set)

    def read(self, event: Mapping[str, Json], number: int) -> None:
        event = spelled_out(event)
        if event.get("partial") is True or self._is_repeated(event):
            return
        actions = spelled_out(as_object(event.get("actions"), "actions"))
        if delta := as_object(actions.get("state_delta"), "state_delta"):
            self.changed.update(delta)
        self._follow(as_text(event.get("invocation_id"), "invocation_id"))
        if actions.get("compaction") is not None:
            self.gaps.append("its history was compacted: what was said before is not all there")
            return
        if actions.get("rewind_before_invocation_id") is not None:
            self.gaps.append(
                "it was rewound: what had been done stays done, and a replay does not rewind"
            )
            return
        if not OF_EVENT.isdisjoint(event):
            self.gaps += unseen_in_event(event)
        at, place = instant(event.get("timestamp"), "timestamp"), f"event {number}"
        content = as_object(event.get("content"), "content")
        parts = [spelled_out(part) for part in objects(content, "parts")]
        if as_text(event.get("author"), "author") == "user":
            if delta:
                self.gaps.append("its state was changed from outside, which a replay does not do")
            if content:
                self._handed(content, parts, at=at, place=place)
        else:
            self._answers(parts, actions, delta, at=at, place=place)
            self._says(event, parts, at=at, place=place)

    def _is_repeated(self, event: Mapping[str, Json]) -> bool:
        """I1: an event is known by its id only."""
        name = as_text(event.get("id"), "id")
        if not name:
            return False
        first = self._seen.setdefault(name, event)
        if first is event:
            return False
        if first != event:
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
        parts: Sequence[Mapping[str, Json]],
        *,
        at: str,
        place: str,
    ) -> None:
        """What came from outside: words, or the answer to a call that was left open."""
        for response in _responses(parts):
            if as_text(response.get("name"), "name") not in PERSONS:
                # What the tool itself gave was nothing; this is handed to the agent instead.
                known = as_text(response.get("id"), "id") in self._asked
                self._answer(response, Result(value=None), at=at, place=place, again=known)
        self.items.append(Message(at=at, content=dict(content), place=place))

    def _answers(
        self,
        parts: Sequence[Mapping[str, Json]],
        actions: Mapping[str, Json],
        delta: Mapping[str, Json],
        *,
        at: str,
        place: str,
    ) -> None:
        # Answers of one turn share an event, and what they did to the state is told as one.
        responses = _responses(parts)
        for response in responses:
            done = _actions_of(response, actions, alone=len(responses) == 1)
            if response.get("parts"):
                self.gaps.append("an answer of a tool held pictures or files, which are left out")
            result = _result(response.get("response"), delta, done)
            self._answer(response, result, at=at, place=place)
            delta = _NO_MEMBERS

    def _answer(
        self,
        response: Mapping[str, Json],
        result: Result,
        *,
        at: str,
        place: str,
        again: bool = False,
    ) -> None:
        self.items.append(
            Answered(
                at=at,
                result=result,
                call=as_text(response.get("id"), "id") or None,
                tool=as_text(response.get("name"), "name") or None,
                again=again,
                place=place,
            )
        )

    def _says(
        self,
        event: Mapping[str, Json],
        parts: Sequence[Mapping[str, Json]],
        *,
        at: str,
        place: str,
    ) -> None:
        """What a model said; the framework's own questions to persons are none of it."""
        said: list[Json | Call] = []
        for part in parts:
            if not OF_PART.isdisjoint(part):
                self.gaps += unseen_in_part(part)
            if call := as_object(part.get("function_call"), "function_call"):
                said += self._called(call)
            elif part.get("function_response") is None:
                said.append(dict(part))
        failed = as_text(event.get("error_code"), "error_code")
        if not said and not failed:
            return
        more: dict[str, Json] = {"error_code": failed} if failed else {}
        if failed and (why := as_text(event.get("error_message"), "error_message")):
            more["error_message"] = why
        self.items.append(
            Spoken(
                at=at,
                parts=said,
                agent=as_text(event.get("author"), "author"),
                branch=as_text(event.get("branch"), "branch"),
                more=more,
                place=place,
            )
        )

    def _called(self, call: Mapping[str, Json]) -> list[Call]:
        """The call that a model asked for; none where a person is asked, or the call is a piece."""
        tool = as_text(call.get("name"), "name")
        if tool in PERSONS:
            return []
        if is_a_piece(spelled_out(call)):
            self.gaps.append(
                "it holds pieces of a call whose arguments were streamed, which are left out"
            )
            return []
        if not tool:
            raise ImportRefused("a function call without a name; give the record as it was stored")
        arguments = as_object(call.get("args"), "args")
        steering = tool not in self.declared and tool in STEERING
        if tool not in self.declared and not steering and _looks_like_agent(arguments):
            steering = True
            self.gaps.append(
                f"{tool} looks like an agent that is a tool, and what such an agent does is not "
                "among the session's events; declare it in backstop.yaml if it is none"
            )
        name = as_text(call.get("id"), "id")
        self._asked.add(name)
        return [Call(id=name, tool=tool, arguments=arguments, steering=steering)]


def _responses(parts: Sequence[Mapping[str, Json]]) -> list[dict[str, Json]]:
    return [
        response
        for part in parts
        if (response := as_object(part.get("function_response"), "function_response"))
    ]


def _looks_like_agent(arguments: Mapping[str, Json]) -> bool:
    """An agent that is a tool takes one text, its request."""
    return list(arguments) == ["request"] and isinstance(arguments["request"], str)


def _actions_of(
    response: Mapping[str, Json], actions: Mapping[str, Json], *, alone: bool
) -> dict[str, Json]:
    """What the body of one answered call did to the flow of its run."""
    done: dict[str, Json] = {}
    if alone and as_text(response.get("name"), "name") not in STEERING:
        done = {name: value for name in _FLOW if (value := actions.get(name)) is not None}
    wanted = as_object(actions.get("requested_tool_confirmations"), "requested_tool_confirmations")
    asked = wanted.get(as_text(response.get("id"), "id"))
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
