"""What a toolset listed, and the same told again where nobody can be asked."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.mcp_tool import McpToolset
from google.adk.tools.mcp_tool.mcp_session_manager import StreamableHTTPConnectionParams

from backstop.adk.arming import arm_toolset
from backstop.adk.toolsets import (
    listing_of,
    lists_alone,
    reads_resources,
    selects,
    setup_of,
    told_again,
    toolsets_of,
)

pytestmark = pytest.mark.filterwarnings("ignore")


def ship(order: str, fast: bool = False) -> str:
    """Ships."""
    return f"{order} {fast}"


def stop() -> None:
    """Stops."""


class Unable(BaseTool):
    """Cannot say what it takes."""

    def _get_declaration(self) -> Any:
        raise ValueError(self.name)


class Shelf(BaseToolset):
    """Lists its tools, as long as it is online."""

    def __init__(self, *tools: BaseTool, **more: Any) -> None:
        super().__init__(**more)
        self.tools = list(tools)

    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        if not self.tools:
            raise ConnectionError("offline")
        return [tool for tool in self.tools if self._is_tool_selected(tool, readonly_context)]


def again(shelf: Shelf, listing: list[dict[str, Any]]) -> list[Any]:
    """What the toolset lists of what was listed before, the framework's prefix before it."""

    async def lister(toolset: Any, context: Any, original: Any) -> list[Any]:
        return await told_again(toolset, listing, context, original)

    arm_toolset(shelf, lister)
    return list(asyncio.run(shelf.get_tools_with_prefix(None)))


def test_a_toolset_told_again_offers_the_model_the_same_as_it_did() -> None:
    tools = [FunctionTool(ship), FunctionTool(stop)]
    listing = listing_of([*tools, Unable(name="unable", description="")])
    assert [told["name"] for told in listing] == ["ship", "stop"]
    offline = Shelf(tool_name_prefix="old", tool_filter=["ship"])
    (tool,) = again(offline, listing)
    want = FunctionTool(ship)._get_declaration()  # noqa: SLF001 - what a model is told
    got = tool._get_declaration()  # noqa: SLF001
    assert want is not None
    assert (tool.name, tool.description) == ("old_ship", "Ships.")
    assert got.model_dump() == {**want.model_dump(), "name": "old_ship"}
    with pytest.raises(RuntimeError, match="known from its declaration only"):
        asyncio.run(tool.run_async(args={}, tool_context=None))


def test_arming_again_only_changes_what_is_told() -> None:
    shelf = Shelf(FunctionTool(ship), tool_filter=None)
    shelf._use_invocation_cache = False  # noqa: SLF001 - each look is of another run
    assert [tool.name for tool in again(shelf, listing_of([FunctionTool(stop)]))] == ["stop"]
    assert [tool.name for tool in again(shelf, listing_of([FunctionTool(ship)]))] == ["ship"]


def sheets(url: str = "https://x.example", **more: Any) -> McpToolset:
    """A toolset of a server that nobody will ask."""
    return McpToolset(
        connection_params=StreamableHTTPConnectionParams(
            url=url, headers=more.pop("headers", None)
        ),
        **more,
    )


def test_toolsets_are_named_by_agent_kind_and_number() -> None:
    agent = LlmAgent(name="desk", tools=[sheets(), ship, Shelf(), sheets(use_mcp_resources=True)])
    found = list(toolsets_of(agent))
    assert [one.key for one in found] == [
        "desk/McpToolset/0",
        "desk/Shelf/0",
        "desk/McpToolset/1",
    ]
    assert [reads_resources(one.toolset) for one in found] == [False, False, True]
    assert not any(lists_alone(one.toolset) for one in found)
    assert list(toolsets_of(LlmAgent(name="bare"))) == []


def test_a_setup_is_the_same_on_another_machine_and_not_with_another_server(
    tmp_path: Path,
) -> None:
    same = partial(setup_of, folder=tmp_path)
    plain = same(sheets())
    assert same(sheets(headers={"key": "1"})) == plain
    others = [
        sheets("https://y.example"),
        sheets(tool_filter=["ship"]),
        sheets(tool_name_prefix="old"),
    ]
    assert len({plain, *map(same, others)}) == 4
    here, there = tmp_path / "a" / "agent", tmp_path / "b" / "agent"
    script = [setup_of(sheets(f"{sys.executable} {at}/server.py"), at) for at in (here, there)]
    assert script[0] == script[1]


def test_only_names_are_read_off_a_filter() -> None:
    assert selects(sheets(tool_filter=["ship", "stop"])) == ["ship", "stop"]
    assert selects(sheets(tool_filter=lambda tool, context=None: True)) == []
    assert selects(sheets()) == []
