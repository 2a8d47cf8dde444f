"""``backstop doctor --live DIR``: the agent's folder, loaded as a server loads it."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from tests.e2e.command import Ran, backstop, refused

UNATTACHED = "its code does not attach the guard: start it with --extra_plugins backstop.Plugin"

CONFIG = """\
version: 1
agents:
  {name}:
    path: {path}
    store: sqlite:///{store}
"""
TEXT = """\
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

class Never(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        open({out!r}, "w").close()
        yield

class Greedy(BasePlugin):
    async def on_user_message_callback(self, **_):
        return types.Content(role="user", parts=[types.Part(text="hello")])

def pay(order: str) -> str:
    "Pays."

root = LlmAgent(name="shop", model=Never(model="never"), tools=[pay])
app = App(name={name!r}, root_agent=root, plugins=[Greedy("greedy")])
{more}
"""


# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")

NAMES = count()


def doctor(folder: Path, name: str) -> Ran:
    """What doctor says of the agent in `folder`, configured by that name."""
    config = folder.parent / "backstop.yaml"
    store = folder.parent / "guard.db"
    text = CONFIG.format(name=name, path=folder, store=store)
    config.write_text(text, encoding="utf-8")
    return backstop("doctor", "--live", folder, "--config", config)


def agent(tmp_path: Path, more: str = "") -> Path:
    """An agent's folder, by a name that no other test has loaded."""
    folder = tmp_path / f"shop{next(NAMES)}"
    folder.mkdir()
    text = TEXT.format(out=str(tmp_path / "asked"), name=folder.name, more=more)
    (folder / "agent.py").write_text(text, encoding="utf-8")
    return folder


def test_a_healthy_agent_is_green_and_its_model_is_not_asked(tmp_path: Path) -> None:
    shop = agent(tmp_path)
    ran = doctor(shop, shop.name)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        f"ok   {shop.name}: the guard is loaded, backstop 0.1.0",
        f"ok   {shop.name}: it stands first among the plugins",
        f"ok   {shop.name}: it guards agent {shop.name}, and its store answers",
        f"ok   {shop.name}: tools that it stands before: pay",
        f"note {shop.name}: {UNATTACHED}",
    ]
    assert not (tmp_path / "asked").exists()
    # A folder of agents is looked at agent by agent.
    both = backstop("doctor", "--live", tmp_path, "--config", tmp_path / "backstop.yaml")
    assert both.out == ran.out


def test_an_agent_that_the_configuration_does_not_know_is_red(tmp_path: Path) -> None:
    shop = agent(tmp_path)
    two = CONFIG.format(name="desk", path=shop, store="x.db")
    two += two.split("agents:\n")[1].replace("desk", "till")
    (tmp_path / "backstop.yaml").write_text(two, encoding="utf-8")
    ran = backstop("doctor", "--live", shop, "--config", tmp_path / "backstop.yaml")
    assert ran.code == 1
    assert f"FAIL {shop.name}: it refuses every effect: " in ran.out
    assert "(config-agent)" in ran.out


def test_what_the_guard_cannot_stand_before_is_named(tmp_path: Path) -> None:
    """A16, A17 and the like: server-side tools, code in nodes, an agent's own code."""
    shop = agent(
        tmp_path,
        more="""
from google.adk.agents import BaseAgent, SequentialAgent
from google.adk.tools import google_search

class Own(BaseAgent):
    async def _run_async_impl(self, ctx):
        open("out", "w").close()
        yield

searcher = LlmAgent(name="searcher", model=Never(model="never"), tools=[google_search])
whole = SequentialAgent(name="whole", sub_agents=[root, searcher, Own(name="own")])
app = App(name=app.name, root_agent=whole)
""",
    )
    ran = doctor(shop, shop.name)
    notes = [line for line in ran.out.splitlines() if ": not covered: " in line]
    assert all(line.startswith("note ") for line in notes)
    assert [line.split(": not covered: ")[1].split(" (")[0] for line in notes] == [
        "custom-agent in own",
        "server-side-tool in searcher",
    ]


@pytest.mark.parametrize(("plugins", "noted"), [("", True), ("backstop.Plugin()", False)])
def test_a_folder_whose_code_does_not_attach_the_guard_says_so(
    tmp_path: Path, plugins: str, noted: bool
) -> None:
    """Loaded with the guard it is fine, and nobody knows whether it is started so."""
    more = f"""
import backstop
app = App(name=app.name, root_agent=root, plugins=[{plugins}])
"""
    ran = doctor(shop := agent(tmp_path, more=more), shop.name)
    assert ran.code == 0
    assert (UNATTACHED in ran.out) is noted


def test_an_agent_that_does_not_load_is_one_red_line(tmp_path: Path) -> None:
    shop = agent(tmp_path, more="raise RuntimeError('no\nway')\n")
    ran = doctor(shop, shop.name)
    assert ran.code == 1
    assert ran.out.count("\n") == 1
    assert ran.out.startswith(f"FAIL {shop.name}: the agent cannot be loaded: ")


def test_a_folder_without_agents_is_an_error(tmp_path: Path) -> None:
    assert "there is no agent in it" in refused("agent-missing", "doctor", "--live", tmp_path)
