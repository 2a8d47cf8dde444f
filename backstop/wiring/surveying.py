"""The agents of a repository and what to declare of their tools.

An agent's code is read first, and then loaded in a sandbox: what it offers once it is loaded is
the truth, and what its code shows says what a tool does. One that does not load is told with
what it lacks, and with the tools that its code names.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from backstop.adapters.bounds import Limits
from backstop.adapters.discovery.evidence import evidence_of
from backstop.adapters.discovery.offered import Offered, Read, read_tools
from backstop.adapters.discovery.sources import Sources, read, variables_of
from backstop.adapters.discovery.walking import Place, find, made_in, text_of
from backstop.adapters.process import ProcessSandbox
from backstop.adk.control import STEERING
from backstop.adk.escapes import Way
from backstop.config import DEFAULT_FILE
from backstop.core.proposing import Evidence, Proposal, Seen, propose
from backstop.errors import BackstopError, UsageError
from backstop.ports import Sandbox
from backstop.replay.bundle import MODULE, write_bundle
from backstop.replay.loading import NotLoaded, load
from backstop.replay.missing import Kind
from backstop.replay.wire import Ready, ToolSeen
from backstop.reports.proposal import ProposedAgent, ProposedTool
from backstop.wiring.checkouts import top_of
from backstop.wiring.station import AGENT

_HARMLESS_KINDS: Final = frozenset(
    {
        "EnterpriseWebSearchTool",
        "GoogleMapsGroundingTool",
        "GoogleSearchTool",
        "LoadArtifactsTool",
        "LoadMemoryTool",
        "PreloadMemoryTool",
        "UrlContextTool",
        "VertexAiSearchTool",
    }
)
"""Tools of the framework that read, and change nothing outside."""

_HARMLESS: Final = frozenset(
    {
        "enterprise_web_search",
        "google_maps_grounding",
        "google_search",
        "load_artifacts",
        "load_memory",
        "preload_memory",
        "url_context",
    }
)
_CONTAINERS: Final = frozenset({"AgentTool", "GoogleSearchAgentTool", "NodeTool", "_ToolNode"})
_GENERIC: Final = frozenset({"agent", "agents", "app", "main", "src"})
_NAME_LENGTH: Final = 63
_SHOWN: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Where to look for agents, and how to load them.

    `agents` are names or folders of those that are wanted, empty for all. `env` are variables
    that an agent finds when it is imported. `limits` bound each import.
    """

    root: Path
    agents: Sequence[str] = ()
    with_tests: bool = False
    python: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=lambda: Limits(silence_s=60.0, wall_s=120.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Surveyed:
    """The agents that were found, and what a person should know of the search."""

    agents: tuple[ProposedAgent, ...]
    notes: tuple[str, ...]


def survey(search: Search) -> Surveyed:
    """What to declare of each agent below the root, in the order of their folders.

    Raises `BackstopError` (``agent-missing``) where there is none, `UsageError` for one that is
    wanted and not there, and `SandboxError` where no interpreter can be started.
    """
    if not search.root.is_dir():
        raise UsageError(f"--root: {search.root} is no folder")
    found = find(search.root, with_tests=search.with_tests)
    places = _wanted(found.places, search.agents)
    if not places:
        raise _none_found(search)
    looks = _looks(search, places)
    names, notes = _names(search.root, looks)
    agents = tuple(replace(look.agent, name=name) for look, name in zip(looks, names, strict=True))
    if found.is_cut:
        notes.append("there are too many folders to look at them all: name one with --root")
    return Surveyed(agents=_chosen(agents, search.agents), notes=tuple(notes))


def _none_found(search: Search) -> BackstopError:
    made = made_in(search.root, with_tests=search.with_tests)
    what = (
        f"agents are made ({', '.join(made)}), but the framework's loader finds none; make one "
        "the `root_agent` of a folder's agent.py"
        if made
        else "no agent was found in it or below; name a folder above one that holds agent.py, "
        "__init__.py or root_agent.yaml with --root"
    )
    return BackstopError(f"{search.root}: {what}", slug="agent-missing")


def _wanted(places: Sequence[Place], wanted: Sequence[str]) -> list[Place]:
    """The places that are wanted by folder, or all of them where one is wanted by name."""
    plain = {one.rstrip("/").removeprefix("./") for one in wanted}
    chosen = [
        place
        for place in places
        if place.folder in plain or place.folder.rpartition("/")[2] in plain
    ]
    return chosen if len(chosen) >= len(plain) > 0 else list(places)


def _chosen(agents: tuple[ProposedAgent, ...], wanted: Sequence[str]) -> tuple[ProposedAgent, ...]:
    if not wanted:
        return agents
    chosen: dict[str, ProposedAgent] = {}
    for one in wanted:
        plain = one.rstrip("/").removeprefix("./")
        matching = [
            agent
            for agent in agents
            if plain in {agent.name, agent.folder, agent.folder.rpartition("/")[2]}
        ]
        if not matching:
            known = ", ".join(f"{agent.name} ({agent.folder})" for agent in agents)
            raise UsageError(f"--agent: there is no agent {one!r}; there are: {known}")
        chosen.update({agent.name: agent for agent in matching})
    return tuple(agent for agent in agents if agent.name in chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What was seen of one agent: `app` is the name that the framework knows it by."""

    place: Place
    app: str
    agent: ProposedAgent


def _looks(search: Search, places: Sequence[Place]) -> list[_Look]:
    sandbox = ProcessSandbox(
        bundle=write_bundle,
        module=MODULE,
        python=search.python or sys.executable,
        checkouts=[top_of(search.root, config=DEFAULT_FILE) or search.root],
        limits=replace(search.limits, variables=search.env),
    )
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(partial(_look, search, sandbox), places))


def _look(search: Search, sandbox: Sandbox, place: Place) -> _Look:
    folder = (search.root / place.folder).resolve()
    sources = read(folder, roots=_roots(folder, search.root.resolve()))
    loaded = load(sandbox, folder, line_at=line_at)
    if isinstance(loaded, NotLoaded):
        return _unloaded(place, folder, sources, _lack(loaded, sources, search.env))
    agent = ProposedAgent(
        name="",
        folder=place.folder,
        tools=_live_tools(loaded, sources),
        unlisted=tuple(_unlisted(loaded)),
        notes=_notes(loaded),
    )
    return _Look(place=place, app=loaded.app, agent=agent)


def _roots(folder: Path, top: Path) -> list[Path]:
    """Where an agent's modules may import from, within the repository: the nearest first."""
    around = [place for place in folder.parents if place.is_relative_to(top)]
    return [each for place in around for each in (place, place / "src") if each.is_dir()]


def _unlisted(ready: Ready) -> Iterator[str]:
    """Sets of tools that nobody could list, and those whose tools never come by here."""
    for toolset in ready.toolsets:
        if not toolset.alone:
            some = ", but for those that its filter names" if toolset.selects else ""
            yield f"{toolset.kind} (agent {toolset.agent}){some}"
    known = {Way.REMOTE_MCP.value} if ready.toolsets else {Way.REMOTE_MCP.value, Way.TOOLSET.value}
    for one in ready.escapes:
        if one.kind in known:
            yield f"{one.detail} (agent {one.where})"


def _lack(loaded: NotLoaded, sources: Sources, given: Mapping[str, str]) -> str:
    """What an agent lacks; where nobody can tell, also which variables its code asks for."""
    lack = str(loaded.missing)
    asked = [name for name in variables_of(sources) if name not in given]
    if loaded.missing.kind is not Kind.CODE or not asked:
        return lack
    shown = ", ".join(asked[:_SHOWN]) + (", …" if len(asked) > _SHOWN else "")
    return f"{lack}; its code asks for the variables {shown}, and none is set: see --env"


def _unloaded(place: Place, folder: Path, sources: Sources, lack: str) -> _Look:
    seen = read_tools(folder, sources)
    agent = ProposedAgent(
        name="",
        folder=place.folder,
        tools=_static_tools(seen, sources),
        lack=lack,
        unlisted=seen.unlisted,
    )
    return _Look(place=place, app="", agent=agent)


def line_at(file: Path, line: int) -> str:
    """A line of a source file, counted from 1; empty where there is none to read."""
    lines = (text_of(file) or "").splitlines()
    return lines[line - 1] if 0 < line <= len(lines) else ""


def _notes(ready: Ready) -> tuple[str, ...]:
    twice = [name for name, times in Counter(a.name for a in ready.agents).items() if times > 1]
    if not twice:
        return ()
    told = f"several agents in it are called {', '.join(twice)}"
    return (f"{told}: recorded answers go by that name, so give each its own",)


def _live_tools(ready: Ready, sources: Sources) -> tuple[ProposedTool, ...]:
    """What the loaded agent offers, each name once; of two of one name the worse counts."""
    found: dict[str, ProposedTool] = {}
    for tool in ready.tools:
        is_steering = tool.tool in STEERING and not tool.body
        if is_steering or (tool.kind in _CONTAINERS and not tool.body):
            continue
        one = _live_tool(tool, sources)
        before = found.get(tool.tool)
        if before is None or (one.proposal.effect and not before.proposal.effect):
            found[tool.tool] = one
    for toolset in ready.toolsets:
        for name in () if toolset.alone else toolset.selects:
            full = f"{toolset.prefix}_{name}" if toolset.prefix else name
            proposal = propose(Seen(name=full, parameters=None))
            found.setdefault(full, ProposedTool(name=full, proposal=proposal))
    return tuple(found.values())


def _live_tool(tool: ToolSeen, sources: Sources) -> ProposedTool:
    if tool.says is not None:
        said = Proposal(effect=True, why="its own code declares it, by @effect")
        return ProposedTool(name=tool.tool, proposal=said, says=True)
    function = sources.at(tool.body) if tool.body else None
    seen = Seen(
        name=tool.tool,
        parameters=_parameters(tool.schema),
        described="" if function is None else function.described,
        evidence=evidence_of(function, sources),
        is_harmless=tool.kind in _HARMLESS_KINDS and not tool.body,
    )
    return ProposedTool(name=tool.tool, proposal=propose(seen))


def _parameters(schema: Mapping[str, object]) -> dict[str, object]:
    """Parameters by name; one that may be left out has a default, whatever that is."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return {}
    needed = set(map(str, required)) if isinstance(required, list) else set()
    return {
        str(name): told
        if name in needed or not isinstance(told, dict)
        else {"default": None, **told}
        for name, told in properties.items()
    }


def _static_tools(seen: Read, sources: Sources) -> tuple[ProposedTool, ...]:
    return tuple(
        ProposedTool(name=one.name, proposal=_static_proposal(one, sources))
        for one in seen.tools
        if not (one.name in STEERING and one.function is None)
    )


def _static_proposal(one: Offered, sources: Sources) -> Proposal:
    known = one.origin.startswith("google.adk.") and one.name in _HARMLESS
    evidence = Evidence() if one.function is None else evidence_of(one.function, sources)
    return propose(
        Seen(
            name=one.name,
            parameters=one.parameters,
            described=one.described,
            evidence=evidence,
            is_harmless=known and one.function is None,
        )
    )


def _names(root: Path, looks: Sequence[_Look]) -> tuple[list[str], list[str]]:
    """A name for each agent, no two alike, and what is to be said of those that share one."""
    plain = [_plain_name(root, look) for look in looks]
    names, notes = list(plain), []
    for name, times in Counter(plain).items():
        if times == 1:
            continue
        which = [at for at, one in enumerate(plain) if one == name]
        for at in which:
            names[at] = _fuller_name(looks[at].place, name)
        shown = ", ".join(f"{looks[at].place.folder} is {names[at]}" for at in which)
        notes.append(
            f"{times} agents are called {name}: here, {shown}; where one runs, say which in {AGENT}"
        )
    taken: Counter[str] = Counter()
    for at, name in enumerate(names):
        taken[name] += 1
        if taken[name] > 1:
            names[at] = f"{name[: _NAME_LENGTH - 4]}-{taken[name]}"
    return names, notes


def _plain_name(root: Path, look: _Look) -> str:
    folder = look.place.folder
    last = root.resolve().name if folder == "." else folder.rpartition("/")[2]
    return _fit(look.app or last)


def _fuller_name(place: Place, name: str) -> str:
    """A name with what tells the agent apart: its project's, or its folders'."""
    own = place.project_name
    if own and name in _GENERIC:
        return _fit(own)
    above = place.folder.rpartition("/")[0].replace("/", "-")
    return _fit(f"{own or above}-{name}".removeprefix("-"))


def _fit(text: str) -> str:
    """`text` as a configuration takes it for a name."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", text).lstrip("-.")[:_NAME_LENGTH]
    return plain or "agent"
