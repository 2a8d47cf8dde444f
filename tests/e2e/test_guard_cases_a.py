"""The A cases of real incidents, as far as they are about run time, on the real framework.

The same file runs on the newest framework and, by `test_guard_oldest.py`, on the oldest.

| case | here | why not, or where else |
| --- | --- | --- |
| A01 A04 A05 A11 A15 A17 A18 A24 A25 | yes | |
| A03 | the run-time half | that a version which stops there is MISS is the gate's |
| A05 | the claims | that an interleaved history is INCONCLUSIVE is the replay's |
| A15 | calls in live mode are met | models are not: such a run cannot be replayed |
| A06 | no | a session service's own comparison of times; ours compare versions, never times |
| A07 A08 | no | imports: an event id counts once |
| A10 A13 A14 | no | what a new version leaves out or does again: the gate's |
| A16 | no | runs inside the model's service: nothing to stand before; named by `doctor` |
| A21 | no | a compacted session: effects come from the ledger (A18) |
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from google.adk.agents import LlmAgent, ParallelAgent
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.agents.run_config import RunConfig
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from backstop.core.events import (
    CallAnswered,
    CallBlocked,
    CursorAdvanced,
    EffectClaimed,
    EffectCommitted,
    EffectInDoubt,
    ModelAnswered,
)
from backstop.core.lifecycle import Phase
from backstop.guard.claims.resolving import Word, resolve
from backstop.wiring.stores import find_store
from tests.e2e.till import PAY, Scripted, Till, calls, nested, says, told, words

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")

ROOT = Path(__file__).parents[2]
PAID = msgspec.Raw(b'{"paid": "7"}')


@pytest.fixture
def till(tmp_path: Path) -> Till:
    return Till(folder=tmp_path)


def payer(till: Till, *options: str) -> subprocess.Popen[str]:
    """Another process that pays for the same session."""
    command = [sys.executable, str(ROOT / "tests/e2e/appended.py"), "tests.e2e.payer"]
    return subprocess.Popen(
        [*command, str(till.folder), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )


def went_out(till: Till) -> list[str]:
    return (till.folder / "out").read_text(encoding="utf-8").splitlines()


def test_a01_a_call_that_is_asked_for_again_while_it_runs_runs_once(till: Till) -> None:
    """A01: the second copy gets the recorded result under its own id, and nobody waits forever."""

    async def render(shot: int) -> dict[str, int]:
        """Renders, slowly."""
        till.sent.append(shot)
        await asyncio.sleep(0.2)
        return {"shot": shot}

    copies = [("render", {"shot": 1}), ("render", {"shot": 1})]
    events = till.chat(till.agent(calls(*copies), says("done"), tools=[render]), "render")
    assert till.sent == [1]
    responses = [one for event in events for one in event.get_function_responses()]
    assert [one.response for one in responses] == [{"shot": 1}] * 2
    assert len({one.id for one in responses}) == 2
    assert [row.how for row in till.rows(CallAnswered)] == ["recorded"]
    till.verified()


def test_a01_parallel_agents_that_ask_for_the_same_end_and_run_it_once(till: Till) -> None:
    """A01: a lock must not make a ParallelAgent wait without end."""

    async def render(shot: int) -> dict[str, int]:
        """Renders, slowly."""
        till.sent.append(shot)
        await asyncio.sleep(0.1)
        return {"shot": shot}

    def agent(name: str) -> LlmAgent:
        lines = [calls(("render", {"shot": 1})), says("done")]
        return LlmAgent(name=name, model=Scripted(model="m", lines=lines), tools=[render])

    root = ParallelAgent(name="till_both", sub_agents=[agent("a"), agent("b")])

    async def go() -> None:
        await till.session()
        await asyncio.wait_for(till.say(till.runner(root), "render"), timeout=20)

    asyncio.run(go())
    assert till.sent == [1]
    till.verified()


def test_a03_after_the_answer_to_a_paused_tool_the_rest_of_the_work_is_done_or_holds(
    till: Till,
) -> None:
    """A03: a run that ends after the answer, with work asked for, does not look clean."""

    def ask(question: str) -> None:
        """Asks a person; the answer comes later."""

    def mail(to: str) -> str:
        """Mails."""
        till.sent.append(to)
        return to

    root = till.agent(
        calls(("ask", {"question": "may I?"})),
        calls(("mail", {"to": "x"})),
        calls(("mail", {"to": "x"})),
        says("mailed"),
        tools=[LongRunningFunctionTool(ask), mail],
    )

    async def go() -> None:
        await till.session()
        runner = till.runner(root)
        events = await till.say(runner, "go")
        (pending,) = [c for e in events for c in e.get_function_calls() if c.name == "ask"]
        said = types.FunctionResponse(id=pending.id, name="ask", response={"ok": True})
        answer = types.Content(role="user", parts=[types.Part(function_response=said)])
        running = runner.run_async(user_id="u", session_id="c1", new_message=answer)
        async for event in running:
            if event.get_function_calls():
                break  # the model asked for the mail, and the run ends there
        await running.aclose()
        assert till.sent in ([], ["x"])
        if till.sent == []:
            assert [row.cursor for row in till.rows(CursorAdvanced)] == [1]
        await till.say(runner, answer)  # the answer is delivered again

    asyncio.run(go())
    assert till.sent == ["x"]
    assert max(row.cursor for row in till.rows(CursorAdvanced)) == 2
    till.verified()


def test_a04_a_streamed_call_whose_ids_differ_is_one_effect(till: Till) -> None:
    """A04: partial events are no effects, and no key is made of a call's id."""

    def response(call: str, *, partial: bool) -> LlmResponse:
        asked = types.FunctionCall(id=call, name="pay", args={"order": "7", "amount": 10})
        part = types.Part(function_call=asked)
        return LlmResponse(content=types.Content(role="model", parts=[part]), partial=partial)

    streamed = response("p1", partial=True), response("f1", partial=False)

    async def go() -> list[Any]:
        await till.session()
        runner = till.runner(till.agent(streamed, says("done"), streamed, says("done")))
        config = RunConfig.model_validate({"streaming_mode": "sse"})
        events = await till.say(runner, "pay", run_config=config)
        return events + await till.say(runner, "again", run_config=config)

    events = asyncio.run(go())
    assert till.sent == [("7", 10)]
    assert [row.call for row in till.rows(EffectClaimed)] == ["f1"]
    assert told(events, "pay")[-1] == {"paid": "7", "amount": 10}
    assert all(b"p1" not in bytes(row.response) for row in till.rows(ModelAnswered))
    till.verified()


