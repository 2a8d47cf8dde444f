"""An agent whose tools are those of an MCP server."""

import os
import sys

from google.adk.agents import LlmAgent
from google.adk.tools.mcp_tool import McpToolset
from google.adk.tools.mcp_tool.mcp_session_manager import StdioConnectionParams
from mcp import StdioServerParameters

HERE = os.path.dirname(os.path.abspath(__file__))

sheets = McpToolset(
    connection_params=StdioConnectionParams(
        server_params=StdioServerParameters(
            command=sys.executable,
            args=[os.path.join(HERE, "server.py")],
            env=dict(os.environ),
        ),
        timeout=60,
    ),
)
root_agent = LlmAgent(
    name="mcp_sheet", model="gemini-2.5-flash", instruction="Keep the sheet.", tools=[sheets]
)
