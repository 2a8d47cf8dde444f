"""The verdict's document for places that anybody may read: names stay, values go (G24, G25)."""

from __future__ import annotations

from typing import Final

from backstop.core.canon import Json
from backstop.core.verdict import content_digest
from backstop.reports.document import DIGESTED
from backstop.reports.escape import public

HIDDEN: Final = "(not shown)"
OF: Final = "masked_of"
"""The member that a masked document has, and a whole one has not: the verdict's own digest."""

_ARGUMENTS: Final = "args"
_EXACT: Final = frozenset({"key", "fingerprint", "digest", "schema"})
"""Made by us of what may be secret, and no way back."""


def masked(document: dict[str, Json]) -> dict[str, Json]:
    """`document` with no value of any argument, and no secret that a name or a reason holds.

    Its digest is its own, so that it can be read as any other; `OF` names the verdict's.
    """
    hidden = {name: _masked(value, name) for name, value in document.items()}
    digest = content_digest({name: hidden[name] for name in DIGESTED})
    return {**hidden, "digest": digest, OF: document["digest"]}


def _masked(value: Json, name: str = "") -> Json:
    match value:
        case dict() if name == _ARGUMENTS:
            return {public(argument): HIDDEN for argument in value}
        case dict():
            return {public(key): _masked(item, key) for key, item in value.items()}
        case list():
            return [_masked(item) for item in value]
        case str() if name not in _EXACT:
            return public(value)
        case _:
            return value
