"""Tools that only a toolset knows, behind the guard: what is kept of them, and whose they are."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.genai import types

from backstop.core.events import EffectCommitted
from tests.e2e.till import Till, calls, says, told

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")

SHIP = calls(("ship", {"order": "7"}))


@pytest.fixture
def till(tmp_path: Path) -> Till:
    return Till(folder=tmp_path)


class Ship(BaseTool):
    """A tool of a server, as far as the guard can tell."""

    def __init__(self, sent: list[Any], server: str) -> None:
        super().__init__(name="ship", description="Ships.")
        self._sent = sent
        self._mcp_session_manager = SimpleNamespace(_connection_params={"url": server})

    def _get_declaration(self) -> types.FunctionDeclaration:
        schema = {"type": "object", "properties": {"order": {"type": "string"}}}
        return types.FunctionDeclaration(name="ship", parameters_json_schema=schema)

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        self._sent.append(args)
        return {"shipped": args["order"]}


class Shelf(BaseToolset):
    """Lists one tool, new at each look, as an MCP toolset does."""

    def __init__(self, sent: list[Any], server: str) -> None:
        super().__init__()
        self._sent = sent
        self._server = server

    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        return [Ship(self._sent, self._server)]


def handed_over(till: Till, second: str) -> LlmAgent:
    """An agent that ships, and hands over to one that ships by another toolset."""
    other: LlmAgent = till.agent(
        calls(("ship", {"order": "8"})), says("x"), tools=[Shelf(till.sent, second)]
    )
    other.name = "other"
    root: LlmAgent = till.agent(
        SHIP,
        calls(("transfer_to_agent", {"agent_name": "other"})),
        tools=[Shelf(till.sent, "https://one.example")],
    )
    root.sub_agents = [other]
    other.parent_agent = root
    return root


def test_what_a_toolset_lists_is_kept_once_for_each_agent(till: Till) -> None:
    till.chat(handed_over(till, "https://one.example"), "ship")
    assert [sent["order"] for sent in till.sent] == ["7", "8"]
    listed = till.header().toolsets
    assert isinstance(listed, dict)
    assert {key.partition("/")[2] for key in listed} == {"Shelf/0"}
    assert len(listed) == 2
    assert all(tool["name"] == "ship" for tools in listed.values() for tool in tools)
    till.verified()


def test_k26_tools_of_two_servers_with_one_name_share_no_keys(till: Till) -> None:
    """K26: the one that was called first is served; effects of the other are refused."""
    events = till.chat(handed_over(till, "https://two.example"), "ship")
    assert [sent["order"] for sent in till.sent] == ["7"]
    first, second = told(events, "ship")
    assert first == {"shipped": "7"}
    assert second["backstop"] == "refused"
    assert "tool_name_prefix" in str(second)
    assert len(till.rows(EffectCommitted)) == 1
    till.verified()
