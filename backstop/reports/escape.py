"""The one place where text from an agent is made harmless.

Arguments, results, run and tool names come from models, users and mails. Shown as they
are they could clear a terminal, forge a line of the report, or show one vendor's name
where another stands (bidirectional controls). What cannot be seen is spelled out.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# Controls, formats (bidi, zero width, tags), surrogates, private and unassigned code points,
# and the separators that begin a new line or look like an ordinary blank.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_MAX_MARKS: Final = 4


def plain(text: str, *, limit: int | None = None) -> str:
    r"""`text` on one line, hidden characters as ``\n`` or ``\u{202e}``, cut to `limit` characters.

    What is cut is said: the text then ends in ``…``.
    """
    cut = limit is not None and len(text) > limit
    kept = text[: limit if limit is None else max(limit - 1, 0)] if cut else text
    if kept.isascii() and kept.isprintable():
        return kept + "…" * cut
    shown: list[str] = []
    marks = 0
    for character in kept:
        category = unicodedata.category(character)
        # A tower of combining marks grows over the lines above it.
        marks = marks + 1 if category in {"Mn", "Me"} else 0
        if character in _SHORT:
            shown.append(_SHORT[character])
        elif category in _HIDDEN or marks > _MAX_MARKS or (category == "Zs" and character != " "):
            shown.append(f"\\u{{{ord(character):x}}}")
        else:
            shown.append(character)
    return "".join(shown) + "…" * cut


_NOT_ASCII: Final = re.compile("[^\x20-\x7e]")


def in_json(text: str) -> str:
    r"""JSON text with hidden characters spelled ``\u202e``; equal as JSON, harmless to see."""
    return _NOT_ASCII.sub(_json_escape, text)


def _json_escape(found: re.Match[str]) -> str:
    character = found[0]
    if unicodedata.category(character) not in _HIDDEN:
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
