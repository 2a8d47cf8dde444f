"""The form that an output must have: each word that is known, and none that is passed over."""

from __future__ import annotations

import pytest

from backstop.core.shapes import faults, fits

ROWS = {
    "type": "object",
    "required": ["rows"],
    "properties": {
        "rows": {"type": "array", "items": {"type": "number"}},
        "unit": {"enum": ["eur", "usd"]},
    },
}


@pytest.mark.parametrize(
    "value",
    [
        {"rows": []},
        {"rows": [1, 2.5], "unit": "eur"},
        {"rows": [1], "other": None},
    ],
)
def test_what_has_the_form_fits(value: object) -> None:
    assert list(faults(ROWS)) == []
    assert fits(value, ROWS)


@pytest.mark.parametrize(
    "value",
    [{}, [], "rows", None, {"rows": ["1"]}, {"rows": 1}, {"rows": [], "unit": "yen"}],
)
def test_what_has_not_does_not(value: object) -> None:
    assert not fits(value, ROWS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("object", {}),
        ("array", []),
        ("string", ""),
        ("number", 1.5),
        ("integer", 1),
        ("boolean", True),
        ("null", None),
    ],
)
def test_each_type_is_itself_and_a_flag_is_no_number(name: str, value: object) -> None:
    assert fits(value, {"type": name})
    assert fits(True, {"type": name}) is (name == "boolean")
    assert fits(value, {})


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ([], "a mapping"),
        ({"maximum": 3}, "'maximum' is not known"),
        ({"type": "date"}, "'date' is no type"),
        ({"required": "rows"}, "'required' is a list"),
        ({"enum": "rows"}, "'enum' is a list"),
        ({"properties": []}, "'properties' is a mapping"),
        ({"properties": {"rows": {"items": {"min": 1}}}}, "'min' is not known"),
    ],
)
def test_a_form_that_could_not_be_checked_is_a_fault(shape: object, told: str) -> None:
    assert told in " ".join(faults(shape))


def test_a_form_that_is_too_deep_is_a_fault() -> None:
    shape: dict[str, object] = {}
    for _ in range(40):
        shape = {"items": shape}
    assert "too deep" in " ".join(faults(shape))
