"""Field kinds: what may differ in a field without the effect being another one."""

from __future__ import annotations

import pytest

from backstop.core.canon import Json, canonical
from backstop.core.fields import HIDDEN, KINDS, normalise, normalise_fields, without

SAME: list[tuple[str, tuple[str, ...], Json, Json]] = [
    ("K14 a set", ("set",), ["b", "a", "b"], ["a", "b"]),
    ("a set of numbers", ("set",), [2, 1], [1, 2]),
    ("a set of objects", ("set",), [{"b": 1}, {"a": 1}], [{"a": 1}, {"b": 1}]),
    ("K01 JSON text", ("json",), '{"a":1,"b":2}', '{ "b": 2.0, "a": 1 }'),
    ("JSON text and its value", ("json",), '{"a":1}', {"a": 1}),
    ("an instant", ("date-time",), "2026-01-01T12:00:00.100Z", "2026-01-01T13:00:00.1+01:00"),
    ("money", ("money",), "10.00", 10),
    ("trimmed", ("trim",), " a\tb ", "a b"),
    ("K12 double blanks, trimmed", ("trim",), "a  b", "a b"),
    ("casefolded", ("casefold",), "STRASSE", "stra\u00dfe"),
    ("casefolded to NFC", ("casefold",), "\u00c9", "e\u0301"),
    ("an address", ("email",), " Ann@Example.COM", "ann@example.com"),
    ("a slug", ("slug",), "ACME Corp.", "acme-corp"),
    ("a slug of odd signs", ("slug",), "__a & B/c__", "a-b-c"),
    ("a slug in compatibility form", ("slug",), "\uff21\uff23\uff2d\uff25", "acme"),
    ("a list of slugs", ("slug",), ["A B", ["C D"]], ["a-b", ["c-d"]]),
    ("a set of addresses", ("set", "email"), ["b@x", "A@x "], ["a@x", "B@X"]),
    ("in any order", ("email", "set"), ["b@x", "A@x "], ["a@x", "B@X"]),
]

DIFFERENT: list[tuple[str, tuple[str, ...], Json, Json]] = [
    ("an array that is no set", (), ["b", "a"], ["a", "b"]),
    ("other members", ("set",), ["a"], ["a", "b"]),
    ("K01 text without json", (), '{"a":1,"b":2}', '{"b":2,"a":1}'),
    ("text that is no JSON", ("json",), "{a}", "{b}"),
    ("naive and aware", ("date-time",), "2026-01-01T12:00:00", "2026-01-01T12:00:00Z"),
    ("no instants", ("date-time",), "monday", "Monday"),
    ("K12 double blanks", ("casefold",), "a  b", "a b"),
    ("case, only trimmed", ("trim",), "A", "a"),
    ("signs alone have no slug", ("slug",), "---", "***"),
    ("accents", ("slug",), "cafe", "caf\u00e9"),
    ("vowel signs", ("slug",), "\u0915\u093f", "\u0915\u093e"),
    ("other money", ("money",), "10.00", "10.01"),
    ("an unknown kind", ("fuzzy",), "A", "a"),
    ("a number is no text", ("casefold",), 1, "1"),
    ("an object is no text", ("trim",), {"a": " x"}, {"a": "x"}),
]


@pytest.mark.parametrize(("kinds", "a", "b"), [c[1:] for c in SAME], ids=[c[0] for c in SAME])
def test_two_values_are_the_same_under_a_kind(kinds: tuple[str, ...], a: Json, b: Json) -> None:
    one = normalise(a, kinds)
    assert canonical(one) == canonical(normalise(b, kinds))
    assert canonical(one) == canonical(normalise(one, kinds))


@pytest.mark.parametrize(
    ("kinds", "a", "b"), [c[1:] for c in DIFFERENT], ids=[c[0] for c in DIFFERENT]
)
def test_a_kind_merges_nothing_else(kinds: tuple[str, ...], a: Json, b: Json) -> None:
    assert canonical(normalise(a, kinds)) != canonical(normalise(b, kinds))


def test_the_kinds_are_those_of_the_design() -> None:
    assert {
        "set", "json", "email", "date-time", "slug", "casefold", "trim", "volatile",
        "override", "money", "generated", "redact",
    } == KINDS  # fmt: skip


def test_a_field_is_named_by_argument_or_by_pointer() -> None:
    arguments: dict[str, Json] = {
        "to": ["B@x", "a@X "],
        "/odd": "A",
        "customer": {"mail": "ANN@x", "name": "Ann"},
        "lines": [{"sku": "A b"}, {"sku": "c"}, "loose"],
    }
    fields = {
        "to": ("set", "email"),
        "/~1odd": ("casefold",),
        "/customer/mail": ("email",),
        "/lines/sku": ("slug",),
        "/lines/none/below": ("slug",),
        "absent": ("slug",),
    }
    assert normalise_fields(arguments, fields) == {
        "to": ["a@x", "b@x"],
        "/odd": "a",
        "customer": {"mail": "ann@x", "name": "Ann"},
        "lines": [{"sku": "a-b"}, {"sku": "c"}, "loose"],
    }
    assert arguments["to"] == ["B@x", "a@X "]


def test_json_text_is_opened_first_and_sets_are_made_last() -> None:
    fields = {"/body/tags": ("casefold",), "body": ("json",), "/body": ("set",)}
    assert normalise_fields({"body": '[{"tags":"B"},{"tags":"a"},{"tags":"A"}]'}, fields) == {
        "body": [{"tags": "a"}, {"tags": "b"}]
    }


def test_hidden_fields_are_left_out_wherever_they_lie() -> None:
    """F27, F33: a token and a confirmation are not part of what a call asks for."""
    arguments: dict[str, Json] = {
        "token": "t1",
        "confirm": True,
        "note": "x",
        "lines": [{"at": 1, "sku": "A"}, 7],
        "plain": 1,
    }
    fields = {
        "token": ("volatile",),
        "confirm": ("override",),
        "note": ("generated",),
        "/lines/at": ("trim", "volatile"),
        "/plain/at": ("volatile",),
        "/absent/at": ("volatile",),
    }
    assert without(arguments, fields, HIDDEN) == {
        "note": "x",
        "lines": [{"sku": "A"}, 7],
        "plain": 1,
    }
