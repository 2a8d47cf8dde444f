"""A small agent of ours, run once before the candidate is imported.

The framework imports and builds much only when it first runs an agent. Done here, that is
done once for all runs, which are forked from here; and done before the barrier, its
compiled files are kept. Its event log also tells whether a lever changed what agents do.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.workflow import START, Workflow, node
from google.genai import types

from ...adk.requests import RequestDigester
from .calls import ReplayPlugin
from .sessions import ReplaySessions
from .trace import log_digest, run_config

_MODEL: Final = "gemini-2.5-flash"
_TURNS: Final = 2


class _Stub:
    """Answers every call in the same way; stands where the driver's answers stand later."""

    def __init__(self) -> None:
        self._digester = RequestDigester()
        self._asking = ""
        self._asked: dict[str, int] = {}

    def asking(self, agent: str) -> None:
        self._asking = agent

    async def execute(
        self,
        tool: Any,
        args: dict[str, Any],
        tool_context: Any,
        original: Callable[..., Awaitable[Any]],
    ) -> Any:
        if isinstance(tool, AgentTool):
            return await original(args=args, tool_context=tool_context)
        tool_context.state["done"] = args
        return {"ok": True}

    async def generate(
        self,
        model: Any,
        request: Any,
        stream: bool,  # noqa: FBT001 - the framework's signature
        original: Callable[..., AsyncIterator[Any]],
    ) -> AsyncIterator[Any]:
        self._digester.digest(request)
        turn = self._asked.get(self._asking, 0)
        self._asked[self._asking] = turn + 1
        parts: list[dict[str, Any]] = [{"text": "done"}]
        if turn % 2 == 0:
            called = [("do", {"what": "a"}), ("wait", {"what": "b"})]
            if self._asking == "outer":
                called.append(("inner", {"request": "c"}))
            parts = [{"function_call": {"name": name, "args": args}} for name, args in called]
        content = {"role": "model", "parts": parts}
        yield LlmResponse.model_validate({"content": content, "finish_reason": "STOP"})


def rehearse() -> str:
    """Run our own agent for two turns; the digest of its event log."""
    return asyncio.run(_rehearse())


async def _rehearse() -> str:
    sessions = ReplaySessions()
    await sessions.create_session(app_name="rehearsal", user_id="u", session_id="s")
    runner = Runner(app=_app(), session_service=sessions)
    runner.plugin_manager.plugins = [ReplayPlugin(_Stub())]
    for turn in range(_TURNS):
        message = types.Content(role="user", parts=[types.Part(text=f"turn {turn}")])
        stream = runner.run_async(
            user_id="u", session_id="s", new_message=message, run_config=run_config()
        )
        async for _ in stream:
            pass
    return log_digest(sessions.stored("rehearsal", "u", "s").events)


def _app() -> App:
    def do(what: str) -> dict[str, Any]:
        """Do something."""
        return {"not": what}

    def wait(what: str) -> dict[str, Any]:
        """Wait for something."""
        return {"not": what}

    tool = FunctionTool(do)

    @node(rerun_on_resume=True)
    async def work(ctx: Any) -> str:
        await ctx.run_node(tool, node_input={"what": "from code"})
        return "go on"

    inner = LlmAgent(name="inner", model=_MODEL, description="inner", tools=[do, wait])
    outer = LlmAgent(
        name="outer",
        model=_MODEL,
        instruction="Do it.",
        tools=[tool, LongRunningFunctionTool(wait), AgentTool(inner)],
    )
    return App(name="rehearsal", root_agent=Workflow(name="flow", edges=[(START, work, outer)]))
