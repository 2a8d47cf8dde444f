"""Tools as strangers hand them over: sets, conditions and lists of other modules."""

from __future__ import annotations

from pathlib import Path

from backstop.adapters.discovery.offered import Read, read_tools
from backstop.adapters.discovery.sources import read
from tests.e2e.adopted import lay


def told(folder: Path, files: dict[str, str]) -> Read:
    lay(folder, files)
    return read_tools(folder, read(folder))


def names(found: Read) -> list[str]:
    return [one.name for one in found.tools]


def test_a_set_of_tools_that_a_function_makes_is_no_tool(tmp_path: Path) -> None:
    source = """\
from google.adk.agents import Agent
from google.adk.tools.bigquery import BigQueryToolset
from .tools import make_toolset

def look(order_id: str): return order_id

def make():
    bq_toolset = BigQueryToolset()
    mail: object = make_toolset()
    own = look
    return Agent(name="a", tools=[bq_toolset, mail, own, handed])
"""
    found = told(tmp_path, {"agent.py": source})
    assert names(found) == ["look"]
    assert found.unlisted == (
        "BigQueryToolset at agent.py:8",
        "make_toolset at agent.py:9",
        "handed at agent.py:11",
    )


def test_tools_of_the_framework_are_known_by_their_class(tmp_path: Path) -> None:
    source = """\
from google.adk.agents import Agent
from google.adk import tools as adk
from google.adk.tools.load_memory_tool import LoadMemoryTool
from elsewhere import UrlContextTool

one = Agent(name="a", tools=[LoadMemoryTool(), adk.PreloadMemoryTool()])
two = Agent(name="b", tools=[LoadMemoryTool(), UrlContextTool()])
"""
    found = told(tmp_path, {"agent.py": source})
    assert [(one.name, one.origin.startswith("google.adk")) for one in found.tools] == [
        ("load_memory", True),
        ("preload_memory", True),
    ]
    assert found.unlisted == ("UrlContextTool at agent.py:7",)


def test_both_ends_of_a_condition_and_what_a_cast_holds_are_tools(tmp_path: Path) -> None:
    source = """\
from typing import cast
def one(): ...
def two(): ...
def three(): ...
def four(): ...
a = Agent(tools=[one if FAST else two], name="a")
b = Agent(tools=[cast(Any, three)] if FAST else cast(list, [four]), name="b")
"""
    found = told(tmp_path, {"agent.py": source})
    assert (names(found), found.unlisted) == (["one", "two", "three", "four"], ())


def test_what_a_request_to_a_model_calls_tools_is_no_agents(tmp_path: Path) -> None:
    source = """\
from google.genai import types
config = types.GenerateContentConfig(tools=[types.Tool(google_search=types.GoogleSearch())])
a = Agent(name="a", tools=[types.Tool(google_search=types.GoogleSearch())])
"""
    assert told(tmp_path, {"agent.py": source}).unlisted == ("Tool at agent.py:3",)


def test_an_agent_or_a_workflow_among_tools_is_no_tool(tmp_path: Path) -> None:
    source = """\
def look(): ...
steps = Workflow(name="steps", edges=[])
a = Agent(name="a", tools=[steps, LlmAgent(name="inner", tools=[look])])
"""
    found = told(tmp_path, {"agent.py": source})
    assert (names(found), found.unlisted) == (["look"], ())


def test_of_many_modules_of_one_name_the_nearest_is_meant(tmp_path: Path) -> None:
    agent = 'from . import tools\na = Agent(name="a", tools=tools.tools)\n'
    imported = 'from .tools import send\nb = Agent(name="b", tools=[send])\n'
    found = told(
        tmp_path,
        {
            "desk/agent.py": agent,
            "desk/tools.py": "def refund(): ...\ntools = [refund]\n",
            "shop/agent.py": agent,
            "shop/tools.py": "def order(): ...\ntools = [order]\n",
            "till/agent.py": imported,
            "till/tools.py": "def send(to: str): ...\n",
            "far/tools.py": "def send(all: str): ...\n",
        },
    )
    assert sorted(names(found)) == ["order", "refund", "send"]
    sent = next(one for one in found.tools if one.name == "send")
    assert sent.function is not None
    assert sent.function.module.path == "till/tools.py"


def test_a_member_of_a_module_that_is_not_there_is_taken_by_its_name(tmp_path: Path) -> None:
    source = 'import mailing\na = Agent(name="a", tools=[mailing.send])\nb = Agent(tools=x.y)\n'
    found = told(tmp_path, {"agent.py": source})
    assert (names(found), found.unlisted) == (["send"], ("x.y at agent.py:3",))
