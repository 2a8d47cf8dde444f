"""An agent whose model has code executed where the model runs."""

from google.adk.agents import LlmAgent
from google.adk.code_executors.built_in_code_executor import BuiltInCodeExecutor


def pay(order: str) -> dict:
    """Pays."""
    return {"paid": order}


root_agent = LlmAgent(
    name="code_built_in",
    model="gemini-2.5-flash",
    instruction="Work it out, then pay.",
    tools=[pay],
    code_executor=BuiltInCodeExecutor(),
)
