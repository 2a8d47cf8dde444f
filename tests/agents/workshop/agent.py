"""A workflow: tools called from code, `@effect` functions on every kind of thread, an approval."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.plugins import BasePlugin
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.adk.workflow import START, Workflow, node

from backstop.guard.effect import effect

SIDE_EFFECTS = []


class OutOfStock(Exception):
    """A user's own exception."""


class Guard(BasePlugin):
    """Stands for the run-time guard: it would arm tools, and must not in a replay."""

    __backstop_guard__ = True

    async def before_tool_callback(self, **_):
        raise AssertionError("the guard acts in a replay")


def order(sku: str, amount: Decimal = Decimal("1.10")) -> dict:
    """Orders."""
    SIDE_EFFECTS.append(sku)
    return {}


def approve(what: str) -> dict:
    """Asks a person."""
    SIDE_EFFECTS.append(what)
    return {}


@effect
def mail(to: str, copies: int = 1) -> dict:
    """Mails."""
    SIDE_EFFECTS.append(to)
    return {"really": "sent"}


@effect
async def post(to: str) -> dict:
    """Posts."""
    SIDE_EFFECTS.append(to)
    return {"really": "posted"}


@node(rerun_on_resume=True)
async def work(ctx, node_input):
    answers = [mail("on the loop")]
    answers += await asyncio.gather(*(asyncio.to_thread(mail, f"thread {n}") for n in range(4)))
    answers += await asyncio.gather(*(post(f"task {n}") for n in range(2)))
    with ThreadPoolExecutor(1) as pool:
        # The loop's thread waits for a thread that waits for the wire.
        answers.append(pool.submit(mail, "blocked loop").result())
    try:
        await ctx.run_node(FunctionTool(order), node_input={"sku": "none left"})
    except Exception as error:
        cause = getattr(error, "error", error)
        ctx.state["caught"] = type(cause).__name__
    ctx.state["answers"] = answers
    ctx.state["bodies"] = len(SIDE_EFFECTS)
    return "Get it approved."


asker = LlmAgent(
    name="asker",
    model="gemini-2.5-flash",
    tools=[LongRunningFunctionTool(approve)],
    include_contents="none",
)

app = App(
    name="workshop",
    root_agent=Workflow(name="workshop", edges=[(START, work, asker)]),
    plugins=[Guard("guard")],
)