def test_a05_of_two_processes_that_resume_one_session_at_once_one_pays(till: Till) -> None:
    """A05: one claim wins; the other holds, or gets the recorded result."""
    go = till.folder / "go"
    both = [payer(till, "--at", str(go)) for _ in range(2)]
    for one in both:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n", one.communicate()
    go.touch()
    outputs = [one.communicate(timeout=60) for one in both]
    answers = [json.loads(out.splitlines()[-1])[0] for out, _ in outputs]
    assert went_out(till) == ["pay 7"]
    assert {"paid": "7"} in answers
    for answer in answers:
        assert answer == {"paid": "7"} or answer["backstop"] == "held"
    assert len(till.rows(EffectClaimed)) == 1


class Asks(BaseTool):
    """A custom tool that asks first and then, whatever the answer, acts."""

    def __init__(self, sent: list[Any]) -> None:
        super().__init__(name="pay", description="Pays.")
        self.sent = sent

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(name="pay", description="Pays.")

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        if tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint="Pay?")
            return {"status": "asked"}
        self.sent.append(args)
        return {"paid": True}


@pytest.mark.parametrize(("confirmed", "sent"), [(False, []), (True, [{"order": "7"}])])
def test_a11_what_a_person_declined_does_not_run(
    till: Till, confirmed: bool, sent: list[Any]
) -> None:
    """A11: a no is no advice to the tool; a yes lets it run once."""
    root = till.agent(
        calls(("pay", {"order": "7"})), says("waiting"), says("ok"), says("ok"),
        tools=[Asks(till.sent)],
    )  # fmt: skip

    async def go() -> list[Any]:
        await till.session()
        runner = till.runner(root)
        events = await till.say(runner, "pay")
        (asked,) = [
            call
            for event in events
            for call in event.get_function_calls()
            if call.name == "adk_request_confirmation"
        ]
        said = types.FunctionResponse(
            id=asked.id, name=asked.name, response={"confirmed": confirmed}
        )
        part = types.Part(function_response=said)
        return await till.say(runner, types.Content(role="user", parts=[part]))

    events = asyncio.run(go())
    assert till.sent == sent
    if not confirmed:
        assert "declined" in told(events, "pay")[-1]["reason"]
        assert [row.by for row in till.rows(CallBlocked)] == ["agent", "person"]
    assert [row.cursor for row in till.rows(CursorAdvanced)] == [1, 2]
    till.verified()


