"""An agent that asks another one as a tool, which runs without its caller's plugins."""

from google.adk.agents import LlmAgent
from google.adk.tools.agent_tool import AgentTool


def pay(order: str) -> dict:
    """Pays."""
    return {"paid": order}


payer = LlmAgent(name="payer", model="gemini-2.5-flash", description="Pays.", tools=[pay])
root_agent = LlmAgent(
    name="agent_tool_apart",
    model="gemini-2.5-flash",
    instruction="Have it paid.",
    tools=[AgentTool(payer, include_plugins=False)],
)
