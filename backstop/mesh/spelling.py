# ruff: noqa: ANN401 - state and results are of any type
"""Digests of what steps read and leave, remembered by what the values hold."""

from __future__ import annotations

import marshal
from typing import Any, Final

import msgspec

from backstop.core.canon import NotCanonical, canonical, digest

ABSENT: Final = digest("absent")
"""What is read where there is nothing. No value has this digest: none is spelled so."""

_REMEMBERED: Final = 16_384
_LONG: Final = 65_536
"""Characters from which on a value is not remembered: it would only be in the way."""


class Digester:
    """Digests values of one process."""

    def __init__(self) -> None:
        self._known: dict[tuple[type, object], str] = {}

    def of(self, value: Any) -> str:
        """SHA-256, in hex, of the value's canonical form; of its `repr` where it has none."""
        key = _key(value)
        if key is None:
            return digest(spelled(value))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            found = self._known[key] = digest(spelled(value))
        return found


def spelled(value: Any) -> str:
    """The canonical text of a value; for what has none its `repr`, which then equals nothing."""
    try:
        return canonical(value)
    except NotCanonical:
        return f"!{value!r}"


def payload_of(left: Any) -> bytes:
    """The bytes of what a step left, the same for the same: members by name, in their order.

    What has no JSON is spelled as `spelled` does.
    """
    try:
        return msgspec.json.encode(left, order="sorted")
    except (TypeError, ValueError, RecursionError):
        return spelled(left).encode("utf-8", "surrogatepass")


def _key(value: Any) -> tuple[type, object] | None:
    """What the value holds, as a dictionary key; None for one that is digested every time."""
    kind = type(value)
    if kind is str:
        return (kind, value) if len(value) < _LONG else None
    if kind is dict or kind is list:
        try:
            held = marshal.dumps(value, 2)
        except ValueError:  # a model, a date: marshal knows only the plain types
            return None
        return (kind, held) if len(held) < _LONG else None
    return None
