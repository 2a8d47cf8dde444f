"""``backstop-waivers.yaml``, parsed at the edge: what a person accepted, until when, and why."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from backstop.config.model import Name, Text
from backstop.config.reading import explained, text_of
from backstop.config.strictyaml import Document, parse
from backstop.core.divergence import Kind
from backstop.core.unshown import Lack
from backstop.core.waivers import ByCall, ByFingerprint, ByKey, Names, Waiver

FILE: Final = "backstop-waivers.yaml"
"""Its name, beside ``backstop.yaml``."""

MAX_WORDS: Final = 500
"""Characters of a reason, a name or a pattern."""

MAX_COUNT: Final = 10_000
"""Findings that one waiver may be for."""

_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


def day(text: str) -> date:
    """The date in ``2026-12-24``. Raises `ValueError`."""
    if _DAY.fullmatch(text) is None:
        raise ValueError(f"{text!r} is no date: write year, month and day, like 2026-12-24")
    return date.fromisoformat(text)


def _checked_day(text: str) -> str:
    day(text)
    return text


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank: say it in words")
    return text


Said = Annotated[str, Field(min_length=1, max_length=MAX_WORDS), AfterValidator(_said)]
Day = Annotated[str, AfterValidator(_checked_day)]
Fingerprint = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
Pattern: TypeAlias = Annotated[str, Field(min_length=1, max_length=MAX_WORDS)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class CallModel(_Model):
    """What a key is made of, as patterns; `*` stands for any text."""

    tool: Pattern = Field(description="The tool's name.")
    run: Pattern = Field(default="*", description="The run's name.")
    args: dict[Text, Pattern] = Field(
        default_factory=dict, description="Arguments by name; all of them must fit."
    )


class WaiverModel(_Model):
    """One accepted finding, or the findings that a pattern names."""

    fingerprint: Fingerprint | None = Field(
        default=None, description="The finding, as the report names it."
    )
    key: Pattern | CallModel | None = Field(
        default=None, description="A stored key, or the call that it is made of; `*` is any text."
    )
    kind: Literal["DUPLICATE", "MUTATED", "MISSING", "EXTRA", "UNCOVERED"] | None = Field(
        default=None, description="The kind of finding; a pattern without one waives nothing."
    )
    agent: Name
    reason: Said = Field(description="Why it may go out all the same.")
    author: Said = Field(description="Who answers for it.")
    expires: Day = Field(description="The last day, in UTC, on which it counts.")
    count: int = Field(
        default=1, ge=1, le=MAX_COUNT, description="How many findings it is for; more, and none is."
    )

    @model_validator(mode="after")
    def _names_one_thing(self) -> WaiverModel:
        if (self.fingerprint is None) == (self.key is None):
            raise ValueError("names what it waives by one of `fingerprint` and `key`")
        return self


class WaiversModel(_Model):
    """What a team accepts for a while, ``backstop-waivers.yaml``."""

    version: Literal[1]
    waivers: tuple[WaiverModel, ...] = ()


def load(path: Path) -> tuple[Waiver, ...]:
    """The waivers in the file `path`; none where there is no such file.

    Raises `ConfigError` with file and line, as `loads` does, or ``config-unreadable``.
    """
    if not path.is_symlink() and not path.exists():
        return ()
    return loads(text_of(path, missing="remove the link, or write it"), name=str(path))


def loads(text: str, *, name: str) -> tuple[Waiver, ...]:
    """The waivers in `text`; `name` stands in messages.

    Raises `ConfigError` with file and line: those of ``backstop.yaml``, and ``config-value`` for
    a waiver without a reason, an author or the day on which it expires.
    """
    document = parse(text, name=name)
    value = document.value
    if value is None:  # nothing but comments
        return ()
    if isinstance(value, dict) and value.get("waivers", ()) is None:
        # What is left when the last one was taken out by hand.
        value = {**value, "waivers": []}
    try:
        model = WaiversModel.model_validate_json(json.dumps(value))
    except ValidationError as error:
        raise explained(error, document, schema="docs/waivers.md") from error
    return tuple(_waiver(one, document, at) for at, one in enumerate(model.waivers))


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the file, as published in ``docs/waivers.schema.json``."""
    schema = WaiversModel.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def kind_of(text: str | None) -> Kind | Lack | None:
    """The kind of finding in ``DUPLICATE`` or ``UNCOVERED``. Raises `ValueError`."""
    if text is None:
        return None
    return Lack.UNCOVERED if text == Lack.UNCOVERED.value else Kind(text)


def _waiver(model: WaiverModel, document: Document, at: int) -> Waiver:
    return Waiver(
        names=_names(model),
        agent=model.agent,
        reason=model.reason,
        author=model.author,
        expires=day(model.expires),
        kind=kind_of(model.kind),
        count=model.count,
        # A verdict is the same wherever the checkout lies.
        place=f"{FILE}:{document.lines['waivers', at]}",
    )


def _names(model: WaiverModel) -> Names:
    match model.key:
        case None:
            return ByFingerprint(fingerprint=model.fingerprint or "")
        case str(key):
            return ByKey(key=key)
        case CallModel() as call:
            return ByCall(tool=call.tool, run=call.run, args=call.args)
