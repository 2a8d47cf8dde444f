"""`backstop.Plugin` on the real runner, without a driver."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncGenerator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from google.adk.agents import BaseAgent, LlmAgent, SequentialAgent
from google.adk.apps import App
from google.adk.apps.app import ResumabilityConfig
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.function_tool import FunctionTool
from google.adk.workflow import Workflow

from backstop.core.events import (
    AttemptEnded,
    AttemptStarted,
    CallAnswered,
    CallBlocked,
    CursorAdvanced,
    EffectClaimed,
    EffectInDoubt,
    EffectResolved,
    ModelAnswered,
    RunOpened,
    StepStarted,
)
from backstop.errors import BackstopError
from backstop.guard.effect import effect
from backstop.wiring.stores import find_store
from tests.e2e.till import PAY, Till, calls, nested, says, told, words

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def till(tmp_path: Path) -> Till:
    return Till(folder=tmp_path)


def test_each_message_to_a_session_is_a_step_of_its_run(till: Till) -> None:
    root = till.agent(PAY, says("paid"), calls(("look", {"order": "7"})), says("there"))
    till.chat(root, "pay", "look")
    assert till.sent == [("7", 10)]
    (opened,) = till.rows(RunOpened)
    assert (opened.run, opened.app, opened.user) == ("till:u:c1", "till", "u")
    assert [row.step for row in till.rows(StepStarted)] == ["s0", "s1"]
    assert [row.cursor for row in till.rows(CursorAdvanced)] == [1, 2]
    assert [row.outcome for row in till.rows(AttemptEnded)] == ["done", "done"]
    assert len(till.rows(ModelAnswered)) == 4
    assert till.verified().header.guarded


def test_a_repeated_call_gets_the_recorded_result(till: Till) -> None:
    events = till.chat(till.agent(PAY, says("paid"), PAY, says("again")), "pay", "pay once more")
    assert till.sent == [("7", 10)]
    assert told(events, "pay") == [{"paid": "7", "amount": 10}] * 2
    till.verified()


class Quick(BasePlugin):
    """Answers every tool's call itself."""

    async def before_tool_callback(self, **_: Any) -> dict[str, Any]:
        return {"cached": True}


def test_the_guard_moves_before_a_plugin_that_answers_tools(till: Till) -> None:
    plugins = [Quick("quick"), till.plugin()]

    async def go() -> list[Any]:
        await till.session()
        runner = till.runner(till.agent(PAY, says("paid")), plugins=plugins)
        events = await till.say(runner, "pay")
        assert runner.plugin_manager.plugins[0] is plugins[1]
        return events

    events = asyncio.run(go())
    assert (till.sent, told(events, "pay")) == ([], [{"cached": True}])
    # The call did not reach its tool: blocked, so the step is done and nothing was skipped.
    assert [row.by for row in till.rows(CallBlocked)] == ["agent"]
    assert len(till.rows(CursorAdvanced)) == 1
    till.verified()


@pytest.mark.parametrize("tool", [{}, {"include_plugins": False}])
def test_a17_an_agent_in_a_tool_belongs_to_the_run_with_and_without_plugins(
    till: Till, tool: dict[str, bool]
) -> None:
    """A17: with `include_plugins=False` its runner has no plugins but the guard."""
    till.chat(nested(till, **tool), "pay")
    assert till.sent == [("7", 10)]
    (claimed,) = till.rows(EffectClaimed)
    assert (claimed.run, claimed.step, claimed.agent) == ("till:u:c1", "s0", "inner")
    assert len(till.rows(RunOpened)) == 1
    till.verified()


def test_a_redelivered_agent_in_a_tool_pays_once(till: Till) -> None:
    async def go() -> None:
        await till.session()
        for _ in range(2):
            root = nested(till, include_plugins=False)
            await till.say(till.runner(root), "pay")

    asyncio.run(go())
    assert till.sent == [("7", 10)]


