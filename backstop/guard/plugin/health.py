# ruff: noqa: ANN401 - the framework's values are of any type
"""The question whether the guard is there, asked through the front door of a running server.

It is a message with a function call in it, which the framework refuses from a user, before it
is stored and before any model is asked. Only a guard that is loaded takes it out of the
framework's hands and answers; so nothing but the guard can say yes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from google.genai import types

QUESTION: Final = "backstop_doctor"


class Health(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a guard says of itself.

    `nonce` is the question's. `index` is its place among the plugins, from 0; `why` says why it
    refuses effects, empty if it does not. `armed` are tools that it can guard, `missed` those
    that it cannot.
    """

    backstop: str
    nonce: str
    index: int
    agent: str = ""
    why: str = ""
    observing: bool = False
    armed: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()


def question(nonce: str) -> dict[str, Any]:
    """The message that asks, as JSON for the framework's own form of it."""
    return {
        "role": "user",
        "parts": [{"function_call": {"name": QUESTION, "args": {"nonce": nonce}}}],
    }


def asked_by(message: Any) -> str | None:
    """The nonce of the question in a message of the framework's; None if it asks for no health."""
    for part in message.parts or ():
        call = part.function_call
        if call is not None and call.name == QUESTION:
            return str((call.args or {}).get("nonce", ""))
    return None


def without_question() -> types.Content:
    """What is put in the question's place: the framework takes words."""
    return types.Content(role="user", parts=[types.Part(text=QUESTION)])


def answer(health: Health) -> types.Content:
    """The answer, which ends the run that asked."""
    return types.Content(
        role="model", parts=[types.Part(text=msgspec.json.encode(health).decode())]
    )


def heard(events: Sequence[Mapping[str, Any]], *, nonce: str) -> Health | None:
    """The guard's answer among a run's events, as JSON; None if it did not answer."""
    for event in events:
        for part in (event.get("content") or {}).get("parts") or ():
            try:
                health = msgspec.json.decode(part.get("text") or "", type=Health)
            except (msgspec.DecodeError, TypeError):
                continue
            if health.nonce == nonce:
                return health
    return None
