"""Agent text is hostile: what cannot be seen is spelled out, in one place."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backstop.reports.escape import (
    brief,
    code,
    fenced,
    in_comment,
    in_html,
    in_json,
    plain,
    prose,
    public,
)

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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pay", "`pay`"),
        ("a`b|c", "`a\\u{60}b\\u{7c}c`"),
        (" x", "`  x `"),
        ("US$", "` US$ `"),
        ("", "`(blank)`"),
        ("  ", "`(blank)`"),
        ("a\nb\u202e", "`a\\nb\\u{202e}`"),
    ],
)
def test_a_code_span_holds_what_would_end_it(text: str, shown: str) -> None:
    assert code(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("run r7 was not replayed", "run `r7` was not replayed"),
        ("judged under two declarations.", "judged under two declarations."),
        ("3 steps (drift unknown), 0 allowed", "3 steps (drift unknown), 0 allowed"),
        ("see @octocat and #1, please", "see `@octocat` and `#1`, please"),
        ("a b@c d/e f", "a `b@c d/e` f"),
        ("7. first", "7\\. first"),
        ("1,094 events", "1,094 events"),
        ("not covered: the body of order_it", "not covered: the body of `order_it`"),
        ("deadbeef and decades", "`deadbeef` and decades"),
        ("it's re-keyed", "it's re-keyed"),
        ("(a_b)", "(`a_b`)"),
        ("---", "`---`"),
        ("::", "`::`"),
        ("", "`(blank)`"),
    ],
)
def test_prose_keeps_words_and_fences_off_the_rest(text: str, shown: str) -> None:
    assert prose(text) == shown


@given(ANYTHING, st.integers(1, 40))
def test_a_limit_holds_for_what_is_shown_and_cuts_no_escape(text: str, limit: int) -> None:
    for shown in (brief(text, limit), code(text, limit=limit).strip("`").strip()):
        assert len(shown) <= max(limit, len("(blank)"))
        assert not shown.removesuffix("…").endswith(("\\u", "\\u{"))


@given(ANYTHING)
@example("<b> --> ---- <!-- --!>")
def test_html_and_comments_cannot_be_left(text: str) -> None:
    assert in_html(text).count("<") == 2
    hidden = in_comment(json.dumps(text, ensure_ascii=False))
    assert json.loads(hidden) == json.loads(json.dumps(text))
    assert not {"<", ">"} & set(hidden)
    assert "--" not in hidden


@given(ANYTHING)
def test_no_line_of_a_fence_is_its_end(text: str) -> None:
    fence, *lines, end = fenced(text).split("\n")
    assert fence == f"{end}text"
    assert end not in [line.strip() for line in lines]


def test_masking_ends_at_a_blank_and_takes_no_square_time() -> None:
    """A token that the cut goes through is not shown by its beginning (G25)."""
    assert public("x " * 990 + "a" * 60 + "@example.org tail").endswith("x …")
    for long in ("a" * 200_000, "a@" * 100_000, "1 " * 100_000, "aB3" * 70_000):
        assert len(public(long)) <= 2_100
