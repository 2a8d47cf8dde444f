# ruff: noqa: ANN401 - the framework's values are of any type
"""An agent's guard from its configuration: its tools, its store, and the version that runs."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from backstop.adapters.content import version_of
from backstop.adapters.memory import MemoryStore
from backstop.adk.code import code_digest, tool_code
from backstop.adk.control import STEERING
from backstop.adk.schema import schema_of
from backstop.adk.toolsets import Listed, origin_of
from backstop.config import DEFAULT_FILE, Agent, Config, load
from backstop.core.canon import CANON_VERSION
from backstop.core.declaration import Declaration
from backstop.core.events import FORMAT, Header
from backstop.core.redaction import redacted_fields
from backstop.errors import BackstopError, ConfigError
from backstop.guard.claims.safety import NO_SAFETY
from backstop.guard.declared import Tools, functions_of
from backstop.guard.effect import Declared, declared_by
from backstop.guard.journal import Journal
from backstop.guard.plugin.spans import ids
from backstop.guard.plugin.station import Station
from backstop.ports import Store
from backstop.replay.harness.survey import Survey
from backstop.wiring.mesh import AnchoredJudge
from backstop.wiring.redacting import redaction_key
from backstop.wiring.safeties import vouched_for
from backstop.wiring.stores import open_store

CONFIG: Final = "BACKSTOP_CONFIG"
AGENT: Final = "BACKSTOP_AGENT"
STORE: Final = "BACKSTOP_STORE"
MODE: Final = "BACKSTOP_MODE"
MESH: Final = "BACKSTOP_MESH"

_MODES: Final = {"": None, "guard": False, "observe": True}
_CONTAINERS: Final = frozenset({"AgentTool", "GoogleSearchAgentTool", "NodeTool"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where the guard of a process finds its word; None and empty where nothing is said.

    `mesh` is the file of the anchors by which effects are judged before they are claimed.
    """

    config: Path | None = None
    agent: str | None = None
    store: str | None = None
    observing: bool | None = None
    mesh: Path | None = None


def settings_from(environment: Mapping[str, str]) -> Settings:
    """What the variables ``BACKSTOP_...`` say.

    Raises `ConfigError` (``guard-mode``) for a mode that is none.
    """
    config = environment.get(CONFIG)
    return Settings(
        config=Path(config) if config else None,
        agent=environment.get(AGENT) or None,
        store=environment.get(STORE) or None,
        observing=is_observing(environment.get(MODE, "")),
        mesh=Path(mesh) if (mesh := environment.get(MESH)) else None,
    )


def is_observing(mode: str) -> bool | None:
    """Whether a mode is ``observe``, not ``guard``; None if it is empty.

    Raises `ConfigError` (``guard-mode``) for any other.
    """
    if mode not in _MODES:
        raise ConfigError(f"{MODE} is {mode[:40]!r}: write guard or observe", slug="guard-mode")
    return _MODES[mode]


def configuration(settings: Settings, *, start: Path) -> Config:
    """The configuration named in the settings, or the nearest one upwards from `start`.

    Raises `ConfigError` (``config-missing``), and what `load` raises.
    """
    if settings.config is not None:
        return load(settings.config)
    for folder in (start, *start.parents):
        if (found := folder / DEFAULT_FILE).is_file():
            return load(found)
    raise ConfigError(
        f"there is no {DEFAULT_FILE} in {start} or above it; write one, or name it in {CONFIG}",
        slug="config-missing",
    )


def agent_of(config: Config, settings: Settings, *, app: str) -> Agent:
    """The configured agent that an app of the framework is.

    By the settings, else by the app's name, in which a dash may be an underscore, else the only
    one. Raises `ConfigError` (``config-agent``).
    """
    if settings.agent is not None:
        return config.agent(settings.agent)
    for name, agent in config.agents.items():
        if name.replace("-", "_") == app.replace("-", "_"):
            return agent
    if len(config.agents) == 1:
        return config.agent(None)
    names = ", ".join(config.agents)
    raise ConfigError(
        f"{config.file} has no agent for the app {app!r}; it has: {names}. Name one in {AGENT}",
        slug="config-agent",
    )


def open_station(agent: Agent, root: Any, settings: Settings) -> Station:
    """The guard of `agent`, whose root agent or node the framework runs, ready to serve.

    Raises `ConfigError` (``guard-store``, ``guard-path``) for what the configuration does not
    say, and what the store raises.
    """
    url = settings.store or agent.store
    if url is None:
        raise ConfigError(
            f"agent {agent.name} has no store; write `store:` in backstop.yaml, or name one in "
            f"{STORE}",
            slug="guard-store",
        )
    if agent.path is None:
        raise ConfigError(
            f"agent {agent.name} has no `path` in backstop.yaml: which version runs cannot be told",
            slug="guard-path",
        )
    observing = agent.observing if settings.observing is None else settings.observing
    version = version_of(agent.path)
    survey = Survey(root=root, plugins=[], folder=agent.path.resolve())
    tools = _tools(agent, survey)
    known = tools.declarations()
    key = redaction_key()
    hides = any(map(redacted_fields, known.values()))
    header = Header(
        format=FORMAT,
        agent=agent.namespace.agent,
        app=agent.namespace.app,
        tenant=agent.namespace.tenant,
        canon=CANON_VERSION,
        guarded=not observing,
        tools={name: declared.digest for name, declared in sorted(known.items())},
        code={told["tool"]: told["code"] for told in _called(survey)},
        declarations={declared.digest: declared for declared in known.values()},
        versions={version: agent.path.resolve().name},
        redaction=key.mark if key is not None and hides else msgspec.UNSET,
    )
    store = open_store(url, header=header)
    return Station(
        journal=Journal(
            store=store,
            namespace=agent.namespace,
            declarations=known,
            version=version,
            owner=f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}",
            redaction_key=key,
            ids=ids,
        ),
        safety=tools.safety(),
        unsaid=NO_SAFETY,
        observing=observing,
        learner=_Learner(url=url, header=header, store=store, known=known, tools=tools),
        judge=None if settings.mesh is None else AnchoredJudge(store, settings.mesh),
    )


