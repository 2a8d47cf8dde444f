"""From the session store of an unguarded agent to a gate, on its first day.

The till runs on the real framework with the session service that keeps a SQLite file; nothing
of Backstop is in it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import ROOT, Ran, backstop

TILL = ROOT / "tests/agents/till"
RELABELLED = """

def _lower(tool, args, tool_context):
    args["order"] = args["order"].lower()


root_agent.before_tool_callback = _lower
"""
ASKING = """

from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool


def ticket(order: str) -> None:
    _out(f"ticket {order}")


class Asking(Obedient):
    async def generate_content_async(self, llm_request, stream=False):
        text = llm_request.contents[-1].parts[-1].text or ""
        if not text.startswith("ticket"):
            async for answer in super().generate_content_async(llm_request, stream):
                yield answer
            return
        call = types.FunctionCall(name="ticket", args={"order": text.split()[1]})
        parts = [types.Part(function_call=call)]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


root_agent = LlmAgent(
    name="till",
    model=Asking(model="asking"),
    tools=[FunctionTool(pay, require_confirmation=True), look, LongRunningFunctionTool(ticket)],
)
"""
CONFIG = """\
version: 1
agents:
  till:
    path: till
    ledger: till.jsonl
    tools:
      pay: {identity: [order]}
      look: {effect: false}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """A repository of an agent, and what importing its sessions came to."""

    folder: Path
    imported: Ran

    def gate(self, *options: str | Path) -> dict[str, Any]:
        """The verdict on the one agent, with the exit code."""
        ran = backstop(
            *("gate", "--config", self.folder / "backstop.yaml", "--format", "json", *options)
        )
        told: dict[str, Any] = json.loads(ran.out)
        assert told["exit_code"] == ran.code
        return {**told["agents"][0], "code": ran.code}


def work(deed: str, store: Path) -> None:
    """Let the till work on a session store, in a process of its own."""
    subprocess.run(
        [sys.executable, "-m", "tests.e2e.tilling", deed, store, store.parent / "till"],
        check=True,
        cwd=ROOT,
        env={**os.environ, "TILL_OUT": str(store.parent / "out")},
        timeout=120,
    )


def imported(folder: Path) -> Ran:
    """Import a repository's sessions to where its configuration expects the ledger."""
    return backstop(
        *("ledger", "import", "--config", folder / "backstop.yaml", "--from", "adk-session"),
        *("--out", folder / "till.jsonl", folder / "sessions.db"),
    )


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Day:
    folder = tmp_path_factory.mktemp("day")
    shutil.copytree(TILL, folder / "till", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(folder / "till", folder / "lower/till")
    with (folder / "lower/till/agent.py").open("a") as file:
        file.write(RELABELLED)
    (folder / "backstop.yaml").write_text(CONFIG)
    work("serve", folder / "sessions.db")
    return Day(folder=folder, imported=imported(folder))


def test_the_store_of_a_running_agent_becomes_a_ledger(day: Day) -> None:
    assert (day.imported.code, day.imported.err) == (0, "")
    assert "runs: 2" in day.imported.out
    assert "side effects: 2" in day.imported.out
    assert "incomplete" not in day.imported.out


def test_against_its_own_version_all_that_went_out_is_asked_for_again(day: Day) -> None:
    found = day.gate("--base", day.folder / "till")
    assert found["counts"]["match"] == 2
    assert found["coverage"]["runs_compared"] == 2
    assert (found["code"], found["decision"], found["why"]) == (0, "PASS", [])


def test_a5_without_a_base_nobody_knows_what_its_models_were_asked(day: Day) -> None:
    """A5: a session store keeps no requests, so this is no pass."""
    found = day.gate()
    assert (found["code"], found["decision"]) == (3, "INCONCLUSIVE")
    assert "--base" in found["why"][0]


def test_a_version_that_spells_orders_otherwise_would_pay_twice(day: Day) -> None:
    found = day.gate("--base", day.folder / "till", "--candidate", day.folder / "lower/till")
    assert found["counts"]["duplicate"] == 2
    assert (found["code"], found["decision"]) == (1, "BLOCK")


def test_what_the_sessions_cannot_tell_keeps_a_verdict_from_a_pass(
    day: Day, tmp_path: Path
) -> None:
    """A24: the same sessions, one of them rewound at its end."""
    folder = tmp_path / "day"
    shutil.copytree(day.folder, folder)
    work("rewind", folder / "sessions.db")
    rewound = Day(folder=folder, imported=imported(folder))
    assert "run two: it was rewound" in rewound.imported.out
    found = rewound.gate("--base", folder / "till")
    assert found["counts"]["match"] == 2
    assert (found["code"], found["decision"]) == (3, "INCONCLUSIVE")
    assert "it was rewound" in found["why"][0]


def test_what_waited_for_a_person_is_asked_for_again_as_it_was(tmp_path: Path) -> None:
    """A14: confirmed, declined and answered later, each in a session of its own."""
    shutil.copytree(TILL, tmp_path / "till", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "till/agent.py").open("a") as file:
        file.write(ASKING)
    (tmp_path / "backstop.yaml").write_text(CONFIG + "      ticket: {identity: [order]}\n")
    work("ask", tmp_path / "sessions.db")
    went_out = set((tmp_path / "out").read_text().splitlines()) - {"model"}
    assert went_out == {"pay A7 10", "ticket A9"}
    waited = Day(folder=tmp_path, imported=imported(tmp_path))
    assert "runs: 3" in waited.imported.out
    assert "side effects: 2" in waited.imported.out
    assert "incomplete" not in waited.imported.out
    found = waited.gate("--base", tmp_path / "till")
    assert found["counts"]["match"] == 2
    assert found["coverage"]["runs_compared"] == 3
    assert (found["code"], found["decision"], found["why"]) == (0, "PASS", [])


def test_a_ledger_never_takes_the_place_of_what_it_is_made_from(day: Day, tmp_path: Path) -> None:
    config, store = day.folder / "backstop.yaml", tmp_path / "sessions.db"
    shutil.copy(day.folder / "sessions.db", store)
    (tmp_path / "one.json").write_text("{}")
    for source, out in (
        (store, store),
        (f"sqlite:///{store}", store),
        (f"sqlite+aiosqlite:///{store}?timeout=1", store),
        (tmp_path, tmp_path / "one.json"),
    ):
        ran = backstop(
            *("ledger", "import", "--config", config, "--from", "adk-session"),
            *("--out", out, source),
        )
        assert (ran.code, "is a file that is read" in ran.err) == (2, True)
    assert store.read_bytes() == (day.folder / "sessions.db").read_bytes()


def test_a_refused_store_leaves_no_ledger_behind(day: Day, tmp_path: Path) -> None:
    (tmp_path / "broken.db").write_bytes((day.folder / "sessions.db").read_bytes()[:5000])
    ran = backstop(
        *("ledger", "import", "--config", day.folder / "backstop.yaml", "--from", "adk-session"),
        *("--out", tmp_path / "out.jsonl", tmp_path / "broken.db"),
    )
    assert ran.code == 2
    assert ran.err.startswith("error[import-store-damaged]: ")
    assert ran.err.count("\n") == 1
    assert not (tmp_path / "out.jsonl").exists()
