"""Contents that a request tells again: recognised at a fraction of the cost of digesting them.

A request repeats the conversation, each time in fresh copies that share the very texts. Text
cannot change; arguments may be copied, and change in place, so they must still be spelled as they
were. Whatever is not recognised is digested.
"""

from __future__ import annotations

import marshal
from operator import countOf
from typing import Any, Final, NamedTuple

_CALLS: Final = {"function_call": "args", "function_response": "response"}
_MEMBERS: Final = 3
"""Of a call or an answer: id, name, and arguments or response. Others are told by digest only."""


class Told(NamedTuple):
    """A content of one plain part as it was told before, and its digest."""

    digest: str
    role: str | None
    field: str
    held: Any
    name: str | None = None


def told(content: Any, digest: str) -> Told | None:
    """What to recognise `content` by; None if it is to be digested every time."""
    parts = content.parts
    if parts is None or len(parts) != 1:
        return None
    part = parts[0].__dict__
    if part["text"] is not None:
        found = Told(digest, content.role, "text", part["text"])
        return found if is_told_again(found, content) else None
    for field, member in _CALLS.items():
        if (said := part[field]) is None:
            continue
        payload = getattr(said, member)
        if type(payload) is not dict or said.name is None or (held := _held(payload)) is None:
            return None
        found = Told(digest, content.role, field, held, said.name)
        return found if is_told_again(found, content) else None
    return None


def is_told_again(known: Told, content: Any) -> bool:
    """Whether `content` says what `known` did, ids and thought signatures apart."""
    parts = content.parts
    if parts is None or len(parts) != 1 or content.role != known.role:
        return False
    part = parts[0].__dict__
    others = len(part) - countOf(part.values(), None) - 1
    if others and (others > 1 or part.get("thought_signature") is None):
        return False
    field = known.field
    said = part[field]
    if field == "text" or said is None:
        return said is known.held
    rest = said.__dict__
    if rest["name"] != known.name or _held(rest[_CALLS[field]]) != known.held:
        return False
    # Anything else that is said there, such as the parts of a response, is not looked into.
    return countOf(rest.values(), None) == len(rest) - _MEMBERS + (rest["id"] is None)


def _held(payload: Any) -> bytes | None:
    """What it holds: its values of plain types, in their order, each with its type."""
    try:
        return marshal.dumps(payload, 2)
    except ValueError:  # a Decimal, a model, an enum: marshal knows only the plain types
        return None
