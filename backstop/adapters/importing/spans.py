"""Spans out of OTLP JSON files: whole documents or one request a line, in any order.

A span is known by its trace and its own id: one that stands in several files is one span, and
two different ones under one id are refused. A span never begins before its parent does here,
whatever their clocks say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, cast

from backstop.adapters.transcript import ImportRefused
from backstop.core.canon import Json, NotCanonical, parse

LATEST: Final = 253_402_300_799_000_000_000
"""Nanoseconds from 1970 to the end of the year 9999, the last that can be told."""

_ERRORS: Final = (2, "STATUS_CODE_ERROR")
"""How OTLP's JSON spells that a span went wrong."""

Id: TypeAlias = tuple[str, str]
"""A span's trace and its own id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One span. Times are nanoseconds since 1970; `end` is 0 where it never ended.

    `error` is what it says went wrong, None where it says nothing of the kind; `place` is the
    file and the span's place in it.
    """

    id: Id
    parent: Id | None
    name: str
    start: int
    end: int
    attributes: Mapping[str, Json]
    error: str | None
    place: str

    def text(self, *names: str) -> str | None:
        """The first of these attributes that is there and is text, None without one."""
        found = (self.attributes.get(name) for name in names)
        return next((value for value in found if isinstance(value, str)), None)


def read_spans(files: Iterable[tuple[str, bytes]]) -> dict[Id, Span]:
    """Every span of these files (name and content) by id, in the order of their beginnings.

    Raises `ImportRefused` (``import-not-json``, ``import-shape``, ``import-span-twice``).
    """
    spans: dict[Id, Span] = {}
    for name, data in files:
        for span in _spans_in(data, name=name):
            known = spans.setdefault(span.id, span)
            if replace(span, place=known.place) != known:
                raise ImportRefused(
                    f"{span.place}: another span has its id, {span.id[1]}, at {known.place}; "
                    "remove the one that is wrong",
                    slug="import-span-twice",
                )
    return _in_order(spans)


def _in_order(spans: Mapping[Id, Span]) -> dict[Id, Span]:
    """By beginning, parents before their children: a child's clock may run behind."""
    placed: dict[Id, tuple[tuple[int, int], Span]] = {}
    for span in spans.values():
        chain: dict[Id, Span] = {}
        above: Span | None = span
        while above is not None and above.id not in placed:
            if above.id in chain:
                raise ImportRefused(
                    f"{above.place}: span {above.id[1]} is its own ancestor; export it again"
                )
            chain[above.id] = above
            above = None if above.parent is None else spans.get(above.parent)
        (start, depth) = (0, -1) if above is None else placed[above.id][0]
        for one in reversed(chain.values()):
            start, depth = max(start, one.start), depth + 1
            placed[one.id] = (start, depth), replace(one, start=start)
    ordered = sorted(placed.values(), key=lambda found: (*found[0], found[1].id))
    return {span.id: span for _, span in ordered}


def _spans_in(data: bytes, *, name: str) -> Iterator[Span]:
    number = 0
    for place, document in _documents(data, name=name):
        groups = _list(document, "resourceSpans", place=place, required=True)
        for group in groups:
            for scope in _list(group, "scopeSpans", place=place):
                for span in _list(scope, "spans", place=place):
                    yield _span(span, place=f"{place}: span {number}")
                    number += 1


def _documents(data: bytes, *, name: str) -> Iterator[tuple[str, Json]]:
    """The export requests in a file: it is one of them, or holds one a line."""
    lines = [line for line in data.split(b"\n") if line.strip()]
    try:
        first = parse(lines[0]) if len(lines) > 1 else None
    except NotCanonical:
        first = None  # a line of something longer
    if first is None:
        yield name, _parsed(data, place=name)
        return
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            place = f"{name}:{number}"
            yield place, _parsed(line, place=place)


def _parsed(data: bytes, *, place: str) -> Json:
    try:
        return parse(data)
    except NotCanonical as error:
        reason = str(error).removeprefix("not JSON: ")
        raise ImportRefused(
            f"{place}: not JSON: {reason}; give the spans as OTLP JSON, as they were exported",
            slug="import-not-json",
        ) from error


