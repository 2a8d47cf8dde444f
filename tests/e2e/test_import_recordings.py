"""`ledger import` from evalsets, conformance recordings, Anthropic's messages and traces."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from backstop.core.history import Row
from backstop.core.ledgerfile import read
from tests.e2e.command import Ran, backstop

TAPING = Path(__file__).with_name("taping.py")
CONFIG = """\
version: 1
agents:
  till:
    path: till
    ledger: ledger.jsonl
    tools:
      look: {effect: false}
      pay: {effect: true, identity: [order]}
"""
AGENT = '''
from google.adk.agents import LlmAgent


def look(order: str) -> dict:
    """Looks an order up."""
    return {}


def pay(order: str, amount: float) -> str:
    """Pays an order."""
    return ""


root_agent = LlmAgent(name="till", model="gemini-2.5-flash", tools=[look, pay])
'''
RELABELS = """

def relabel(tool, args, tool_context):
    if tool.name == "pay":
        args["order"] = f"no. {args['order']}"


root_agent.before_tool_callback = relabel
"""
TALK = [
    {"role": "user", "content": "Pay order 7"},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "a", "name": "pay", "input": {"order": "7"}}],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "paid"}]},
]
EXPECTED = [
    {
        "query": "Pay order 7",
        "expected_tool_use": [{"tool_name": "pay", "tool_input": {"order": "7", "amount": 1}}],
        "reference": "Paid.",
    }
]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A project with one agent that looks orders up and pays them."""
    path = tmp_path / "backstop.yaml"
    path.write_text(CONFIG, encoding="utf-8")
    (tmp_path / "till").mkdir()
    (tmp_path / "till" / "__init__.py").touch()
    (tmp_path / "till" / "agent.py").write_text(AGENT, encoding="utf-8")
    return path


def imported(config: Path, kind: str, place: Path, *more: str) -> Ran:
    """What came of the import, which is the ledger ``KIND.jsonl`` beside the configuration."""
    out = config.with_name(f"{kind}.jsonl")
    command = ("ledger", "import", "--config", config, "--from", kind, "--out", out)
    return backstop(*command, place, *more)


def gated(config: Path, kind: str, *, change: str = "") -> Ran:
    """The verdict on a change to the agent, with what was imported as its ledger."""
    shutil.copy(config.with_name(f"{kind}.jsonl"), config.with_name("ledger.jsonl"))
    head = config.with_name("head")
    shutil.copytree(config.parent, head, ignore=shutil.ignore_patterns("head"), dirs_exist_ok=True)
    with (head / "till" / "agent.py").open("a", encoding="utf-8") as code:
        code.write(change)
    command = ("gate", "--config", head / "backstop.yaml", "--base", config.parent)
    return backstop(*command, "--sandbox", "process", "--format", "json")


def why_not(ran: Ran) -> str:
    """The one line of a command that was refused."""
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    return ran.err


def rows(config: Path, kind: str) -> list[Row]:
    """The effects of the ledger that was imported."""
    path = config.with_name(f"{kind}.jsonl")
    return list(read(path.read_bytes(), name=str(path)).history.rows)


def test_adks_own_recording_and_its_traces_tell_the_same_effects(
    tmp_path: Path, config: Path
) -> None:
    taped = tmp_path / "taped" / "case"
    taped.mkdir(parents=True)
    subprocess.run([sys.executable, TAPING, taped], check=True, timeout=120, capture_output=True)
    told = {}
    for kind in ("conformance", "otlp"):
        ran = imported(config, kind, taped)
        assert ran.code == 0, ran.err
        assert "incomplete" not in ran.out
        assert "runs: 1, events: 12, side effects: 1" in ran.out
        told[kind] = [(one.run, one.key, one.fingerprint, one.step) for one in rows(config, kind)]
        assert bytes(rows(config, kind)[0].result) == b'{"result":"paid 1.5 for 7"}'
    assert told["conformance"] == told["otlp"]
    passed = gated(config, "otlp")
    assert (passed.code, json.loads(passed.out)["decision"]) == (0, "PASS"), passed.err


