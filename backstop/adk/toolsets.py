"""What a toolset lists: told to the ledger by the recorder, and to the agent by a replay.

An MCP server is asked for its tools whenever an agent runs. A replay cannot ask it: it starts
no process and has no network. So what the server said is kept as it said it, and handed to the
toolset's own code, whose filter, prefix and confirmation are the candidate's.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from .code import spelled

Listed: TypeAlias = dict[str, Any]
"""One tool as it was listed: its `name` before any prefix, and `mcp` (as the server spells it)
or `declaration` (as the model is told of it)."""

MCP: Final = "McpToolset"
_OFFLINE: Final = frozenset({"OpenAPIToolset"})
"""The framework's own toolsets that read their tools from what they are made with."""


_OWN: Final = frozenset({"env", "headers"})


class Toolset(NamedTuple):
    """A toolset of an agent. `key` names it in a ledger: agent, kind, and which of that kind."""

    key: str
    kind: str
    toolset: Any


def toolsets_of(agent: Any) -> Iterator[Toolset]:
    """The toolsets among an agent's tools, in their order."""
    tools = getattr(agent, "tools", None)
    if not isinstance(tools, list | tuple) or not tools:
        return
    met: Counter[str] = Counter()
    for tool in tools:
        if not is_toolset(tool):
            continue
        kind = kind_of(tool)
        yield Toolset(f"{agent.name}/{kind}/{met[kind]}", kind, tool)
        met[kind] += 1


def is_toolset(tool: Any) -> bool:
    """Whether it lists tools, and is none."""
    return hasattr(tool, "get_tools_with_prefix")


def kind_of(toolset: Any) -> str:
    """`MCP` for any toolset that asks an MCP server, else the name of its class."""
    return MCP if is_mcp(toolset) else type(toolset).__qualname__


def is_mcp(toolset: Any) -> bool:
    """Whether its tools are those of an MCP server, which only that server can tell."""
    return any(
        kind.__name__ == MCP and kind.__module__.startswith("google.adk.")
        for kind in type(toolset).__mro__
    )


def lists_alone(toolset: Any) -> bool:
    """Whether it is one of the framework's that are known to need nobody to list their tools."""
    kind = type(toolset)
    return kind.__module__.startswith("google.adk.") and kind.__name__ in _OFFLINE


def listing_of(tools: Iterable[Any]) -> list[Listed]:
    """What a toolset listed, to be kept. Tools that cannot say what they take are left out."""
    return [told for tool in tools if (told := _listed(tool)) is not None]


def _listed(tool: Any) -> Listed | None:
    raw = getattr(tool, "raw_mcp_tool", None)
    if raw is not None:
        spelled_out = raw.model_dump(mode="json", by_alias=True, exclude_none=True)
        return {"name": spelled_out.get("name", tool.name), "mcp": spelled_out}
    if type(tool).__name__ == "LoadMcpResourceTool":
        return None  # the candidate's own code adds it
    try:
        declaration = tool._get_declaration()  # noqa: SLF001 - what the model is told about the tool
    except Exception:  # noqa: BLE001 - a user's tool may raise anything here
        return None
    if declaration is None:
        return None
    told = declaration.model_dump(mode="json", exclude_none=True)
    return {
        "name": tool.name,
        "declaration": told,
        "description": tool.description,
        "long_running": bool(tool.is_long_running),
    }


def setup_of(toolset: Any, folder: Path) -> str:
    """Digest of what a toolset is made with: of two that are alike, one listing speaks for both.

    Paths count from the agent's folder, and the interpreter that runs us is called the same
    wherever it lies. The environment and headers are the machine's: they are left out.
    """
    said = {
        name: _of_nobody(value)
        for name, value in vars(toolset).items()
        if name in {"tool_filter", "tool_name_prefix"} or name.endswith("_params")
    }
    text = f"{type(toolset).__qualname__} {spelled(said)}"
    return hashlib.sha256(_placed(text, folder).encode("utf-8", "backslashreplace")).hexdigest()[
        :32
    ]