def test_a_plain_function_in_a_node_is_guarded(till: Till) -> None:
    @effect
    def ring(order: str) -> str:
        till.sent.append(order)
        return order

    def first(node_input: str) -> str:
        return ring("7")

    async def second(node_input: str) -> str:
        return ring("7")

    flow = Workflow(name="till", edges=[("START", first, second)])
    till.chat(flow, "ring")
    assert till.sent == ["7"]
    assert [row.how for row in till.rows(CallAnswered)] == ["recorded"]
    assert ring("8") == "8"  # no run is on: the function is the function that it was


def test_a_plain_function_is_refused_where_its_run_cannot_be_seen(till: Till) -> None:
    @effect
    def ring(order: str) -> str:
        till.sent.append(order)
        return order

    found: list[object] = []

    def aside(node_input: str) -> str:
        def work() -> None:
            try:
                ring("7")
            except BackstopError as error:
                found.append(error.slug)

        thread = Thread(target=work)  # its context is empty
        thread.start()
        thread.join()
        return "done"

    till.chat(Workflow(name="till", edges=[("START", aside)]), "ring")
    assert (till.sent, found) == ([], ["effect-refused"])


def test_two_guards_in_one_process_keep_their_calls_apart(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    tills = [Till(folder=tmp_path / "a"), Till(folder=tmp_path / "b")]
    meet = asyncio.Barrier(2)
    sent: list[str] = []

    async def pay(order: str) -> str:
        """Pays."""
        await meet.wait()
        sent.append(order)
        return order

    shared = FunctionTool(pay)

    async def go() -> None:
        runs = []
        for till, order in zip(tills, "78", strict=True):
            await till.session()
            root = till.agent(calls(("pay", {"order": order})), says("paid"), tools=[shared])
            runs.append(till.say(till.runner(root), "pay"))
        await asyncio.gather(*runs)

    asyncio.run(go())
    assert sorted(sent) == ["7", "8"]
    for till, order in zip(tills, "78", strict=True):
        (claimed,) = till.rows(EffectClaimed)
        assert bytes(claimed.args) == f'{{"order":"{order}"}}'.encode()
        till.verified()


@pytest.mark.parametrize("kind", [LlmAgent, SequentialAgent])
def test_a_consumer_that_leaves_drags_no_run_into_the_next(till: Till, kind: type) -> None:
    """Its generator is closed later, in another task; the next run must not be taken for a part."""

    def root(order: str) -> Any:
        agent = till.agent(calls(("pay", {"order": order, "amount": 1})), says("paid"))
        if kind is LlmAgent:
            return agent
        return SequentialAgent(name="till_flow", sub_agents=[agent])

    async def go() -> None:
        await till.session("c1")
        await till.session("c2")
        running = till.runner(root("7")).run_async(
            user_id="u", session_id="c1", new_message=words("pay")
        )
        await anext(running)  # the model's call; nobody ever asks for more
        await till.say(till.runner(root("8")), "pay", session="c2")
        await running.aclose()

    asyncio.run(go())
    claimed = {bytes(row.args): row.run for row in till.rows(EffectClaimed)}
    assert claimed[b'{"amount":1,"order":"8"}'] == "till:u:c2"
    # What the model asked for in the first run may never have run: the cursor stays.
    first = [row for row in till.rows(CursorAdvanced) if row.run == "till:u:c1"]
    assert len(first) == (len(claimed) == 2)
    till.verified()


def test_a_run_in_the_same_task_inside_of_another_belongs_to_it(till: Till) -> None:
    inner = till.agent(PAY, says("paid"))

    class Own(BaseAgent):
        """A custom agent with a runner of its own."""

        async def _run_async_impl(self, ctx: Any) -> AsyncGenerator[Any, None]:
            sessions = InMemorySessionService()
            await sessions.create_session(app_name="till", user_id="u", session_id="x")
            runner = Runner(
                app=App(name="till", root_agent=inner, plugins=ctx.plugin_manager.plugins),
                session_service=sessions,
            )
            async for _ in runner.run_async(user_id="u", session_id="x", new_message=words("pay")):
                pass
            for _ in ():
                yield

    till.chat(Own(name="till_own"), "go")
    (claimed,) = till.rows(EffectClaimed)
    assert claimed.run == "till:u:c1"


def test_the_same_invocation_without_a_new_message_is_a_further_attempt(till: Till) -> None:
    fails = [True]

    def flaky(order: str) -> str:
        """Looks, and fails the first time."""
        if fails.pop() if fails else False:
            raise LookupError(order)
        return order

    looks = FunctionTool(flaky)
    looks.name = "look"

    async def go() -> None:
        await till.session()
        root = till.agent(
            PAY, calls(("look", {"order": "7"})), calls(("look", {"order": "7"})), says("done"),
            tools=[till.pay, looks],
        )  # fmt: skip
        runner = till.runner(root, resumability_config=ResumabilityConfig(is_resumable=True))
        with pytest.raises(LookupError):
            await till.say(runner, "pay and look")
        (failed,) = till.rows(AttemptEnded)
        assert (failed.outcome, failed.error.type) == ("error", "LookupError")
        started = till.rows(AttemptStarted)
        await till.say(runner, None, invocation_id=started[0].delivery)

    asyncio.run(go())
    assert till.sent == [("7", 10)]
    assert [(row.step, row.attempt) for row in till.rows(AttemptStarted)] == [("s0", 1), ("s0", 2)]
    assert len(till.rows(CursorAdvanced)) == 1
    till.verified()


def test_the_cursor_stays_over_a_doubt_and_catches_up_once_it_is_resolved(till: Till) -> None:
    def ring(order: str) -> str:
        """Rings."""
        raise TimeoutError

    asked = calls(("ring", {"order": "7"}))
    root = till.agent(asked, says("hm"), says("hello"), says("bye"), tools=[ring])

    async def go() -> None:
        await till.session()
        runner = till.runner(root)
        await till.say(runner, "ring")
        await till.say(runner, "hello")
        assert till.rows(CursorAdvanced) == []
        assert [row.outcome for row in till.rows(AttemptEnded)] == ["held", "done"]
        (claimed,) = till.rows(EffectClaimed)
        find_store(till.url, agent="till").settle(
            EffectResolved(
                run=claimed.run, at="", key=claimed.key, to="committed", by="person:x", fence=1
            )
        )
        await till.say(runner, "bye")

    asyncio.run(go())
    assert [row.cursor for row in till.rows(CursorAdvanced)] == [1, 2, 3]
    till.verified()


def test_a_mutated_argument_changes_nothing_on_record(till: Till) -> None:
    """K06, F32: what is claimed is a copy, and the body runs on a copy of its own."""
    live: list[dict[str, Any]] = []

    def fold(order: dict[str, Any]) -> str:
        """Folds."""
        order["id"] = "changed"
        return "folded"

    def before(tool: Any, args: dict[str, Any], tool_context: Any) -> None:
        live.append(args)

    def after(tool: Any, args: dict[str, Any], tool_context: Any, tool_response: Any) -> None:
        live.append(copy.deepcopy(args))

    asked = calls(("fold", {"order": {"id": "7"}}))
    root = till.agent(
        asked, says("x"), tools=[fold], before_tool_callback=before, after_tool_callback=after
    )
    till.chat(root, "fold")
    assert [bytes(row.args) for row in till.rows(EffectClaimed)] == [b'{"order":{"id":"7"}}']
    assert live[1] == {"order": {"id": "7"}}
    till.verified()


def test_a_cancelled_run_is_forgotten_and_stands_in_nobodys_way(till: Till) -> None:
    """No hook of the framework's tells of a cancellation."""

    @effect
    def ring(order: str) -> str:
        return order

    begun = asyncio.Event()

    async def wait(order: str) -> str:
        """Waits."""
        begun.set()
        await asyncio.sleep(60)
        return order

    async def go() -> None:
        await till.session()
        root = till.agent(calls(("wait", {"order": "7"})), tools=[wait])
        saying = asyncio.ensure_future(till.say(till.runner(root), "wait"))
        await asyncio.wait_for(begun.wait(), timeout=30)
        saying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await saying

    asyncio.run(go())
    assert ring("8") == "8"
    assert till.rows(CursorAdvanced) == []
    (doubt,) = till.rows(EffectInDoubt)
    assert doubt.running
    till.verified()
