"""Records the refund desk at work: three customers, two messages each. The same bytes each time.

    python -m examples.prompt_changes.record [--out FILE]

The real ADK runner runs `desk` behind the guard. Made up are the clock, and the model: its
answers depend on the request alone (there is no key here).
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec
from google.adk.apps import App
from google.adk.models.google_llm import Gemini
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.platform import uuid as platform_uuid
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools import FunctionTool
from google.genai import types

from backstop.adapters.content import version_of
from backstop.adapters.files import write_atomic
from backstop.adapters.memory import MemoryStore
from backstop.adk.code import tool_code
from backstop.config import load
from backstop.core.canon import CANON_VERSION
from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import FORMAT, Event, Header
from backstop.core.sealing import seal_lines
from backstop.guard.journal import Journal
from backstop.guard.plugin.recorder import RecordingPlugin
from examples.prompt_changes.desk import agent

AGENT: Final = "refund-desk"
HERE: Final = Path(__file__).parent
LEDGER: Final = HERE / "refund-desk.jsonl"
TOOLS: Final = tuple(
    FunctionTool(body) for body in (agent.look_up_order, agent.refund, agent.send_letter)
)
CUSTOMERS: Final = {
    "ada": "Order O-1001 arrived broken.",
    "bo": "Order O-1002 never came.",
    "cleo": "Order O-1003 is the wrong size.",
}


class Clock:
    """Stands still, but for a moment at each look."""

    def __init__(self) -> None:
        self._now = datetime(2026, 10, 5, 9, 0, tzinfo=UTC)

    def now(self) -> datetime:
        """The next instant."""
        self._now += timedelta(milliseconds=250)
        return self._now


async def answer(request: LlmRequest, stream: bool = False) -> AsyncIterator[LlmResponse]:  # noqa: FBT001, FBT002 - the framework's signature
    """What the model says: it looks the order up, refunds it, writes, and sums up."""
    yield LlmResponse(
        content=types.Content(role="model", parts=[_next(request)]),
        finish_reason=types.FinishReason.STOP,
    )


def _next(request: LlmRequest) -> types.Part:
    parts = [part for content in request.contents for part in content.parts or ()]
    texts = [part.text for part in parts if part.text]
    if texts[-1].startswith("Thank"):
        return types.Part(text="You are welcome.")
    order = next(word for word in texts[0].split() if word.startswith("O-"))
    calls = [
        ("look_up_order", {"order_id": order}),
        ("refund", {"order_id": order, "amount": "49.90"}),
        (
            "send_letter",
            {
                "to": f"customer-of-{order}@example.org",
                "subject": f"Your refund for {order}",
                "body": "We are sorry. The money is on its way.",
            },
        ),
    ]
    done = sum(part.function_response is not None for part in parts)
    if done == len(calls):
        return types.Part(text=f"{order} is refunded.")
    name, args = calls[done]
    return types.Part(function_call=types.FunctionCall(name=name, args=args))


def declared() -> dict[str, Declaration]:
    """What `backstop.yaml` says of the tools, with the schemas of their parameters."""
    said = load(HERE / "backstop.yaml").agent(AGENT).declarations
    return {
        tool.name: msgspec.structs.replace(
            said[tool.name],
            schema=dict(tool._get_declaration().parameters_json_schema),  # noqa: SLF001 - no public way to it
        )
        for tool in TOOLS
    }


def record() -> tuple[Header, list[Event]]:
    """The ledger's header, and its events in order."""
    declarations, version = declared(), version_of(HERE / "desk")
    store = MemoryStore(clock=Clock())
    journal = Journal(
        store=store,
        namespace=Namespace(agent=AGENT),
        declarations=declarations,
        version=version,
        owner="desk-1",
    )
    asyncio.run(_work(journal))
    header = Header(
        format=FORMAT,
        agent=AGENT,
        canon=CANON_VERSION,
        guarded=True,
        tools={name: known.digest for name, known in sorted(declarations.items())},
        code={tool.name: tool_code(tool) for tool in sorted(TOOLS, key=lambda tool: tool.name)},
        declarations={known.digest: known for _, known in sorted(declarations.items())},
        versions={version: "desk"},
    )
    return header, list(store.read())


async def _work(journal: Journal) -> None:
    numbers = itertools.count(1)
    platform_uuid.set_id_provider(lambda: f"{next(numbers):06x}")
    clerk = agent.root_agent.model_copy(update={"model": Gemini(model=agent.MODEL)})
    # The class stays, since it decides what a request looks like; only the asking is replaced.
    vars(clerk.model)["generate_content_async"] = answer
    sessions = InMemorySessionService()
    app = App(name="refunds", root_agent=clerk, plugins=[RecordingPlugin(journal)])
    runner = Runner(app=app, session_service=sessions)
    for customer, complaint in CUSTOMERS.items():
        await sessions.create_session(app_name="refunds", user_id=customer, session_id=customer)
        journal.open_run(customer, app="refunds", user=customer, state={})
        for cursor, text in enumerate((complaint, "Thank you.")):
            message = types.Content(role="user", parts=[types.Part(text=text)])
            attempt = journal.begin(
                customer,
                cursor=cursor,
                trigger="message",
                message=message.model_dump(mode="json", exclude_none=True),
                state={},
            )
            with journal.within(attempt):
                async for _ in runner.run_async(
                    user_id=customer, session_id=customer, new_message=message
                ):
                    pass
            journal.end(attempt, outcome="done")
            journal.advance(attempt)
        journal.close_run(customer, status="complete")


def main() -> int:
    """Write the ledger; say how many events it holds."""
    parser = argparse.ArgumentParser(description="Record the refund desk's ledger.")
    parser.add_argument("--out", type=Path, default=LEDGER, help="the ledger file to write")
    out = parser.parse_args().out
    header, events = record()
    write_atomic(out, seal_lines(header, events))
    print(f"{out.name}: {len(events)} events")
    return 0


if __name__ == "__main__":
    sys.exit(main())
