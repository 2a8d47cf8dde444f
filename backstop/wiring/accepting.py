"""What people accepted, read beside the configurations of a change and of its base (D4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Final

from msgspec import structs

from backstop.adapters.files import read_bytes
from backstop.config import Config
from backstop.config import waivers as waivers_file
from backstop.core import baseline as baselines
from backstop.core.accepted import Accepted
from backstop.core.baseline import AgentBaseline
from backstop.core.waivers import Waiver
from backstop.errors import ConfigError

BASELINE: Final = "backstop-baseline.json"
"""The baseline's name, beside ``backstop.yaml``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptances:
    """Both files of one checkout, as far as they are there."""

    waivers: tuple[Waiver, ...] = ()
    baselines: Mapping[str, AgentBaseline] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepting:
    """What the change accepts, and its base; `base` is None where none is at hand.

    `strict` says that only the base's word counts, `max_days` how far ahead a waiver may expire.
    """

    head: Acceptances
    base: Acceptances | None
    strict: bool
    max_days: int

    def of(self, agent: str, *, today: date) -> Accepted:
        """What counts for one agent on a day."""
        base = self.base or self.head
        known = [one for one in base.waivers if one.agent == agent]
        waivers, brought = _told_apart(
            [one for one in self.head.waivers if one.agent == agent], known
        )
        held, theirs = self.head.baselines.get(agent), base.baselines.get(agent)
        if self.strict and theirs is None and held is not None:
            # Of what does not count yet, it is still told when and by whom it was written.
            theirs = structs.replace(held, findings=())
        return Accepted(
            today=today,
            waivers=tuple(known if self.strict else waivers),
            proposed=brought if self.strict else (),
            baseline=theirs if self.strict else held,
            added=baselines.added(held, theirs),
            strict=self.strict,
            max_days=self.max_days,
        )


def accepting(config: Config, base_config: Config | None) -> Accepting:
    """What lies beside the configurations.

    Raises `ConfigError` for a file that says something without meaning, or of no agent.
    """
    configs = [config] if base_config is None else [config, base_config]
    head = accepted_beside(config)
    _check_agents(head, configs, config.file)
    base = None
    if base_config is not None:
        # Where a base has no configuration of its own, the change's stands in for it.
        base = Acceptances() if base_config.file == config.file else accepted_beside(base_config)
    return Accepting(
        head=head,
        base=base,
        strict=base is not None and any(one.gate.waivers == "base" for one in configs),
        max_days=min(one.gate.max_waiver_days for one in configs),
    )


def accepted_beside(config: Config) -> Acceptances:
    """Both files beside one configuration. Raises `ConfigError`."""
    folder = Path(config.file).parent
    return Acceptances(
        waivers=waivers_file.load(folder / waivers_file.FILE),
        baselines=baselines_in(folder / BASELINE),
    )


def baselines_in(path: Path) -> dict[str, AgentBaseline]:
    """The baselines in the file `path`, by agent; none where there is no such file."""
    if not path.is_symlink() and not path.exists():
        return {}
    return baselines.read(read_bytes(path), name=str(path))


def _told_apart(
    waivers: Sequence[Waiver], known: Sequence[Waiver]
) -> tuple[list[Waiver], tuple[Waiver, ...]]:
    """The waivers with those marked that are not `known`, and these alone; wherever they stand."""
    left = [replace(one, place="") for one in known]
    marked: list[Waiver] = []
    for waiver in waivers:
        plain = replace(waiver, place="")
        if plain in left:
            left.remove(plain)
            marked.append(waiver)
        else:
            marked.append(replace(waiver, added=True))
    return marked, tuple(one for one in marked if one.added)


def _check_agents(head: Acceptances, configs: Sequence[Config], file: str) -> None:
    names = {name for config in configs for name in config.agents}
    for waiver in head.waivers:
        if waiver.agent not in names:
            raise ConfigError(
                f"{waiver.place}: waives findings of agent {waiver.agent!r}, which {file} does "
                "not have: correct its name, or remove the waiver",
                slug="waiver-agent",
            )
