"""Tools and models are met at the last moment; whatever calls them, their bodies never run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from backstop.adk.arming import arm, arm_model
from backstop.replay import wire
from tests.e2e.conversation import AGENTS, Driver, Heard, call, message, response, text

ORDERS = [response(call("order", sku="abc"), call("look", sku="x")), response(text("done"))]


@pytest.fixture(scope="module")
def orders() -> Heard:
    return Driver(agent=AGENTS / "orders", models=ORDERS, runs=2).run()


def test_intents_are_what_the_agents_own_callback_made_of_them(orders: Heard) -> None:
    assert orders.asked[:2] == [("order", {"sku": "ABC"}), ("look", {"sku": "X"})]


def test_the_agents_own_after_model_callback_runs(orders: Heard) -> None:
    assert orders.steps[0].state["after_model"] == 2


def test_no_body_ran(orders: Heard) -> None:
    assert orders.steps[0].state["bodies"] == 0


def test_time_ids_and_chance_are_the_steps(orders: Heard) -> None:
    drawn = orders.steps[0].state["drawn"]
    assert isinstance(drawn, list)
    # The agent's own callback waits for 10 ms before its tools are called.
    assert drawn[:2] == ["2026-01-05 09:00:00.010000", "2026-01-05"]
    assert drawn[2] == pytest.approx(1767603600.01)
    assert drawn[-1] == "2 replay replay"
    assert orders.steps[1].state["drawn"] == drawn


def test_timers_of_the_event_loop_go_on(orders: Heard) -> None:
    assert orders.steps[0].state["slept"] is True


def test_two_replays_are_byte_identical(orders: Heard) -> None:
    first, second = orders.runs
    assert first.digest == second.digest != ""
    again = Driver(agent=AGENTS / "orders", models=ORDERS).run()
    assert again.runs[0].digest == first.digest


def test_the_candidate_is_described(orders: Heard) -> None:
    assert orders.ready is not None
    order, look = orders.ready.tools
    assert (order.tool, look.tool) == ("order", "look")
    assert order.schema["required"] == ["sku"]
    assert order.schema["properties"]["qty"]["default"] == 1  # type: ignore[index]
    assert order.code != look.code
    assert not order.guarded
    assert {(e.kind, e.detail, e.quiet) for e in orders.ready.escapes} == {
        ("callback", "after_model_callback", True),
        ("callback", "before_tool_callback", True),
    }


def parallel(*, shuffle: int | None) -> Heard:
    skus = [f"sku-{n}" for n in range(6)]
    models = [response(*(call("order", sku=sku) for sku in skus)), response(text("done"))]
    return Driver(agent=AGENTS / "orders", models=models, shuffle=shuffle).run()


def test_six_parallel_calls_with_shuffled_answers_give_the_same_intents() -> None:
    plain, shuffled = parallel(shuffle=None), parallel(shuffle=6)
    assert len(plain.asked) == 6
    assert plain.asked == shuffled.asked
    assert plain.models[1].contents == shuffled.models[1].contents


@pytest.fixture(scope="module")
def nested() -> Heard:
    pay = response(call("pay", amount=1))
    done = response(text("done"))
    return Driver(
        agent=AGENTS / "nested",
        models=[
            pay,
            done,
            response(call("with_plugins", request="pay")),
            pay,
            done,
            response(call("without_plugins", request="pay")),
            pay,
            done,
            done,
        ],
    ).run()


def test_agents_as_tools_and_own_runners_are_covered(nested: Heard) -> None:
    assert nested.steps[0].outcome == "done", (nested.steps, nested.noise)
    assert [asked.agent for asked in nested.models] == [
        "own_runner",
        "own_runner",
        "outer",
        "with_plugins",
        "with_plugins",
        "outer",
        "without_plugins",
        "without_plugins",
        "outer",
    ]
    assert [(one.agent, one.tool) for one in nested.intents] == [
        ("own_runner", "pay"),
        ("with_plugins", "pay"),
        ("without_plugins", "pay"),
    ]
    assert nested.steps[0].state["bodies"] == 0
    assert nested.escapes == []


def test_an_agent_without_its_callers_plugins_is_named(nested: Heard) -> None:
    assert nested.ready is not None
    kinds = {(escape.kind, escape.detail) for escape in nested.ready.escapes}
    assert ("include-plugins", "by the tool without_plugins") in kinds


def workshop_answer(asked: wire.IntentAsked) -> dict[str, Any]:
    if asked.tool == "order":
        return {"error_type": "OutOfStock", "error_message": "none left"}
    if asked.tool == "approve":
        return {"result": {"status": "pending"}}
    return {"result": {"sent": True}, "now": "2026-01-05T10:00:00Z"}


@pytest.fixture(scope="module")
def workshop() -> Heard:
    return Driver(
        agent=AGENTS / "workshop",
        models=[response(call("approve", what="it")), response(text("asked"))],
        answer=workshop_answer,
    ).run()


def test_effects_on_every_kind_of_thread_are_asked_for(workshop: Heard) -> None:
    assert workshop.steps[0].outcome == "done", (workshop.steps, workshop.noise)
    effects = [one for one in workshop.asked if one[0] in {"mail", "post"}]
    assert sorted((tool, args["to"]) for tool, args in effects) == [
        ("mail", "blocked loop"),
        ("mail", "on the loop"),
        ("mail", "thread 0"),
        ("mail", "thread 1"),
        ("mail", "thread 2"),
        ("mail", "thread 3"),
        ("post", "task 0"),
        ("post", "task 1"),
    ]
    assert effects[0] == ("mail", {"to": "on the loop", "copies": 1})
    assert {one.via for one in workshop.intents if one.tool == "mail"} == {"effect"}
    assert workshop.steps[0].state["answers"] == [{"sent": True}] * 8
    assert workshop.steps[0].state["bodies"] == 0


def test_a_call_that_the_code_of_a_workflow_makes_bears_no_agents_name(workshop: Heard) -> None:
    agents = {(one.tool, one.agent) for one in workshop.intents}
    assert {("order", ""), ("mail", ""), ("approve", "asker")} <= agents
    assert "unknown" not in {agent for _, agent in agents}


def test_a_recorded_error_is_raised_as_the_class_the_candidate_knows(workshop: Heard) -> None:
    assert workshop.steps[0].state["caught"] == "OutOfStock"


def test_a_call_that_waits_for_an_answer_from_outside_is_pending(workshop: Heard) -> None:
    [pending] = workshop.steps[0].pending
    assert pending["name"] == "approve"
    assert pending["args"] == {"what": "it"}
    [approve] = [one for one in workshop.intents if one.tool == "approve"]
    assert approve.call == pending["id"]


def test_the_guard_is_seen_and_does_not_act(workshop: Heard) -> None:
    assert workshop.ready is not None
    assert {tool.tool: (tool.kind, tool.guarded) for tool in workshop.ready.tools} == {
        "approve": ("LongRunningFunctionTool", True),
        "mail": ("effect", True),
        "post": ("effect", True),
    }


def test_code_that_is_not_intercepted_by_itself_is_named(workshop: Heard) -> None:
    assert workshop.ready is not None
    [escape] = workshop.ready.escapes
    assert (escape.kind, escape.where) == ("function-node", "work")
    assert escape.at.startswith("agent.py:")


@pytest.mark.parametrize("missing", ["end_of_record", "nothing"])
def test_a_step_without_an_answer_ends_and_the_next_one_begins(missing: str) -> None:
    heard = Driver(
        agent=AGENTS / "orders",
        models=ORDERS[:1],
        steps=[{"role": "user", "parts": [text("go")]}] * 2,
        answer=lambda asked: {"missing": missing},
    ).run()
    expected = "end_of_record" if missing == "end_of_record" else "unanswered"
    assert [step.outcome for step in heard.steps] == [expected, "end_of_record"]
    assert heard.faults == []


def approved(heard: Heard) -> dict[str, Any]:
    """A person's answer to the call that the first step left open, days later."""
    answer = {
        "id": heard.steps[0].pending[0]["id"],
        "name": "approve",
        "response": {"status": "approved"},
    }
    return {"role": "user", "parts": [{"function_response": answer}]}