def _list(
    value: Json, member: str, *, place: str, required: bool = False
) -> Sequence[dict[str, Json]]:
    found = value.get(member) if isinstance(value, dict) else None
    if found is None and not required:
        return []
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ImportRefused(
            f"{place}: no list of objects under {member!r}; export the spans as OTLP JSON"
        )
    return cast("list[dict[str, Json]]", found)


def _span(given: dict[str, Json], *, place: str) -> Span:
    trace, own = (
        _identifier(given, "traceId", place=place),
        _identifier(given, "spanId", place=place),
    )
    above = given.get("parentSpanId") or ""
    if not isinstance(above, str):
        raise ImportRefused(f"{place}: its 'parentSpanId' is no text; export it as OTLP JSON")
    attributes = _members(given.get("attributes") or [], place=place)
    return Span(
        id=(trace, own),
        parent=(trace, above.lower()) if above.strip("0") else None,
        name=str(given.get("name") or ""),
        start=_nanoseconds(given, "startTimeUnixNano", place=place),
        end=_nanoseconds(given, "endTimeUnixNano", place=place),
        attributes=attributes,
        error=_error(given, attributes),
        place=place,
    )


def _identifier(given: Mapping[str, Json], member: str, *, place: str) -> str:
    value = given.get(member)
    if not isinstance(value, str) or not value:
        raise ImportRefused(f"{place} has no {member!r}; export the spans as OTLP JSON")
    return value.lower()


def _nanoseconds(given: Mapping[str, Json], member: str, *, place: str) -> int:
    value = given.get(member) or 0
    if (
        isinstance(value, str)
        and value.isascii()
        and value.isdigit()
        and len(value) <= len(str(LATEST))
    ):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LATEST:
        raise ImportRefused(
            f"{place}: its {member!r} is no time in nanoseconds; export it as OTLP JSON"
        )
    return value


def _error(given: Mapping[str, Json], attributes: Mapping[str, Json]) -> str | None:
    status, kind = given.get("status"), attributes.get("error.type")
    code = status.get("code") if isinstance(status, dict) else None
    if code not in _ERRORS and kind is None:
        return None
    message = status.get("message") if isinstance(status, dict) else None
    return str(kind or message or "error")


def _members(pairs: Json, *, place: str) -> dict[str, Json]:
    """OTLP's lists of keys and values as an object."""
    members: dict[str, Json] = {}
    for pair in pairs if isinstance(pairs, list) else [None]:
        key = pair.get("key") if isinstance(pair, dict) else None
        if not isinstance(pair, dict) or not isinstance(key, str):
            raise ImportRefused(f"{place}: attributes that are no list of keys and values")
        if key in members:
            raise ImportRefused(f"{place}: its attribute {key!r} stands twice; keep one")
        members[key] = _value(pair.get("value"), place=f"{place}: {key!r}")
    return members


def _value(given: Json, *, place: str) -> Json:
    match given:
        case None | {"stringValue": None}:
            return None
        case {"stringValue": str(value)} | {"bytesValue": str(value)}:
            return value
        case {"boolValue": bool(value)}:
            return value
        case {"intValue": value} | {"doubleValue": value}:
            return _number(value, place=place)
        case {"arrayValue": {"values": [*values]}}:
            return [_value(value, place=place) for value in values]
        case {"kvlistValue": {"values": values}}:
            return _members(values, place=place)
        case {"arrayValue": {}}:
            return []
        case {"kvlistValue": {}}:
            return {}
        case dict() if not given:
            return None
        case _:
            raise ImportRefused(f"{place} has no value of OTLP's; export the spans as OTLP JSON")


def _number(value: Json, *, place: str) -> Json:
    """A number, as itself or (as protobuf's JSON writes 64 bits) as text."""
    try:
        value = parse(value) if isinstance(value, str) else value
    except NotCanonical:
        value = None
    if value is None or isinstance(value, bool | str | list | dict):
        raise ImportRefused(f"{place} is no number; export the spans as OTLP JSON")
    return value
