"""JSON text of exactly one value: numbers as they were written, strings untouched.

`canon.canonical` folds spellings that mean the same; what is stored for a replay or shown
in a report must be what was said.
"""

from __future__ import annotations

from typing import Final

import msgspec

from backstop.core.canon import Json

_WRITTEN: Final = msgspec.json.Encoder(decimal_format="number").encode


def literal(value: Json) -> str:
    """JSON text of `value` on one line; members keep their order."""
    return written(value).decode()


def written(value: object) -> bytes:
    """`literal` in bytes, of a value that may hold `msgspec.Raw` and structs.

    Raises `ValueError` for half a character, which no `Json` holds.
    """
    return _WRITTEN(value)
