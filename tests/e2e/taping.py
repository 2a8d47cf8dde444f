"""An agent that tapes itself: what ADK records of a conversation, as files in a folder.

Run as a program, for the tracing that it sets up is one for the whole process:
``python taping.py FOLDER`` writes ``generated-recordings.yaml`` (``adk conformance``) and
``spans.json`` (OTLP JSON) of the same two invocations.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.cli.plugins.recordings_plugin import RecordingsPlugin
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

SAID = ("Pay order 7, please", "Is it paid?")
ANSWERS: list[list[types.Part]] = []


def look(order: str) -> dict[str, Any]:
    """Looks an order up."""
    return {"order": order, "on": "2024-05-20", "open": True}


def pay(order: str, amount: float) -> str:
    """Pays an order."""
    return f"paid {amount} for {order}"


class Scripted(BaseLlm):
    """Says what is in `ANSWERS`."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(content=types.Content(role="model", parts=ANSWERS.pop(0)))


def _call(tool: str, **args: Any) -> types.Part:
    return types.Part(function_call=types.FunctionCall(name=tool, args=args))


def _value(given: Any) -> dict[str, Any]:
    if isinstance(given, list | tuple):
        return {"arrayValue": {"values": [_value(one) for one in given]}}
    kind = {bool: "boolValue", int: "intValue", float: "doubleValue"}.get(type(given))
    return {kind: given} if kind else {"stringValue": str(given)}


def _span(given: ReadableSpan) -> dict[str, Any]:
    own, above = given.get_span_context(), given.parent
    assert own is not None
    return {
        "traceId": f"{own.trace_id:032x}",
        "spanId": f"{own.span_id:016x}",
        "parentSpanId": f"{above.span_id:016x}" if above else "",
        "name": given.name,
        "startTimeUnixNano": str(given.start_time),
        "endTimeUnixNano": str(given.end_time),
        "attributes": [
            {"key": key, "value": _value(value)} for key, value in (given.attributes or {}).items()
        ],
        "status": {"code": given.status.status_code.value},
    }


async def _converse(folder: Path) -> None:
    ANSWERS[:] = [
        [
            types.Part(text="One moment."),
            _call("look", order="7"),
            _call("pay", order="7", amount=1.5),
        ],
        [types.Part(text="Paid.\nAnything else?")],
        [_call("look", order="7")],
        [types.Part(text="Yes.")],
    ]
    agent = LlmAgent(name="till", model=Scripted(model="scripted"), tools=[look, pay])
    sessions = InMemorySessionService()
    app = App(name="till_app", root_agent=agent, plugins=[RecordingsPlugin()])
    runner = Runner(app=app, session_service=sessions)
    await sessions.create_session(app_name="till_app", user_id="u", session_id="case")
    for index, text in enumerate(SAID):
        where = {"dir": str(folder), "user_message_index": index, "streaming_mode": "none"}
        async for _ in runner.run_async(
            user_id="u",
            session_id="case",
            new_message=types.UserContent(parts=[types.Part(text=text)]),
            state_delta={"_adk_recordings_config": where},
        ):
            pass


def main(folder: Path) -> None:
    """Tape the conversation to `folder`."""
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    asyncio.run(_converse(folder))
    told = [_span(span) for span in spans.get_finished_spans()]
    document = {"resourceSpans": [{"scopeSpans": [{"spans": told}]}]}
    (folder / "spans.json").write_text(json.dumps(document), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
