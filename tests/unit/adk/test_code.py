"""The digests of a tool's own code, and of an agent's setup (D7)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.workflow import Workflow
from google.genai.types import GenerateContentConfig
from pydantic import BaseModel

from backstop.adk.code import code_digest, setup_digest


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


def test_an_agents_setup_is_what_it_is_made_with_and_no_address() -> None:
    class Answer(BaseModel):
        ok: bool

    def made(**changed: Any) -> LlmAgent:
        plain = {"model": "gemini-2.5-flash", "instruction": "Be kind.", "tools": [one]}
        return LlmAgent(name="a", **{**plain, "output_schema": Answer, **changed})

    def one(x: int) -> int:
        return x

    assert setup_digest(made()) == setup_digest(made()) != ""
    config = GenerateContentConfig(temperature=0.5)
    changes: tuple[dict[str, Any], ...] = (
        {"instruction": "Be quick."},
        {"instruction": lambda _: "Be quick."},
        {"model": "gemini-2.5-pro"},
        {"tools": []},
        {"output_schema": None},
        {"generate_content_config": config},
        {"before_tool_callback": one},
    )
    for changed in changes:
        assert setup_digest(made(**changed)) != setup_digest(made()), changed
    assert setup_digest(Workflow(name="w", edges=[])) == ""
