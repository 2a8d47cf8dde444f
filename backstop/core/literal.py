"""JSON text of exactly one value: numbers as they were written, strings untouched.

`canon.canonical` folds spellings that mean the same; what is stored for a replay or shown
in a report must be what was said.
"""

from __future__ import annotations

import json
from decimal import Decimal

from backstop.core.canon import Json


def literal(value: Json) -> str:
    """JSON text of `value` on one line; members keep their order."""
    match value:
        case Decimal():
            return str(value)
        case dict():
            members = (f"{literal(key)}:{literal(item)}" for key, item in value.items())
            return "{" + ",".join(members) + "}"
        case list():
            return "[" + ",".join(map(literal, value)) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)
