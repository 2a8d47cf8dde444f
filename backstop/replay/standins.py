"""Values that stand in for results which nobody recorded (semantics.md A3).

A stand-in has the shape of what the tool answered elsewhere in the ledger, where it did,
and differs from pass to pass: what comes out equal with two sets of stand-ins does not
depend on them. Its texts and numbers can be told apart from anything real, so that
arguments which hold one are found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Final

from backstop.core.canon import Json, canonical, digest, pointer_token

_MARKER: Final = re.compile(r"standin-[0-9a-f]{12}")
_NUMBERS_FROM: Final = 7_310_000_000_000
"""Beyond amounts, counts and times in milliseconds, and exact in a double."""
_NUMBERS: Final = 1_000_000


class StandIns:
    """The stand-ins of one pass over one run. The same asks get the same values."""

    def __init__(self, seed: int, shapes: Mapping[str, Json] | None = None) -> None:
        self._seed = seed
        self._shapes = shapes or {}
        self._given = 0

    @property
    def were_used(self) -> bool:
        """Was any given in this pass?"""
        return self._given > 0

    def value(self, tool: str, key: str, nth: int) -> Json:
        """A stand-in for what `tool` would answer to its call `key`, asked the `nth` time."""
        self._given += 1
        shape = self._shapes.get(tool, {"result": ""})
        return self._like(shape, f"{self._seed}/{tool}/{key}/{nth}")

    def _like(self, shape: Json, at: str) -> Json:
        chance = digest(at)
        match shape:
            case None:
                return None
            case bool():
                # Chance could be the same in both passes; the pass itself cannot.
                return self._seed % 2 == 0
            case int() | Decimal():
                return _NUMBERS_FROM + int(chance[:8], 16) % _NUMBERS
            case str():
                return f"standin-{chance[:12]}"
            case list():
                return [self._like(item, f"{at}/{i}") for i, item in enumerate(shape[:1])]
            case dict():
                return {name: self._like(value, f"{at}/{name}") for name, value in shape.items()}


def holes(args: Mapping[str, Json]) -> tuple[str, ...]:
    """JSON Pointers to every value in `args` that is, or holds, a stand-in."""
    return tuple(sorted(_holes(dict(args), "")))


def masked(args: Mapping[str, Json]) -> str:
    """Canonical text of `args` with every stand-in blotted out."""
    return canonical(_masked(dict(args)))


def _holes(value: Json, at: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _holes(member, f"{at}/{pointer_token(name)}")
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _holes(item, f"{at}/{place}")
    elif _is_stand_in(value):
        yield at


def _is_stand_in(value: Json) -> bool:
    if isinstance(value, str):
        return _MARKER.search(value) is not None
    return (
        isinstance(value, int)
        and not isinstance(value, bool)
        and _NUMBERS_FROM <= value < _NUMBERS_FROM + _NUMBERS
    )


def _masked(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _masked(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_masked(item) for item in value]
    if isinstance(value, str):
        return _MARKER.sub("standin", value)
    return 0 if _is_stand_in(value) else value
