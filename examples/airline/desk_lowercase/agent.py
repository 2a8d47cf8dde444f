"""The airline desk with a cosmetic change: reservation ids reach the tools in lower case.

Nothing that the model sees differs, and a booking system may well take either spelling. But
the id names the work that is done, so under another spelling it is work not done yet.
"""

from __future__ import annotations

from typing import Any

from google.adk.agents import LlmAgent
from google.adk.tools import BaseTool, ToolContext

from .desk import INSTRUCTION, TOOLS


def lower_the_id(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext) -> None:
    """Changes the arguments in place, as the framework's callbacks may."""
    if "reservation_id" in args:
        args["reservation_id"] = args["reservation_id"].lower()


root_agent = LlmAgent(
    name="desk",
    model="gemini-3.5-flash",
    description="Books, changes and cancels flights.",
    instruction=INSTRUCTION,
    tools=TOOLS,
    before_tool_callback=lower_the_id,
)