def _called(survey: Survey) -> list[dict[str, Any]]:
    """The tools of a survey that do something themselves."""
    return [
        told
        for told in survey.tools
        if told["kind"] not in _CONTAINERS and told["tool"] not in STEERING
    ]


def _tools(agent: Agent, survey: Survey) -> Tools:
    """What is said of the tools, with the schemas of those that were found."""
    found = {told["tool"]: told["schema"] for told in _called(survey)}
    said = dict(agent.declarations)
    for name, schema in found.items():
        declared = said.get(name) or Declaration(tool=name)
        said[name] = declared if declared.schema else _with_schema(declared, schema)
    assert agent.path is not None  # noqa: S101 - for the type checker
    code = {one.home: one for one in (*functions_of(agent.path), *survey.said)}
    return Tools(
        configured=said, vouched=vouched_for(agent), found=code.values(), shared=_shared(survey)
    )


def _shared(survey: Survey) -> frozenset[str]:
    """Names of tools that different code stands behind: their effects would share keys (K26)."""
    codes: dict[str, set[str]] = {}
    for told in _called(survey):
        codes.setdefault(told["tool"], set()).add(told["code"])
    return frozenset(name for name, known in codes.items() if len(known - {""}) > 1)


def _with_schema(declared: Declaration, schema: dict[str, Any]) -> Declaration:
    return msgspec.structs.replace(declared, schema=schema)


class _Learner:
    """Takes in tools that no survey finds: a toolset lists them when an agent runs.

    A row names the declaration that it was written under, so that has to be registered first.
    """

    def __init__(
        self,
        *,
        url: str,
        header: Header,
        store: Store,
        known: dict[str, Declaration],
        tools: Tools,
    ) -> None:
        self._url = url
        self._header = header
        self._store = store
        self._known = known
        self._met = {name for name, declared in known.items() if declared.schema}
        self._tools = tools
        self._origins: dict[str, str] = {}
        self._homes = {said.home for said in tools.found}

    def knows(self, tool: Any) -> bool:
        """Is what is declared of the tool registered?"""
        said = declared_by(getattr(tool, "func", None))
        if tool.name not in self._met or origin_of(tool) != self._origins.get(tool.name, ""):
            return False
        return said is None or self.knows_function(said)

    def learn(self, tool: Any) -> None:
        """Know `tool` from now on.

        Raises `BackstopError` (``guard-name``) for a tool of another server that bears a name
        which is known, and what the store raises.
        """
        name, origin = tool.name, origin_of(tool)
        if origin != self._origins.setdefault(name, origin):
            raise BackstopError(
                f"tools of two MCP servers are called {name}: one would be answered with what the "
                "other did; tell them apart with tool_name_prefix",
                slug="guard-name",
            )
        if name in self._met and origin:
            return
        said = declared_by(getattr(tool, "func", None))
        if said is not None and not self.knows_function(said):
            self.learn_function(said)
            return
        declared = _with_schema(self._known.get(name) or Declaration(tool=name), schema_of(tool))
        self._register(name, declared, tool_code(tool))

    def knows_function(self, said: Declared) -> bool:
        """Is what is declared of the function registered?"""
        return said.home in self._homes

    def learn_function(self, said: Declared) -> None:
        """Know the function from now on. Raises what the store raises."""
        self._register(said.tool, self._tools.add(said), code_digest(said.function))
        self._homes.add(said.home)

    def knows_listing(self, key: str, listing: list[Listed]) -> bool:
        """Is this what the toolset of that key is registered to list?"""
        known = self._header.toolsets
        return isinstance(known, dict) and known.get(key) == listing

    def learn_listing(self, key: str, listing: list[Listed]) -> None:
        """Know what a toolset lists from now on. Raises what the store raises."""
        known = self._header.toolsets
        told = known if isinstance(known, dict) else {}
        self._tell(msgspec.structs.replace(self._header, toolsets={**told, key: listing}))

    def _register(self, name: str, declared: Declaration, code: str) -> None:
        self._tell(
            msgspec.structs.replace(
                self._header,
                tools={**self._header.tools, name: declared.digest},
                code={**self._header.code, name: code},
                declarations={**self._header.declarations, declared.digest: declared},
            )
        )
        self._known[name] = declared
        self._met.add(name)

    def _tell(self, header: Header) -> None:
        if isinstance(self._store, MemoryStore):
            self._store.register(header)
        else:
            open_store(self._url, header=header)
        self._header = header
