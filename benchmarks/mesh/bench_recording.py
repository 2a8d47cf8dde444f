"""What the recorder costs on turns of the real framework, beside the guard and beside neither.

    python -m benchmarks.mesh.bench_recording [ROUNDS]

A turn is one message to an agent of the real Runner with its stock services: the model asks for
one tool, which reads and writes the session's state, and then answers in words; the instruction
names a key of the state. In the turn that the goal is about, the model takes 100 ms until it asks
for the tool, and guard and recorder write to a disk, with SQLite and a folder of payloads; once
the tool only looks, and once it is an effect. The worst case is a model that answers at once:
what is left then is the framework's own work. Last, a session of 200 such turns, by its parts.

All ways take turns in one process. The first turn of each, which reads definitions and opens
stores, is told apart. Garbage is collected between turns: whose turn it would fall into is chance.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import statistics
import sys
import tempfile
import warnings
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final, NamedTuple, TypeAlias

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

from backstop.adapters.payloads import FolderPayloads, MemoryPayloads
from backstop.clock import SystemClock
from backstop.core.canon import CANON_VERSION
from backstop.core.events import FORMAT, Header
from backstop.mesh.books import Books
from backstop.wiring.meshing import recorder
from backstop.wiring.plugin import Plugin
from backstop.wiring.stores import open_store
from benchmarks.guard.disk import filesystem, sync_ms

TURNS: Final = 10
LONG: Final = 200
PART: Final = 20
THINKING: Final = 0.1
AT_MOST: Final = 0.05
ELAPSED: Final = 0
CPU: Final = 1
WAYS: Final = ("plain", "guard", "guard and recorder")
USAGE: Final = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=400, candidates_token_count=40
)
CONFIG: Final = """\
version: 1
agents:
  desk:
    path: agent
    store: "{store}"
    tools:
      look: {{effect: false}}
      order: {{identity: [number]}}
"""


class Model(BaseLlm):
    """Asks for `tool` once a message, after some thinking, and then answers."""

    model: str = "scripted"
    tool: str
    thinks_s: float = 0.0

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: ARG002, FBT001, FBT002 - the framework's signature
    ) -> AsyncGenerator[LlmResponse, None]:
        """One answer, as a whole."""
        last = (llm_request.contents[-1].parts or [])[-1]
        part = types.Part(text="There are 12 of them in stock, and 3 are on order. " * 4)
        if last.function_response is None:
            if self.thinks_s:
                await asyncio.sleep(self.thinks_s)
            args = {"article": "A-1", "number": last.text or ""}
            part = types.Part.from_function_call(name=self.tool, args=args)
        content = types.Content(role="model", parts=[part])
        yield LlmResponse(content=content, usage_metadata=USAGE)


def look(article: str, number: str, tool_context: ToolContext) -> dict[str, Any]:
    """How many there are."""
    asked = tool_context.state.get("asked", 0) + 1
    tool_context.state["asked"] = asked
    return {"article": article, "number": number, "stock": 12, "ordered": 3, "asked": asked}


def order(article: str, number: str, tool_context: ToolContext) -> dict[str, Any]:
    """Order one more."""
    return look(article, number, tool_context)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What is measured: the tool that is asked for, how long that takes, and what is written to."""

    tool: Callable[..., Any] = look
    thinks_s: float = 0.0
    on_disk: bool = False


class Spent(NamedTuple):
    """Milliseconds of a turn, by the clock on the wall and of the processor."""

    elapsed: float
    cpu: float


Session: TypeAlias = Mapping[str, Sequence[Spent]]
"""What turns took, by way."""


class Stage:
    """An agent in a runner and a session of its own, with the plugins of one way."""

    def __init__(self, way: str, turn: Turn, folder: Path) -> None:
        agent = LlmAgent(
            name="desk",
            model=Model(tool=turn.tool.__name__, thinks_s=turn.thinks_s),
            instruction="You answer for the warehouse of {region}. " + "Be brief and polite. " * 20,
            tools=[turn.tool],
            output_key="answer",
        )
        self.sessions = InMemorySessionService()
        app = App(name="desk", root_agent=agent, plugins=_plugins(way, turn, folder))
        self.runner = Runner(app=app, session_service=self.sessions)
        self.turns = 0

    async def begin(self) -> None:
        """Make the session."""
        await self.sessions.create_session(
            app_name="desk", user_id="u", session_id="s", state={"region": "north"}
        )

    async def spent(self) -> Spent:
        """What one more turn takes."""
        self.turns += 1
        message = types.Content(role="user", parts=[types.Part(text=f"Number {self.turns}")])
        cpu, start = process_time(), perf_counter()
        async for _ in self.runner.run_async(user_id="u", session_id="s", new_message=message):
            pass
        return Spent((perf_counter() - start) * 1e3, (process_time() - cpu) * 1e3)


