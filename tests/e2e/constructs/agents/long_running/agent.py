"""An agent that opens two tickets, each of which somebody answers later, and then finishes."""

from google.adk.agents import LlmAgent
from google.adk.tools import LongRunningFunctionTool


def ticket(order: str) -> None:
    """Opens a ticket."""


def finish(order: str) -> dict:
    """Finishes."""
    return {"finished": order}


root_agent = LlmAgent(
    name="long_running",
    model="gemini-2.5-flash",
    instruction="Have it approved twice, then finish.",
    tools=[LongRunningFunctionTool(ticket), finish],
)
