"""What a request is about: which agents, and what the configurations say of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from backstop.config import Agent, Config, Live, find_beside, load
from backstop.core.declaration import Declaration
from backstop.core.divergence import Kind
from backstop.core.verdict import Policy
from backstop.errors import ConfigError
from backstop.gate.request import ReplayRequest, SandboxKind
from backstop.wiring.checkouts import inside, top_of, tops
from backstop.wiring.sandboxes import Choice, Interpreters, choice, interpreters

_SQLITE_ANYWHERE: Final = "sqlite:////"
"""How a store begins that is in a file by its whole name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One agent to be judged: everything that the request and the configurations say of it.

    `candidate` and `base` are agent folders; without a `base` no control run is made.
    `interpreters` are those of the two where they are processes. `tops`
    are where the checkouts of head and base begin, None where nobody knows.
    `base_config` is None where no version that runs now is at hand, and has no agents where
    its checkout has no configuration.
    """

    agent: Agent
    config: Config
    base_config: Config | None
    candidate: Path
    base: Path | None
    sandbox: Choice
    interpreters: Interpreters
    tops: tuple[Path | None, Path | None]

    @property
    def ruling(self) -> Config:
        """What holds the candidate back, and whether the base is replayed, the base says (D1)."""
        return self.base_config or self.config

    @property
    def ruling_top(self) -> Path | None:
        """The base's checkout, where it says what an image is made of; None where it is new."""
        return self.tops[1] if self.base_agent is not None else None

    @property
    def base_agent(self) -> Agent | None:
        """The agent as the base configures it."""
        return None if self.base_config is None else self.base_config.agents.get(self.agent.name)

    @property
    def base_declarations(self) -> Mapping[str, Declaration] | None:
        """The base's declarations; None where no base configuration is at hand."""
        return None if self.base_agent is None else self.base_agent.declarations

    @property
    def live(self) -> Live | None:
        """How its model may be asked: the base's word counts, since a change could pay for much."""
        agent = self.agent if self.base_config is None else self.base_agent
        return None if agent is None else agent.live

    def checkouts(self) -> list[Path]:
        """The checkouts that the candidate and the base lie in; of one in none, its own folder."""
        pairs = [(self.candidate, self.tops[0])]
        if self.base is not None:
            pairs.append((self.base, self.tops[1]))
        return [
            top
            if top is not None and inside(folder, top) is not None
            else top_of(folder, config=Path(self.config.file).name) or folder
            for folder, top in pairs
        ]

    def ledgers(self) -> list[Path]:
        """Every ledger file that the configurations name."""
        configs = [self.config] if self.base_config is None else [self.config, self.base_config]
        named = [agent.ledger for one in configs for agent in one.agents.values()]
        return [Path(ledger) for ledger in named if ledger is not None and "://" not in ledger]

    @property
    def guarded(self) -> bool:
        """Did the guard run in production? The base's word counts."""
        return (self.base_agent or self.agent).guarded

    def policies(self, *, fail_on: frozenset[Kind] | None, allow_empty: bool) -> list[Policy]:
        """The policies to judge under: the head's, and the base's where there is one (D1)."""
        configs = [self.config] if self.base_config is None else [self.config, self.base_config]
        return [policy_of(one, fail_on=fail_on, allow_empty=allow_empty) for one in configs]


def configured(request: ReplayRequest) -> tuple[Config, Config | None]:
    """The configuration, and that of the version that runs now, where one is at hand.

    Raises `ConfigError`: what `load` raises, ``base-elsewhere`` and ``base-silent``.
    """
    config = load(request.config)
    if request.base is None:
        return config, None
    if request.base_is_checkout:
        file = request.base / request.config.name
        base = load(file) if file.is_file() else _for_a_silent_base(request, config)
    else:
        found = find_beside(request.base, name=request.config.name, other_than=request.config)
        if found is None:
            return config, None
        base = load(found)
    _check_apart(request, base)
    return config, base


def _for_a_silent_base(request: ReplayRequest, config: Config) -> Config:
    """What stands in for the configuration of a base without one: Backstop is new there.

    So is every agent, and nobody but the base may let a change out of the walls (D1).
    """
    kind, chosen = choice(request, config).kind, config.sandbox
    loose = {
        "sandbox.kind": kind is SandboxKind.NONE,
        "sandbox.python": kind is SandboxKind.PROCESS and chosen.python is not None,
        "sandbox.build.dockerfile": kind is SandboxKind.DOCKER and bool(chosen.build.dockerfile),
        "sandbox.build.wheels_only": kind is SandboxKind.DOCKER and not chosen.build.wheels_only,
    }
    for name in [name for name, is_set in loose.items() if is_set]:
        raise ConfigError(
            f"{config.file}: {name} lets code of a change run outside of the sandbox, so the base "
            "has to say it, which has no configuration yet; leave it out, or merge the "
            "configuration first",
            slug="base-silent",
        )
    return replace(config, agents={})


