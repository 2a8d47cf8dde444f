"""An agent whose payments a person has to confirm."""

from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool


def pay(order: str) -> dict:
    """Pays."""
    return {"paid": order}


root_agent = LlmAgent(
    name="confirmation",
    model="gemini-2.5-flash",
    instruction="Pay.",
    tools=[FunctionTool(pay, require_confirmation=True)],
)
