"""What the gate says of an MCP server's tools where not everything about them is known."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from backstop.core.events import Header
from backstop.core.ledgerfile import read
from backstop.core.sealing import seal_lines
from tests.e2e.command import backstop
from tests.e2e.constructs.recorded import FRAMEWORKS, recorded
from tests.e2e.constructs.scripts import CONSTRUCTS, RELABELS

PYTHON = FRAMEWORKS["newest"] / "bin/python"
SHEET = [one for one in CONSTRUCTS if one.name == "mcp_sheet"]
MADE = ("sheets = McpToolset(", "sheets = McpToolset(\n    {},")
MORE = MADE[1].format('tool_filter=["add_row", "count_rows", "drop_sheet"], use_mcp_resources=True')


@pytest.fixture(scope="module")
def sheet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recorded agent; the newest framework speaks for both here."""
    folder = tmp_path_factory.mktemp("sheet")
    recorded(folder, PYTHON, SHEET)
    return folder


def version(sheet: Path, folder: Path, *changes: tuple[str, str], more: str = "") -> Path:
    """A checkout of the recorded agent with texts replaced, and its ledger."""
    shutil.copytree(sheet / "v1", folder / "v1")
    for name in ("backstop.yaml", "mcp_sheet.jsonl"):
        shutil.copy(sheet / name, folder)
    agent = folder / "v1/mcp_sheet/agent.py"
    text = agent.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    agent.write_text(text + more, encoding="utf-8")
    return folder


def relisted(folder: Path, change: Callable[[Header], Header]) -> Path:
    """The checkout with another first line of its ledger, sealed anew."""
    file = folder / "mcp_sheet.jsonl"
    ledger = read(file.read_bytes(), name="mcp_sheet.jsonl")
    file.write_bytes(b"".join(seal_lines(change(ledger.header), list(ledger.events))))
    return folder


def gated(head: Path, base: Path | None = None) -> dict[str, Any]:
    """What the gate says of the agent of a checkout."""
    against = () if base is None else ("--base", base)
    ran = backstop("gate", "--config", head / "backstop.yaml", *against, "--format", "json")
    assert ran.out, ran
    agent: dict[str, Any] = json.loads(ran.out)["agents"][0]
    return agent


def unlisted(header: Header) -> Header:
    """As of a guard that kept no listings, or of an import."""
    return msgspec.structs.replace(header, toolsets=msgspec.UNSET)


def reworded(header: Header) -> Header:
    """As if the server had told its tools in other words since."""
    assert isinstance(header.toolsets, dict)
    told = msgspec.json.encode(header.toolsets).replace(b"Adds a row.", b"Adds one row.")
    return msgspec.structs.replace(header, toolsets=msgspec.json.decode(told))


def test_without_a_listing_the_called_tools_are_served_and_a_change_of_a_call_is_found(
    sheet: Path, tmp_path: Path
) -> None:
    base = relisted(version(sheet, tmp_path / "base"), unlisted)
    same = gated(relisted(version(sheet, tmp_path / "same"), unlisted), base)
    assert (same["decision"], same["counts"]["match"]) == ("INCONCLUSIVE", 2)
    assert "the ledger does not hold what it listed" in " ".join(same["why"])
    other = relisted(version(sheet, tmp_path / "other", more=RELABELS), unlisted)
    found = gated(other, base)
    assert (found["decision"], found["counts"]["duplicate"]) == ("BLOCK", 2)


def test_a_server_that_changed_its_tools_meanwhile_is_drift_of_the_tools(
    sheet: Path, tmp_path: Path
) -> None:
    found = gated(relisted(version(sheet, tmp_path / "head"), reworded))
    assert found["decision"] == "INCONCLUSIVE"
    assert found["coverage"]["drift"] == "drifted"
    assert "tools" in " ".join(found["why"])


def test_what_is_not_known_of_a_toolset_is_no_pass(sheet: Path, tmp_path: Path) -> None:
    changes = ((MADE[0], MORE), ('"server.py")]', '"server.py"), "--release=2"]'))
    base, head = version(sheet, tmp_path / "base"), version(sheet, tmp_path / "head", *changes)
    found = gated(head, base)
    assert found["decision"] == "INCONCLUSIVE"
    for why in (
        "it selects drop_sheet, which was not listed when it was recorded",
        "it hands the model resources of its server, which no ledger holds",
        "it is set up otherwise than in the base; what it would list is not known",
    ):
        assert why in " ".join(found["why"]), found["why"]


def test_a_server_in_the_agents_folder_that_changed_is_code_that_no_run_reached(
    sheet: Path, tmp_path: Path
) -> None:
    """D7: its tools are as they were listed; what they do is another matter."""
    base, head = version(sheet, tmp_path / "base"), version(sheet, tmp_path / "head")
    server = head / "v1/mcp_sheet/server.py"
    text = server.read_text(encoding="utf-8")
    server.write_text(text.replace('"row": 7', '"row": 8'), encoding="utf-8")
    found = gated(head, base)
    assert found["decision"] == "INCONCLUSIVE"
    assert any("server.py" in why and "no run reached it" in why for why in found["why"])
    same = gated(version(sheet, tmp_path / "same"), base)
    assert (same["decision"], same["coverage"]["uncovered"]) == ("PASS", [])
