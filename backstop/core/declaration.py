"""What is known of a tool, and whose effects are meant: the ground that keys are made on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import msgspec

from backstop.core.canon import Json, canonical, short
from backstop.core.coercion import left_alone
from backstop.core.plain import spelled_members


class Scope(StrEnum):
    """Within what a key is unique: one run, one step of it, or all of the agent's runs."""

    RUN = "run"
    STEP = "step"
    AGENT = "agent"


class Declaration(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """What is known about a tool: whether it acts, what names its effects, how to read them.

    `identity` names arguments; None is undeclared. `scope` None is a run, undeclared.
    `fields` maps arguments (or JSON Pointers) to kinds of `backstop.core.fields`. `schema`
    is the JSON Schema of the parameters. `occurrence` is the argument that tells deliberate
    repeats apart, or ``step``. `aliases` are other names of the same tool. `key` are arguments
    that hold the caller's own idempotency key, which stands in for the identity.
    """

    tool: str
    effect: bool = True
    identity: tuple[str, ...] | None = None
    scope: Scope | None = None
    fields: dict[str, tuple[str, ...]] = {}
    schema: dict[str, Any] = {}
    occurrence: str | None = None
    aliases: tuple[str, ...] = ()
    key: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> str:
        """Short digest of the declaration's canonical form; rows name the declaration by it."""
        return short(canonical(msgspec.to_builtins(self)))

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The schemas of the parameters by name, as far as the schema knows them."""
        known = self.schema.get("properties")
        return known if isinstance(known, dict) else {}

    @cached_property
    def defaults(self) -> dict[str, Json]:
        """The declared defaults by parameter, canonical. Raises `NotCanonical`."""
        given = {
            name: schema["default"]
            for name, schema in self.parameters.items()
            if isinstance(schema, dict) and "default" in schema
        }
        return spelled_members(given)[1]

    @cached_property
    def left_alone(self) -> dict[str, frozenset[type]]:
        """By parameter: types of which the schema changes no value."""
        return left_alone(self.schema)

    def leaves(self, members: Mapping[str, Json]) -> bool:
        """Does the schema change none of these arguments?"""
        alone = self.left_alone
        for name, value in members.items():  # noqa: SIM110 - on the path of every call
            if type(value) not in alone.get(name, ()):
                return False
        return True

    def is_optional(self, name: str) -> bool:
        """Does the schema know this parameter, and not require it?"""
        return name in self.parameters and name not in self.schema.get("required", ())


def completed(known: Declaration, code: Declaration) -> Declaration:
    """`known`, with what a tool's own code says where it is silent of what names the effect."""
    return msgspec.structs.replace(
        known,
        identity=code.identity if known.identity is None else known.identity,
        scope=code.scope if known.scope is None else known.scope,
        key=known.key or code.key,
        fields={**known.fields, **code.fields},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """Whose effects these are; other agents, apps and tenants have other keys."""

    agent: str
    app: str = ""
    tenant: str = ""
