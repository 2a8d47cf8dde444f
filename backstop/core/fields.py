"""What a declaration says about single arguments, and in what way two values differ.

`coerce` reads a value as the tool's schema means it. The *kinds* of a field say what may
differ in it without the effect being another one:

========== =============================================================================
kind       two values of the field are the same if they are equal
========== =============================================================================
json       as JSON values (the field holds JSON text)
date-time  as instants; a naive time has none and equals no aware one
money      as exact decimal amounts, text or number
trim       without blanks at the ends, a run of blanks inside taken as one
casefold   without regard to case
email      as e-mail addresses: trimmed, without regard to case
slug       as slugs: compatibility form, no case, each run of other signs one hyphen
set        as sets: neither order nor repetition counts
volatile   always: left out of key, fingerprint and arguments (a token, a time stamp)
override   always: a "yes, again" flag, left out likewise and recorded as the reason
generated  always, for key and fingerprint: a model words it anew each time. It stays
           among the recorded arguments. Named as identity, it counts all the same
redact     as without it: before anything is stored, the value becomes a keyed token
           (`backstop.core.redaction`), so rows and keys hold tokens only
========== =============================================================================

Kinds of text also hold for each text in a list. A field is named by argument, or by JSON
Pointer (``/customer/email``); a list on the way stands for each of its items.
Standard library only.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from .canon import Json, NotCanonical, canonical, parse, pointer_token
from .coercion import coerce, from_text, instant

__all__ = [
    "HIDDEN",
    "KINDS",
    "Fields",
    "coerce",
    "difference",
    "fold",
    "normalise",
    "normalise_fields",
    "opened",
    "picked",
    "pointers",
    "tokens_of",
    "without",
]

Fields: TypeAlias = Mapping[str, Sequence[str]]
"""Kinds by argument name or JSON Pointer."""

Edit: TypeAlias = Callable[[Json], Json]

HIDDEN: Final = frozenset({"volatile", "override"})
"""Kinds of fields that are not part of what a call asks for."""


def _trim(text: str) -> str:
    return " ".join(text.split())


def _casefold(text: str) -> str:
    return unicodedata.normalize("NFC", text.casefold())


def _email(text: str) -> str:
    return _casefold(text.strip())


def _slug(text: str) -> str:
    return _spelled(text, "-")


def _spelled(text: str, separator: str) -> str:
    """Words in compatibility form without case. Text of signs alone has no words: it stays."""
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    words = "".join(sign if _is_letter(sign) else " " for sign in plain).split()
    return separator.join(words) or plain.strip()


def _is_letter(sign: str) -> bool:
    # Marks belong to their letters: without them Indic words lose their vowels.
    return unicodedata.category(sign)[0] in "LNM"


_TEXT_EDITS: Final[Mapping[str, Callable[[str], Json]]] = {
    "trim": _trim,
    "casefold": _casefold,
    "email": _email,
    "slug": _slug,
    "date-time": lambda text: instant(text) or text,
    "money": lambda text: from_text(text, "money"),
}

KINDS: Final = frozenset({"json", "set", "generated", "redact", *_TEXT_EDITS, *HIDDEN})
"""Every kind that a field may have."""


def normalise(value: Json, kinds: Sequence[str]) -> Json:
    """One value for all values that are the same under `kinds`; their order does not matter.

    A value of another type than a kind speaks of is left alone. Unknown kinds say nothing.
    """
    if "json" in kinds:
        value = _from_json_text(value)
    for kind, edit in _TEXT_EDITS.items():
        if kind in kinds:
            value = _each_text(value, edit)
    if "set" in kinds and isinstance(value, list):
        value = [item for _, item in sorted({canonical(item): item for item in value}.items())]
    return value


def _from_json_text(value: Json) -> Json:
    if not isinstance(value, str):
        return value
    try:
        return parse(value)
    except NotCanonical:
        return value


def _each_text(value: Json, edit: Callable[[str], Json]) -> Json:
    if isinstance(value, str):
        return edit(value)
    if isinstance(value, list):
        return [_each_text(item, edit) for item in value]
    return value


# --- fields of a call ---------------------------------------------------------------------


def normalise_fields(arguments: Mapping[str, Json], fields: Fields) -> dict[str, Json]:
    """The arguments, each field normalised by its kinds.

    From the inside out, so that a set of normalised items is a set.
    """
    members = opened(arguments, fields)
    for tokens, kinds in reversed(_places(fields)):
        members = _edited_member(members, tokens, _normaliser(kinds))
    return members


def opened(arguments: Mapping[str, Json], fields: Fields) -> dict[str, Json]:
    """The arguments with the JSON text of ``json`` fields read, from the outside in."""
    members = dict(arguments)
    for tokens, kinds in _places(fields):
        if "json" in kinds:
            members = _edited_member(members, tokens, _from_json_text)
    return members


def _places(fields: Fields) -> list[tuple[tuple[str, ...], Sequence[str]]]:
    """The fields by their tokens, what is outside before what is in it."""
    return sorted((tokens_of(name), tuple(kinds)) for name, kinds in fields.items())


def _normaliser(kinds: Sequence[str]) -> Edit:
    return lambda value: normalise(value, kinds)


def without(
    arguments: Mapping[str, Json], fields: Fields, kinds: frozenset[str]
) -> dict[str, Json]:
    """The arguments less every field that has one of `kinds`."""
    members = dict(arguments)
    for name, declared in fields.items():
        if not kinds.isdisjoint(declared):
            members = _dropped(members, tokens_of(name))
    return members


def picked(arguments: Mapping[str, Json], fields: Fields, kinds: frozenset[str]) -> dict[str, Json]:
    """The values of every field that has one of `kinds`, by the field's declared name.

    A field in a list has several; they are given as a list.
    """
    found: dict[str, Json] = {}
    for name, declared in fields.items():
        if not kinds.isdisjoint(declared):
            values = list(_values(dict(arguments), tokens_of(name)))
            if values:
                found[name] = values[0] if len(values) == 1 else values
    return found


def _values(value: Json, tokens: tuple[str, ...]) -> Iterator[Json]:
    if not tokens:
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _values(item, tokens)
    elif isinstance(value, dict) and tokens[0] in value:
        yield from _values(value[tokens[0]], tokens[1:])


def _dropped(members: dict[str, Json], tokens: tuple[str, ...]) -> dict[str, Json]:
    *above, last = tokens
    if above:
        return _edited_member(members, tuple(above), lambda value: _less(value, last))
    return {name: item for name, item in members.items() if name != last}


def _less(value: Json, name: str) -> Json:
    if isinstance(value, list):
        return [_less(item, name) for item in value]
    return _dropped(value, (name,)) if isinstance(value, dict) else value


def tokens_of(name: str) -> tuple[str, ...]:
    """The member names on the way to a field: of an argument its own, of a pointer all."""
    name = unicodedata.normalize("NFC", name)
    if not name.startswith("/"):
        return (name,)
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in name[1:].split("/"))


def _edited_member(
    members: dict[str, Json], tokens: tuple[str, ...], edit: Edit
) -> dict[str, Json]:
    name, *below = tokens
    if name not in members:
        return members
    return {**members, name: _edited(members[name], tuple(below), edit)}


def _edited(value: Json, tokens: tuple[str, ...], edit: Edit) -> Json:
    if not tokens:
        return edit(value)
    if isinstance(value, list):
        return [_edited(item, tokens, edit) for item in value]
    return _edited_member(value, tokens, edit) if isinstance(value, dict) else value


# --- likeness -----------------------------------------------------------------------------

_PLAIN_NUMBER: Final = re.compile(
    r"-?(?:0|[1-9]\d{0,2}(?:,\d{3}){1,99}|[1-9]\d{0,299})(?:\.\d{1,300})?", re.ASCII
)
_DIFFERENCES: Final = ("case", "punctuation", "whitespace", "unicode", "number format", "other")


def fold(value: Json) -> Json:
    """What is left of a value for pairing: equal if two look like the same name (rule G3).

    Text in compatibility form without case, punctuation, symbols and blanks; numbers and the
    texts of numbers alike. Member names and the order of arrays stay.
    """
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str):
        number = _number(value)
        return _spelled(value, "") if number is None else number
    if isinstance(value, list):
        return [fold(item) for item in value]
    if isinstance(value, dict):
        return {name: fold(item) for name, item in value.items()}
    return canonical(value)


def _number(text: str) -> str | None:
    plain = unicodedata.normalize("NFKC", text).strip()
    if _PLAIN_NUMBER.fullmatch(plain):
        return canonical(parse(plain.replace(",", "")))
    return None


def difference(a: Json, b: Json) -> tuple[str, ...]:
    """How two values differ that fold equal, in a fixed order; empty if they are equal.

    A subset of ``case``, ``punctuation`` (also one separator for another), ``whitespace``,
    ``unicode`` (compatibility forms), ``number format`` and ``other``.
    """
    found = set(_differences(a, b))
    return tuple(kind for kind in _DIFFERENCES if kind in found)


def _differences(a: Json, b: Json) -> Iterator[str]:
    if canonical(a) == canonical(b):
        return
    if canonical(fold(a)) != canonical(fold(b)):
        yield "other"
    if isinstance(a, dict) and isinstance(b, dict):
        for name in a.keys() & b.keys():
            yield from _differences(a[name], b[name])
    elif isinstance(a, list) and isinstance(b, list):
        for left, right in zip(a, b, strict=False):
            yield from _differences(left, right)
    elif isinstance(a, str) and isinstance(b, str):
        yield from _text_differences(a, b)
    elif canonical(fold(a)) == canonical(fold(b)):
        yield "number format"


def _text_differences(a: str, b: str) -> set[str]:
    plain = [unicodedata.normalize("NFKC", text) for text in (a, b)]
    folded = [unicodedata.normalize("NFKC", text.casefold()) for text in plain]
    if _letters(folded[0]) != _letters(folded[1]) or (
        plain[0].strip() != plain[1].strip() and None not in (_number(a), _number(b))
    ):
        return {"number format"} if fold(a) == fold(b) else set()
    found = {
        "whitespace" if _marks(left) == _marks(right) else "punctuation"
        for left, right in zip(*map(_gaps, folded), strict=True)
        if left != right
    }
    if _letters(plain[0]) != _letters(plain[1]):
        found.add("case")
    wide = [_letters(unicodedata.normalize("NFC", text).lower()) for text in (a, b)]
    same = _letters(plain[0].lower()) == _letters(plain[1].lower())
    if not found or (same and wide[0] != wide[1]):
        found.add("unicode")
    return found


def _letters(text: str) -> str:
    return "".join(filter(_is_letter, text))


def _gaps(text: str) -> list[str]:
    """What stands before each letter, and after the last."""
    gaps = [""]
    for sign in text:
        if _is_letter(sign):
            gaps.append("")
        else:
            gaps[-1] += sign
    return gaps


def _marks(gap: str) -> str:
    return "".join(sign for sign in gap if unicodedata.category(sign)[0] not in "ZC")


def pointers(a: Json, b: Json) -> tuple[str, ...]:
    """JSON Pointers of the places where two values differ, sorted; the whole value is ``""``.

    Compared by canonical text, so that true is not 1. A member or item that one side lacks is
    one place.
    """
    return tuple(sorted(_differing(a, b, "")))


def _differing(a: Json, b: Json, at: str) -> Iterator[str]:
    if isinstance(a, dict) and isinstance(b, dict):
        for name in a.keys() | b.keys():
            below = f"{at}/{pointer_token(name)}"
            if name in a and name in b:
                yield from _differing(a[name], b[name], below)
            else:
                yield below
    elif isinstance(a, list) and isinstance(b, list):
        shared = min(len(a), len(b))
        for index in range(max(len(a), len(b))):
            if index < shared:
                yield from _differing(a[index], b[index], f"{at}/{index}")
            else:
                yield f"{at}/{index}"
    elif canonical(a) != canonical(b):
        yield at
