"""Stands in for the two language models while the ledger is recorded: there is no key here.

An answer depends on the request alone, so that a repeated request gets the same answer.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

_CHECK = re.compile(r"^(?P<name>.+), day \d+: .* Check: (?P<aspects>.+)\.$")
_APPROVAL = re.compile(r"Get approval for (?P<ref>\S+): (?P<amount>\S+) (?P<currency>\w+)\.$")
_LETTER = re.compile(r"^Write to (?P<name>.+): (?P<kind>welcome|thank you)\.$")


async def answer(request: LlmRequest, stream: bool = False) -> AsyncIterator[LlmResponse]:  # noqa: FBT001, FBT002 - the framework's signature
    """The model's answer to `request`, as one response."""
    parts = _parts(request)
    words = sum(len(part.model_dump_json(exclude_none=True)) for part in parts) // 4
    asked = (
        sum(len(content.model_dump_json(exclude_none=True)) for content in request.contents) // 4
    )
    yield LlmResponse(
        content=types.Content(role="model", parts=parts),
        finish_reason=types.FinishReason.STOP,
        usage_metadata=types.GenerateContentResponseUsageMetadata(
            prompt_token_count=asked, candidates_token_count=words
        ),
    )


def _parts(request: LlmRequest) -> list[types.Part]:
    last = request.contents[-1].parts or []
    responses = [part.function_response for part in last if part.function_response]
    if responses:
        return [types.Part(text=_summary([response.response or {} for response in responses]))]
    task = (last[0].text if last else None) or ""
    if found := _CHECK.search(task):
        calls = [("lookup_vendor", {"name": found["name"], "aspect": aspect})
                 for aspect in found["aspects"].split(", ")]  # fmt: skip
        return [types.Part(function_call=types.FunctionCall(name=n, args=a)) for n, a in calls]
    if found := _APPROVAL.search(task):
        args = {
            "po_ref": found["ref"],
            "amount": f"{found['amount']} {found['currency']}",
            "reason": "above the limit for a first order",
        }
        return [types.Part(function_call=types.FunctionCall(name="request_approval", args=args))]
    if found := _LETTER.search(task):
        return [types.Part(text=_letter(found["name"], found["kind"]))]
    return [types.Part(text="Nothing to note.")]


def _summary(responses: list[dict[str, Any]]) -> str:
    statuses = [
        str(response.get("status", response.get("error", "unknown"))) for response in responses
    ]
    match statuses:
        case ["pending"]:
            return "The order waits for approval."
        case ["approved"]:
            return "The order is approved."
        case _:
            return f"Checked {len(statuses)}: {', '.join(sorted(set(statuses)))}."


def _letter(name: str, kind: str) -> str:
    if kind == "welcome":
        return f"Dear {name}, welcome. We look forward to working with you."
    return f"Dear {name}, thank you: the onboarding is complete."