@pytest.mark.parametrize("window", [None, 0])
def test_s4_an_answer_from_outside_resumes_the_turn_that_asked(window: int | None) -> None:
    """S4: an approval names the call id of this replay, also under a window."""
    heard = Driver(
        agent=AGENTS / "workshop",
        models=[
            response(call("approve", what="it")),
            response(text("asked")),
            response(text("ok")),
        ],
        steps=[message("go"), approved],
        answer=workshop_answer,
        begin={"window": window},
    ).run()
    assert [step.outcome for step in heard.steps] == ["done", "done"], heard.steps
    assert heard.steps[0].pending
    assert heard.steps[1].pending == []
    assert [asked.agent for asked in heard.models] == ["asker"] * 3


def test_a_run_begins_with_the_history_that_it_is_handed() -> None:
    def run(history: list[object]) -> Heard:
        return Driver(
            agent=AGENTS / "orders",
            models=[response(text("done"))],
            begin={"history": history, "state": {"after_model": 40}},
        ).run()

    told = {
        "author": "orders",
        "invocation_id": "old",
        "content": response(text("before"))["content"],
    }
    with_history, without = run([told]), run([])
    assert with_history.models[0].contents != without.models[0].contents
    assert with_history.steps[0].state["after_model"] == 41
    assert with_history.runs[0].events == without.runs[0].events + 1


