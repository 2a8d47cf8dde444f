"""Agent text is hostile: what cannot be seen is spelled out, in one place."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstop.reports.escape import in_json, plain

ANYTHING = st.text(st.characters(categories=None) | st.characters(categories=["Cs", "Cf", "Cc"]))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ordinary text", "ordinary text"),
        ("Müller, 東京, Ωμέγα", "Müller, 東京, Ωμέγα"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x1b[31mred", "\\u{1b}[31mred"),
        ("\x9b31m", "\\u{9b}31m"),
        ("\x00\x7f", "\\u{0}\\u{7f}"),
        ("abc\u202edef", "abc\\u{202e}def"),
        ("\u2066\u2069\u200e\u061c", "\\u{2066}\\u{2069}\\u{200e}\\u{61c}"),
        ("a\u200bb\ufeff", "a\\u{200b}b\\u{feff}"),
        ("a\u2028b\u2029\x85", "a\\u{2028}b\\u{2029}\\u{85}"),
        ("a\u00a0b", "a\\u{a0}b"),
        ("\ud800", "\\u{d800}"),
        ("\U000e0041", "\\u{e0041}"),
        ("\ue000", "\\u{e000}"),
        ("e\u0301", "e\u0301"),
        ("[bold]not markup[/]", "[bold]not markup[/]"),
    ],
)
def test_hidden_characters_are_spelled(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_a_tower_of_marks_is_cut_down() -> None:
    shown = plain("a" + "\u0301" * 50 + "b")
    assert shown.count("\u0301") == 4
    assert shown.endswith("b")


def test_a_cut_is_said() -> None:
    assert plain("abcdef", limit=6) == "abcdef"
    assert plain("abcdefg", limit=6) == "abcde…"
    assert plain("x" * 10, limit=0) == "…"


@given(ANYTHING)
def test_what_is_shown_is_one_visible_line(text: str) -> None:
    shown = plain(text)
    assert len(shown.splitlines()) <= 1
    assert not any(unicodedata.category(character).startswith("C") for character in shown)


@given(st.recursive(ANYTHING | st.integers(), lambda inner: st.lists(inner, max_size=4)))
def test_escaped_json_means_the_same(value: object) -> None:
    text = in_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(text) == json.loads(json.dumps(value))
    assert not any(unicodedata.category(character).startswith("C") for character in text)
    text.encode()
