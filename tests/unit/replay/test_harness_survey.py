"""What a candidate says of its effects: a mark is no guard."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from google.adk.agents import LlmAgent
from google.adk.plugins import BasePlugin

from backstop.guard.effect import effect
from backstop.replay.harness.survey import Survey


class Guard(BasePlugin):
    """Bears the mark of the run-time guard."""

    __backstop_guard__ = True


@effect
def pay(vendor: str) -> dict[str, str]:
    """Pay."""
    return {"paid": vendor}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A candidate's folder with one module, which holds the effect `pay`."""
    module = ModuleType("payments_of_a_candidate")
    module.__file__ = str(tmp_path / "payments.py")
    vars(module)["pay"] = pay
    sys.modules[module.__name__] = module
    yield tmp_path.resolve()
    del sys.modules[module.__name__]


@pytest.mark.parametrize(("plugins", "guarded"), [([Guard("guard")], True), ([], False)])
def test_g7_an_effect_is_guarded_only_where_a_guard_is_installed(
    folder: Path, plugins: list[BasePlugin], guarded: bool
) -> None:
    """G7: without the plugin the decorated function is the function that it was."""
    survey = Survey(root=LlmAgent(name="desk"), plugins=plugins, folder=folder)
    [seen] = survey.tools
    assert (seen["tool"], seen["kind"], seen["guarded"]) == ("pay", "effect", guarded)
