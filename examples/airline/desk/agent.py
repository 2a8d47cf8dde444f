"""The airline desk: one language model with fourteen tools, and no code that decides anything."""

from __future__ import annotations

from google.adk.agents import LlmAgent

from .desk import INSTRUCTION, TOOLS

root_agent = LlmAgent(
    name="desk",
    model="gemini-3.5-flash",
    description="Books, changes and cancels flights.",
    instruction=INSTRUCTION,
    tools=TOOLS,
)
