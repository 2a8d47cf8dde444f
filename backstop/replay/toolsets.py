"""What toolsets list in a replay, and what of that nobody knows.

A toolset that asks a server for its tools is told what was recorded of it; of one of which
nothing was recorded, only the tools that were called are known. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from backstop.adk.escapes import Way
from backstop.core.events import EffectClaimed, Event, Header, ToolRead
from backstop.replay.plan import Plan
from backstop.replay.wire import EscapeSeen, Ready, ToolSeen, ToolsetSeen

Listing: TypeAlias = list[dict[str, Any]]
Listings: TypeAlias = Mapping[str, Listing]
"""What toolsets list, by key."""

_UNRECORDED: Final = (
    "the ledger does not hold what it listed; known are only the tools that were called"
)


def listings(ready: Ready, plan: Plan) -> dict[str, Listing]:
    """What each toolset is told to list that cannot list by itself, by key."""
    header = plan.header
    recorded = _recorded(header)
    found = {seen.key: recorded[seen.key] for seen in _online(ready) if seen.key in recorded}
    known = {tool.tool for tool in (*ready.tools, *_tools(ready, found, header))}
    called = _called(plan.events, apart_from=known)
    for seen in _online(ready):
        if seen.key not in found:
            # Nobody knows which of several toolsets had it: the first of the agent is as good.
            mine = [tool for agent, tool in called if agent in {"", seen.agent}]
            called = [one for one in called if one[1] not in mine]
            found[seen.key] = [_as_called(tool, seen, header) for tool in mine]
    return found


def completed(ready: Ready, told: Listings, header: Header) -> Ready:
    """The candidate with the tools that its toolsets list where `told` is what they are told."""
    return msgspec.structs.replace(ready, tools=[*ready.tools, *_tools(ready, told, header)])


def told_apart(ready: Ready, plan: Plan) -> Ready:
    """The candidate with those toolsets alone for escapes of which something is not known."""
    if not ready.toolsets:
        return ready
    judged = {seen.agent for seen in ready.toolsets}
    others = [e for e in ready.escapes if e.kind != Way.TOOLSET or e.where not in judged]
    unknown = [
        EscapeSeen(kind=Way.TOOLSET, where=seen.agent, detail=f"{seen.kind}: {why}")
        for seen in ready.toolsets
        for why in _unknown(seen, plan)
    ]
    return msgspec.structs.replace(ready, escapes=[*others, *unknown])


def _recorded(header: Header) -> Listings:
    return header.toolsets if isinstance(header.toolsets, dict) else {}


def _online(ready: Ready) -> Iterator[ToolsetSeen]:
    return (seen for seen in ready.toolsets if not seen.alone)


def _called(events: Iterable[Event], *, apart_from: Collection[str]) -> list[tuple[str, str]]:
    """Tools that were called and that nobody is known to offer, each with who called it."""
    rows = [
        row
        for row in events
        if isinstance(row, EffectClaimed) or (isinstance(row, ToolRead) and not row.steering)
    ]
    return list(dict.fromkeys((row.agent, row.tool) for row in rows if row.tool not in apart_from))


def _as_called(tool: str, seen: ToolsetSeen, header: Header) -> dict[str, Any]:
    """A tool of which no more is known than that it was called, as if it had been listed."""
    name = tool.removeprefix(f"{seen.prefix}_") if seen.prefix else tool
    schema = _schema(tool, header) or {"type": "object"}
    return {"name": name, "declaration": {"name": name, "parameters_json_schema": schema}}


def _schema(tool: str, header: Header) -> dict[str, Any]:
    declared = header.declarations.get(header.tools.get(tool, ""))
    return {} if declared is None else declared.schema


def _tools(ready: Ready, told: Listings, header: Header) -> Iterator[ToolSeen]:
    for seen in _online(ready):
        for one in told.get(seen.key, ()):
            if seen.selects and one.get("name") not in seen.selects:
                continue
            name = f"{seen.prefix}_{one['name']}" if seen.prefix else str(one["name"])
            yield ToolSeen(
                agent=seen.agent,
                tool=name,
                kind=f"{seen.kind} tool",
                schema=_schema(name, header) or _listed_schema(one),
                guarded=seen.guarded,
                long_running=bool(one.get("long_running", False)),
            )


def _listed_schema(one: Mapping[str, Any]) -> dict[str, Any]:
    raw, declared = one.get("mcp"), one.get("declaration")
    found: object = None
    if isinstance(raw, dict):
        found = raw.get("inputSchema")
    elif isinstance(declared, dict):
        found = declared.get("parameters_json_schema") or declared.get("parameters")
    return found if isinstance(found, dict) else {}


def _unknown(seen: ToolsetSeen, plan: Plan) -> Iterator[str]:
    """What is not known of a toolset, a line each."""
    if seen.resources:
        yield "it hands the model resources of its server, which no ledger holds"
    base = {} if plan.base is None else {one.key: one for one in plan.base.ready.toolsets}
    if seen.alone:
        return
    if (listing := _recorded(plan.header).get(seen.key)) is None:
        yield _UNRECORDED
        return
    listed = {one.get("name") for one in listing}
    missing = [name for name in seen.selects if name not in listed]
    if missing:
        yield f"it selects {', '.join(missing)}, which was not listed when it was recorded"
    if seen.key in base and base[seen.key].setup != seen.setup:
        yield "it is set up otherwise than in the base; what it would list is not known"