def test_an_evalset_says_that_its_expectations_are_no_history(tmp_path: Path, config: Path) -> None:
    folder = tmp_path / "eval" / "data"
    folder.mkdir(parents=True)
    for name in ("a.test.json", "b.test.json"):
        (folder / name).write_text(json.dumps(EXPECTED), encoding="utf-8")
    (folder / "test_config.json").write_text("{}", encoding="utf-8")
    ran = imported(config, "evalset", tmp_path / "eval")
    assert ran.code == 0, ran.err
    assert (
        "runs: 2, events: 10, side effects: 0, incomplete: run data/a.test.json/a: 1 of" in ran.out
    )
    assert {one.outcome.value for one in rows(config, "evalset")} == {"open"}


@pytest.mark.parametrize(
    ("change", "decision", "found"), [("", "INCONCLUSIVE", 0), (RELABELS, "BLOCK", 1)]
)
def test_a_gate_on_an_evalset_blocks_what_differs_and_passes_nothing(
    tmp_path: Path, config: Path, change: str, decision: str, found: int
) -> None:
    place = tmp_path / "pay.test.json"
    place.write_text(json.dumps(EXPECTED), encoding="utf-8")
    assert imported(config, "evalset", place).code == 0
    ran = gated(config, "evalset", change=change)
    verdict = json.loads(ran.out)
    assert verdict["decision"] == decision
    assert ran.code == {"INCONCLUSIVE": 3, "BLOCK": 1}[decision]
    assert "the ledger is incomplete: run pay: 1 of its tool uses are what" in ran.out
    assert sum(len(agent["divergences"]) for agent in verdict["agents"]) == found


LOOKS = [
    {
        "query": "Pay order 7",
        "expected_tool_use": [
            {"tool_name": "look", "tool_input": {"order": "7"}},
            {"tool_name": "pay", "tool_input": {"order": "7", "amount": 1}},
        ],
        "reference": "Paid.",
    }
]


def test_what_an_evalset_expects_after_a_read_is_asked_for_too(
    tmp_path: Path, config: Path
) -> None:
    """The read has no answer, and that ends nothing: the change behind it is found."""
    place = tmp_path / "desk.test.json"
    place.write_text(json.dumps(LOOKS))
    assert imported(config, "evalset", place).code == 0
    [verdict] = json.loads(gated(config, "evalset").out)["agents"]
    assert verdict["counts"]["match"] == 1
    [verdict] = json.loads(gated(config, "evalset", change=RELABELS).out)["agents"]
    assert (verdict["decision"], verdict["counts"]["match"]) == ("BLOCK", 0)


def test_anthropics_messages_are_imported_as_they_were_sent(tmp_path: Path, config: Path) -> None:
    place = tmp_path / "talks.json"
    place.write_text(json.dumps([{"id": "x", "messages": TALK}, {"id": "y", "messages": TALK}]))
    ran = imported(config, "anthropic", place, "--where", "id=y", "--run-field", "id")
    assert ran.code == 0, ran.err
    assert [(one.run, one.outcome.value) for one in rows(config, "anthropic")] == [
        ("y", "committed")
    ]


@pytest.mark.parametrize("kind", ["evalset", "conformance", "anthropic", "otlp"])
@pytest.mark.parametrize(
    "data", [b"", b"\x00\x1b[31m\xff", b"{}", b'{"a": 1, "a": 2}', b"[" * 9999]
)
def test_a_file_that_is_none_of_the_kind_is_refused_in_one_line(
    tmp_path: Path, config: Path, kind: str, data: bytes
) -> None:
    place = tmp_path / "garbled"
    place.write_bytes(data)
    ran = imported(config, kind, place)
    assert why_not(ran).startswith("error[import-")
    assert "garbled" in ran.err
    assert not config.with_name(f"{kind}.jsonl").exists()


@pytest.mark.parametrize("kind", ["evalset", "conformance", "otlp"])
def test_what_would_be_ignored_is_refused(tmp_path: Path, config: Path, kind: str) -> None:
    assert "takes no --where" in why_not(imported(config, kind, tmp_path, "--where", "a=b"))
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "import-no-match" in why_not(imported(config, kind, empty))
    assert "file-missing" in why_not(imported(config, kind, tmp_path / "absent"))
