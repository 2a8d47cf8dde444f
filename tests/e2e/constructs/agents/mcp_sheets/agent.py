"""Two servers with tools of equal names: told apart by a prefix, and one cut down by a filter."""

import os
import sys

from google.adk.agents import LlmAgent
from google.adk.tools.mcp_tool import McpToolset
from google.adk.tools.mcp_tool.mcp_session_manager import StdioConnectionParams
from mcp import StdioServerParameters

HERE = os.path.dirname(os.path.abspath(__file__))


def sheets(prefix, **more):
    server = StdioServerParameters(
        command=sys.executable, args=[os.path.join(HERE, "server.py")], env=dict(os.environ)
    )
    return McpToolset(
        connection_params=StdioConnectionParams(server_params=server, timeout=60),
        tool_name_prefix=prefix,
        **more,
    )


root_agent = LlmAgent(
    name="mcp_sheets",
    model="gemini-2.5-flash",
    instruction="Keep both sheets.",
    tools=[
        sheets("old", tool_filter=["add_row"]),
        sheets("new", tool_filter=["add_row"], require_confirmation=True),
    ],
)