def _of_nobody(value: Any) -> Any:
    """How a server is reached, without what each machine says for itself."""
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    if not isinstance(value, dict):
        return value
    return {name: _of_nobody(one) for name, one in value.items() if name not in _OWN}


def _placed(text: str, folder: Path) -> str:
    for interpreter in {sys.executable, os.path.realpath(sys.executable)}:
        text = text.replace(interpreter, "<python>")
    up = "."
    for place in (folder, *folder.parents):
        if len(place.parts) > 1:
            text = text.replace(str(place), up)
        up = f"{up}/.."
    return text


def origin_of(tool: Any) -> str:
    """Digest of how the server of an MCP tool is reached; empty for any other tool.

    Two tools of one name and of two servers do different things.
    """
    manager = getattr(tool, "_mcp_session_manager", None)
    params = getattr(manager, "_connection_params", None)
    if params is None:
        return ""
    return hashlib.sha256(spelled(_of_nobody(params)).encode()).hexdigest()[:32]


def selects(toolset: Any) -> list[str]:
    """The names that it lists at most, where they are given as names; empty where they are not."""
    chosen = getattr(toolset, "tool_filter", None)
    return [name for name in chosen if isinstance(name, str)] if isinstance(chosen, list) else []


def reads_resources(toolset: Any) -> bool:
    """Whether it hands the model what lies at its server, beside tools."""
    return is_mcp(toolset) and bool(getattr(toolset, "_use_mcp_resources", False))


async def told_again(toolset: Any, listing: list[Listed], context: Any, original: Any) -> list[Any]:
    """The tools of a toolset whose server cannot be asked, from what was listed before."""
    if is_mcp(toolset):
        manager = toolset._mcp_session_manager  # noqa: SLF001 - the only way to the server

        async def create_session(*_: Any, **__: Any) -> _Offline:
            return _Offline(listing)

        vars(manager)["create_session"] = create_session
        tools: list[Any] = await original(context)
        return tools
    tools = [_recorded(told) for told in listing]
    return [tool for tool in tools if toolset._is_tool_selected(tool, context)]  # noqa: SLF001 - the framework offers it to toolsets


class _Offline:
    """An MCP session without a server: it knows which tools there are, and nothing else."""

    def __init__(self, listing: list[Listed]) -> None:
        self._listing = listing

    async def list_tools(self, *_: Any, **__: Any) -> Any:
        return _said("ListToolsResult", tools=[_as_mcp(told) for told in self._listing])

    async def list_resources(self, *_: Any, **__: Any) -> Any:
        return _said("ListResourcesResult", resources=[])


def _said(kind: str, **members: Any) -> Any:
    """An answer of a server, in the form of whichever MCP library the framework has."""
    from google.adk.tools.mcp_tool import mcp_toolset

    return vars(mcp_toolset)[kind].model_validate(members)


def _as_mcp(told: Listed) -> Mapping[str, Any]:
    raw = told.get("mcp")
    if isinstance(raw, dict):
        return raw
    declared = told.get("declaration") or {}
    schema = declared.get("parameters_json_schema") or {"type": "object"}
    return {"name": told["name"], "description": "", "inputSchema": schema}


def _recorded(told: Listed) -> Any:
    from google.adk.tools.base_tool import BaseTool
    from google.genai import types

    declared = types.FunctionDeclaration.model_validate(
        told.get("declaration") or {"name": told["name"]}
    )

    class Recorded(BaseTool):
        """A tool of which only its declaration is known."""

        def _get_declaration(self) -> Any:
            # A fresh one each time: a prefix is written into it.
            return declared.model_copy()

        async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
            raise RuntimeError(f"{self.name} is known from its declaration only")

    return Recorded(
        name=told["name"],
        description=str(told.get("description") or declared.description or ""),
        is_long_running=bool(told.get("long_running", False)),
    )
