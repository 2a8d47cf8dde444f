"""The recording plugin on the real runner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from backstop.adapters.memory import MemoryStore
from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import (
    CallAnswered,
    EffectClaimed,
    EffectCommitted,
    EffectInDoubt,
    Event,
    ModelAnswered,
    ToolRead,
)
from backstop.errors import BackstopError
from backstop.guard.effect import effect, install
from backstop.guard.journal import Attempt, Journal
from backstop.guard.plugin.recorder import RecordingPlugin

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")


class Noon:
    """It is always noon."""

    def now(self) -> datetime:
        return datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


class Scripted(BaseLlm):
    """Answers with its lines, one a request."""

    lines: list[list[types.Part]]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(content=types.Content(role="model", parts=self.lines.pop(0)))


def says(text: str) -> list[types.Part]:
    return [types.Part(text=text)]


def calls(*asked: tuple[str, dict[str, Any]]) -> list[types.Part]:
    return [
        types.Part(function_call=types.FunctionCall(name=name, args=args)) for name, args in asked
    ]


class Desk:
    """One agent, its journal, and what really went out."""

    def __init__(self, *, owner: str = "worker-1", store: MemoryStore | None = None) -> None:
        self.sent: list[str] = []
        self.store = store or MemoryStore(clock=Noon())
        self.journal = Journal(
            store=self.store,
            namespace=Namespace(agent="desk"),
            declarations={"look": Declaration(tool="look", effect=False)},
            version="v1",
            owner=owner,
        )
        self.plugin = RecordingPlugin(self.journal, no_effect_on=(ConnectionRefusedError,))
        self.events: list[Any] = []

    def send(self, to: str, tool_context: ToolContext) -> dict[str, Any]:
        """Sends."""
        self.sent.append(to)
        tool_context.state["last"] = to
        return {"sent": to, "weight": 1.5}

    def look(self, what: str) -> dict[str, Any]:
        """Looks."""
        if what == "nothing":
            raise LookupError("gone")
        return {"seen": what}

    def agent(self, *lines: list[types.Part], **more: Any) -> LlmAgent:
        tools = more.pop("tools", [self.send, self.look])
        return LlmAgent(
            name="clerk", model=Scripted(model="gemini-x", lines=list(lines)), tools=tools, **more
        )

    def run(self, agent: LlmAgent, *, cursor: int = 0) -> Attempt:
        attempt = self.journal.begin("r1", cursor=cursor, trigger="tick", message={}, state={})

        async def go() -> None:
            sessions = InMemorySessionService()
            await sessions.create_session(app_name="desk", user_id="u", session_id="r1")
            runner = Runner(
                app=App(name="desk", root_agent=agent, plugins=[self.plugin]),
                session_service=sessions,
            )
            message = types.Content(role="user", parts=says("tick"))
            with self.journal.within(attempt):
                async for event in runner.run_async(
                    user_id="u", session_id="r1", new_message=message
                ):
                    self.events.append(event)

        asyncio.run(go())
        return attempt

    def rows(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.store.read() if isinstance(event, kind)]

    def told(self, name: str) -> list[dict[str, Any]]:
        return [
            response.response
            for event in self.events
            for response in event.get_function_responses()
            if response.name == name
        ]


def test_a_models_answers_are_recorded_with_request_digests_by_ordinal() -> None:
    desk = Desk()
    desk.run(desk.agent(calls(("look", {"what": "x"})), says("done")))
    models = desk.rows(ModelAnswered)
    assert [(row.agent, row.ordinal) for row in models] == [("clerk", 0), ("clerk", 1)]
    assert models[0].request.contents != models[1].request.contents
    assert models[0].request.tools == models[1].request.tools
    response = msgspec.json.decode(models[1].response)
    assert response["content"]["parts"] == [{"text": "done"}]


def test_an_effect_is_claimed_before_it_runs_and_its_state_is_kept() -> None:
    desk = Desk()
    attempt = desk.run(desk.agent(calls(("send", {"to": "bob"})), says("done")))
    (claimed,), (committed,) = desk.rows(EffectClaimed), desk.rows(EffectCommitted)
    assert claimed.key == committed.key
    assert bytes(claimed.args) == b'{"to":"bob"}'
    assert claimed.owner == "worker-1/s0.1"
    assert bytes(committed.result) == b'{"sent":"bob","weight":1.5}'
    assert bytes(committed.state_delta) == b'{"last":"bob"}'
    assert attempt.effects == {claimed.key: None}


def test_the_recorded_arguments_are_those_that_the_agents_own_callback_left() -> None:
    def rewrite(tool: Any, args: dict[str, Any], tool_context: Any) -> None:
        args["to"] = "EVE"

    desk = Desk()
    lines = calls(("send", {"to": "bob"})), says("done")
    desk.run(desk.agent(*lines, before_tool_callback=rewrite))
    assert desk.sent == ["EVE"]
    assert bytes(desk.rows(EffectClaimed)[0].args) == b'{"to":"EVE"}'


def test_a_redelivered_step_gets_the_recorded_result_and_state_and_sends_nothing() -> None:
    desk = Desk()
    desk.run(desk.agent(calls(("send", {"to": "bob"})), says("done")))
    again = Desk(owner="worker-2", store=desk.store)
    attempt = again.run(again.agent(calls(("send", {"to": "bob"})), says("done")))
    assert again.sent == []
    assert again.told("send") == [{"sent": "bob", "weight": 1.5}]
    deltas = [event.actions.state_delta for event in again.events if event.actions.state_delta]
    assert deltas == [{"last": "bob"}]
    assert [row.how for row in again.rows(CallAnswered)] == ["recorded"]
    assert attempt.unfinished is None


def test_an_effect_at_work_elsewhere_is_held_and_holds_the_cursor() -> None:
    desk = Desk()
    desk.run(desk.agent(calls(("send", {"to": "bob"})), says("done")))
    claimed = desk.rows(EffectClaimed)[0]
    busy = MemoryStore(clock=Noon())
    busy.claim(claimed)
    other = Desk(owner="worker-2", store=busy)
    attempt = other.run(other.agent(calls(("send", {"to": "bob"})), says("later")))
    assert other.sent == []
    assert other.told("send")[0]["backstop"] == "held"
    assert attempt.unfinished is not None


def test_an_error_is_in_doubt_and_told_in_words() -> None:
    def pay(to: str) -> str:
        """Pays."""
        raise TimeoutError("no answer")

    desk = Desk()
    attempt = desk.run(desk.agent(calls(("pay", {"to": "bob"})), says("later"), tools=[pay]))
    assert desk.told("pay") == [{"backstop": "in_doubt", "reason": "TimeoutError: no answer"}]
    assert len(desk.rows(EffectInDoubt)) == 1
    assert attempt.unfinished is not None


def test_a_no_effect_error_reaches_the_agent_and_holds_the_cursor_until_it_is_retried() -> None:
    def pay(to: str) -> str:
        """Pays."""
        raise ConnectionRefusedError("closed")

    desk = Desk()
    with pytest.raises(ConnectionRefusedError):
        desk.run(desk.agent(calls(("pay", {"to": "bob"})), says("later"), tools=[pay]))
    assert desk.rows(EffectInDoubt) == []


def test_reads_are_recorded_with_result_or_error_and_never_claimed() -> None:
    desk = Desk()
    with pytest.raises(LookupError):
        desk.run(desk.agent(calls(("look", {"what": "x"})), calls(("look", {"what": "nothing"}))))
    first, second = desk.rows(ToolRead)
    assert bytes(first.result) == b'{"seen":"x"}'
    assert (second.error.type, second.error.message) == ("LookupError", "gone")
    assert desk.rows(EffectClaimed) == []


def test_parallel_calls_have_rows_of_their_own() -> None:
    desk = Desk()
    asked = calls(*[("send", {"to": name}) for name in "abcdef"])
    attempt = desk.run(desk.agent(asked, says("done")))
    assert desk.sent == list("abcdef")
    assert len(attempt.effects) == 6
    assert len({row.call for row in desk.rows(EffectClaimed)}) == 6


def test_an_agent_within_a_tool_belongs_to_the_same_attempt() -> None:
    desk = Desk()
    inner = LlmAgent(
        name="inner",
        description="Sends.",
        model=Scripted(model="m", lines=[calls(("send", {"to": "bob"})), says("sent")]),
        tools=[desk.send],
    )
    outer = desk.agent(
        calls(("inner", {"request": "send"})), says("done"), tools=[AgentTool(agent=inner)]
    )
    desk.run(outer)
    assert desk.sent == ["bob"]
    assert [row.tool for row in desk.rows(EffectClaimed)] == ["send"]
    assert [row.agent for row in desk.rows(ModelAnswered)] == ["clerk", "inner", "inner", "clerk"]


def test_a_call_without_identity_is_refused_in_words_and_nothing_is_done() -> None:
    went = []

    def ping() -> str:
        """Pings."""
        went.append(1)
        return "pong"

    desk = Desk()
    desk.run(desk.agent(calls(("ping", {})), says("hm"), tools=[ping]))
    assert went == []
    assert desk.told("ping")[0]["backstop"] == "refused"


def test_outside_of_an_attempt_effects_are_refused() -> None:
    desk = Desk()

    @effect
    def send(to: str) -> str:
        desk.sent.append(to)
        return to

    install(desk.plugin)
    try:
        with pytest.raises(BackstopError) as caught:
            send("bob")
    finally:
        install(None)
    assert caught.value.slug == "effect-refused"
    assert desk.sent == []


def test_effect_functions_are_guarded_like_tools() -> None:
    desk = Desk()

    @effect
    def send(to: str) -> dict[str, str]:
        desk.sent.append(to)
        return {"sent": to}

    @effect
    async def send_later(to: str) -> dict[str, str]:
        desk.sent.append(to)
        return {"sent": to}

    async def go(ask: Callable[[], Any]) -> Any:
        return await ask()

    attempt = desk.journal.begin("r1", cursor=0, trigger="tick", message={}, state={})
    install(desk.plugin)
    try:
        with desk.journal.within(attempt):
            assert send("bob") == send("bob") == {"sent": "bob"}
            later = [asyncio.run(go(lambda: send_later("eve"))) for _ in range(2)]
    finally:
        install(None)
    assert later == [{"sent": "eve"}] * 2
    assert desk.sent == ["bob", "eve"]
    assert len(attempt.effects) == 2


def test_a_result_that_cannot_be_kept_leaves_the_effect_in_doubt() -> None:
    def pay(to: str) -> Any:
        """Pays."""
        return {"receipt": object()}

    desk = Desk()
    desk.run(desk.agent(calls(("pay", {"to": "bob"})), says("later"), tools=[pay]))
    assert desk.told("pay")[0]["backstop"] == "in_doubt"


def test_models_asked_outside_of_an_attempt_answer_and_leave_no_row() -> None:
    desk = Desk()

    async def go() -> list[Any]:
        sessions = InMemorySessionService()
        await sessions.create_session(app_name="desk", user_id="u", session_id="x")
        runner = Runner(
            app=App(name="desk", root_agent=desk.agent(says("hello")), plugins=[desk.plugin]),
            session_service=sessions,
        )
        message = types.Content(role="user", parts=says("hi"))
        return [
            event
            async for event in runner.run_async(user_id="u", session_id="x", new_message=message)
        ]

    assert [event.content.parts[0].text for event in asyncio.run(go())] == ["hello"]
    assert list(desk.store.read()) == []
