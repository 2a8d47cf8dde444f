"""What every record comes down to: conversations, told item by item in the order of time.

An adapter of one form yields these; `building` makes a ledger's events of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from backstop.adapters.told import Call, Result
from backstop.core.canon import Json


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What was handed to the agent, as the framework spells it; it sets off a step.

    `at` is RFC 3339 in UTC, here as in all items; `place` names the item in its source.
    """

    at: str
    content: Json
    place: str = ""


class Spoken(msgspec.Struct, frozen=True, kw_only=True):
    """What the model of `agent` answered, part by part; `agent` is empty where nobody knows.

    `more` are further members of the answer, as the framework spells them, and `branch` is its
    name for where in the conversation the agent stands.
    """

    at: str
    parts: Sequence[Json | Call]
    agent: str = ""
    branch: str = ""
    more: Mapping[str, Json] | None = None
    place: str = ""


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """What a call gave: found by its id `call`, its `tool`, or both.

    One that is `again` may answer a call that was answered before, and is passed over then.
    """

    at: str
    result: Result
    call: str | None = None
    tool: str | None = None
    again: bool = False
    place: str = ""


Item: TypeAlias = Message | Spoken | Answered


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One run. `at` is when it began and `state` its session's state then, as far as is known.

    `place` names it in its source. `gaps` is what its record cannot tell, each as the end of a
    sentence about the run. One that is not `over` goes on, or was broken off.
    """

    run: str
    at: str
    items: Sequence[Item]
    place: str
    user: str = "user"
    state: Mapping[str, Json] = field(default_factory=dict)
    gaps: Sequence[str] = ()
    over: bool = True
