"""An agent that goes round until it says that it is done."""

from google.adk.agents import LlmAgent, LoopAgent
from google.adk.tools.exit_loop_tool import exit_loop


def pay(order: str) -> dict:
    """Pays."""
    return {"paid": order}


payer = LlmAgent(name="payer", model="gemini-2.5-flash", instruction="Pay.", tools=[pay, exit_loop])
root_agent = LoopAgent(name="loop", sub_agents=[payer], max_iterations=5)
