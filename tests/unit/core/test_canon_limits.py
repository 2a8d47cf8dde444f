"""Hostile and enormous values are refused, or read, in bounded time."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from backstop.core.canon import NotCanonical, canonical, parse, render


def shared(kind: str, depth: int) -> object:
    """One small object held twice by another, and so on: exponential when written out."""
    value: Any = [1]
    for _ in range(depth):
        value = {"a": value, "b": value} if kind == "object" else [value, value]
    return value


@pytest.mark.parametrize("how", [canonical, render])
@pytest.mark.parametrize("kind", ["list", "object"])
def test_what_is_shared_many_times_over_is_refused_in_bounded_time(
    how: Callable[[object], object], kind: str
) -> None:
    assert how(shared(kind, 5)) is not None
    with pytest.raises(NotCanonical) as caught:
        how(shared(kind, 60))
    assert caught.value.slug == "too-large"


@pytest.mark.parametrize("how", [canonical, render])
def test_a_long_text_held_many_times_is_refused(how: Callable[[object], object]) -> None:
    text = "x" * 1_000_000
    for value in ([text] * 1_000_000, {str(n): text for n in range(100)}, ["é" * 1_000_000] * 99):
        with pytest.raises(NotCanonical, match="too large when written out"):
            how(value)


def test_a_hundred_thousand_members_are_no_hostile_value() -> None:
    members = {f"k{n}": n for n in range(100_000)}
    assert parse(canonical(members)) == members
    assert render(members) == members
    assert len(canonical([Decimal("0.5")] * 100_000)) == 400_001


def test_a_larger_size_may_be_allowed() -> None:
    with pytest.raises(NotCanonical, match="too large"):
        canonical("x" * 100, size=99)
    assert canonical("x" * 100, size=100) == '"' + "x" * 100 + '"'


@pytest.mark.parametrize(
    "marks", ["\u0316\u0300", "\u0f73\u0f71", "\uff9e\u0316"], ids=["plain", "composed", "kana"]
)
def test_more_accents_than_any_letter_has_are_refused_in_bounded_time(marks: str) -> None:
    """Putting marks in order is quadratic in their number, also where they hide as letters."""
    with pytest.raises(NotCanonical) as caught:
        canonical({"name": "a" + marks * 100_000})
    assert (caught.value.slug, caught.value.pointer) == ("too-many-marks", "/name")
    assert canonical("a" + marks * 400)
    assert canonical(("a" + marks * 10) * 1_000)
