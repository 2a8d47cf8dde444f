"""The canonical form: one spelling for each value, so that equal values have equal digests.

Rule 1: what two writers may spell differently without meaning anything else has one
spelling here; what might mean something else stays different.

- Objects are unordered, arrays ordered, sets sorted by their members' canonical text.
- Numbers are exact and of any length up to `MAX_DIGITS`: 2**53 + 1 is not 2**53 (this is
  why the numbers of RFC 8785 do not serve). An integral float or Decimal is the integer,
  minus zero is zero, a Decimal's scale is dropped. A float is its exact value where that
  is integral, else the shortest decimal that reads back as it.
- Text is compared in NFC, never in NFKC, never trimmed, never case-folded.
- Objects of Python have one spelling each: enums by value, UUIDs in lower case, dates and
  times as pydantic's JSON mode writes them, models and dataclasses as the mapping of
  their (aliased) fields. Bytes are ``{"$bytes": base64}``; a mapping that has exactly this
  shape is the same value.
- What has no spelling is refused with `NotCanonical`, never guessed.

Standard library only: this file and `spelling.py` are copied next to the replay harness.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, Final, TypeAlias

from .spelling import (
    INT_LIMIT,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_SIZE,
    MEMBER,
    NotCanonical,
    Room,
    check_range,
    exact,
    normal,
    pointer_token,
    too_deep,
    too_large,
    too_long,
    underflow,
    unwrapped,
)

__all__ = [
    "CANON_VERSION",
    "Json",
    "NotCanonical",
    "canonical",
    "digest",
    "parse",
    "pointer_token",
    "render",
    "short",
]

CANON_VERSION: Final = 1
"""Version of these rules. A row says under which version its key was made."""

Json: TypeAlias = "bool | int | Decimal | str | list[Json] | dict[str, Json] | None"
"""A rendered value. A Decimal is never integral: integral numbers are ints."""

_HEX_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_DIGITS: Final = 64
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
# Strings are skipped whole (possessively, closed or not), so hostile text costs linear time.
_BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


# --- text -> Json -------------------------------------------------------------------------


def parse(text: str | bytes) -> Json:
    """Read strict JSON (RFC 8259, UTF-8); integers exact, other numbers Decimal as written.

    Raises `NotCanonical` for anything that parsers disagree about: duplicate members (also
    those that are equal in NFC), NaN and infinities, numbers that overflow or underflow a
    double, lone surrogates, a byte order mark, nesting beyond `MAX_DEPTH`, integers beyond
    `MAX_DIGITS`, and whatever is not JSON at all.
    """
    text = _decoded(text)
    _check_depth(text)
    try:
        value: Json = _STRICT.decode(text)
    except NotCanonical as fault:
        raise _located(text, fault) from None
    except json.JSONDecodeError as fault:
        told = f"{fault.msg[:1].lower()}{fault.msg[1:]} (character {fault.pos})"
        what = told if text.strip() else "nothing is there, it is empty"
        raise NotCanonical(f"not JSON: {what}", slug="not-json") from None
    if _SURROGATE.search(text):
        render(value)  # an escape may have left half a character in some string
    return value


def _decoded(text: str | bytes) -> str:
    try:
        if isinstance(text, str):
            if not text.isascii():
                text.encode()
        else:
            text = text.decode()
    except UnicodeError:
        raise NotCanonical("text that is not valid UTF-8", slug="not-utf-8") from None
    if text.startswith("\ufeff"):
        raise NotCanonical("text that begins with a byte order mark", slug="not-utf-8")
    return text


def _check_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for lexeme in _BRACKETS.findall(text):
        depth += (lexeme in "[{") - (lexeme in "]}")
        if depth > MAX_DEPTH:
            raise too_deep()


def _from_pairs(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) == len(pairs) and "".join(members).isascii():
        return members
    seen: set[str] = set()
    for name, _ in pairs:
        _add_name(name, seen)
    return members


def _add_name(name: str, seen: set[str]) -> str:
    spelled = unicodedata.normalize("NFC", name)
    if spelled in seen:
        fault = NotCanonical("a member name that stands twice", slug="duplicate-member")
        raise fault.inside(name)
    seen.add(spelled)
    return spelled


def _from_digits(literal: str) -> int:
    if len(literal) > MAX_DIGITS + literal.startswith("-"):
        raise too_long()
    return int(literal)


def _from_decimal(literal: str) -> int | Decimal:
    # The float comes first: a Decimal of an absurd exponent cannot even be made.
    size = float(literal)
    check_range(size)
    if size == 0:
        if re.match("[-0.]*[1-9]", literal):
            raise underflow()
        return 0
    return exact(Decimal(literal))


def _refuse_constant(literal: str) -> Json:
    raise NotCanonical(f"{literal}, which is not a JSON number", slug="not-finite")


def _quietly(hook: Callable[[str], Json]) -> Callable[[str], Json | NotCanonical]:
    def inner(literal: str) -> Json | NotCanonical:
        try:
            return hook(literal)
        except NotCanonical as fault:
            return fault

    return inner


def _pairs_quietly(pairs: list[tuple[str, Json]]) -> dict[str, Json] | NotCanonical:
    try:
        return _from_pairs(pairs)
    except NotCanonical as fault:
        return fault


_STRICT: Final = json.JSONDecoder(
    object_pairs_hook=_from_pairs,
    parse_int=_from_digits,
    parse_float=_from_decimal,
    parse_constant=_refuse_constant,
)
# The decoder's hooks are not told where they are. A text with a fault is read a second
# time with the faults left in place of the values, and searched.
_FAULTS_IN_PLACE: Final = json.JSONDecoder(
    object_pairs_hook=_pairs_quietly,
    parse_int=_quietly(_from_digits),
    parse_float=_quietly(_from_decimal),
    parse_constant=_quietly(_refuse_constant),
)


def _located(text: str, fault: NotCanonical) -> NotCanonical:
    try:
        value = _FAULTS_IN_PLACE.decode(text)
    except json.JSONDecodeError:
        fault.pointer = ""  # broken further on as well, so there is no tree to point into
        return fault
    return next(_faults(value))


def _faults(value: object) -> Iterator[NotCanonical]:
    if isinstance(value, NotCanonical):
        yield value
    places: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, dict):
        places = value.items()
    elif isinstance(value, list):
        places = enumerate(value)
    for token, below in places:
        yield from (fault.inside(token) for fault in _faults(below))


# --- Python -> Json -----------------------------------------------------------------------


def render(value: object) -> Json:
    """Turn a Python value into Json, keeping its text as it is; rendering twice changes nothing.

    Raises `NotCanonical` for objects without a spelling, member names that are not text or
    that are equal in NFC, numbers that are not finite, lone surrogates, values nested beyond
    `MAX_DEPTH` or inside themselves, and values larger than `MAX_SIZE` when written out.
    """
    return _render(value, 0, Room(MAX_SIZE))


def _render(value: object, depth: int, room: Room) -> Json:
    value = unwrapped(value)
    if isinstance(value, str):
        room.take(len(value))
        normal(value)
        return value
    if isinstance(value, Decimal):
        return exact(value)
    if isinstance(value, dict):
        _check_room(depth)
        _normal_names(value)
        room.take(MEMBER * len(value))
        return {str.__str__(name): _below(name, item, depth, room) for name, item in value.items()}
    if isinstance(value, list | tuple):
        _check_room(depth)
        room.take(MEMBER * len(value))
        return [_below(index, item, depth, room) for index, item in enumerate(value)]
    if isinstance(value, set | frozenset):
        _check_room(depth)
        room.take(MEMBER * len(value))
        members = [_render(item, depth + 1, room) for item in value]
        by_text = {canonical(item): item for item in members}
        return [item for _, item in sorted(by_text.items())]
    if isinstance(value, int) and not -INT_LIMIT < value < INT_LIMIT:
        raise too_long()
    return value  # type: ignore[return-value]  # None, bool or int: all that unwrapped leaves


def _below(token: str | int, value: object, depth: int, room: Room) -> Json:
    try:
        return _render(value, depth + 1, room)
    except NotCanonical as fault:
        raise fault.inside(token) from None


def _check_room(depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise too_deep()


def _normal_names(members: dict[Any, object]) -> dict[str, object]:
    """The members by their names in NFC; refuses names that are not text or that collide."""
    seen: set[str] = set()
    named: dict[str, object] = {}
    for name, item in members.items():
        if not isinstance(name, str):
            what = f"a member name that is not text but {type(name).__name__}"
            raise NotCanonical(what, slug="non-text-name")
        named[_add_name(normal(str.__str__(name)), seen)] = item
    return named


# --- Json -> canonical text ---------------------------------------------------------------


def canonical(value: object, *, size: int = MAX_SIZE) -> str:
    """The canonical JSON text of a Python value: equal for equal values, and only for those.

    Raises `NotCanonical` for what `render` refuses, and beyond `size`. ``parse`` of it is the
    value again.
    """
    return _text(value, 0, Room(size))


def _text(value: Any, depth: int, room: Room) -> str:  # noqa: ANN401  # exact types, for speed
    kind = type(value)
    if kind is str:
        room.take(len(value))
        return encode_basestring(normal(value))
    if kind is int:
        if not -INT_LIMIT < value < INT_LIMIT:
            raise too_long()
        number = str(value)
        room.take(len(number))
        return number
    if kind is dict:
        return _object_text(value, depth, room)
    if kind is list or kind is tuple:
        return f"[{','.join(_texts(value, depth, room))}]"
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is set or kind is frozenset:
        return f"[{','.join(sorted(set(_texts(value, depth, room))))}]"
    if kind is Decimal:
        plain = exact(value)
        number = format(plain, "f").rstrip("0") if isinstance(plain, Decimal) else str(plain)
        room.take(len(number))
        return number
    return _text(unwrapped(value), depth, room)


def _object_text(members: dict[Any, object], depth: int, room: Room) -> str:
    _check_room(depth)
    try:
        plain = "".join(members).isascii()
    except TypeError:
        plain = False
    named = members if plain else _normal_names(members)
    parts = []
    name = ""
    room.take(MEMBER * len(named))
    try:
        for name in sorted(named):
            item = named[name]
            if type(item) is str and item.isascii():
                room.left -= len(item)  # `take`, written out: most members are such texts
                if room.left < 0:
                    raise too_large()
                parts.append(f"{encode_basestring(name)}:{encode_basestring(item)}")
            else:
                parts.append(f"{encode_basestring(name)}:{_text(item, depth + 1, room)}")
    except NotCanonical as fault:
        raise fault.inside(name) from None
    return f"{{{','.join(parts)}}}"


def _texts(items: Collection[object], depth: int, room: Room) -> list[str]:
    _check_room(depth)
    room.take(MEMBER * len(items))
    parts: list[str] = []
    try:
        parts.extend(_text(item, depth + 1, room) for item in items)
    except NotCanonical as fault:
        raise fault.inside(len(parts)) from None
    return parts


# --- digests ------------------------------------------------------------------------------


def digest(text: str | bytes) -> str:
    """SHA-256 of the text's UTF-8 bytes: 64 lower-case hex digits."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def short(digest_or_text: str | bytes) -> str:
    """The first 32 hex digits of a digest, or of the digest of any other text.

    For chain links and sub-digests, where 128 bits do. 64 hex digits are taken for a digest.
    """
    is_long = len(digest_or_text) == _DIGITS  # costs less than to look at each letter
    if is_long and isinstance(digest_or_text, str) and _HEX_DIGEST.fullmatch(digest_or_text):
        return digest_or_text[:32]
    return digest(digest_or_text)[:32]
