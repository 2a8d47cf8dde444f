"""Contents that a request tells again: recognised at a fraction of the cost of digesting them.

A request repeats the conversation, each time in fresh copies that share what they hold: the
very text, the very arguments. Text cannot change; arguments can, in place, so they must also
still equal the copy that was taken of them. Whatever is not recognised is digested.
"""

from __future__ import annotations

from copy import deepcopy
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
    copy: Any = None


def told(content: Any, digest: str) -> Told | None:
    """What to recognise `content` by; None if it is to be digested every time."""
    part = _alone(content)
    if part is None:
        return None
    if part["text"] is not None:
        return Told(digest, content.role, "text", part["text"])
    for field, member in _CALLS.items():
        if (said := part[field]) is None:
            continue
        payload = getattr(said, member)
        if type(payload) is not dict or said.name is None or not _is_told_apart(payload):
            return None
        found = Told(digest, content.role, field, payload, said.name, deepcopy(payload))
        return found if is_told_again(found, content) else None
    return None


def is_told_again(known: Told, content: Any) -> bool:
    """Whether `content` says what `known` did, ids and thought signatures apart."""
    part = _alone(content)
    if part is None or content.role != known.role:
        return False
    field = known.field
    said = part[field]
    if field == "text" or said is None:
        return said is known.held
    rest = said.__dict__
    payload = rest[_CALLS[field]]
    if payload is not known.held or rest["name"] != known.name or payload != known.copy:
        return False
    # Anything else that is said there, such as the parts of a response, is not looked into.
    return countOf(rest.values(), None) == len(rest) - _MEMBERS + (rest["id"] is None)


def _alone(content: Any) -> dict[str, Any] | None:
    """The members of a content's only part, if that says one thing; its signature apart."""
    parts = content.parts
    if parts is None or len(parts) != 1:
        return None
    part: dict[str, Any] = parts[0].__dict__
    said = len(part) - countOf(part.values(), None)
    return part if said - (part.get("thought_signature") is not None) == 1 else None


def _is_told_apart(value: object) -> bool:
    """Whether `==` tells `value` from all others: not where a flag could stand for 0 or 1."""
    kind = type(value)
    if kind is dict and isinstance(value, dict):
        return all(map(_is_told_apart, value.values()))
    if kind is list and isinstance(value, list):
        return all(map(_is_told_apart, value))
    return kind is str or value is None or (kind in {int, float} and value not in {0, 1})
