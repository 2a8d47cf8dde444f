"""What the attributes of one span say: of a tool that ran, or of a model that answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from backstop.adapters.importing.contents import Tools, last_words, object_of
from backstop.adapters.importing.fields import objects, text
from backstop.adapters.importing.spans import Span
from backstop.adapters.told import Call, ImportRefused
from backstop.core.canon import Json, NotCanonical, parse

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_MODELS: Final = frozenset({"chat", "generate_content", "text_completion"})
_MERGED: Final = ("(merged tools)", "(merged)")
_UNTOLD: Final = ("<not specified>", "N/A")
"""What ADK writes in place of a value that it does not have."""

_OLD_RESULT: Final = "gcp.vertex.agent.tool_response"
_OLD_ARGUMENTS: Final = "gcp.vertex.agent.tool_call_args"


@dataclass(slots=True, kw_only=True, eq=False)
class Ran:
    """A tool that ran. `arguments` is None where its span does not tell them.

    `call` is the call that it was, once one is found or made.
    """

    span: Span
    tool: str
    id: str
    arguments: dict[str, Json] | None
    answered: bool
    result: Json
    call: Call | None = None

    def asked(self, call: Call | None, tools: Tools) -> Call:
        """The call that this was: what ran counts, not what a model had asked for.

        Raises `ImportRefused` (``import-no-content``) where nothing tells its arguments.
        """
        arguments = self.arguments
        if arguments is None and call is not None:
            arguments = call.arguments
        if arguments is None:
            raise ImportRefused(
                f"{self.span.place}: nothing says with which arguments {self.tool} ran; trace "
                "with the contents of messages, and import those traces",
                slug="import-no-content",
            )
        named = self.id or (call.id if call else "") or self.span.id[1]
        self.call = tools.call(named, self.tool, arguments)
        return self.call


def stamp(span: Span, *, end: bool = False) -> str:
    """When a span began, or ended, as RFC 3339 in UTC; never ended before it began."""
    nanoseconds = max(span.start, span.end) if end else span.start
    moment = _EPOCH + timedelta(microseconds=nanoseconds // 1000)
    return moment.isoformat().replace("+00:00", "Z")


def is_model(span: Span) -> bool:
    """Is it a request to a model?"""
    return span.text("gen_ai.operation.name") in _MODELS or span.name == "call_llm"


def ran(span: Span) -> Ran | None:
    """The tool that ran in a span, None if it is none of a tool's. Raises `ImportRefused`."""
    is_tool = span.text("gen_ai.operation.name") == "execute_tool"
    if not is_tool and not span.name.startswith("execute_tool"):
        return None
    tool = span.text("gen_ai.tool.name") or span.name.removeprefix("execute_tool").strip(" []")
    if not tool:
        raise ImportRefused(f"{span.place}: a tool ran that has no name; export it again")
    if tool in _MERGED:
        return None  # ADK's summary of calls that have spans of their own
    arguments, result = _contents(span)
    named = span.text("gen_ai.tool.call.id")
    return Ran(
        span=span,
        tool=tool,
        id="" if named is None or named in _UNTOLD else named,
        arguments=_arguments(arguments, tool, span),
        answered=result is not None,
        result=result,
    )


def _contents(span: Span) -> tuple[Json, Json]:
    """Arguments and result, None where they are not told."""
    arguments = span.attributes.get("gen_ai.tool.call.arguments")
    result = span.attributes.get("gen_ai.tool.call.result")
    if arguments is None and result is None:
        arguments, result = span.attributes.get(_OLD_ARGUMENTS), span.attributes.get(_OLD_RESULT)
        if arguments == result == "{}":
            return None, None  # that is how ADK leaves contents out
    read = _read(result)
    if read in _UNTOLD or (isinstance(read, dict) and read.get("result") in _UNTOLD):
        read = None
    return None if arguments in _UNTOLD else arguments, read


def _read(value: Json) -> Json:
    """What an attribute holds: JSON as text is what it says, other text is itself."""
    if not isinstance(value, str) or not value.startswith(("{", "[", '"')):
        return value
    try:
        return parse(value)
    except NotCanonical:
        return value


def _arguments(given: Json, tool: str, span: Span) -> dict[str, Json] | None:
    read = _read(given)
    if read is None or isinstance(read, dict):
        return read
    raise ImportRefused(
        f"{span.place}: the arguments of {tool} are no JSON object (were they cut off?); raise "
        "the limit on attributes and trace again",
        slug="import-no-content",
    )


def said_by(span: Span, tools: Tools) -> list[Json | Call] | None:
    """What a model answered, part by part, None where its span does not tell."""
    try:
        old = _read(span.attributes.get("gcp.vertex.agent.llm_response"))
        if isinstance(old, dict) and old:
            return tools.said(old.get("content"))
        messages = _read(span.attributes.get("gen_ai.output.messages"))
        if not isinstance(messages, list) or not messages:
            return None
        first = object_of(messages[0], "a message of a model")
        return [told for part in objects(first, "parts") for told in _part(part, tools)]
    except ImportRefused as error:
        raise ImportRefused(f"{span.place}: {error}", slug=error.slug) from error


def _part(part: Mapping[str, Json], tools: Tools) -> list[Json | Call]:
    match part.get("type"):
        case "text":
            words = text(part, "content")
            return [{"text": words}] if words else []
        case "tool_call":
            arguments = _read(part.get("arguments"))
            given = {} if arguments is None else arguments
            return [tools.call(text(part, "id"), text(part, "name"), given)]
        case _:
            return []  # thoughts and pictures ask for nothing


def words_for(span: Span) -> list[Json] | None:
    """What the user had said last when the model was asked, None where that is not told."""
    try:
        old = _read(span.attributes.get("gcp.vertex.agent.llm_request"))
        if isinstance(old, dict) and old:
            return last_words(objects(old, "contents"))
        messages = _read(span.attributes.get("gen_ai.input.messages"))
        last = messages[-1] if isinstance(messages, list) and messages else None
        if not isinstance(last, dict) or last.get("role") != "user":
            return None
        parts = [told for part in objects(last, "parts") for told in _part(part, Tools())]
        return [part for part in parts if not isinstance(part, Call)] or None
    except ImportRefused as error:
        raise ImportRefused(f"{span.place}: {error}", slug=error.slug) from error
