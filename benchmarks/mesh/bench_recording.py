"""What the recorder costs on turns of the real framework, side by side.

    python -m benchmarks.mesh.bench_recording [ROUNDS]

A turn is one message to an agent of the real Runner with stock services in memory: its model
asks for a tool, which reads and writes the session's state, and then answers in words; the
instruction names a key of the state. The model answers at once, so all of it is the framework's
own work; the second table adds a model that thinks for 100 ms an answer. Each round runs a
session of ten turns, each way, and begins with another one.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import statistics
import sys
import warnings
from collections.abc import AsyncGenerator, Callable
from time import perf_counter, process_time
from typing import Any, Final

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.tool_context import ToolContext
from google.adk.version import __version__
from google.genai import types

from backstop.adapters.memory import MemoryStore
from backstop.adapters.payloads import MemoryPayloads
from backstop.clock import SystemClock
from backstop.mesh.books import Books
from backstop.mesh.recorder import MeshPlugin

TURNS: Final = 10
THINKING: Final = 0.1
USAGE: Final = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=400, candidates_token_count=40
)


class Model(BaseLlm):
    """Asks for the tool once a message, then answers."""

    model: str = "scripted"
    thinks_s: float = 0.0

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: ARG002, FBT001, FBT002 - the framework's signature
    ) -> AsyncGenerator[LlmResponse, None]:
        """Answer at once, or after some thinking."""
        if self.thinks_s:
            await asyncio.sleep(self.thinks_s)
        last = (llm_request.contents[-1].parts or [])[-1]
        part = types.Part(text="There are 12 of them in stock, and 3 are on order. " * 4)
        if last.function_response is None:
            args = {"article": "A-1", "where": "north"}
            part = types.Part.from_function_call(name="stock", args=args)
        content = types.Content(role="model", parts=[part])
        yield LlmResponse(content=content, usage_metadata=USAGE)


def stock(article: str, where: str, tool_context: ToolContext) -> dict[str, Any]:
    """How many there are."""
    asked = tool_context.state.get("asked", 0) + 1
    tool_context.state["asked"] = asked
    return {"article": article, "where": where, "stock": 12, "ordered": 3, "asked": asked}


class Nothing(BasePlugin):
    """A plugin that does nothing."""


def recorder() -> BasePlugin:
    """The mesh's, which writes to memory."""
    clock = SystemClock()
    store = MemoryStore(clock=clock)
    return MeshPlugin(Books(store=store, payloads=MemoryPayloads(), clock=clock, producer="bench"))


WAYS: Final[dict[str, Callable[[], list[BasePlugin]]]] = {
    "no plugin": list,
    "a plugin that does nothing": lambda: [Nothing(name="nothing")],
    "recorded": lambda: [recorder()],
}


async def _session(plugins: list[BasePlugin], turns: int, thinks_s: float) -> tuple[float, float]:
    agent = LlmAgent(
        name="desk",
        model=Model(thinks_s=thinks_s),
        instruction="You answer for the warehouse of {region}. " + "Be brief and polite. " * 20,
        tools=[stock],
        output_key="answer",
    )
    sessions = InMemorySessionService()
    runner = Runner(
        app=App(name="desk", root_agent=agent, plugins=plugins), session_service=sessions
    )
    await sessions.create_session(
        app_name="desk", user_id="u", session_id="s", state={"region": "north"}
    )
    gc.collect()
    cpu, wall = process_time(), perf_counter()
    for number in range(turns):
        message = types.Content(role="user", parts=[types.Part(text=f"How many? ({number})")])
        async for _ in runner.run_async(user_id="u", session_id="s", new_message=message):
            pass
    return (process_time() - cpu) / turns, (perf_counter() - wall) / turns


def _table(title: str, rounds: int, turns: int, thinks_s: float, which: int) -> None:
    spent: dict[str, list[float]] = {name: [] for name in WAYS}
    names = list(WAYS)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            spent[name].append(asyncio.run(_session(WAYS[name](), turns, thinks_s))[which])
    base = spent["no plugin"]
    print(f"\n{title}\n")
    print("| Way | ms a turn | against no plugin |")
    print("| --- | --- | --- |")
    for name, took in spent.items():
        ratio = statistics.median(one / other for one, other in zip(took, base, strict=True))
        print(f"| {name} | {statistics.median(took) * 1e3:.3f} | {100 * (ratio - 1):+.1f} % |")


def main() -> None:
    """Print the tables."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    print(f"google-adk {__version__}, {rounds} rounds, medians; {TURNS} turns a session")
    asyncio.run(_session([], TURNS, 0))  # imports, caches
    _table("CPU, the model answers at once", rounds, TURNS, 0, 0)
    _table(f"Elapsed, the model thinks {THINKING} s an answer", max(rounds // 3, 1), 2, THINKING, 1)


if __name__ == "__main__":
    main()
