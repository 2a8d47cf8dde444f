"""What passes interception in an agent: loaded in a sandbox, and told with the places.

Nothing of the agent is run but its import, and that behind the walls of a replay.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from backstop.adapters.bounds import Limits
from backstop.adapters.discovery.walking import find, text_of
from backstop.adapters.process import ProcessSandbox
from backstop.config import Config, find_beside, load
from backstop.errors import BackstopError, ConfigError
from backstop.ports import Sandbox
from backstop.replay.bundle import MODULE, write_bundle
from backstop.replay.escapes import Finding, findings, offline
from backstop.replay.loading import NotLoaded
from backstop.replay.loading import load as load_agent
from backstop.wiring.checkouts import ENTRANCES, top_of

_LIMITS: Final = Limits(silence_s=120.0, wall_s=240.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which agents to look at, and what they need to be loaded.

    `path` is an agent's folder, or one above several; None takes those of the configuration,
    of which `agent` chooses one. `python` and `env` go before what the configuration says.
    """

    path: Path | None = None
    config: Path
    is_configured: bool = False
    agent: str | None = None
    python: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What was found in one agent; `lack` says in one line why it could not be loaded.

    None of the texts is safe to print as it is.
    """

    name: str
    folder: str
    findings: tuple[Finding, ...] = ()
    lack: str = ""

    @property
    def exit_code(self) -> int:
        """0: nothing counts; 1: coverage is incomplete; 2: nobody knows."""
        if self.lack:
            return 2
        return int(any(found.counts for found in self.findings))


def settled(asked: Asked) -> Asked:
    """The same with the configuration that counts: of a folder that is named, the nearest above.

    `is_configured` says whether there is one.
    """
    if asked.path is None or asked.is_configured:
        return replace(asked, is_configured=True)
    found = find_beside(asked.path, name=asked.config.name)
    return asked if found is None else replace(asked, config=found, is_configured=True)


def examine(asked: Asked) -> Iterator[Examined]:
    """What is to be said of each agent, in turn; `asked` is `settled`.

    Raises `ConfigError` for what the configuration does not say, `BackstopError`
    (``agent-missing``) where there is no agent, and `SandboxError` where no interpreter can be
    started.
    """
    config = load(asked.config) if asked.is_configured else None
    sandbox = _sandbox(asked, config)
    for name, folder in _agents(asked, config):
        yield _examined(sandbox, name, folder)


def _agents(asked: Asked, config: Config | None) -> Sequence[tuple[str, Path]]:
    if asked.path is not None:
        return _below(asked.path, asked.agent)
    assert config is not None  # noqa: S101 - without a path it was loaded when it was settled
    chosen = config.agents.values() if asked.agent is None else [config.agent(asked.agent)]
    pathless = [agent.name for agent in chosen if agent.path is None]
    if pathless:
        raise ConfigError(
            f"{config.file}: agent {pathless[0]} has no path; add one, or name its folder: "
            "backstop doctor PATH",
            slug="config-agent",
        )
    return [(agent.name, agent.path) for agent in chosen if agent.path is not None]


def _below(path: Path, wanted: str | None) -> Sequence[tuple[str, Path]]:
    if any((path / entrance).is_file() for entrance in ENTRANCES) and wanted is None:
        return [(path.resolve().name, path)]
    found = [path / place.folder for place in find(path).places] if path.is_dir() else []
    named = [(folder.resolve().name, folder) for folder in found]
    chosen = [one for one in named if wanted in {None, one[0]}]
    if not chosen:
        raise BackstopError(
            f"{path}: there is no agent{'' if wanted is None else ' ' + repr(wanted)} in it or "
            "below; name the folder that holds agent.py",
            slug="agent-missing",
        )
    return chosen


def _sandbox(asked: Asked, config: Config | None) -> Sandbox:
    """The walls of a replay: no container is built only to look."""
    said = None if config is None else config.sandbox
    limits = replace(_LIMITS, variables={**({} if said is None else said.env), **asked.env})
    top = top_of(asked.path or asked.config.parent, config=asked.config.name)
    return ProcessSandbox(
        bundle=write_bundle,
        module=MODULE,
        python=asked.python or (said.python if said is not None else None) or sys.executable,
        # Who names a folder of no checkout stands where the agent is started, as a rule.
        checkouts=[top or Path.cwd()],
        limits=limits if said is None else replace(limits, memory=said.memory),
    )


def _examined(sandbox: Sandbox, name: str, folder: Path) -> Examined:
    loaded = load_agent(sandbox, folder.resolve(), line_at=_line_at)
    if isinstance(loaded, NotLoaded):
        at = f" (at {loaded.failure.where})" if ":" in loaded.failure.where else ""
        return Examined(name=name, folder=str(folder), lack=f"{loaded.missing}{at}")
    return Examined(name=name, folder=str(folder), findings=tuple(findings(offline(loaded))))


def _line_at(file: Path, line: int) -> str:
    lines = (text_of(file) or "").splitlines()
    return lines[line - 1] if 0 < line <= len(lines) else ""
