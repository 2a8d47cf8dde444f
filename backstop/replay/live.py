"""Requests that a live model is to answer, and whether its answer is one that can be played.

What comes from the harness is believed as little here as elsewhere: the driver reads the whole
request by itself, digests it, and asks with nothing else than what it has read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from backstop.core.canon import Json, digest, parse
from backstop.core.cassette import Answer
from backstop.core.coercion import coerce
from backstop.errors import WireError
from backstop.ports import ModelRequest
from backstop.replay.broker import Broker
from backstop.replay.models import Served
from backstop.replay.wire import ModelAsked, ModelGiven, ModelReply

MAX_REQUEST: Final = 12 * 1024 * 1024
"""Bytes of the largest request that is sent on."""

_SHOWN: Final = 60
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
"""JSON types whose values are told apart here; numbers have too many spellings."""


class _Whole(msgspec.Struct, frozen=True, kw_only=True):
    """A whole request, as far as it is looked into here."""

    model: str
    config: dict[str, Any] = {}

    @property
    def answer_limit(self) -> int | None:
        """How many tokens the answer may have, if the request says so."""
        limit = self.config.get("max_output_tokens")
        return limit if isinstance(limit, int) and limit > 0 else None


_WHOLE: Final = msgspec.json.Decoder(_Whole)


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """Where the replay of one run gets live answers, in its `repeat`, counted from 1.

    `usual` are the models that the base's agents ask.
    """

    broker: Broker
    repeat: int = 1
    usual: frozenset[str] = frozenset()


@dataclass(slots=True, kw_only=True)
class LiveAsking:
    """The live part of one pass over one run. `answers` counts those that were played."""

    run: str
    live: Live | None
    answers: int = 0
    _wanted: dict[int, tuple[ModelAsked, Served | None]] = field(default_factory=dict)
    _asked: Counter[str] = field(default_factory=Counter)

    def want(self, asked: ModelAsked, served: Served | None) -> ModelReply:
        """Have the whole request sent; `served` is what the record would have answered."""
        self._wanted[asked.id] = asked, served
        return ModelReply(id=asked.id, send=MAX_REQUEST)

    def taken(self, given: ModelGiven) -> tuple[ModelAsked, Served | None]:
        """The request that was wanted. Raises `WireError` for one that was not."""
        if given.of not in self._wanted:
            raise WireError(
                "the harness sent a model request that nobody wanted; run again, and report it if "
                "it stays",
                slug="wire-order",
            )
        return self._wanted.pop(given.of)

    def answer(self, given: ModelGiven) -> Answer | str:
        """The model's answer to a whole request, or why there is none that can be played."""
        if self.live is None or given.refused:
            return given.refused or "no model may be asked"
        body = bytes(given.request)  # read strictly when it came in, as a part of its line
        try:
            told = _WHOLE.decode(body)
        except msgspec.MsgspecError as fault:
            return f"its request cannot be read: {fault}"
        name = digest(body)
        nth = self._asked[name]
        self._asked[name] += 1
        answer = self.live.broker.ask(
            ModelRequest(model=told.model, body=body, answer=told.answer_limit),
            run=self.run,
            repeat=self.live.repeat,
            digest=name,
            nth=nth,
            usual=self.live.usual,
        )
        if why := answer.why or unplayable(answer, told.config):
            return why
        self.answers += 1
        return answer


def unplayable(answer: Answer, config: Mapping[str, Any]) -> str:
    """Why an answer cannot be played: it calls what was not offered, or not as it was declared."""
    offered = {str(one.get("name")): one for one in _declared(config)}
    for name, args in _calls(answer):
        shown = ascii(name)[:_SHOWN]
        if name not in offered:
            return f"it calls {shown}, which is no tool that it was offered"
        if why := _misfit(args, offered[name]):
            return f"it calls {shown} {why}"
    return ""


def _calls(answer: Answer) -> Iterator[tuple[object, object]]:
    """Name and arguments of each call of an answer."""
    told = parse(bytes(answer.response))
    content = told.get("content") if isinstance(told, dict) else None
    parts = content.get("parts") if isinstance(content, dict) else None
    for part in parts if isinstance(parts, list) else ():
        call = part.get("function_call") if isinstance(part, dict) else None
        if isinstance(call, dict):
            yield call.get("name"), call.get("args", {})


def _declared(config: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    tools = config.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        declared = tool.get("function_declarations") if isinstance(tool, dict) else None
        for one in declared if isinstance(declared, list) else ():
            if isinstance(one, dict):
                yield one


def _misfit(args: object, declared: Mapping[str, Any]) -> str:
    """Where arguments part from the declared parameters, as far as that is beyond doubt."""
    if not isinstance(args, dict):
        return "with arguments that are no object"
    schema = declared.get("parameters_json_schema") or declared.get("parameters") or {}
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return ""
    required = schema.get("required")
    for name in required if isinstance(required, list) else ():
        if name not in args:
            return f"without {ascii(name)[:_SHOWN]}, which it requires"
    for name, value in args.items():
        kind = properties.get(name)
        if isinstance(kind, dict) and not _may_be(value, kind):
            return f"with a value of another type at {ascii(name)[:_SHOWN]}"
    return ""


def _may_be(value: Json, schema: dict[str, Any]) -> bool:
    stated = schema.get("type")
    kinds = _TYPES.get(stated.lower()) if isinstance(stated, str) else None
    if kinds is None or (value is None and schema.get("nullable")):
        return True
    return isinstance(coerce(value, schema), kinds)
