"""What a record made elsewhere tells of calls: asked for, and what they gave."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from backstop.adk.flow import CONFIRM
from backstop.core.canon import Json
from backstop.core.literal import literal
from backstop.errors import BackstopError


class ImportRefused(BackstopError):
    """A record made elsewhere cannot be imported; the message names the place in the file."""

    slug = "import-shape"


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that a model asked for; `id` is empty where there was none.

    `steering` marks a call of the framework's own tools, which only steer the agent.
    """

    id: str
    tool: str
    arguments: dict[str, Json]
    steering: bool = False


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a call gave. `actions` is what its body did to the flow of the run.

    A call that `failed` certainly did nothing. One that was `declined` by a person did not
    reach its tool.
    """

    value: Json
    failed: bool = False
    declined: bool = False
    state_delta: Mapping[str, Json] | None = None
    actions: Mapping[str, Json] | None = None

    @property
    def asks_first(self) -> bool:
        """Did the tool ask a person in place of acting?"""
        return CONFIRM in (self.actions or {})


def spelled(call: Call) -> Json:
    """A call as the framework spells it in what a model says."""
    named: dict[str, Json] = {"id": call.id} if call.id else {}
    return {"function_call": {**named, "name": call.tool, "args": call.arguments}}


def in_words(result: Result) -> str:
    """A failure in words."""
    match result.value:
        case str(text) | {"error": str(text)}:
            return text
        case other:
            return literal(other)