def _plugins(way: str, turn: Turn, folder: Path) -> list[BasePlugin]:
    if way == WAYS[0]:
        return []
    (folder / "agent").mkdir(parents=True)
    (folder / "agent" / "agent.py").write_text("root_agent = None\n", encoding="utf-8")
    url = f"sqlite:///{folder / 'ledger.db'}" if turn.on_disk else "memory:"
    config = folder / "backstop.yaml"
    config.write_text(CONFIG.format(store=url), encoding="utf-8")
    guard = Plugin(config=config)
    if way == WAYS[1]:
        return [guard]
    clock = SystemClock()
    header = Header(format=FORMAT, agent="desk", canon=CANON_VERSION)
    books = Books(
        store=open_store(url, header=header, clock=clock),
        payloads=FolderPayloads(folder / "payloads") if turn.on_disk else MemoryPayloads(),
        clock=clock,
        producer="bench",
    )
    return [guard, recorder(books)]


async def _measured(turn: Turn, turns: int) -> Session:
    """Each turn of a session, each way; the ways take turns."""
    spent: dict[str, list[Spent]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory(prefix="backstop-bench-") as home:
        stages = {way: Stage(way, turn, Path(home) / str(at)) for at, way in enumerate(WAYS)}
        for stage in stages.values():
            await stage.begin()
        gc.disable()
        for number in range(turns):
            gc.collect()
            at = number % len(WAYS)
            for way in (*WAYS[at:], *WAYS[:at]):
                spent[way].append(await stages[way].spent())
        gc.enable()
    return spent


def _row(name: str, spent: Session, *, which: int) -> float:
    """Print medians of one clock, and what the recorder adds to the guard's turn, as a share."""
    plain, guard, both = ([one[which] for one in spent[way]] for way in WAYS)
    added = [two - one for one, two in zip(guard, both, strict=True)]
    share = statistics.median(more / one for one, more in zip(guard, added, strict=True))
    told = " | ".join(f"{statistics.median(one):.2f}" for one in (plain, guard, both))
    print(f"| {name} | {told} | {statistics.median(added):+.2f} | {100 * share:+.1f} % |")
    return share


def _head(title: str) -> None:
    print(f"\n{title}, medians in ms\n")
    print("| Turn | plain | guard | guard and recorder | the recorder adds | of the guard's |")
    print("| --- | --- | --- | --- | --- | --- |")


def _rounds(turn: Turn, rounds: int) -> tuple[Session, Session]:
    """The first turns of so many sessions, and all others."""
    first: dict[str, list[Spent]] = {way: [] for way in WAYS}
    later: dict[str, list[Spent]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, spent in asyncio.run(_measured(turn, TURNS + 1)).items():
            first[way].append(spent[0])
            later[way] += spent[1:]
    return first, later


def _goal(rounds: int) -> None:
    """The turn that the goal is about."""
    _head(f"The model takes {THINKING * 1e3:.0f} ms, SQLite and a folder")
    shares = []
    for tool, name in ((look, "a tool that looks"), (order, "an effect")):
        first, later = _rounds(Turn(tool=tool, thinks_s=THINKING, on_disk=True), rounds)
        shares.append(_row(f"{name}, elapsed", later, which=ELAPSED))
        _row(f"{name}, CPU", later, which=CPU)
        _row(f"{name}, elapsed, a process's first", first, which=ELAPSED)
    reached = "reached" if max(shares) <= AT_MOST else "MISSED"
    print(f"\nGoal: the recorder adds at most {AT_MOST:.0%} of the time that passes: {reached}")


def main() -> None:
    """Print the tables."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    place = Path(tempfile.gettempdir())
    print(
        f"google-adk {__version__}; {rounds} sessions of {TURNS} turns behind a first one; "
        f"a sync of the disk ({filesystem(place)}) takes {sync_ms(place):.2f} ms"
    )
    asyncio.run(_measured(Turn(), 2))  # imports, caches
    _goal(rounds)
    _head("CPU, the model answers at once: the worst case")
    for on_disk, name in ((False, "memory"), (True, "SQLite and a folder")):
        _row(name, _rounds(Turn(on_disk=on_disk), rounds)[1], which=CPU)
    _head(f"CPU, one session of {LONG} turns, the model answers at once, memory")
    spent = asyncio.run(_measured(Turn(), LONG))
    for begin in (1, (LONG - PART) // 2, LONG - PART):
        part = {way: one[begin : begin + PART] for way, one in spent.items()}
        _row(f"turns {begin + 1} to {begin + len(part[WAYS[0]])}", part, which=CPU)


if __name__ == "__main__":
    main()
