"""Stand-ins: shaped like what the tool answers, told apart from all else (semantics.md A3)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from backstop.core.canon import Json
from backstop.replay.standins import StandIns, holes, masked

SHAPE: dict[str, Json] = {
    "id": "PO-7",
    "amount": Decimal("12.5"),
    "count": 3,
    "open": True,
    "note": None,
    "lines": [{"sku": "a"}, {"sku": "b"}],
    "none": [],
}


def value(seed: int, *, key: str = "k", nth: int = 0) -> Any:
    """A stand-in in the shape of `SHAPE`."""
    return StandIns(seed, {"order": SHAPE}).value("order", key, nth)


def test_a3_a_stand_in_has_the_shape_of_what_the_tool_answers_elsewhere() -> None:
    """A3: the same members and types, one item of each list."""
    found = value(1)
    assert list(found) == list(SHAPE)
    assert isinstance(found["id"], str)
    assert isinstance(found["amount"], int)
    assert isinstance(found["open"], bool)
    assert found["note"] is None
    assert found["none"] == []
    assert [list(line) for line in found["lines"]] == [["sku"]]


def test_a3_passes_differ_in_every_value_and_one_pass_never_from_itself() -> None:
    """A3: also truth values, of which there are only two."""
    one, other = value(1), value(2)
    assert one == value(1)
    changed = {name for name in SHAPE if one[name] != other[name]}
    assert changed == {"id", "amount", "count", "open", "lines"}
    assert value(1, key="l") != one
    assert value(1, nth=1) != one


def test_a3_a_stand_in_is_found_in_arguments_wherever_it_went() -> None:
    """A3: whole, inside a text, in lists, under odd names."""
    found = value(1)
    args: dict[str, Json] = {
        "ref": f"re {found['id']}!",
        "sums": [1, found["amount"]],
        "a/b": {"~": found["id"]},
        "flag": True,
        "plain": "standin",
    }
    assert holes(args) == ("/a~1b/~0", "/ref", "/sums/1")


def test_a3_arguments_that_differ_only_in_stand_ins_are_equal_once_masked() -> None:
    """A3: the passes' arguments are compared without what was made up."""
    one, other = value(1), value(2)
    assert masked({"ref": one["id"], "n": one["count"]}) == masked(
        {"ref": other["id"], "n": other["count"]}
    )
    assert masked({"ref": one["id"], "to": ["a"]}) != masked({"ref": one["id"], "to": ["b"]})
