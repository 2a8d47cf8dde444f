"""What a candidate says of its effects: a mark is no guard."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
from google.adk.agents import LlmAgent
from google.adk.plugins import BasePlugin
from google.adk.tools.google_search_tool import google_search

from backstop.core.declaration import Declaration, Scope
from backstop.guard.claims.capability import keyed
from backstop.guard.effect import effect
from backstop.replay.harness.survey import Survey
from backstop.replay.keyed import declarations, said
from backstop.replay.wire import ToolSeen


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


def test_where_a_tools_code_stands_is_told_but_for_what_is_installed(folder: Path) -> None:
    here = Path(__file__).resolve()

    def bodies(of: Path) -> dict[str, str]:
        agent = LlmAgent(name="desk", tools=[pay, json.dumps, google_search])
        seen = Survey(root=agent, plugins=[], folder=of).tools
        return {tool["tool"]: tool["body"] for tool in seen}

    assert bodies(here.parent) == {"pay": f"{here.name}:pay", "dumps": "", "google_search": ""}
    assert bodies(here.parent / "within")["pay"] == f"../{here.name}:pay"


@pytest.mark.parametrize(("plugins", "guarded"), [([Guard("guard")], True), ([], False)])
def test_g7_an_effect_is_guarded_only_where_a_guard_is_installed(
    folder: Path, plugins: list[BasePlugin], guarded: bool
) -> None:
    """G7: without the plugin the decorated function is the function that it was."""
    survey = Survey(root=LlmAgent(name="desk"), plugins=plugins, folder=folder)
    [seen] = survey.tools
    assert (seen["tool"], seen["kind"], seen["guarded"]) == ("pay", "effect", guarded)


def test_d1_what_an_effect_declares_in_code_is_told_and_its_keys_are_made_by_it(
    folder: Path,
) -> None:
    """D1: the driver completes the base's declarations by what the code says."""

    @effect(
        identity=("vendor",), scope="agent", key="request", capability=keyed("idem", retention="1d")
    )
    def settle(vendor: str, request: str = "", idem: str = "") -> None:
        """Settle."""

    vars(sys.modules["payments_of_a_candidate"])["settle"] = settle
    survey = Survey(root=LlmAgent(name="desk"), plugins=[], folder=folder)
    tools = msgspec.convert(survey.tools, list[ToolSeen])
    assert said(tools) == {
        "pay": Declaration(tool="pay"),
        "settle": Declaration(
            tool="settle",
            identity=("vendor",),
            scope=Scope.AGENT,
            key=("request",),
            fields={"idem": ("volatile",)},
        ),
    }
    told = declarations({"settle": Declaration(tool="settle", scope=Scope.RUN)}, tools)
    assert (told["settle"].identity, told["settle"].scope) == (("vendor",), Scope.RUN)
    assert told["pay"].schema == next(one.schema for one in tools if one.tool == "pay")


def test_a_tool_that_is_a_decorated_function_tells_it_as_well(tmp_path: Path) -> None:
    survey = Survey(root=LlmAgent(name="desk", tools=[pay]), plugins=[], folder=tmp_path)
    [seen] = survey.tools
    assert seen["says"] == {"identity": None, "scope": None, "key": (), "param": ""}
