"""For each way past interception an agent that has it, and one that does the like and has not."""

from __future__ import annotations

from typing import Final, NamedTuple

from backstop.adk.escapes import Way


class Pair(NamedTuple):
    """Two agents' code; `seen` is in the line that is named, empty where it lies in no line."""

    specimen: str
    control: str
    seen: str = ""


HEAD: Final = '''
from google.adk.agents import BaseAgent, LlmAgent, SequentialAgent
from google.adk.apps import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools import AgentTool, FunctionTool
from backstop.guard.effect import effect

import asyncio
import smtplib
import subprocess
import threading
import urllib.request

MODEL = "gemini-2.5-flash"


def send(order: str) -> str:
    """Sends it."""
    with smtplib.SMTP("mail.example") as server:
        server.send_message(order)
    return "sent"


@effect
def post(order: str) -> str:
    """Posts it."""
    return send(order)


async def look(order: str) -> str:
    """Looks it up."""
    return order


def agent(name="clerk", **made):
    return LlmAgent(name=name, model=made.pop("model", MODEL), description=name, **made)

'''

PAIRS: Final = {
    Way.FUNCTION_NODE: Pair(
        """
from google.adk.workflow import START, Workflow, node

@node
def ship(node_input):
    subprocess.run(["ship", node_input])
    return "shipped"

root_agent = Workflow(name="flow", edges=[(START, ship)])
""",
        """
from google.adk.workflow import START, Workflow, node

@node
async def ship(ctx, node_input):
    await ctx.run_node(FunctionTool(send), node_input={"order": node_input})
    return post(node_input)

root_agent = Workflow(name="flow", edges=[(START, ship)])
""",
        seen="subprocess.run",
    ),
    Way.CUSTOM_AGENT: Pair(
        """
class Own(BaseAgent):
    async def _run_async_impl(self, ctx):
        self.tell("it")
        yield

    def tell(self, what):
        urllib.request.urlopen("https://hook.example", data=what)

root_agent = Own(name="own")
""",
        """
class Own(BaseAgent):
    async def _run_async_impl(self, ctx):
        post("it")
        for child in self.sub_agents:
            async for event in child.run_async(ctx):
                yield event

root_agent = Own(name="own", sub_agents=[agent(tools=[send])])
""",
        seen="urllib.request.urlopen",
    ),
    Way.INCLUDE_PLUGINS: Pair(
        "root_agent = agent(tools=[AgentTool(agent('till', tools=[send]), include_plugins=False)])",
        "root_agent = agent(tools=[AgentTool(agent('till', tools=[send]), include_plugins=True)])",
    ),
    Way.OWN_RUNNER: Pair(
        """
from google.adk.runners import InMemoryRunner

def ask(order: str) -> str:
    runner = InMemoryRunner(agent=agent("inner"), app_name="inner")
    return str(runner)

root_agent = agent(tools=[ask])
""",
        """
from google.adk.runners import InMemoryRunner

async def main():
    runner = InMemoryRunner(agent=root_agent, app_name="desk")
    asyncio.create_task(runner.run_debug("hello"))

root_agent = agent(tools=[AgentTool(agent("inner"))])

if __name__ == "__main__":
    asyncio.run(main())
""",
        seen="InMemoryRunner",
    ),
    Way.CODE_EXECUTOR: Pair(
        """
from google.adk.code_executors import UnsafeLocalCodeExecutor
root_agent = agent(code_executor=UnsafeLocalCodeExecutor())
""",
        "root_agent = agent(tools=[send])",
    ),
    Way.CALLBACK: Pair(
        """
class Audit:
    def __init__(self):
        self.told = 0

    async def note(self, tool, args, tool_context):
        await asyncio.to_thread(send, "noted")

root_agent = agent(tools=[look], before_tool_callback=Audit().note)
""",
        """
def note(tool, args, tool_context):
    tool_context.state["seen"] = sorted(args)
    with open(__file__) as own:
        own.read()
    post("noted")

root_agent = agent(tools=[look, send], before_tool_callback=note)
""",
        seen="smtplib.SMTP",
    ),
    Way.INSTRUCTION_PROVIDER: Pair(
        """
def say(context):
    return urllib.request.urlopen("https://prompts.example").read().decode()

root_agent = agent(instruction=say)
""",
        """
def say(context):
    return f"Serve {context.state.get('customer')}."

root_agent = agent(instruction=say)
""",
        seen="urllib.request.urlopen",
    ),
    Way.TOOLSET: Pair(
        """
from google.adk.tools.base_toolset import BaseToolset

class Elsewhere(BaseToolset):
    async def get_tools(self, readonly_context=None):
        raise ConnectionError("the server is elsewhere")

    async def close(self):
        pass

root_agent = agent(tools=[Elsewhere()])
""",
        "root_agent = agent(tools=[FunctionTool(send)])",
    ),
    Way.SERVER_SIDE_TOOL: Pair(
        "from google.adk.tools import google_search\nroot_agent = agent(tools=[google_search])",
        """
def google_search(query: str) -> str:
    "Bears its name only."
    return query

root_agent = agent(tools=[google_search])
""",
    ),
    Way.REMOTE_MCP: Pair(
        """
from google.adk.agents import ManagedAgent
from google.adk.tools import RemoteMcpServer
server = RemoteMcpServer(url="https://tools.example/mcp", name="orders")
root_agent = ManagedAgent(name="far", agent_id="agents/far", tools=[server])
""",
        "root_agent = agent(tools=[look])",
    ),
    Way.OWN_LOOP: Pair(
        """
from google.adk.agents import ManagedAgent
root_agent = ManagedAgent(name="far", agent_id="agents/far")
""",
        "root_agent = SequentialAgent(name='near', sub_agents=[agent(tools=[look])])",
    ),
    Way.TOOL_TO_TOOL: Pair(
        """
def settle(order: str) -> str:
    "Settles it."
    return send(order)

root_agent = agent(tools=[settle, send])
""",
        """
def settle(order: str) -> str:
    "Settles it."
    return post(order)

root_agent = agent(tools=[settle, post])
""",
        seen="send(order)",
    ),
    Way.BACKGROUND_TASK: Pair(
        """
async def order(sku: str) -> str:
    "Orders it."
    threading.Thread(target=send, args=(sku,)).start()
    return "soon"

root_agent = agent(tools=[order])
""",
        """
async def order(sku: str) -> str:
    "Orders it."
    task = asyncio.create_task(look(sku))
    others = [asyncio.create_task(look(one)) for one in sku]
    async with asyncio.TaskGroup() as group:
        group.create_task(look(sku))
    thread = threading.Thread(target=send, args=(sku,))
    thread.start()
    thread.join()
    await asyncio.gather(*others)
    return await task

root_agent = agent(tools=[order])
""",
        seen="threading.Thread",
    ),
    Way.SERVICE: Pair(
        """
async def keep(callback_context):
    await callback_context.add_session_to_memory()

root_agent = agent(after_agent_callback=keep)
""",
        """
async def keep(tool_context) -> str:
    "Keeps it."
    return await tool_context.save_artifact("kept", None)

root_agent = agent(tools=[keep])
""",
        seen="add_session_to_memory",
    ),
    Way.IMPORT_TIME: Pair(
        """
def warm_up():
    try:
        subprocess.run(["no-such-program"], check=False)
    except OSError:
        pass

warm_up()
root_agent = agent()
""",
        """
def warm_up():
    subprocess.run(["no-such-program"], check=False)

if __name__ == "__main__":
    warm_up()

later = lambda: warm_up()
root_agent = agent(tools=[send])
""",
        seen="subprocess.run",
    ),
    Way.DIRECT_MODEL: Pair(
        """
from google import genai

def judge(callback_context, llm_response):
    client = genai.Client(api_key="none")
    return client.models.generate_content(model=MODEL, contents="fine?")

root_agent = agent(after_model_callback=judge)
""",
        """
from google.genai import types

def judge(callback_context, llm_response):
    callback_context.state["said"] = str(types.Content(role="model", parts=[]))

root_agent = agent(tools=[AgentTool(agent("judge"))], after_model_callback=judge)
""",
        seen="genai",
    ),
    Way.LIVE_MODE: Pair(
        """
from google.adk.runners import Runner
from google.adk.agents.live_request_queue import LiveRequestQueue

async def serve(runner: Runner):
    async for event in runner.run_live(live_request_queue=LiveRequestQueue()):
        print(event)

root_agent = agent(tools=[send])
""",
        "root_agent = agent('delivery', model='gemini-2.5-flash')",
        seen="run_live",
    ),
    Way.NETWORKED_PLUGIN: Pair(
        """
class Metrics(BasePlugin):
    async def after_run_callback(self, *, invocation_context):
        urllib.request.urlopen("https://metrics.example")

app = App(name=NAME, root_agent=agent(), plugins=[Metrics("metrics")])
""",
        """
class Metrics(BasePlugin):
    async def after_run_callback(self, *, invocation_context):
        print(invocation_context.invocation_id)

app = App(name=NAME, root_agent=agent(), plugins=[Metrics("metrics")])
""",
        seen="urllib.request.urlopen",
    ),
}
"""Every way has its pair: a test walks them."""


def code(text: str, *, name: str) -> str:
    """The agent module called `name`."""
    return f"{HEAD}NAME = {name!r}\n{text}"
