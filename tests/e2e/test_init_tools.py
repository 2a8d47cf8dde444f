"""`backstop init` on tools of sub-agents, of agents inside tools, and of sets of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstop.config import load
from tests.e2e.adopted import desk, lay
from tests.e2e.test_init import CONFIG, done

TREE = """\
    from google.adk.agents import LlmAgent
    from google.adk.tools import exit_loop, google_search
    from google.adk.tools.agent_tool import AgentTool
    from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
    from mcp import StdioServerParameters

    from .tools import cancel_order, get_order

    MODEL = "gemini-2.5-flash"
    inner = LlmAgent(name="inner", model=MODEL, tools=[get_order])
    child = LlmAgent(name="child", model=MODEL, tools=[google_search, exit_loop])
    shelf = McpToolset(
        connection_params=StdioConnectionParams(
            server_params=StdioServerParameters(command="no-such-server")
        )
    )
    root_agent = LlmAgent(
        name="root",
        model=MODEL,
        tools=[cancel_order, AgentTool(agent=inner), shelf],
        sub_agents=[child],
    )
    """


@pytest.mark.parametrize("lack", ["", "import no_such_library\n"], ids=["loaded", "read"])
def test_sub_agents_agent_tools_and_toolsets(lack: str, tmp_path: Path) -> None:
    lay(tmp_path, {**desk("tree"), "tree/agent.py": TREE})
    file = tmp_path / "tree/agent.py"
    file.write_text(lack + file.read_text())
    out = done(tmp_path)
    told = load(tmp_path / CONFIG).agent(None).declarations
    assert {name: one.effect for name, one in told.items()} == {
        "cancel_order": True,
        "get_order": False,
        "google_search": False,
    }
    assert "cannot be listed offline: McpToolset" in out
    assert "# Cannot be listed offline" in (tmp_path / CONFIG).read_text()


SETS = """\
    from google.adk.agents import LlmAgent
    from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
    from google.adk.tools.openapi_tool.openapi_spec_parser.openapi_toolset import OpenAPIToolset
    from mcp import StdioServerParameters

    SPEC = {
        "openapi": "3.0.0",
        "info": {"title": "shop", "version": "1"},
        "servers": [{"url": "https://shop.example"}],
        "paths": {
            "/orders/{order_id}": {
                "delete": {
                    "operationId": "delete_order",
                    "parameters": [
                        {
                            "name": "order_id",
                            "in": "path",
                            "required": True,
                            "schema": {"type": "string"},
                        }
                    ],
                    "responses": {"200": {"description": "ok"}},
                }
            }
        },
    }
    shelf = McpToolset(
        connection_params=StdioConnectionParams(
            server_params=StdioServerParameters(command="no-such-server")
        ),
        tool_filter=["write_file", "read_file"],
        tool_name_prefix="shelf",
    )
    root_agent = LlmAgent(
        name="root", model="gemini-2.5-flash", tools=[OpenAPIToolset(spec_dict=SPEC), shelf]
    )
    """


def test_tools_of_an_interface_are_listed_and_of_a_server_those_that_its_filter_names(
    tmp_path: Path,
) -> None:
    lay(tmp_path, {"sets/agent.py": SETS, "sets/__init__.py": ""})
    out = done(tmp_path)
    told = load(tmp_path / CONFIG).agent(None).declarations
    assert all(one.effect for one in told.values())
    assert set(told) == {"delete_order", "shelf_write_file", "shelf_read_file"}
    assert told["delete_order"].identity == ("order_id",)
    assert "McpToolset (agent root), but for those that its filter names" in " ".join(out.split())