class Line(BaseLlmConnection):
    """A live connection that calls a tool once, and hangs up after the answer."""

    def __init__(self) -> None:
        self.answered = asyncio.Event()

    async def send_history(self, history: list[types.Content]) -> None:
        pass

    async def send_content(self, content: types.Content) -> None:
        if content.parts and content.parts[0].function_response:
            self.answered.set()

    async def send_realtime(self, blob: Any) -> None:
        pass

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        if not self.answered.is_set():
            yield LlmResponse(content=types.Content(role="model", parts=PAY))
            await asyncio.wait_for(self.answered.wait(), timeout=10)
        yield LlmResponse(
            content=types.Content(role="model", parts=says("bye")), turn_complete=True
        )

    async def close(self) -> None:
        pass


class Live(Scripted):
    """A model that is spoken to on a line."""

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncIterator[BaseLlmConnection]:
        yield Line()


def test_a15_a_call_in_live_mode_is_guarded_and_its_models_are_on_no_record(till: Till) -> None:
    """A15: a history without its models' answers cannot be replayed, so it never looks fine."""
    root = LlmAgent(name="till", model=Live(model="m", lines=[]), tools=[till.pay])

    async def live(runner: Any) -> None:
        queue = LiveRequestQueue()
        queue.send_content(words("pay"))
        async for event in runner.run_live(user_id="u", session_id="c1", live_request_queue=queue):
            if event.turn_complete:
                queue.close()
                break

    async def go() -> None:
        await till.session()
        for _ in range(2):
            await asyncio.wait_for(live(till.runner(root)), timeout=30)

    asyncio.run(go())
    assert till.sent == [("7", 10)]
    assert till.rows(ModelAnswered) == []
    till.verified()


@pytest.mark.parametrize("tool", [{}, {"include_plugins": False}])
def test_a17_an_agent_in_a_tool_is_covered_with_and_without_plugins(
    till: Till, tool: dict[str, bool]
) -> None:
    """A17: with `include_plugins=False` its runner has no plugins but the guard."""

    async def go() -> None:
        await till.session()
        for _ in range(2):  # the second is a redelivery
            await till.say(till.runner(nested(till, **tool)), "pay")

    asyncio.run(go())
    assert till.sent == [("7", 10)]
    (claimed,) = till.rows(EffectClaimed)
    assert (claimed.run, claimed.step, claimed.agent) == ("till:u:c1", "s0", "inner")
    till.verified()


def test_a18_what_an_agent_in_a_tool_did_is_in_the_ledger_and_not_in_the_session(
    till: Till,
) -> None:
    """A18: effects are taken from the ledger, never from a session's events."""
    till.chat(nested(till), "pay")

    async def events() -> Sequence[Any]:
        session = await till.sessions.get_session(app_name="till", user_id="u", session_id="c1")
        assert session is not None
        return session.events

    stored = asyncio.run(events())
    assert "pay" not in {call.name for event in stored for call in event.get_function_calls()}
    assert [row.tool for row in till.rows(EffectClaimed)] == ["pay"]


def test_a24_a_rewound_session_does_not_pay_again(till: Till) -> None:
    """A24: a rewind restores the session, not the world: the row survives it."""

    async def go() -> list[Any]:
        await till.session()
        runner = till.runner(till.agent(PAY, says("paid"), PAY, says("paid")))
        first = await till.say(runner, "pay")
        await runner.rewind_async(
            user_id="u", session_id="c1", rewind_before_invocation_id=first[0].invocation_id
        )
        return await till.say(runner, "pay")

    events = asyncio.run(go())
    assert till.sent == [("7", 10)]
    assert told(events, "pay") == [{"paid": "7", "amount": 10}]
    assert [row.how for row in till.rows(CallAnswered)] == ["recorded"]
    till.verified()


def test_a25_a_process_killed_after_the_payment_leaves_a_doubt_that_is_never_paid_again(
    till: Till,
) -> None:
    """A25: in doubt after the kill, however often it is resumed; then a person decides."""
    killed = payer(till, "--die")
    killed.communicate(timeout=60)
    assert killed.returncode == -9
    for _ in range(2):
        out, err = payer(till).communicate(timeout=60)
        assert out, err
        (answer,) = json.loads(out.splitlines()[-1])
        assert answer["backstop"] == "in_doubt", answer
    assert went_out(till) == ["pay 7"]
    (claimed,) = till.rows(EffectClaimed)
    assert len(till.rows(EffectInDoubt)) == 1
    assert till.rows(EffectCommitted) == till.rows(CursorAdvanced) == []
    word = Word(to="committed", by="person:x", reason="the bank says so", result=PAID)
    standing = resolve(find_store(till.url, agent="till"), claimed.key, word)
    assert standing.phase is Phase.COMMITTED
    out, _ = payer(till).communicate(timeout=60)
    assert json.loads(out.splitlines()[-1]) == [{"paid": "7"}]
    assert went_out(till) == ["pay 7"]
    till.verified()
