"""Orders once a tick; its model sees the whole conversation."""

from google.adk.agents import LlmAgent


def order(vendor: str, number: int) -> dict[str, object]:
    """Order from a vendor."""
    return {"ordered": vendor, "number": number}


root_agent = LlmAgent(
    name="clerk",
    model="gemini-3.5-flash",
    instruction="Order what the tick names, then say what was ordered.",
    tools=[order],
    include_contents="default",
)
