"""A till: pays, looks up, rings; stands for a user's agent, with nothing of Backstop in it."""

import os

from google.adk.agents import LlmAgent
from google.adk.tools.tool_context import ToolContext


def _out(line: str) -> None:
    with open(os.environ["TILL_OUT"], "a") as file:
        file.write(line + "\n")


def pay(order: str, amount: int, tool_context: ToolContext) -> dict:
    """Pays an order."""
    _out(f"pay {order} {amount}")
    tool_context.state["paid"] = order
    return {"paid": order, "amount": amount}


def look(order: str) -> dict:
    """Looks an order up."""
    _out(f"look {order}")
    return {"order": order}


root_agent = LlmAgent(name="till", model="gemini-none", instruction="Pay.", tools=[pay, look])
