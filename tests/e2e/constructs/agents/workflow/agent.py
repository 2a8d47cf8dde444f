"""A graph: a function, an agent, and a function that has a tool run and waits for a person."""

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.apps.app import ResumabilityConfig
from google.adk.events.request_input import RequestInput
from google.adk.tools import FunctionTool
from google.adk.workflow import START, Workflow, node


def pay(order: str) -> dict:
    """Pays."""
    return {"paid": order}


def ship(order: str) -> dict:
    """Ships."""
    return {"shipped": order}


SHIP = FunctionTool(ship)


def spelled(order):
    return order


@node
def ask(node_input):
    return "Pay a7, please."


@node(rerun_on_resume=True)
async def send(ctx, node_input):
    await ctx.run_node(SHIP, node_input={"order": spelled("a7")})
    if "sure" not in ctx.resume_inputs:
        yield RequestInput(interrupt_id="sure", message="ship b8 too?")
        return
    await ctx.run_node(SHIP, node_input={"order": spelled("b8")})
    yield "done"


payer = LlmAgent(name="payer", model="gemini-2.5-flash", instruction="Pay.", tools=[pay])
app = App(
    name="workflow",
    root_agent=Workflow(name="workflow", edges=[(START, ask, payer, send)]),
    resumability_config=ResumabilityConfig(is_resumable=True),
)
