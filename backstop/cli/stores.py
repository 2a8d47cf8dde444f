"""Which store a command is about: named by its URL, or by the configuration."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from backstop.cli.options import CONFIG_FILE
from backstop.config import load
from backstop.errors import ConfigError
from backstop.meshports import MeshStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A store's URL, whose ledger in it is meant, and the options that name both again."""

    url: str
    agent: str
    options: str

    def open(self) -> MeshStore:
        """The store as it stands. Raises as `find_store` does."""
        from backstop.wiring.stores import find_store

        return find_store(self.url, agent=self.agent)


def place(*, store: str | None, config: Path, agent: str | None) -> Place:
    """The store that the options name. Raises `ConfigError`."""
    options = "" if agent is None else f" --agent {shlex.quote(agent)}"
    if store is not None:
        name = agent or load(config).agent(None).name
        return Place(url=store, agent=name, options=f" --store {shlex.quote(store)}{options}")
    chosen = load(config).agent(agent)
    if config != CONFIG_FILE:
        options = f" --config {shlex.quote(str(config))}{options}"
    if chosen.store is None:
        raise ConfigError(
            f"{config}: agent {chosen.name} has no store; add `store:`, or name one with --store",
            slug="config-store",
        )
    return Place(url=chosen.store, agent=chosen.name, options=options)
