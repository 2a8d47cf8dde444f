"""An agent with agents as tools, one of them without its caller's plugins, and a runner of its own."""

from google.adk.agents import LlmAgent
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools import AgentTool
from google.genai import types

SIDE_EFFECTS = []


def pay(amount: int) -> dict:
    """Pays."""
    SIDE_EFFECTS.append(amount)
    return {"paid": amount}


def agent(name):
    return LlmAgent(name=name, description=name, model="gemini-2.5-flash", tools=[pay])


own = agent("own_runner")


async def run_own(callback_context):
    sessions = InMemorySessionService()
    runner = Runner(agent=own, app_name="own", session_service=sessions)
    await sessions.create_session(app_name="own", user_id="u", session_id="s")
    content = types.Content(role="user", parts=[types.Part(text="pay")])
    async for _ in runner.run_async(user_id="u", session_id="s", new_message=content):
        pass


def count(callback_context):
    callback_context.state["bodies"] = len(SIDE_EFFECTS)


root_agent = LlmAgent(
    name="outer",
    model="gemini-2.5-flash",
    tools=[
        AgentTool(agent("with_plugins")),
        AgentTool(agent("without_plugins"), include_plugins=False),
    ],
    before_agent_callback=run_own,
    after_agent_callback=count,
)
