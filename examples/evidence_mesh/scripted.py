"""Stands in for the four agents' models: there is no key here, and so the usage is scripted too.

An answer depends on what the agent was shown, so that whoever is shown the same says the same.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Final

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from examples.evidence_mesh.outside import WORLD

_RATE: Final = re.compile(r"rate[ =](?P<rate>[\d.]+\d)")


class Scripted(BaseLlm):
    """The model of the agent `agent`."""

    agent: str

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: ARG002, FBT001, FBT002 - the framework's signature
    ) -> AsyncGenerator[LlmResponse, None]:
        """The script's answer, as one response."""
        world = WORLD.get()
        world.answers(self.agent)
        shown = str(llm_request.config.system_instruction)
        said = world.says.get(self.agent)
        part = _part(self.agent, shown) if said is None else types.Part(text=said)
        read, wrote = world.usage[self.agent]
        yield LlmResponse(
            content=types.Content(role="model", parts=[part]),
            finish_reason=types.FinishReason.STOP,
            usage_metadata=types.GenerateContentResponseUsageMetadata(
                prompt_token_count=read, candidates_token_count=wrote
            ),
        )


def _part(agent: str, shown: str) -> types.Part:
    found = _RATE.search(shown)
    rate = found["rate"] if found else "unknown"
    match agent:
        case "scout":
            seen = shown.partition("feed: ")[2].splitlines()[0]
            return types.Part(text=f"Worth a look: {seen}.")
        case "statistician":
            return types.Part(text=f"Such lines fail at a base rate {rate}.")
        case "skeptic":
            return types.Part(text=f"No other cause explains a rate {rate}.")
        case _:
            args = {"line": "4", "finding": f"stop line 4: it fails at rate {rate}"}
            return types.Part.from_function_call(name="publish_action", args=args)
