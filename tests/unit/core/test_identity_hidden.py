"""Volatile and override fields, wherever they stand and however they come."""

from __future__ import annotations

from typing import Any

import pytest

from backstop.core.declaration import Declaration, Namespace
from backstop.core.identity import Identified, identify


def identified(arguments: dict[str, Any], **declared: Any) -> Identified:
    """A call of one tool under these rules."""
    declaration = Declaration(tool="send", **declared)
    return identify(arguments, declaration, namespace=Namespace(agent="desk"), run="r", step="s")


@pytest.mark.parametrize(
    "declared",
    [
        {"fields": {"/c/token": ("volatile",), "c": ("json",)}},
        {
            "fields": {"/c/token": ("volatile",)},
            "schema": {"properties": {"c": {"type": "object"}}},
        },
    ],
    ids=["declared json", "by schema"],
)
def test_a_volatile_field_is_left_out_also_where_it_came_inside_a_text(
    declared: dict[str, Any],
) -> None:
    """One call whose object arrives as text, with another token each time, is one effect."""
    calls: list[dict[str, Any]] = [
        {"c": {"id": 1, "token": "x"}},
        {"c": {"id": 1, "token": "y"}},
        {"c": '{"id": 1, "token": "z"}'},
        {"c": {"id": 1}},
    ]
    assert len({identified(call, **declared).key for call in calls}) == 1
    assert identified({"c": '{"id": 2}'}, **declared).key != identified(calls[0], **declared).key


def test_f33_a_flag_inside_an_object_is_an_override_too() -> None:
    """F33: left out of the key, and recorded as the reason, wherever it stands."""
    fields = {"/options/again": ("override",), "/items/force": ("override",)}
    plain = identified({"id": 1, "options": {}, "items": [{}, {}]}, fields=fields)
    again = identified({"id": 1, "options": {"again": True}, "items": [{}, {}]}, fields=fields)
    assert (plain.key, plain.override) == (again.key, None)
    assert again.override == {"/options/again": True}
    forced = {"id": 1, "options": {}, "items": [{"force": "yes"}, {"force": "no"}]}
    assert identified(forced, fields=fields).override == {"/items/force": ["yes", "no"]}


def test_f33_a_flag_that_says_no_in_words_is_none() -> None:
    """F33: `"false"` under a boolean is false."""
    schema = {"properties": {"again": {"type": "boolean"}}}
    called = identified({"id": 1, "again": "false"}, fields={"again": ("override",)}, schema=schema)
    assert called.override is None
