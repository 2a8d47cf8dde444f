"""Contents as ADK writes them down, in whatever spelling: what was said, and what was given.

Shared by the forms that hold `google.genai.types.Content` and tell no more around it:
evalsets, conformance recordings, spans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from backstop.adapters.importing.fields import member, members, objects, text
from backstop.adapters.told import Call, ImportRefused
from backstop.adk.control import PERSONS, STEERING
from backstop.core.canon import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What is known of tools by their names: `declared` ones are as the configuration says.

    `reads` are those of them that change nothing. `agents` are agents, which may be called
    like tools; whatever they do is told by itself.
    """

    declared: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()

    def call(self, name: str, tool: str, arguments: Json) -> Call:
        """A call by its id (or none), tool and arguments. Raises `ImportRefused`."""
        if not tool:
            raise ImportRefused("a call without the name of its tool; correct the file")
        if not isinstance(arguments, dict):
            raise ImportRefused(f"the arguments of {tool} are no object; correct the file")
        steering = tool not in self.declared and (tool in STEERING or tool in self.agents)
        return Call(id=name, tool=tool, arguments=arguments, steering=steering)

    def called(self, given: Mapping[str, Json]) -> Call:
        """A `FunctionCall`."""
        return self.call(text(given, "id"), text(given, "name"), members(given, "args"))

    def said(self, content: Json) -> list[Json | Call]:
        """What a model said in a content, part by part; answers of tools are no part of it."""
        told: list[Json | Call] = []
        for part in parts_of(content):
            if (call := member(part, "function_call")) is not None:
                asked = self.called(object_of(call, "a function call"))
                told += [] if asked.tool in PERSONS else [asked]
            elif member(part, "function_response") is None and part.get("text") != "":
                told.append(part)
        return told


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a tool answered; `call` and `tool` are None where it does not say to what."""

    call: str | None
    tool: str | None
    value: Json

    def fits(self, call: Call) -> bool:
        """May this be the answer to `call`?"""
        return self.call in {None, call.id} and self.tool in {None, call.tool}


def moment(began: datetime, seconds: int) -> str:
    """RFC 3339 in UTC, that many seconds after `began`. Raises `ImportRefused` past 9999."""
    try:
        later = (began + timedelta(seconds=seconds)).astimezone(UTC)
    except OverflowError:
        raise ImportRefused("a time past the year 9999; correct it") from None
    return later.isoformat().replace("+00:00", "Z")


def object_of(given: Json, what: str) -> dict[str, Json]:
    """What has to be an object. Raises `ImportRefused`."""
    if not isinstance(given, dict):
        raise ImportRefused(f"{what} is no object; correct the file")
    return given


def parts_of(content: Json) -> list[dict[str, Json]]:
    """The parts of a content, without members that are null."""
    if content is None:
        return []
    return [
        {key: value for key, value in part.items() if value is not None}
        for part in objects(object_of(content, "content"), "parts")
    ]


def given_in(content: Json) -> Iterator[Given]:
    """The answers of tools in a content, in order; those of persons to the framework are none."""
    for part in parts_of(content):
        if (response := member(part, "function_response")) is not None:
            given = given_of(object_of(response, "a function response"))
            if given.tool not in PERSONS:
                yield given


def given_of(response: Mapping[str, Json]) -> Given:
    """A `FunctionResponse`. Raises `ImportRefused`."""
    call, tool = text(response, "id"), text(response, "name")
    if not call and not tool:
        raise ImportRefused("an answer that names neither its call nor its tool; correct the file")
    return Given(call=call or None, tool=tool or None, value=member(response, "response"))


def executes(parts: Sequence[Json | Call]) -> bool:
    """Did the model have code of its own executed? What that did, no record of a call tells."""
    return any(
        isinstance(part, dict) and member(part, "executable_code") is not None for part in parts
    )


def last_words(contents: Sequence[Json]) -> list[Json] | None:
    """The parts that a user said last, None if the last content is not a user's words."""
    last = contents[-1] if contents else None
    if not isinstance(last, dict) or last.get("role") != "user":
        return None
    parts: list[Json] = [part for part in parts_of(last) if not member(part, "function_response")]
    return parts or None
