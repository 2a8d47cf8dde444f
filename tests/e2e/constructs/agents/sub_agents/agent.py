"""An agent that hands the conversation to one below it, and gets it back."""

from google.adk.agents import LlmAgent


def pay(order: str) -> dict:
    """Pays."""
    return {"paid": order}


def note(order: str) -> dict:
    """Notes."""
    return {"noted": order}


payer = LlmAgent(name="payer", model="gemini-2.5-flash", description="Pays.", tools=[pay])
root_agent = LlmAgent(
    name="sub_agents",
    model="gemini-2.5-flash",
    instruction="Hand over.",
    tools=[note],
    sub_agents=[payer],
)
