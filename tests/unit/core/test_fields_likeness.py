"""Likeness: when two values look like one name, how they differ, and where."""

from __future__ import annotations

from decimal import Decimal

import pytest

from backstop.core.canon import Json, canonical
from backstop.core.fields import difference, fold, pointers

ALIKE: list[tuple[Json, Json, tuple[str, ...]]] = [
    ("acme-corp", "ACME Corp", ("case", "punctuation")),
    ("Alice", "alice", ("case",)),
    ("Stra\u00dfe", "STRASSE", ("case",)),
    ("a-b", "ab", ("punctuation",)),
    ("a, b", "a b", ("punctuation",)),
    ("a_b", "a.b", ("punctuation",)),
    ("12-34", "1234", ("punctuation",)),
    ("a  b", "a b", ("whitespace",)),
    ("ab", "a b", ("whitespace",)),
    ("a - b", "a-b", ("whitespace",)),
    ("a\u200bb", "ab", ("whitespace",)),
    ("a ", "a", ("whitespace",)),
    ("\ufb01", "fi", ("unicode",)),
    ("a\u3000b", "a b", ("unicode",)),
    ("\uff14\uff12", "42", ("unicode",)),
    ("\uff21\uff23\uff2d\uff25", "acme", ("case", "unicode")),
    ("caf\u00e9", "CAFE\u0301", ("case",)),
    ("4.20", "4.2", ("number format",)),
    ("1,000", "1000", ("number format",)),
    ("4.", "4.0", ("number format",)),
    ("-1.0", "-1", ("number format",)),
    (42, "42", ("number format",)),
    (1234, "12-34", ("number format",)),
    (["A", 1], ["a", "1"], ("case", "number format")),
    ({"x": "A-b", "y": 1}, {"x": "a b", "y": 1}, ("case", "punctuation")),
    ("--", " --", ("whitespace",)),
]

UNLIKE: list[tuple[Json, Json]] = [
    ("acme", "acne"),
    ("4.2", "42"),
    ("-5", "5"),
    ("0123", "123"),
    (True, 1),
    (True, "true"),
    (None, ""),
    ("---", "***"),
    (["a", "b"], ["b", "a"]),
    (["a"], ["a", "b"]),
    ({"a": 1}, {"b": 1}),
    ("\u0915\u093f", "\u0915\u093e"),
    ({"a": 1}, ["a", 1]),
]


@pytest.mark.parametrize(("a", "b", "how"), ALIKE)
def test_two_spellings_of_one_name_fold_alike_and_their_difference_is_named(
    a: Json, b: Json, how: tuple[str, ...]
) -> None:
    """G3, G4: the kinds of difference of a relabelled call."""
    assert canonical(fold(a)) == canonical(fold(b))
    assert difference(a, b) == how
    assert difference(b, a) == how


@pytest.mark.parametrize(("a", "b"), UNLIKE)
def test_two_names_fold_apart(a: Json, b: Json) -> None:
    assert canonical(fold(a)) != canonical(fold(b))
    assert "other" in difference(a, b)
    assert difference(a, b) == difference(b, a)


def test_equal_values_do_not_differ() -> None:
    assert difference({"a": ["\u00e9", Decimal("1.0")]}, {"a": ["e\u0301", 1]}) == ()
    assert pointers({"a": ["\u00e9"]}, {"a": ["e\u0301"]}) == ()


@pytest.mark.parametrize(
    ("a", "b", "places"),
    [
        ({"a": 1}, {"a": True}, ("/a",)),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, ("/a/b/1",)),
        ({"a": 1, "b/c": 1, "d~": 1}, {"a": 1}, ("/b~1c", "/d~0")),
        ([1], [1, {"x": 1}, 3], ("/1", "/2")),
        ({"a": [1]}, {"a": {"0": 1}}, ("/a",)),
        ({"b": 1, "a": 1}, {"b": 2, "a": 2}, ("/a", "/b")),
        (1, 2, ("",)),
        ([], [], ()),
    ],
)
def test_pointers_name_the_places_that_differ(a: Json, b: Json, places: tuple[str, ...]) -> None:
    assert pointers(a, b) == places
    assert pointers(b, a) == places