# The naive ways, in this process: they show what the fixtures above would miss.

SCRIPT = [response(call("order", sku="bob")), response(text("done"))]


def play(plugin: Callable[[list[Any]], BasePlugin]) -> tuple[list[Any], int]:
    """The arguments that a plugin saw, and how often the agent's after-model callback ran."""
    seen: list[Any] = []
    after: list[int] = []

    def order(sku: str) -> dict[str, str]:
        raise AssertionError("a body ran")

    def rewrite(tool: Any, args: dict[str, Any], tool_context: Any) -> None:
        args["sku"] = "EVE"

    def mark(callback_context: Any, llm_response: Any) -> None:
        after.append(1)

    agent = LlmAgent(
        name="orders",
        model="gemini-2.5-flash",
        tools=[order],
        before_tool_callback=rewrite,
        after_model_callback=mark,
    )

    async def run() -> None:
        sessions = InMemorySessionService()
        runner = Runner(agent=agent, app_name="orders", session_service=sessions)
        runner.plugin_manager.plugins = [plugin(seen)]
        await sessions.create_session(app_name="orders", user_id="u", session_id="s")
        content = types.Content(role="user", parts=[types.Part(text="go")])
        async for _ in runner.run_async(user_id="u", session_id="s", new_message=content):
            pass

    asyncio.run(run())
    return seen, len(after)


class Armed(BasePlugin):
    """The way of the harness."""

    def __init__(self, seen: list[Any]) -> None:
        super().__init__("armed")
        self._seen = seen
        self._script = iter(SCRIPT)

    async def _execute(self, tool: Any, args: Any, tool_context: Any, original: Any) -> Any:
        self._seen.append(dict(args))
        return {}

    async def _generate(
        self, model: Any, request: Any, stream: bool, original: Any
    ) -> AsyncIterator[LlmResponse]:
        yield LlmResponse.model_validate(next(self._script))

    async def before_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any
    ) -> Any:
        arm(tool, self._execute)

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> Any:
        agent = callback_context._invocation_context.agent  # noqa: SLF001 - no other way to the model
        model = agent.canonical_model
        arm_model(model, self._generate)


class CollectsInTheCallback(Armed):
    """Naive: takes the arguments before the agent's own callback has seen them."""

    async def before_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any
    ) -> Any:
        self._seen.append(dict(tool_args))
        return {"answered": "here"}


class AnswersInTheCallback(Armed):
    """Naive: answers for the model, so that the agent's own callbacks are skipped."""

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> Any:
        return LlmResponse.model_validate(next(self._script))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("plugin", "sees", "after_model"),
    [
        (Armed, "EVE", 2),
        (CollectsInTheCallback, "bob", 2),
        (AnswersInTheCallback, "EVE", 0),
    ],
)
def test_only_arming_sees_final_arguments_and_keeps_the_agents_callbacks(
    plugin: Callable[[list[Any]], BasePlugin], sees: str, after_model: int
) -> None:
    seen, after = play(plugin)
    assert seen == [{"sku": sees}]
    assert after == after_model
