"""An agent whose instruction is a prompt of an MCP server."""

import os
import sys

from google.adk.agents import LlmAgent
from google.adk.agents.mcp_instruction_provider import McpInstructionProvider
from google.adk.tools.mcp_tool.mcp_session_manager import StdioConnectionParams
from mcp import StdioServerParameters

HERE = os.path.dirname(os.path.abspath(__file__))


def pay(order: str) -> dict:
    """Pays."""
    return {"paid": order}


server = StdioServerParameters(
    command=sys.executable, args=[os.path.join(HERE, "server.py")], env=dict(os.environ)
)
root_agent = LlmAgent(
    name="mcp_prompt",
    model="gemini-2.5-flash",
    instruction=McpInstructionProvider(
        connection_params=StdioConnectionParams(server_params=server, timeout=60),
        prompt_name="manners",
    ),
    tools=[pay],
)
