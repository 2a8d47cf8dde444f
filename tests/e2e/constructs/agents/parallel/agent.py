"""Two agents side by side."""

from google.adk.agents import LlmAgent, ParallelAgent


def pay(order: str) -> dict:
    """Pays."""
    return {"paid": order}


left = LlmAgent(name="left", model="gemini-2.5-flash", instruction="Pay.", tools=[pay])
right = LlmAgent(name="right", model="gemini-2.5-flash", instruction="Pay too.", tools=[pay])
root_agent = ParallelAgent(name="parallel", sub_agents=[left, right])
