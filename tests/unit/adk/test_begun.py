"""Whether a tool's function was called at all, seen at the framework's own step."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool

from backstop.adk.begun import watched

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")


class Actions:
    """Stands for the actions of a call."""

    skip_summarization = False


class Context:
    """Stands for the context of a call."""

    actions = Actions()
    tool_confirmation = None

    def request_confirmation(self, **_: Any) -> None: ...


def pay(order: str, amount: int) -> str:
    """Pays."""
    return f"{order}: {amount}"


async def pay_later(order: str, amount: int) -> str:
    """Pays."""
    return f"{order}: {amount}"


def ran(tool: Any, **args: Any) -> tuple[Any, bool]:
    """What the tool gave, and whether its function certainly was not called."""

    async def go() -> tuple[Any, bool]:
        with watched(tool) as beginning:
            given = await tool.run_async(args=args, tool_context=Context())
        return given, beginning.never

    return asyncio.run(go())


@pytest.mark.parametrize(
    "tool", [FunctionTool(pay), FunctionTool(pay_later), LongRunningFunctionTool(pay)]
)
def test_a_function_that_is_called_has_begun_and_one_that_is_not_has_never(tool: Any) -> None:
    assert ran(tool, order="7", amount=1) == ("7: 1", False)
    given, never = ran(tool, order="7")
    assert "amount" in given["error"]
    assert never
    assert ran(tool, order="8", amount=2) == ("8: 2", False)


def test_asking_whether_to_confirm_is_no_beginning() -> None:
    asked: list[int] = []

    def large(order: str, amount: int) -> bool:
        asked.append(amount)
        return amount > 1

    tool = FunctionTool(pay, require_confirmation=large)
    assert ran(tool, order="7", amount=1) == ("7: 1", False)
    assert ran(tool, order="7", amount=2)[1]
    assert asked == [1, 2]


def test_a_copy_of_a_watched_tool_is_watched_as_well() -> None:
    tool = FunctionTool(pay)
    ran(tool, order="7", amount=1)
    twin = copy.copy(tool)
    assert ran(twin, order="7", amount=1) == ("7: 1", False)
    assert ran(twin, order="7")[1]


def test_calls_at_one_time_are_told_apart() -> None:
    tool: Any = FunctionTool(pay_later)

    async def one(**args: Any) -> bool:
        with watched(tool) as beginning:
            await tool.run_async(args=args, tool_context=Context())
        return beginning.never

    async def go() -> tuple[bool, bool]:
        return await asyncio.gather(one(order="7", amount=1), one(order="8"))

    assert tuple(asyncio.run(go())) == (False, True)


class Own(FunctionTool):
    """Calls its function by itself."""

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        return self.func(**args)


class Bare(BaseTool):
    """Has no function."""

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        return "done"


async def stream(order: str) -> AsyncGenerator[str, None]:
    """Gives several."""
    yield order


@pytest.mark.parametrize("tool", [Own(pay), Bare(name="bare", description="")])
def test_where_nobody_can_see_it_begin_it_may_have_begun(tool: Any) -> None:
    args = {"order": "7", "amount": 1} if isinstance(tool, Own) else {}
    assert ran(tool, **args)[1] is False


def test_a_generator_runs_elsewhere_and_may_have_begun() -> None:
    with watched(FunctionTool(stream)) as beginning:
        assert beginning.never is False
