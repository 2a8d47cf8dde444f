"""YAML files of other tools as JSON values, in one pass and with bounded depth.

What is read is what `yaml.safe_dump` writes of JSON-like values: no tags, no aliases, one
document. A plain scalar that YAML 1.1 takes for something that JSON does not have (``no``, a
date, ``0x10``) is refused, for nobody can tell which of the two was meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import yaml

from backstop.adapters.transcript import ImportRefused
from backstop.core.canon import Json, NotCanonical, parse, render
from backstop.core.spelling import MAX_DEPTH, MAX_SIZE

MAX_BYTES: Final = MAX_SIZE

_NULLS: Final = frozenset({"", "~", "null"})
_BOOLS: Final = {"true": True, "false": False}
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII)
_NUMBERS: Final = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


@dataclass(slots=True, kw_only=True)
class _Frame:
    """A list or a mapping that is not read to its end; `key` is a mapping's key in hand."""

    value: list[Json] | dict[str, Json]
    key: str | None = None


@dataclass(slots=True, kw_only=True)
class _Reading:
    name: str
    frames: list[_Frame] = field(default_factory=list)
    documents: list[Json] = field(default_factory=list)

    def take(self, event: yaml.Event) -> None:
        match event:
            case yaml.AliasEvent():
                raise self._refusal(event, "an alias (`*name`)")
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.SequenceStartEvent():
                self._open(event, [])
            case yaml.MappingStartEvent():
                self._open(event, {})
            case yaml.CollectionEndEvent():
                self.frames.pop()
            case _:
                pass  # beginnings and ends of documents say nothing by themselves

    def _open(self, event: yaml.CollectionStartEvent, value: list[Json] | dict[str, Json]) -> None:
        if event.tag is not None:
            raise self._refusal(event, f"the tag {event.tag!r}")
        if len(self.frames) >= MAX_DEPTH:
            raise self._refusal(event, f"a value nested more than {MAX_DEPTH} deep")
        self._put(event, value)
        self.frames.append(_Frame(value=value))

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        if event.tag is not None:
            raise self._refusal(event, f"the tag {event.tag!r}")
        frame = self.frames[-1] if self.frames else None
        if frame is None or isinstance(frame.value, list) or frame.key is not None:
            self._put(event, self._value(event))
            return
        key = event.value
        if key in frame.value:
            raise self._refusal(event, f"{key!r} for the second time in one mapping")
        frame.key = key

    def _put(self, event: yaml.Event, value: Json) -> None:
        if not self.frames:
            if self.documents:
                raise self._refusal(event, "a second document")
            self.documents.append(value)
            return
        frame = self.frames[-1]
        if isinstance(frame.value, list):
            frame.value.append(value)
            return
        if frame.key is None:
            raise self._refusal(event, "a key that is no plain text")
        frame.value[frame.key] = value
        frame.key = None

    def _value(self, event: yaml.ScalarEvent) -> Json:
        text = str(event.value)
        if event.style:  # quoted, or a block: of a plain scalar it is empty or None
            return text
        if text in _NULLS:
            return None
        if text in _BOOLS:
            return _BOOLS[text]
        if (tag := _meant(text)) is None:
            return text
        if tag in _NUMBERS and _NUMBER.fullmatch(text):
            try:
                return parse(text)
            except NotCanonical as error:
                raise self._refusal(event, str(error)) from error
        raise self._refusal(event, f"{text!r}, which may be text or {tag.rpartition(':')[2]}")

    def _refusal(self, event: yaml.Event, what: str) -> ImportRefused:
        line = 1 if event.start_mark is None else event.start_mark.line + 1
        return ImportRefused(
            f"{self.name}:{line}: {what}; give the file as it was recorded",
            slug="import-not-yaml",
        )


def parse_yaml(data: bytes, *, name: str) -> Json:
    """The one document of `data` (UTF-8). Raises `ImportRefused` (``import-not-yaml``)."""
    if len(data) > MAX_BYTES:
        raise ImportRefused(
            f"{name}: {len(data):,} bytes, more than the {MAX_BYTES:,} that are read; split it",
            slug="import-not-yaml",
        )
    reading = _Reading(name=name)
    for event in _events(data, name=name):
        reading.take(event)
    document = reading.documents[0] if reading.documents else None
    try:
        render(document)
    except NotCanonical as error:
        raise ImportRefused(
            f"{name}: {error}; give the file as it was recorded", slug="import-not-yaml"
        ) from error
    return document


def _events(data: bytes, *, name: str) -> Iterator[yaml.Event]:
    # The C library is ten times faster, where PyYAML was built with it.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        yield from yaml.parse(data.decode(), Loader=loader)
    except UnicodeDecodeError as error:
        raise ImportRefused(f"{name}: not UTF-8 text", slug="import-not-yaml") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        raise ImportRefused(
            f"{name}:{line}: not valid YAML: {error.problem}; give the file as it was recorded",
            slug="import-not-yaml",
        ) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ImportRefused(
            f"{name}: not valid YAML; give the file as it was recorded", slug="import-not-yaml"
        ) from error


def _meant(text: str) -> str | None:
    """The tag that YAML 1.1 gives to plain text, None where it is text."""
    table = yaml.SafeLoader.yaml_implicit_resolvers
    for tag, pattern in [*table.get(text[0], ()), *table.get(None, ())]:
        if pattern.match(text):
            return str(tag)
    return None
