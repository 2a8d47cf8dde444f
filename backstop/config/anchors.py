"""``backstop-mesh.yaml``, parsed at the edge: what the mesh trusts without asking its store."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from backstop.config.model import Text
from backstop.config.reading import explained, text_of
from backstop.config.strictyaml import parse
from backstop.core.anchors import Anchors, Rule
from backstop.core.checkpoint import DepKind
from backstop.core.shapes import faults

FILE: Final = "backstop-mesh.yaml"
"""Its usual name."""

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{32}([0-9a-f]{32})?$")]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Rule(_Model):
    digest: Digest
    loosens: tuple[Digest, ...] = ()


class _Pins(_Model):
    evidence: dict[Text, Digest] = {}
    tool: dict[Text, Digest] = {}
    model: dict[Text, Digest] = {}
    prompt: dict[Text, Digest] = {}
    code: dict[Text, Digest] = {}


class _Anchors(_Model):
    version: Literal[1]
    payloads: Text | None
    producers: tuple[Text, ...] = Field(min_length=1)
    revoked_producers: tuple[Text, ...] = ()
    revoked: tuple[Digest, ...] = ()
    pins: _Pins = _Pins()
    rules: dict[Text, _Rule] = {}
    outputs: dict[Text, dict[str, Any]] = {}
    skew_s: float = Field(default=2.0, ge=0, le=3600)

    @model_validator(mode="after")
    def _can_be_checked(self) -> _Anchors:
        for name, shape in self.outputs.items():
            wrong = next(faults(shape), None)
            if wrong is not None:
                raise ValueError(f"outputs.{name}: {wrong}")
        if self.outputs and self.payloads is None:
            raise ValueError("outputs cannot be checked without `payloads`")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchored:
    """The anchors, and the folder of what steps left; None where a person said not to look."""

    anchors: Anchors
    payloads: Path | None


def load(path: Path) -> Anchored:
    """The anchors in the file `path`; a folder in it is beside the file.

    Raises `ConfigError` with file and line, and ``config-missing`` where there is none: without
    anchors nothing can be VERIFIED.
    """
    missing = "write down whom the mesh trusts (docs/mesh.md), or name it with --anchors"
    document = parse(text_of(path, missing=missing), name=str(path))
    try:
        model = _Anchors.model_validate_json(json.dumps(document.value))
    except ValidationError as error:
        raise explained(error, document, schema="docs/mesh.md") from error
    pins = {
        (DepKind(kind), ref): digest
        for kind, named in model.pins.model_dump().items()
        for ref, digest in named.items()
    }
    anchors = Anchors(
        producers=frozenset(model.producers),
        pins=pins,
        rules={
            name: Rule(digest=rule.digest, loosens=frozenset(rule.loosens))
            for name, rule in model.rules.items()
        },
        revoked=frozenset(model.revoked),
        revoked_producers=frozenset(model.revoked_producers),
        skew_s=model.skew_s,
        shapes=model.outputs,
    )
    payloads = None if model.payloads is None else path.parent / model.payloads
    return Anchored(anchors=anchors, payloads=payloads)
