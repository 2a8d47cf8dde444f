"""What toolsets list in a replay, and what is said of those whose tools nobody knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from backstop.core.canon import CANON_VERSION
from backstop.core.declaration import Declaration
from backstop.core.events import FORMAT, EffectClaimed, Header, ToolRead
from backstop.core.intents import INTENTS_FORMAT, IntentsHeader
from backstop.replay.plan import Plan, Replay
from backstop.replay.toolsets import completed, listings, told_apart
from backstop.replay.wire import EscapeSeen, Ready, ToolSeen, ToolsetSeen

SCHEMA = {"type": "object", "properties": {"order": {"type": "string"}}}
ROW = {"name": "add_row", "mcp": {"name": "add_row", "inputSchema": SCHEMA}}
COUNT = {"name": "count", "declaration": {"name": "count", "parameters": {"type": "OBJECT"}}}
SHEETS = ToolsetSeen(key="desk/McpToolset/0", agent="desk", kind="McpToolset", setup="one")
LISTED = EscapeSeen(kind="toolset", where="desk", detail="McpToolset: its tools are listed live")


def ready(*toolsets: ToolsetSeen, tools: tuple[str, ...] = ()) -> Ready:
    return Ready(
        id=1,
        protocol=1,
        adk="2.13.0",
        python="3.11",
        app="desk",
        agents=[],
        tools=[ToolSeen(agent="desk", tool=tool) for tool in tools],
        toolsets=list(toolsets),
        escapes=[LISTED, EscapeSeen(kind="function-node", where="desk")],
    )


def plan(*called: str, toolsets: Any = msgspec.UNSET, base: Replay | None = None) -> Plan:
    """A plan of a ledger in which agent `desk` called these tools."""
    known = Declaration(tool="known", schema={"type": "object", "title": "known"})
    rows = [
        EffectClaimed(run="r", at="", step="s", tool=tool, key="k", fingerprint="f", agent="desk")
        for tool in called
    ]
    steering = ToolRead(run="r", at="", step="s", tool="transfer_to_agent", key="k", steering=True)
    return Plan(
        header=Header(
            format=FORMAT,
            agent="desk",
            canon=CANON_VERSION,
            tools={"known": "d"},
            declarations={"d": known},
            toolsets=toolsets,
        ),
        events=[*rows, steering],
        ledger="x",
        candidate=Path(),
        base=base,
    )


def why(seen: Ready, of: Plan) -> list[str]:
    """What is said of toolsets."""
    return [e.detail for e in told_apart(seen, of).escapes if e.kind == "toolset"]


def test_what_was_recorded_is_listed_and_known_for_the_candidates_tools() -> None:
    recorded = plan("add_row", toolsets={SHEETS.key: [ROW, COUNT]})
    told = listings(ready(SHEETS), recorded)
    assert told == {SHEETS.key: [ROW, COUNT]}
    tools = completed(ready(SHEETS), told, recorded.header).tools
    assert [(tool.tool, tool.schema) for tool in tools] == [
        ("add_row", SCHEMA),
        ("count", {"type": "OBJECT"}),
    ]
    assert why(ready(SHEETS), recorded) == []
    assert [e.kind for e in told_apart(ready(SHEETS), recorded).escapes] == ["function-node"]


def test_prefix_and_filter_are_the_candidates() -> None:
    recorded = plan(toolsets={SHEETS.key: [ROW, COUNT]})
    seen = msgspec.structs.replace(SHEETS, prefix="old", selects=("add_row",))
    told = listings(ready(seen), recorded)
    assert [tool.tool for tool in completed(ready(seen), told, recorded.header).tools] == [
        "old_add_row"
    ]


def test_of_a_toolset_that_nobody_recorded_the_called_tools_are_served_and_that_is_said() -> None:
    seen = msgspec.structs.replace(SHEETS, prefix="old")
    unrecorded = plan("old_add_row", "known", "own", "own")
    told = listings(ready(seen, tools=("own",)), unrecorded)
    first, second = told[SHEETS.key]
    assert (first["name"], first["declaration"]["parameters_json_schema"]) == (
        "add_row",
        {"type": "object"},
    )
    assert (second["name"], second["declaration"]["parameters_json_schema"]["title"]) == (
        "known",
        "known",
    )
    (said,) = why(ready(seen), unrecorded)
    assert said.startswith("McpToolset: the ledger does not hold what it listed; known are only")


def test_what_another_toolset_was_recorded_to_list_is_not_taken_for_this_ones() -> None:
    other = msgspec.structs.replace(SHEETS, key="desk/McpToolset/1")
    recorded = plan("add_row", "mail", toolsets={SHEETS.key: [ROW]})
    told = listings(ready(SHEETS, other), recorded)
    assert [one["name"] for one in told[other.key]] == ["mail"]


def test_a_toolset_that_lists_alone_is_told_nothing_and_is_no_way_out() -> None:
    alone = msgspec.structs.replace(SHEETS, alone=True)
    assert listings(ready(alone), plan("mail")) == {}
    assert why(ready(alone), plan("mail")) == []


def test_a_filter_for_what_was_never_listed_another_setup_and_resources_are_said() -> None:
    listed = {SHEETS.key: [ROW]}
    wider = msgspec.structs.replace(SHEETS, selects=("add_row", "drop_sheet"))
    assert why(ready(wider), plan(toolsets=listed)) == [
        "McpToolset: it selects drop_sheet, which was not listed when it was recorded"
    ]
    reads = msgspec.structs.replace(SHEETS, resources=True)
    assert why(ready(reads), plan(toolsets=listed)) == [
        "McpToolset: it hands the model resources of its server, which no ledger holds"
    ]
    base = _as_base(ready(msgspec.structs.replace(SHEETS, setup="two")))
    assert why(ready(SHEETS), plan(toolsets=listed, base=base)) == [
        "McpToolset: it is set up otherwise than in the base; what it would list is not known"
    ]
    assert why(ready(SHEETS), plan(toolsets=listed, base=_as_base(ready(SHEETS)))) == []


def test_a_candidate_without_toolsets_is_left_as_it_is() -> None:
    bare = ready()
    assert told_apart(bare, plan()) is bare


def _as_base(seen: Ready) -> Replay:
    """A base's replay, of which only what it is counts here."""
    header = IntentsHeader(format=INTENTS_FORMAT, agent="desk", canon=CANON_VERSION)
    return Replay(header=header, intents=(), runs=(), ready=seen, requests={}, handed={})