def _check_apart(request: ReplayRequest, base: Config) -> None:
    """Does nothing that the base names lie in the change? Held against itself it always passes."""
    head, top = tops(request)
    if request.base is None or head is None or (top is None and not request.base_is_checkout):
        return
    own = top or request.base
    if own.resolve() == head.resolve():
        return
    for name, agent in base.agents.items():
        for what, place in (("path", agent.path), ("ledger", _file_of(agent.ledger))):
            if place and inside(place, head) is not None and inside(place, own) is None:
                raise ConfigError(
                    f"{base.file}: the {what} of agent {name} lies in the change that is judged "
                    "by it; name it from the configuration's own folder, in its own checkout",
                    slug="base-elsewhere",
                )


def _file_of(ledger: str | None) -> Path | None:
    """The file that a ledger is in; None for one elsewhere, and beside the configuration."""
    if ledger is None:
        return None
    if ledger.startswith(_SQLITE_ANYWHERE):
        return Path(f"/{unquote(urlsplit(ledger).path).lstrip('/')}")
    return None if "://" in ledger else Path(ledger)


def judged(
    request: ReplayRequest, config: Config, base_config: Config | None
) -> tuple[list[Agent], list[str]]:
    """The agents to judge, and the names of those that only the base has still (D5)."""
    if request.agent is not None:
        return [config.agent(request.agent)], []
    known = {} if base_config is None else base_config.agents
    had_ledger = {name for name, agent in known.items() if agent.ledger is not None}
    agents = [
        agent
        for name, agent in config.agents.items()
        if agent.ledger is not None or name in had_ledger
    ]
    return agents or list(config.agents.values()), sorted(had_ledger - config.agents.keys())


def job_of(
    request: ReplayRequest,
    config: Config,
    base_config: Config | None,
    agent: Agent,
    *,
    several: bool = False,
) -> Job:
    """What is to be done for `agent`, one of `several`.

    Raises `ConfigError` (``config-agent``, ``base-elsewhere``).
    """
    if several and request.candidate is not None:
        raise ConfigError(
            f"{config.file} has several agents, and --candidate names the folder of one; say "
            "which with --agent",
            slug="config-agent",
        )
    candidate = request.candidate or agent.path
    if candidate is None:
        raise ConfigError(
            f"{config.file}: agent {agent.name} has no path; add one, or name the agent folder "
            "with --candidate",
            slug="config-agent",
        )
    ruling = base_config or config
    base = _base_folder(request, config, base_config, agent, several=several)
    chosen = choice(request, ruling)
    return Job(
        agent=agent,
        config=config,
        base_config=base_config,
        candidate=candidate,
        base=base if ruling.gate.control == "base" else None,
        sandbox=chosen,
        interpreters=interpreters(request, ruling, chosen),
        tops=tops(request),
    )


def _base_folder(
    request: ReplayRequest,
    config: Config,
    base_config: Config | None,
    agent: Agent,
    *,
    several: bool,
) -> Path | None:
    """The folder of the agent's version that runs now: named, or found by a checkout's config.

    Raises `ConfigError` (``config-agent``, ``base-elsewhere``).
    """
    if request.base is None:
        return None
    is_checkout = request.base_is_checkout or (request.base / request.config.name).is_file()
    if not several and not is_checkout:
        return request.base
    if is_checkout and base_config is None:
        raise ConfigError(
            f"{request.base}: this is the checkout that is judged, and --base has to name that of "
            "the version that runs now",
            slug="base-elsewhere",
        )
    if base_config is None:
        raise ConfigError(
            f"{config.file} has several agents, and --base names the folder of one; say which "
            f"with --agent, or name the checkout that holds {request.config.name}",
            slug="config-agent",
        )
    known = base_config.agents.get(agent.name)
    return None if known is None else known.path


def policy_of(
    config: Config | None, *, fail_on: frozenset[Kind] | None, allow_empty: bool
) -> Policy:
    """The configured policy, as far as the caller does not overrule it."""
    policy = Policy()
    if config is not None:
        policy = Policy(
            fail_on=frozenset(Kind(kind.upper()) for kind in config.gate.fail_on),
            max_assumed_steps=config.gate.max_assumed_steps,
            allow_empty=config.gate.allow_empty,
            accepts=frozenset(config.gate.accepts),
        )
    return replace(
        policy,
        fail_on=policy.fail_on if fail_on is None else fail_on,
        allow_empty=policy.allow_empty or allow_empty,
    )
