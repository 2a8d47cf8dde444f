"""JSON text of exactly one value: numbers as they were written, strings untouched.

`canon.canonical` folds spellings that mean the same; what is stored for a replay or shown
in a report must be what was said.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Final

import msgspec

from backstop.core.canon import Json

_WRITTEN: Final = msgspec.json.Encoder(decimal_format="number").encode


def literal(value: Json) -> str:
    """JSON text of `value` on one line; members keep their order."""
    try:
        return _WRITTEN(value).decode()
    except ValueError:  # half a character
        return _literal(value)


def written(value: object) -> bytes:
    """`literal` in bytes, of a value that may hold `msgspec.Raw` and structs.

    Raises `ValueError` for half a character.
    """
    return _WRITTEN(value)


def _literal(value: Json) -> str:
    match value:
        case Decimal():
            return str(value)
        case dict():
            members = (f"{_literal(key)}:{_literal(item)}" for key, item in value.items())
            return "{" + ",".join(members) + "}"
        case list():
            return "[" + ",".join(map(_literal, value)) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)
