"""Reads conversations in Anthropic's form: messages whose content is a list of blocks.

What the service did by itself (its own search, its own code) is no call of the agent's, and a
text that it made of earlier messages tells no calls at all: the run's gaps say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from backstop.adapters.chat import Selection, run_id, selected
from backstop.adapters.importing.contents import Tools, moment, object_of
from backstop.adapters.importing.conversation import Answered, Conversation, Item, Message, Spoken
from backstop.adapters.importing.fields import objects, text
from backstop.adapters.told import Call, ImportRefused, Result
from backstop.core.canon import Json, NotCanonical, parse

_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})
_MEDIA: Final = frozenset({"image", "document", "search_result", "container_upload"})
_TOOLS: Final = Tools()
_SERVED: Final = frozenset({"server_tool_use", "mcp_tool_use"})


def read_messages(
    data: bytes, *, name: str, selection: Selection, at: datetime
) -> Iterator[Conversation]:
    """The conversations in a file: one list of messages, one request, or a list of those.

    No times are told: the n-th message of each happens n seconds after `at`. A result with
    ``is_error`` is a failure that the tool told of. Raises `ImportRefused`
    (``import-not-json``, ``import-shape``, ``import-where``, ``import-no-match``).
    """
    try:
        document = parse(data)
    except NotCanonical as error:
        reason = str(error).removeprefix("not JSON: ")
        raise ImportRefused(
            f"{name}: not JSON: {reason}; give the conversation as it was sent",
            slug="import-not-json",
        ) from error
    for index, entry in selected(_listed(document), name=name, where=selection.where):
        place = f"{name}: trajectory {index}"
        run = run_id(entry, index, selection.run_field, place=place)
        telling = _Telling(began=at)
        messages = entry.get("messages", entry.get("traj"))
        if not isinstance(messages, list) or not messages:
            raise ImportRefused(f"{place} has no list of messages under 'messages'")
        for number, message in enumerate(messages):
            telling.number = number
            try:
                telling.take(object_of(message, "it"))
            except ImportRefused as error:
                where = f"{place}, {telling.place}"
                raise ImportRefused(f"{where}: {error}", slug=error.slug) from error
        yield Conversation(
            run=run, at=moment(at, 0), items=telling.items, place=place, gaps=telling.gaps()
        )


def _listed(document: Json) -> Json:
    """A list of trajectories of whatever the file holds."""
    if isinstance(document, dict):
        return [document]
    if isinstance(document, list) and any(
        isinstance(one, dict) and "role" in one for one in document
    ):
        return [{"messages": document}]
    return document


@dataclass(slots=True, kw_only=True)
class _Telling:
    """One conversation as it is told; `served`, `cut` and `unshown` count what is not told."""

    began: datetime
    number: int = 0
    items: list[Item] = field(default_factory=list)
    waiting: list[Call] = field(default_factory=list)
    served: int = 0
    cut: int = 0
    unshown: int = 0

    @property
    def place(self) -> str:
        """Where in the conversation the telling stands."""
        return f"message {self.number}"

    def gaps(self) -> list[str]:
        """What the conversation cannot tell."""
        gaps = []
        if self.waiting:
            gaps.append(f"{len(self.waiting)} of its calls have no result")
        if self.served:
            gaps.append(
                f"{self.served} calls were run by the model's service, where none can be observed"
            )
        if self.cut:
            gaps.append(f"{self.cut} of its messages stand for earlier ones that are gone")
        if self.unshown:
            gaps.append(f"{self.unshown} images or documents that the user sent are only named")
        return gaps

    def take(self, message: Mapping[str, Json]) -> None:
        """One message, of the user's side or of the model's."""
        match message.get("role"):
            case "user":
                self._user(_blocks(message))
            case "assistant":
                self._assistant(_blocks(message))
            case "system" | "developer":
                pass  # the instruction belongs to the version, not to the record
            case role:
                raise ImportRefused(f"unknown role {role!r}; known are user and assistant")

    def _user(self, blocks: list[dict[str, Json]]) -> None:
        """Results answer what was asked; words, if there are any, set off a step."""
        said: list[Json] = []
        for block in blocks:
            match block.get("type"):
                case "tool_result":
                    self._result(block)
                case "text":
                    said.append({"text": text(block, "text")})
                case "compaction":
                    self.cut += 1
                case str(kind) if kind in _MEDIA:
                    said.append({"text": f"[{kind}]"})
                    self.unshown += 1
                case kind:
                    raise ImportRefused(f"a block of type {kind!r}, which no user sends")
        if said:
            self.items.append(
                Message(at=self._now, content={"role": "user", "parts": said}, place=self.place)
            )

    def _result(self, block: Mapping[str, Json]) -> None:
        call = text(block, "tool_use_id")
        asked = next((one for one in self.waiting[::-1] if one.id == call), None)
        if not call or asked is None:
            raise ImportRefused(
                f"answers call {call or 'without an id'!r}, which nobody asked for or which is "
                "answered already; import the whole conversation, uncompacted"
            )
        failed = block.get("is_error")
        if failed is not None and not isinstance(failed, bool):
            raise ImportRefused("'is_error' is neither true nor false; correct the file")
        self.waiting.remove(asked)
        result = Result(value=_words(block), failed=failed is True)
        self.items.append(
            Answered(at=self._now, result=result, call=call, tool=asked.tool, place=self.place)
        )

    def _assistant(self, blocks: list[dict[str, Json]]) -> None:
        parts: list[Json | Call] = []
        for block in blocks:
            match block.get("type"):
                case "text":
                    if words := text(block, "text"):
                        parts.append({"text": words})
                case "tool_use":
                    call = _TOOLS.call(text(block, "id"), text(block, "name"), block.get("input"))
                    self._ask(call, [part for part in parts if isinstance(part, Call)])
                    parts.append(call)
                case "compaction":
                    self.cut += 1
                case str(kind) if kind in _SERVED:
                    self.served += 1
                case str(kind) if kind in _THOUGHTS or kind.endswith("_tool_result"):
                    pass  # thoughts do nothing, and the service's calls are counted as asked for
                case kind:
                    raise ImportRefused(f"a block of type {kind!r}, which no model answers with")
        if parts:
            self.items.append(Spoken(at=self._now, parts=parts, place=self.place))

    def _ask(self, call: Call, beside: list[Call]) -> None:
        if not call.id:
            raise ImportRefused(f"a tool_use of {call.tool} without an id")
        if any(call.id == other.id for other in beside):
            raise ImportRefused(
                f"two calls under the id {call.id!r}: a result could belong to either"
            )
        self.waiting.append(call)

    @property
    def _now(self) -> str:
        return moment(self.began, self.number)


def _blocks(message: Mapping[str, Json]) -> list[dict[str, Json]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise ImportRefused("its content is neither text nor a list of blocks")
    return [object_of(block, "a block") for block in content]


def _words(block: Mapping[str, Json]) -> str:
    """What a tool answered: text, or text blocks; what is no text is only named."""
    content = block.get("content")
    if isinstance(content, str):
        return content
    return "".join(
        text(part, "text") if part.get("type") == "text" else _named(part)
        for part in objects(block, "content")
    )


def _named(part: Mapping[str, Json]) -> str:
    return f"[{text(part, 'type') or 'a block without a type'}]"
