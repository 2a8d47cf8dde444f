"""``backstop doctor``: an agent behind the walls, what passes interception, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.command import Ran, backstop, in_a_process, refused

SEARCHING = """
from google.adk.agents import LlmAgent
from google.adk.tools import google_search
root_agent = LlmAgent(name="searcher", model="gemini-2.5-flash", tools=[google_search])
"""
HIDING = """
from google.adk.agents import LlmAgent
from google.adk.tools import AgentTool

def pay(amount: int) -> str:
    "Pays."
    return "paid"

inner = LlmAgent(name="inner", model="gemini-2.5-flash", tools=[pay])
tools = [AgentTool(inner, include_plugins=False)]
root_agent = LlmAgent(name="outer", model="gemini-2.5-flash", tools=tools)
"""
LIVE = """
from google.adk.agents import LlmAgent
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.runners import InMemoryRunner

root_agent = LlmAgent(name="voice", model="gemini-2.5-flash")

async def serve():
    runner = InMemoryRunner(agent=root_agent)
    async for event in runner.run_live(live_request_queue=LiveRequestQueue()):
        print(event)
"""
LACKING = """
import os
from google.adk.agents import LlmAgent
root_agent = LlmAgent(name="desk", model=os.environ["DESK_MODEL"])
"""
TRYING = """
import socket
from google.adk.agents import LlmAgent
try:
    socket.create_connection(("127.0.0.1", 9))
except OSError:
    pass
root_agent = LlmAgent(name="desk", model="gemini-2.5-flash")
"""


def agent(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "agent.py").write_text(text, encoding="utf-8")
    return folder


def doctor(folder: Path, *more: str) -> Ran:
    ran = backstop("doctor", folder, *more)
    assert ran.err == ""
    # A file's name is told whole, however long it is.
    lines = [line for line in ran.out.splitlines() if not line.startswith("configuration: /")]
    assert all(len(line) <= 80 for line in lines)
    return ran


def words(ran: Ran) -> str:
    return " ".join(ran.out.split())


def test_a15_live_mode_is_named_as_not_intercepted(tmp_path: Path) -> None:
    """A15: no plugin is called there, so coverage is incomplete."""
    ran = doctor(agent(tmp_path / "voice", LIVE))
    assert ran.code == 1
    assert "live-mode" in ran.out
    assert "agent.py:10" in ran.out


def test_a16_a_tool_of_the_models_service_is_listed_as_not_observable(tmp_path: Path) -> None:
    """A16: told, and no fault of the agent's."""
    ran = doctor(agent(tmp_path / "searcher", SEARCHING))
    assert ran.code == 0
    assert "noted: searcher is not observable" in words(ran)


def test_a17_an_agent_without_its_callers_plugins_is_named_with_the_remedy(tmp_path: Path) -> None:
    """A17: what it calls is hidden from any plugin."""
    ran = doctor(agent(tmp_path / "outer", HIDING))
    assert ran.code == 1
    assert "include-plugins outer" in words(ran)
    assert "> AgentTool(agent, include_plugins=True)" in words(ran)


def test_what_an_import_tries_is_refused_and_named_with_its_line(tmp_path: Path) -> None:
    ran = doctor(agent(tmp_path / "desk", TRYING))
    assert ran.code == 1
    assert "import-time" in ran.out
    assert "agent.py:5" in ran.out


def test_an_agent_that_does_not_load_says_in_one_line_what_it_lacks(tmp_path: Path) -> None:
    desk = agent(tmp_path / "desk", LACKING)
    ran = doctor(desk)
    assert ran.code == 2
    assert "the environment variable DESK_MODEL is not set" in words(ran)
    assert "agent.py:4" in ran.out
    assert doctor(desk, "--env", "DESK_MODEL=gemini-2.5-flash").code == 0


def test_a_named_folder_goes_by_the_configuration_above_it_which_is_named(tmp_path: Path) -> None:
    """The gate finds what the import needs there, so doctor does; the one that is named counts."""
    desk = agent(tmp_path / "agents/desk", LACKING)
    assert "configuration" not in doctor(desk).out
    said = "version: 1\nagents: {desk: {path: agents/desk}}\nsandbox: {env: {DESK_MODEL: %s}}\n"
    (tmp_path / "backstop.yaml").write_text(said % "gemini-2.5-flash")
    ran = doctor(desk)
    assert (ran.code, words(ran).split(" desk: ")[0]) == (
        0,
        " ".join(f"configuration: {tmp_path}/backstop.yaml".split()),
    )
    told = json.loads(backstop("doctor", desk, "--format", "json").out)
    assert told["config"] == f"{tmp_path}/backstop.yaml"
    other = tmp_path / "other.yaml"
    other.write_text("version: 1\nagents: {desk: {path: agents/desk}}\n")
    assert doctor(desk, "--config", str(other)).code == 2


def test_a_configuration_above_a_named_folder_that_cannot_be_read_is_an_error(
    tmp_path: Path,
) -> None:
    """What it would have said nobody knows."""
    desk = agent(tmp_path / "desk", SEARCHING)
    (tmp_path / "backstop.yaml").write_text("agents: [\n")
    assert "backstop.yaml" in refused("config-syntax", "doctor", desk)


def test_several_agents_are_told_in_turn_and_the_worst_counts(tmp_path: Path) -> None:
    agent(tmp_path / "apps/lacking", LACKING)
    agent(tmp_path / "apps/outer", HIDING)
    ran = backstop("doctor", tmp_path, "--format", "json")
    told = json.loads(ran.out)
    assert ran.code == told["exit_code"] == 2
    assert [(one["agent"], one["loaded"]) for one in told["agents"]] == [
        ("lacking", False),
        ("outer", True),
    ]
    [found] = told["agents"][1]["findings"]
    assert (found["way"], found["counts"], found["where"]) == ("include-plugins", True, "outer")
    assert backstop("doctor", tmp_path, "--agent", "outer").code == 1


def test_the_configurations_agents_are_taken_where_no_folder_is_named() -> None:
    ran = backstop("doctor", "--agent", "vendor-onboarding")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("vendor-onboarding: nothing passes interception")


def test_an_agents_code_is_never_run_in_our_process(tmp_path: Path) -> None:
    ran = doctor(agent(tmp_path / "desk", "import os\nos._exit(7)\n"))
    assert ran.code == 2
    assert "left with status 7" in words(ran)


def test_what_an_agent_is_called_cannot_draw_on_the_terminal(tmp_path: Path) -> None:
    text = HIDING.replace('name="outer"', 'name="outer", description="x"')
    text += "\ntools[0].name = 'a\\x1b[31m\\nb'\n"
    ran = doctor(agent(tmp_path / "outer", text))
    assert "\x1b" not in ran.out


@pytest.mark.parametrize("more", [("--agent", "x"), ("--python", "x"), ("--env", "A=b")])
def test_a_question_to_a_server_takes_no_options_for_loading(more: tuple[str, str]) -> None:
    assert "--live does not go with" in refused(
        "usage", "doctor", "--live", "http://127.0.0.1:1", *more
    )


def test_a_folder_without_an_agent_is_an_error(tmp_path: Path) -> None:
    assert "there is no agent in it" in refused("agent-missing", "doctor", tmp_path)


def test_the_help_is_not_cut_off() -> None:
    assert "..." not in in_a_process("doctor", "--help", COLUMNS="80").out
