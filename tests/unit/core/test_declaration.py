"""A declaration: its JSON, its digest, and schemas of an odd shape."""

from __future__ import annotations

import msgspec

from backstop.core.declaration import Declaration, Scope
from tests.unit.core.test_identity import call, schema


def test_a_declaration_survives_its_own_json() -> None:
    rules = Declaration(
        tool="f",
        effect=False,
        identity=("a",),
        scope=Scope.STEP,
        fields={"a": ("slug", "trim")},
        schema=schema(("a",), n=1.5),
        occurrence="step",
        aliases=("g",),
    )
    again = msgspec.json.decode(msgspec.json.encode(rules), type=Declaration)
    assert again == rules
    assert again.digest == rules.digest
    assert len(rules.digest) == 32


def test_a_declaration_has_another_digest_if_anything_in_it_changes() -> None:
    digests = {
        Declaration(tool="f").digest,
        Declaration(tool="g").digest,
        Declaration(tool="f", effect=False).digest,
        Declaration(tool="f", identity=()).digest,
        Declaration(tool="f", identity=("a", "b")).digest,
        Declaration(tool="f", identity=("b", "a")).digest,
        Declaration(tool="f", scope=Scope.RUN).digest,
        Declaration(tool="f", fields={"a": ("trim",)}).digest,
        Declaration(tool="f", schema={"type": "object"}).digest,
        Declaration(tool="f", occurrence="step").digest,
        Declaration(tool="f", aliases=("g",)).digest,
    }
    assert len(digests) == 11


def test_a_schema_of_an_odd_shape_knows_no_parameters() -> None:
    rules = Declaration(tool="f", schema={"properties": ["a"]})
    assert rules.parameters == {}
    assert call({"a": 1}, rules).identity == {"a": 1}
    assert Declaration(tool="f", schema={"properties": {"a": True}}).defaults == {}


def test_a_schema_whose_root_asks_for_something_else_changes_nothing() -> None:
    assert call({"a": 1}, Declaration(tool="f", schema={"type": "string"})).arguments == {"a": 1}
