"""Coercion by schema: what a tool's schema means by a value, and nothing beyond it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from backstop.core.canon import Json, NotCanonical, canonical
from backstop.core.coercion import instant
from backstop.core.fields import coerce

INT: dict[str, Any] = {"type": "integer"}
STR: dict[str, Any] = {"type": "string"}
TIME: dict[str, Any] = {"type": "string", "format": "date-time"}
ID: dict[str, Any] = {"type": "string", "format": "uuid"}
INTS: dict[str, Any] = {"type": "array", "items": INT}
NULL: dict[str, Any] = {"type": "null"}
UUID_TEXT = "ABCDEF00-0000-4000-8000-0000000000Aa"


def any_of(*branches: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": list(branches)}


MEANT: list[tuple[str, Json, dict[str, Any], Json]] = [
    ("K21 a number's text", "42", INT, 42),
    ("a negative one", "-42", INT, -42),
    ("an integral text is the integer", "42.0", INT, 42),
    ("an exponent that is integral", "1e3", INT, 1000),
    ("a decimal text", "4.20", {"type": "number"}, Decimal("4.2")),
    ("an integer's text under number", "4", {"type": "number"}, 4),
    ("money", "4.20", {"type": "money"}, Decimal("4.2")),
    ("a boolean's text", "true", {"type": "boolean"}, True),
    ("the other one", "false", {"type": "BOOLEAN"}, False),
    ("K22 a list's text", "[]", {"type": "array"}, []),
    ("an object's text", '{"a": "1"}', {"type": "object", "properties": {"a": INT}}, {"a": 1}),
    ("items of a list's text", ' ["1", 2]\n', INTS, [1, 2]),
    ("an integer under string", 42, STR, "42"),
    ("Gemini's upper case", "42", {"type": "INTEGER"}, 42),
    ("Gemini's nullable", "42", {"type": "INTEGER", "nullable": True}, 42),
    ("a nullable union", "42", {"anyOf": [INT, INTS], "nullable": True}, 42),
    ("a list of types", "42", {"type": ["integer", "null"]}, 42),
    ("an optional integer", "42", any_of(INT, NULL), 42),
    ("int or float, both mean 42", "42", any_of(INT, {"type": "number"}), 42),
    ("int or float, one means it", "4.5", any_of(INT, {"type": "number"}), Decimal("4.5")),
    ("oneOf is a union too", "42", {"oneOf": [INT, NULL]}, 42),
    ("a union deep in an array", ["1"], any_of(INTS, NULL), [1]),
    (
        "a required member picks the branch",
        {"n": "1"},
        any_of(
            {"type": "object", "properties": {"n": INT}, "required": ["n"]},
            {"type": "object", "properties": {"m": INT}, "required": ["m"]},
        ),
        {"n": 1},
    ),
    ("an enum picks the branch", "7", any_of({"type": "integer", "enum": [7]}, {"const": "x"}), 7),
    ("a date-time", "2026-01-01T13:00:00.100+01:00", TIME, "2026-01-01T12:00:00.1Z"),
    ("a date-time in an optional", "2026-01-01 12:00Z", any_of(TIME, NULL), "2026-01-01T12:00:00Z"),
    ("a UUID", UUID_TEXT, ID, UUID_TEXT.lower()),
    ("a UUID among other things", UUID_TEXT, any_of(ID, INT), UUID_TEXT.lower()),
    ("additional properties", {"x": "1"}, {"additionalProperties": INT}, {"x": 1}),
    (
        "declared before additional",
        {"x": 1, "y": 2},
        {"properties": {"x": STR}, "additionalProperties": True},
        {"x": "1", "y": 2},
    ),
    ("prefix items", ["1", "2", 3], {"prefixItems": [INT], "items": STR}, [1, "2", "3"]),
    ("all of", "42", {"allOf": [INT]}, 42),
    (
        "a reference",
        {"n": "1"},
        {"properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": INT}},
        {"n": 1},
    ),
    (
        "a schema that names itself",
        {"v": "1", "next": {"v": "2"}},
        {"properties": {"v": INT, "next": {"$ref": "#"}}},
        {"v": 1, "next": {"v": 2}},
    ),
]

LEFT: list[tuple[str, Json, dict[str, Any]]] = [
    ("without a schema", "42", {}),
    ("K20 a string stays", "0123", STR),
    ("leading zeros", "0123", INT),
    ("a blank in front", " 42", INT),
    ("a blank behind", "42 ", INT),
    ("hexadecimal", "0x10", INT),
    ("Arabic digits", "\u0661\u0662", INT),
    ("full-width digits", "\uff14\uff12", INT),
    ("an underscore", "1_000", INT),
    ("a comma", "1,000", INT),
    ("a plus", "+42", INT),
    ("a decimal under integer", "4.5", INT),
    ("a decimal number under integer", Decimal("4.5"), INT),
    ("NaN", "NaN", {"type": "number"}),
    ("overflow", "1e999", {"type": "number"}),
    ("empty", "", INT),
    ("Python's True", "True", {"type": "boolean"}),
    ("1 is no boolean", 1, {"type": "boolean"}),
    ("true is no integer", True, INT),
    ("true's text is no integer", "true", INT),
    ("a boolean under string", True, STR),
    ("a decimal under string", Decimal("4.5"), STR),
    ("null under integer", None, INT),
    ("null's text under null", "null", NULL),
    ("an object's text under array", "{}", {"type": "array"}),
    ("broken JSON under array", "[1,", {"type": "array"}),
    ("duplicate members under object", '{"a":1,"a":2}', {"type": "object"}),
    ("a string branch fits already", "42", any_of(INT, STR)),
    ("a list of types with string", "42", {"type": ["integer", "string"]}),
    ("nullable and null", None, {"type": "INTEGER", "nullable": True}),
    ("no branch of a union means it", "x", any_of(INT, NULL)),
    (
        "branches disagree",
        {"a": "1", "b": "2"},
        any_of({"properties": {"a": INT, "b": STR}}, {"properties": {"a": STR, "b": INT}}),
    ),
    ("two branches that fit", "2026-01-01T12:00:00.0Z", any_of(TIME, STR)),
    ("no date-time", "yesterday", TIME),
    ("no UUID", "abc", ID),
    ("an unknown type", "42", {"type": "decimal128"}),
    ("a type that is no text", "42", {"type": 7}),
    ("a reference to nowhere", "42", {"$ref": "#/$defs/None"}),
    ("a reference to no schema", "42", {"$ref": "#/x", "x": 1}),
    ("a reference in a circle", "42", {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}),
    ("a union in a circle", "42", {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}),
    ("members without a schema", {"a": "1"}, {"type": "object"}),
    ("items without a schema", ["1"], {"type": "array", "items": True}),
    ("additional properties forbidden", {"a": "1"}, {"additionalProperties": False}),
    ("an empty enum", "x", any_of({"type": "string", "enum": []}, NULL)),
]


@pytest.mark.parametrize(
    ("value", "schema", "meant"), [c[1:] for c in MEANT], ids=[c[0] for c in MEANT]
)
def test_a_value_becomes_what_the_schema_means(
    value: Json, schema: dict[str, Any], meant: Json
) -> None:
    coerced = coerce(value, schema)
    assert canonical(coerced) == canonical(meant)
    assert canonical(coerce(coerced, schema)) == canonical(meant)


@pytest.mark.parametrize(("value", "schema"), [c[1:] for c in LEFT], ids=[c[0] for c in LEFT])
def test_a_value_that_the_schema_does_not_clearly_mean_is_left_alone(
    value: Json, schema: dict[str, Any]
) -> None:
    assert canonical(coerce(value, schema)) == canonical(value)


def test_a_branch_is_chosen_by_what_fits_all_the_way_down() -> None:
    """A list of wrong items, a missing member, a wrong format or part: the branch is not meant."""
    schema = any_of(
        {"type": "array", "items": ID},
        {"allOf": [INT, {"type": "string"}]},
        any_of(INT, INTS),
    )
    assert coerce(["1", "2"], schema) == [1, 2]
    assert coerce([UUID_TEXT], schema) == [UUID_TEXT.lower()]


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("2026-01-01T12:00:00Z", "2026-01-01T12:00:00Z"),
        ("2026-01-01t12:00:00z", "2026-01-01T12:00:00Z"),
        ("2026-01-01T12:00:00.000+00:00", "2026-01-01T12:00:00Z"),
        ("2026-01-01T12:00:00-00:00", "2026-01-01T12:00:00Z"),
        ("2026-01-01T14:30:00+0230", "2026-01-01T12:00:00Z"),
        ("2025-12-31T22:00:00-14:00", "2026-01-01T12:00:00Z"),
        ("2026-01-01T12:00:00.1234567891Z", "2026-01-01T12:00:00.1234567891Z"),
        ("2026-01-01 12:00", "2026-01-01T12:00:00"),
        ("2026-01-01T12:00:00.50", "2026-01-01T12:00:00.5"),
    ],
)
def test_an_instant_has_one_spelling(text: str, spelled: str) -> None:
    assert instant(text) == spelled
    assert instant(spelled) == spelled


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-01",
        "12:00:00Z",
        "2026-02-30T12:00:00Z",
        "2026-01-01T25:00:00Z",
        "2026-01-01T12:00:60Z",
        "2026-01-01T12:00:00+24:00",
        "2026-01-01T12:00:00+01:60",
        "2026-01-01T12:00.5Z",
        "0001-01-01T00:00:00+01:00",
        "\u0662026-01-01T12:00:00Z",
        " 2026-01-01T12:00:00Z",
        "2026-01-01T12:00:00Z\n",
    ],
)
def test_what_is_no_instant_has_no_spelling(text: str) -> None:
    assert instant(text) is None


def test_unions_inside_unions_end() -> None:
    """A tool's schema comes from the candidate: it must not keep the gate busy for ever."""
    node: dict[str, Any] = {
        "anyOf": [
            {"type": "array", "items": {"$ref": "#/$defs/n"}},
            {"type": "array", "items": {"$ref": "#/$defs/n"}, "minItems": 1},
            {"type": "integer"},
        ]
    }
    value: Json = "1"
    for _ in range(40):
        value = [value]
    with pytest.raises(NotCanonical) as caught:
        coerce({"a": value}, {"$defs": {"n": node}, "properties": {"a": {"$ref": "#/$defs/n"}}})
    assert caught.value.slug == "schema-too-wide"
