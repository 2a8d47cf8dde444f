"""Wrappers on instances: what they see, what they keep, and whose they are."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator
from typing import Any

import pytest
from google.adk.models.google_llm import Gemini
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.exit_loop_tool import exit_loop
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.transfer_to_agent_tool import TransferToAgentTool

from backstop.adk.arming import arm, arm_model, is_armed
from backstop.adk.control import is_control

pytestmark = pytest.mark.filterwarnings("ignore")


def pay(amount: int) -> dict[str, int]:
    return {"paid": amount}


def say(word: str) -> Any:
    async def execute(tool: Any, args: dict[str, Any], context: Any, original: Any) -> Any:
        return word, tool.name, args

    return execute


def run(tool: FunctionTool, **args: Any) -> Any:
    return asyncio.run(tool.run_async(args=args, tool_context=None))  # type: ignore[arg-type]


def test_an_armed_tool_leads_to_the_executor_with_final_arguments() -> None:
    tool = FunctionTool(pay)
    arm(tool, say("first"))
    assert run(tool, amount=1) == ("first", "pay", {"amount": 1})
    assert is_armed(tool)


def test_arming_again_changes_only_where_it_leads() -> None:
    tool = FunctionTool(pay)
    arm(tool, say("first"))
    wrapper = tool.run_async
    arm(tool, say("second"))
    assert tool.run_async is wrapper
    assert run(tool, amount=1)[0] == "second"


def test_the_original_can_still_be_run() -> None:
    async def through(tool: Any, args: dict[str, Any], context: Any, original: Any) -> Any:
        return await original(args=args, tool_context=context)

    tool = FunctionTool(pay)
    arm(tool, through)
    assert run(tool, amount=3) == {"paid": 3}


def test_a_copy_of_an_armed_tool_is_armed_anew_and_speaks_for_itself() -> None:
    tool = FunctionTool(pay)
    arm(tool, say("first"))
    twin = copy.copy(tool)
    twin.name = "twin"
    assert not is_armed(twin)
    arm(twin, say("second"))
    assert run(twin, amount=1)[:2] == ("second", "twin")
    assert run(tool, amount=1)[:2] == ("first", "pay")


def test_the_original_of_a_copy_is_the_copys_own_method() -> None:
    async def who(tool: Any, args: dict[str, Any], context: Any, original: Any) -> Any:
        return original.__self__

    tool = FunctionTool(pay)
    arm(tool, who)
    twin = copy.copy(tool)
    arm(twin, who)
    assert run(twin, amount=1) is twin


def test_an_armed_model_keeps_its_class_and_its_equality() -> None:
    async def generate(model: Any, request: Any, stream: bool, original: Any) -> AsyncIterator[str]:
        yield f"{model.model} {request} {stream}"

    async def collect(model: Gemini) -> list[Any]:
        return [one async for one in model.generate_content_async("asked")]  # type: ignore[arg-type]

    model = Gemini(model="gemini-2.5-flash")
    arm_model(model, generate)
    assert asyncio.run(collect(model)) == ["gemini-2.5-flash asked False"]
    assert type(model) is Gemini
    assert model == Gemini(model="gemini-2.5-flash")
    assert "generate_content_async" not in model.model_dump()


def test_tools_of_the_framework_that_only_steer_are_control() -> None:
    assert is_control(FunctionTool(exit_loop))
    assert is_control(TransferToAgentTool(agent_names=["a"]))


def test_a_users_tool_of_the_same_name_is_not_control() -> None:
    def exit_loop() -> None:
        """A user's own."""

    assert not is_control(FunctionTool(exit_loop))
    assert not is_control(FunctionTool(pay))


def test_an_agent_as_a_tool_is_control_unless_a_user_changed_what_it_does() -> None:
    from google.adk.agents import LlmAgent

    class Mine(AgentTool):
        async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
            return None

    agent = LlmAgent(name="inner", model="gemini-2.5-flash")
    assert is_control(AgentTool(agent))
    assert not is_control(Mine(agent))
