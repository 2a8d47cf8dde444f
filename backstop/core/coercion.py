"""Values as a tool's declared JSON Schema means them: ``"42"`` under ``integer`` is 42.

Models send one value in several spellings. Where a schema says what was meant, the
spellings become one; without a schema nothing is touched. Also read: Gemini's upper-case
types and ``nullable``, unions, local ``$ref``, and the type ``money``, an exact decimal
amount. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias

from .canon import Json, NotCanonical, canonical, parse

Schema: TypeAlias = Mapping[str, Any]

MAX_TRIALS: Final = 500_000
"""Trials of whether a value, or a part of it, fits a branch of a union."""

_SCALARS: Final = frozenset({"integer", "number", "money", "boolean"})
_FROM_TEXT: Final = _SCALARS | {"array", "object"}
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DATE_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d)(?::(\d\d)(?:\.(\d+))?)?"
    r"(?:([Zz])|([+-])([01]\d|2[0-3]):?([0-5]\d))?",
    re.ASCII,
)


def coerce(value: Json, schema: Schema) -> Json:
    """The value that `schema` means by `value`; `value` itself where the schema does not say.

    Text that is exactly a JSON number, boolean, array or object becomes one where the schema
    asks for it; an integer becomes its text under ``string``. A union changes nothing if a
    branch fits already, or if the branches disagree. Coercing twice changes nothing more.

    Raises `NotCanonical` where unions inside unions would take for ever to try.
    """
    return _Coercion(schema).coerce(value, schema)


_ITS_OWN: Final[Mapping[str, frozenset[type]]] = {
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": frozenset({int, Decimal}),
    "boolean": frozenset({bool}),
    "null": frozenset({type(None)}),
}
_NONE: Final[frozenset[type]] = frozenset()
_SPELLED_ANEW: Final = frozenset({"date-time", "uuid"})
_ELSEWHERE: Final = frozenset({"$ref", "allOf"})


def left_alone(schema: Schema) -> dict[str, frozenset[type]]:
    """By property: types of which `coerce` leaves every value as it is.

    It may leave others as well, and in a schema of parts it looks at none.
    """
    known = schema.get("properties")
    if not isinstance(known, Mapping) or not _ELSEWHERE.isdisjoint(schema) or _branches(schema):
        return {}
    return {name: _left(below) for name, below in known.items() if isinstance(below, Mapping)}


def _left(schema: Schema) -> frozenset[type]:
    if not _ELSEWHERE.isdisjoint(schema):
        return _NONE
    branches = _branches(schema)
    if not branches:
        anew = schema.get("format") in _SPELLED_ANEW
        return _NONE if anew else _ITS_OWN.get(_kind(schema), _NONE)
    if any(_branches(branch) or not _ELSEWHERE.isdisjoint(branch) for branch in branches):
        return _NONE
    # Such a branch fits, so the union changes nothing: only one that lists its values may not.
    listing = ("const", "enum")
    fitting = [_left(branch) for branch in branches if not any(key in branch for key in listing)]
    return frozenset().union(*fitting)


def instant(text: str) -> str | None:
    """The one spelling of a date-time (RFC 3339; offset optional), or None if it is not one.

    An aware time is written in UTC with ``Z``; a naive one has no instant and stays naive, so
    the two are never equal. Fractions keep every digit but trailing zeros.
    """
    found = _DATE_TIME.fullmatch(text)
    if found is None:
        return None
    day, minute, second, fraction, zulu, sign, hours, minutes = found.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{minute}:{second or '00'}")
        if sign:
            offset = timedelta(hours=int(hours), minutes=int(minutes))
            moment += -offset if sign == "+" else offset
    except (ValueError, OverflowError):
        return None
    digits = (fraction or "").rstrip("0")
    dot = "." if digits else ""
    return f"{moment.isoformat()}{dot}{digits}{'Z' if zulu or sign else ''}"


def from_text(text: str, kind: str) -> Json:
    """The value of JSON type `kind` that `text` spells in JSON, or `text` itself.

    Strict: no blanks around a number, no leading zeros or plus, no other digits than 0-9.
    """
    if kind in _SCALARS and text != text.strip():
        return text
    try:
        value = parse(text)
    except NotCanonical:
        return text
    return value if _is(kind, value) else text


def _is(kind: str, value: Json) -> bool:
    match kind:
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number" | "money":
            return isinstance(value, int | Decimal) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case "null":
            return value is None
        case _:
            return True  # a type that we do not know says nothing


class _Coercion:
    """One walk of a value along a schema; `root` is what ``$ref`` points into.

    `left` are the trials of a union's branch that it may still make. Unions inside unions
    double them, and a tool's schema comes from code that nobody has reviewed.
    """

    __slots__ = ("left", "root")

    def __init__(self, root: Schema) -> None:
        self.root = root
        self.left = MAX_TRIALS

    def tried(self) -> None:
        self.left -= 1
        if self.left < 0:
            what = "a schema with so many unions inside unions that trying them does not end"
            raise NotCanonical(what, slug="schema-too-wide")

    def coerce(self, value: Json, schema: Schema, seen: frozenset[str] = frozenset()) -> Json:
        schema, seen = self.resolved(schema, seen)
        branches = _branches(schema)
        if branches:
            return self.coerce_union(value, branches, seen)
        for part in _mappings(schema.get("allOf")):
            value = self.coerce(value, part, seen)
        kind = _kind(schema)
        if isinstance(value, str) and kind in _FROM_TEXT:
            value = from_text(value, kind)
        elif kind == "string":
            value = _text(value, schema)
        if isinstance(value, dict):
            return {name: self.coerce(item, below) for name, item, below in _members(value, schema)}
        if isinstance(value, list):
            return [self.coerce(item, below) for item, below in _items(value, schema)]
        return value

    def coerce_union(self, value: Json, branches: list[Schema], seen: frozenset[str]) -> Json:
        fitting = [branch for branch in branches if self.fits(value, branch, seen)]
        if fitting:
            # Spelling within the one branch that is meant; two that fit may spell differently.
            return self.coerce(value, fitting[0], seen) if len(fitting) == 1 else value
        meant = {
            canonical(changed): changed
            for branch in branches
            if self.fits(changed := self.coerce(value, branch, seen), branch, seen)
        }
        return next(iter(meant.values())) if len(meant) == 1 else value

    def fits(self, value: Json, schema: Schema, seen: frozenset[str] = frozenset()) -> bool:
        self.tried()
        schema, seen = self.resolved(schema, seen)
        branches = _branches(schema)
        if branches:
            return any(self.fits(value, branch, seen) for branch in branches)
        if not all(self.fits(value, part, seen) for part in _mappings(schema.get("allOf"))):
            return False
        if not _is(_kind(schema), value) or not _is_listed(value, schema):
            return False
        if isinstance(value, str):
            return _has_format(value, schema)
        if isinstance(value, dict):
            return all(name in value for name in _names(schema.get("required"))) and all(
                self.fits(item, below) for _, item, below in _members(value, schema)
            )
        if isinstance(value, list):
            return all(self.fits(item, below) for item, below in _items(value, schema))
        return True

    def resolved(self, schema: Schema, seen: frozenset[str]) -> tuple[Schema, frozenset[str]]:
        """Follow local ``$ref``; one that leads back to itself, or nowhere, says nothing."""
        while isinstance(ref := schema.get("$ref"), str):
            if ref in seen:
                return {}, seen
            seen |= {ref}
            target: Any = self.root
            for token in ref.removeprefix("#").split("/")[1:]:
                target = target.get(token) if isinstance(target, Mapping) else None
            if not isinstance(target, Mapping):
                return {}, seen
            schema = target
        return schema, seen


def _mappings(value: object) -> list[Schema]:
    return [part for part in value if isinstance(part, Mapping)] if isinstance(value, list) else []


def _names(value: object) -> Sequence[str]:
    return value if isinstance(value, list | tuple) else ()


def _branches(schema: Schema) -> list[Schema]:
    branches = _mappings(schema.get("anyOf")) or _mappings(schema.get("oneOf"))
    if not branches and isinstance(kinds := schema.get("type"), list):
        branches = [{**schema, "type": kind, "nullable": False} for kind in kinds]
    if schema.get("nullable") is True:
        branches = branches or [{**schema, "nullable": False}]
        branches.append({"type": "null"})
    return branches


def _kind(schema: Schema) -> str:
    kind = schema.get("type")
    return kind.lower() if isinstance(kind, str) else ""


def _text(value: Json, schema: Schema) -> Json:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        return value
    match schema.get("format"):
        case "date-time":
            return instant(value) or value
        case "uuid" if _UUID.fullmatch(value):
            return value.lower()
        case _:
            return value


def _has_format(value: str, schema: Schema) -> bool:
    match schema.get("format"):
        case "date-time":
            return instant(value) is not None
        case "uuid":
            return _UUID.fullmatch(value) is not None
        case _:
            return True


def _is_listed(value: Json, schema: Schema) -> bool:
    allowed = [schema["const"]] if "const" in schema else schema.get("enum")
    if not isinstance(allowed, list) or not allowed:
        return True
    text = canonical(value)
    return any(canonical(one) == text for one in allowed)


def _members(value: dict[str, Json], schema: Schema) -> Iterator[tuple[str, Json, Schema]]:
    known = schema.get("properties")
    others = schema.get("additionalProperties")
    for name, item in value.items():
        below = known.get(name, others) if isinstance(known, Mapping) else others
        yield name, item, below if isinstance(below, Mapping) else {}


def _items(value: list[Json], schema: Schema) -> Iterator[tuple[Json, Schema]]:
    first = _mappings(schema.get("prefixItems"))
    rest = schema.get("items")
    for index, item in enumerate(value):
        below = first[index] if index < len(first) else rest
        yield item, below if isinstance(below, Mapping) else {}
