"""An agent whose model may have code executed."""

from google.adk.agents import LlmAgent
from google.adk.code_executors.unsafe_local_code_executor import UnsafeLocalCodeExecutor


def pay(order: str) -> dict:
    """Pays."""
    return {"paid": order}


root_agent = LlmAgent(
    name="code_executor",
    model="gemini-2.5-flash",
    instruction="Work it out, then pay.",
    tools=[pay],
    code_executor=UnsafeLocalCodeExecutor(),
)
