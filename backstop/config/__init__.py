"""``backstop.yaml``, parsed once at the edge: what a person wrote, as values of the core."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from pydantic import ValidationError

from backstop.config.model import (
    AgentModel,
    BuildModel,
    ConfigModel,
    FailOn,
    GateModel,
    LiveModel,
    SandboxModel,
    ToolModel,
    memory_bytes,
    period_seconds,
    wall_seconds,
)
from backstop.config.reading import explained, text_of
from backstop.config.strictyaml import parse
from backstop.core.declaration import Declaration, Namespace, Scope
from backstop.core.spending import Limits
from backstop.errors import ConfigError

__all__ = [
    "Agent",
    "Build",
    "Config",
    "FailOn",
    "GateModel",
    "Live",
    "Sandbox",
    "Vouched",
    "anchored",
    "find_beside",
    "json_schema",
    "load",
    "loads",
]

DEFAULT_FILE: Final = "backstop.yaml"

_SQLITE: Final = "sqlite:///"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vouched:
    """What is said of a tool's effect beside its key; functions and classes by their names.

    `keyed` is the parameter that takes our key and the seconds for which a provider remembers
    it, `probe` a function's name and the seconds after which it is right. `lease_s` is None
    where nothing is said.
    """

    keyed: tuple[str, float] | None = None
    probe: tuple[str, float] | None = None
    no_effect_on: tuple[str, ...] = ()
    lease_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """A model that may be asked: within which limits, for how many seconds a call, and where."""

    limits: Limits
    timeout_s: float
    base_url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent of the configuration. Paths are resolved against the configuration's folder.

    `vouched` says of tools, by name, how their effects may be tried again. `observing` says that
    the guard refuses nothing. `live` is None where its model may not be asked.
    """

    name: str
    path: Path | None
    ledger: str | None
    store: str | None
    guarded: bool
    namespace: Namespace
    declarations: Mapping[str, Declaration]
    vouched: Mapping[str, Vouched] = field(default_factory=dict)
    observing: bool = False
    live: Live | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """How a candidate's image is made: memory in bytes, wall time in seconds for the whole build.

    `requirements` and `dockerfile` are paths from the checkout's top. None leaves it to the
    builder: its own base, the file nearest to the agent, PyPI, no proxy, its own recipe.
    """

    python: str
    base: str | None
    requirements: str | None
    index: str | None
    proxy: str | None
    wheels_only: bool
    dockerfile: str | None
    memory: int
    wall: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """Where a candidate runs: memory in bytes, wall time in seconds for the whole replay.

    `python` is the interpreter with the candidate's packages; None is our own. `cpus` is how
    many processors to use; None is all. `build` is for containers alone. `env` are variables that
    a candidate finds when it is imported.
    """

    kind: str
    python: str | None
    memory: int
    cpus: float | None
    wall: int
    build: Build
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A whole configuration; `file` is how it was named on the command line."""

    file: str
    agents: Mapping[str, Agent]
    gate: GateModel
    sandbox: Sandbox

    def agent(self, name: str | None) -> Agent:
        """The agent called `name`, or the only one. Raises `ConfigError` (``config-agent``)."""
        if name is None and len(self.agents) == 1:
            return next(iter(self.agents.values()))
        names = ", ".join(self.agents)
        if name is None:
            raise ConfigError(
                f"{self.file} has several agents; choose one with --agent: {names}",
                slug="config-agent",
            )
        if name not in self.agents:
            raise ConfigError(
                f"{self.file} has no agent {name!r}; it has: {names}", slug="config-agent"
            )
        return self.agents[name]


def load(path: Path) -> Config:
    """The configuration in the file `path`.

    Raises `ConfigError`: ``config-missing``, ``config-unreadable``, and what `loads` raises.
    """
    text = text_of(path, missing="write one by `backstop init`, or name yours with --config")
    return loads(text, name=str(path), root=path.parent)


def loads(text: str, *, name: str, root: Path) -> Config:
    """The configuration `text`; `name` stands in messages, `root` is where paths begin.

    Raises `ConfigError` with file and line: ``config-tab``, ``config-duplicate-key``,
    ``config-syntax``, ``config-unknown-key``, ``config-value``.
    """
    document = parse(text, name=name)
    if document.value is None:
        raise ConfigError(f"{name}: is empty; it needs `version: 1` and `agents`")
    try:
        # Through JSON: there, pydantic's strict mode takes a list for a tuple and nothing else.
        model = ConfigModel.model_validate_json(json.dumps(document.value))
    except ValidationError as error:
        raise explained(error, document, schema="docs/config.schema.json") from error
    return Config(
        file=name,
        agents={key: _agent(key, agent, root) for key, agent in model.agents.items()},
        gate=model.gate,
        sandbox=_sandbox(model.sandbox, root),
    )


def json_schema() -> dict[str, Any]:
    """The JSON Schema of ``backstop.yaml``, as published in ``docs/config.schema.json``."""
    schema = ConfigModel.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _agent(name: str, model: AgentModel, root: Path) -> Agent:
    ledger = model.ledger
    if ledger is not None and "://" not in ledger:
        ledger = str(root / ledger)
    store = model.store
    if store is None and ledger is not None and "://" in ledger:
        store = ledger
    return Agent(
        name=name,
        path=None if model.path is None else root / model.path,
        ledger=ledger,
        store=None if store is None else anchored(store, root),
        guarded=model.guarded,
        namespace=Namespace(agent=name, app=model.app, tenant=model.tenant),
        declarations={tool: _declaration(tool, said) for tool, said in model.tools.items()},
        vouched={tool: _vouched(said) for tool, said in model.tools.items()},
        observing=model.mode == "observe",
        live=_live(model.model),
    )


def _live(model: LiveModel) -> Live | None:
    if not model.live:
        return None
    return Live(
        limits=Limits(
            calls=model.calls,
            tokens=model.tokens,
            repeats=model.repeats,
            agreement=model.agreement,
            models=model.models,
        ),
        timeout_s=wall_seconds(model.timeout),
        base_url=model.base_url,
    )


def anchored(url: str, root: Path) -> str:
    """A store's file is found from the configuration's folder, wherever a process was started.

    Two processes in two folders would keep two stores, and each would do everything.
    """
    file = url.removeprefix(_SQLITE)
    if file == url or file.startswith("/") or not file:
        return url
    return f"{_SQLITE}{quote(str(root.absolute()))}/{file}"


def _vouched(model: ToolModel) -> Vouched:
    keyed, probe = model.keyed, model.probe
    return Vouched(
        keyed=None if keyed is None else (keyed.param, period_seconds(keyed.retention)),
        probe=None if probe is None else (probe.function, period_seconds(probe.settle)),
        no_effect_on=model.no_effect_on,
        lease_s=None if model.lease is None else period_seconds(model.lease),
    )


def _declaration(tool: str, model: ToolModel) -> Declaration:
    fields: dict[str, tuple[str, ...]] = {
        name: (kinds,) if isinstance(kinds, str) else tuple(kinds)
        for name, kinds in model.fields.items()
    }
    if model.keyed is not None:
        # What we write there ourselves says nothing about what is asked for.
        fields[model.keyed.param] = ("volatile",)
    return Declaration(
        tool=tool,
        effect=model.effect,
        identity=model.identity,
        scope=None if model.scope is None else Scope(model.scope),
        fields=fields,
        schema=model.parameters,
        occurrence=model.occurrence,
        aliases=model.aliases,
        key=model.keys,
    )


def _sandbox(model: SandboxModel, root: Path) -> Sandbox:
    python = model.python
    if python is not None and "/" in python:
        # As it is named, never resolved: the link in a virtual environment is what makes it one.
        python = str((root / python).absolute())
    return Sandbox(
        kind=model.kind,
        python=python,
        memory=memory_bytes(model.memory),
        cpus=model.cpus,
        wall=wall_seconds(model.wall),
        build=_build(model.build),
        env=dict(model.env),
    )


def _build(model: BuildModel) -> Build:
    return Build(
        python=model.python,
        base=model.base,
        requirements=model.requirements,
        index=model.index,
        proxy=model.proxy,
        wheels_only=model.wheels_only,
        dockerfile=model.dockerfile,
        memory=memory_bytes(model.memory),
        wall=wall_seconds(model.wall),
    )


def find_beside(folder: Path, *, name: str, other_than: Path | None = None) -> Path | None:
    """The configuration file that a checkout keeps for the agent in `folder`, if it has one.

    Looked for upwards from the folder; the one that is already in use does not count.
    """
    for above in (folder.resolve(), *folder.resolve().parents):
        found = above / name
        if found.is_file():
            is_in_use = other_than is not None and found.samefile(other_than)
            return None if is_in_use else found
    return None
