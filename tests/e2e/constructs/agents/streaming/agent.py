"""An agent whose answers come in pieces."""

from google.adk.agents import LlmAgent


def pay(order: str) -> dict:
    """Pays."""
    return {"paid": order}


root_agent = LlmAgent(name="streaming", model="gemini-2.5-flash", instruction="Pay.", tools=[pay])
