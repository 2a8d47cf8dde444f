"""The digest of a tool's own code (D7)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from backstop.adk.code import code_digest


def module(folder: Path, body: str) -> ModuleType:
    """A module of its own with this source."""
    file = folder / f"m{len(list(folder.iterdir()))}.py"
    file.write_text(body, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


PAY = "def pay(amount: int) -> dict:\n    return {'paid': amount}\n"


@pytest.mark.parametrize(
    "same",
    [
        "# moved down\n\n\n" + PAY,
        "def pay(amount: int) -> dict:  # a comment\n\n    return {'paid': amount}\n",
        "if True:\n    def pay(amount: int) -> dict:\n        return {'paid': amount}\n",
    ],
)
def test_d7_comments_and_moved_lines_are_no_change(tmp_path: Path, same: str) -> None:
    assert code_digest(module(tmp_path, same).pay) == code_digest(module(tmp_path, PAY).pay)


@pytest.mark.parametrize(
    "other",
    [
        PAY.replace("amount}", "amount * 100}"),
        PAY.replace("'paid'", "'#paid'"),
        PAY.replace("amount: int", "amount: int = 1"),
    ],
)
def test_d7_what_a_tool_does_inside_is_seen(tmp_path: Path, other: str) -> None:
    assert code_digest(module(tmp_path, other).pay) != code_digest(module(tmp_path, PAY).pay)


def test_d7_a_callable_object_is_its_call_method(tmp_path: Path) -> None:
    text = "class Pay:\n    def __call__(self):\n        return {}\npay = Pay()\n"
    made = module(tmp_path, text)
    assert code_digest(made.pay) == code_digest(made.Pay.__call__) != ""


def test_d7_what_has_no_source_has_no_digest() -> None:
    assert code_digest(len) == ""
