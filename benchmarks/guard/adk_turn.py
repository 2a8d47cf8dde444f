"""What the guard adds to the framework: to a tool call, and to a turn that asks a model.

The same agent runs in the real Runner with and without the plugin, by turns. Its model is
scripted: it asks for so many tool calls at once, and ends with a word.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import statistics
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from backstop.guard.journal import Journal
from backstop.guard.plugin.recorder import RecordingPlugin
from benchmarks.guard.disk import sync_ms
from benchmarks.guard.ours import journal_of, opened
from benchmarks.guard.work import TOOL, Order, Place, order, tool

FEW: Final = 5
MANY: Final = 45
MODEL_S: Final = 0.1
AT_MOST_US: Final = 60.0
AT_MOST_SHARE: Final = 0.05

_APP: Final = "bench"
_USER: Final = "user"


class Scripted(BaseLlm):
    """Asks for `calls` orders after `thinks_s` seconds, and says one word when they are there."""

    calls: int
    thinks_s: float = 0.0

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,  # noqa: ARG002, FBT001, FBT002 - the framework's signature
    ) -> AsyncGenerator[LlmResponse, None]:
        """One answer, as a whole."""
        last = llm_request.contents[-1].parts or []
        if any(part.function_response for part in last):
            parts = [types.Part(text="done")]
        else:
            await asyncio.sleep(self.thinks_s)
            parts = [
                types.Part(function_call=types.FunctionCall(name=TOOL, args=order(next(_REFS))))
                for _ in range(self.calls)
            ]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


_REFS: Final[Iterator[str]] = (f"PO-{number:06d}" for number in itertools.count())
_RUNS: Final[Iterator[int]] = itertools.count()


@dataclass(slots=True, kw_only=True)
class Stage:
    """An agent in a runner of its own; without a `journal` it runs as the framework has it."""

    place: Place
    calls: int
    thinks_s: float = 0.0
    journal: Journal | None = None
    _sessions: InMemorySessionService = field(default_factory=InMemorySessionService)
    _runner: Runner | None = None

    def runner(self) -> Runner:
        """The one runner of this stage."""
        if self._runner is None:
            agent = LlmAgent(
                name="buyer",
                model=Scripted(model="scripted", calls=self.calls, thinks_s=self.thinks_s),
                instruction="Order what is asked for.",
                tools=[tool(self.place)],
            )
            plugins = [] if self.journal is None else [RecordingPlugin(self.journal)]
            app = App(name=_APP, root_agent=agent, plugins=list(plugins))
            self._runner = Runner(app=app, session_service=self._sessions)
        return self._runner

    async def turn(self) -> None:
        """One user message in a session of its own, and all that comes of it."""
        session = f"run-{next(_RUNS)}"
        await self._sessions.create_session(app_name=_APP, user_id=_USER, session_id=session)
        message = types.Content(role="user", parts=[types.Part(text="Order, please.")])
        async with self._recorded(session, message):
            async for _ in self.runner().run_async(
                user_id=_USER, session_id=session, new_message=message
            ):
                pass

    @asynccontextmanager
    async def _recorded(self, run: str, message: types.Content) -> AsyncIterator[None]:
        """As the worker does: a step begins, and its cursor moves on when all is decided."""
        if self.journal is None:
            yield
            return
        said = message.model_dump(mode="json", exclude_none=True)
        attempt = self.journal.begin(run, cursor=0, trigger="message", message=said, state={})
        with self.journal.within(attempt):
            yield
        self.journal.end(attempt, outcome="done")
        self.journal.advance(attempt)


async def spent(turn: Callable[[], Coroutine[Any, Any, None]], clock: Callable[[], float]) -> float:
    """How much of `clock` a turn takes."""
    start = clock()
    await turn()
    return clock() - start


def report(folder: Path, *, rounds: int) -> None:
    """Both figures."""
    logging.disable(logging.WARNING)  # the framework misses what a scripted model does not say
    home = folder / "adk"
    home.mkdir()
    happened: list[str] = []

    def act(ref: str) -> Order:
        happened.append(ref)
        return {"ok": True, "po": ref}

    place = Place(folder=home, act=act, seen=lambda _ref: False)
    asyncio.run(_a_call(place, rounds))
    asyncio.run(_a_turn(place, rounds))
    if len(happened) != len(set(happened)):
        raise RuntimeError("an effect went out twice")


async def _a_call(place: Place, rounds: int) -> None:
    """CPU time of one more call in a turn: the slope between few and many of them."""
    journal = journal_of(opened(place, "memory"))
    stages = {
        (guarded, calls): Stage(place=place, calls=calls, journal=journal if guarded else None)
        for guarded in (False, True)
        for calls in (FEW, MANY)
    }
    times: dict[tuple[bool, int], list[float]] = {name: [] for name in stages}
    for number in range(2 * rounds + 1):
        for name, stage in stages.items():
            cpu = await spent(stage.turn, process_time)
            if number:
                times[name].append(cpu)
    plain, guarded = (
        statistics.median(
            (many - few) / (MANY - FEW) * 1e6
            for few, many in zip(times[kind, FEW], times[kind, MANY], strict=True)
        )
        for kind in (False, True)
    )
    added = guarded - plain
    print(
        f"\na tool call in the real Runner, CPU µs: plain {plain:.0f}, guarded {guarded:.0f} "
        f"(memory store); added {added:.0f} (goal <= {AT_MOST_US:.0f}: "
        f"{'reached' if added <= AT_MOST_US else 'MISSED'})"
    )


async def _a_turn(place: Place, rounds: int) -> None:
    """Wall time of a turn whose model thinks for 100 ms and asks for one call."""
    journal = journal_of(opened(place, "sqlite"))
    plain = Stage(place=place, calls=1, thinks_s=MODEL_S)
    guarded = Stage(place=place, calls=1, thinks_s=MODEL_S, journal=journal)
    pairs = []
    for number in range(3 * rounds + 1):
        pair = (
            await spent(plain.turn, perf_counter),
            await spent(guarded.turn, perf_counter),
        )
        if number:
            pairs.append(pair)
    base = statistics.median(one for one, _ in pairs)
    share = statistics.median((two - one) / one for one, two in pairs)
    print(
        f"a turn of {base * 1000:.1f} ms (model {MODEL_S * 1000:.0f} ms, one call), SQLite FULL: "
        f"{share:+.1%} with the guard (goal <= {AT_MOST_SHARE:.0%}: "
        f"{'reached' if share <= AT_MOST_SHARE else 'MISSED'}); "
        f"fdatasync p50 {sync_ms(place.folder):.2f} ms"
    )
