"""What ``backstop.yaml`` says of tools' effects, with its names looked up when they are needed."""

from __future__ import annotations

import builtins
import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from backstop.config import Agent, Vouched
from backstop.errors import ConfigError
from backstop.guard.claims.capability import Capability, Keyed, Probe
from backstop.guard.claims.safety import LEASE_S, Safety


def vouched_for(agent: Agent) -> Mapping[str, Safety]:
    """How the effects of an agent's tools may be tried again, as far as its configuration says.

    Names are imported when a tool is first asked for: by then the agent's code is loaded. One
    that leads nowhere is told in `Safety.broken`, never raised.
    """
    return _Vouched(agent.vouched)


class _Vouched(Mapping[str, Safety]):
    def __init__(self, said: Mapping[str, Vouched]) -> None:
        self._said = said
        self._known: dict[str, Safety] = {}

    def __getitem__(self, tool: str) -> Safety:
        if tool not in self._known:
            self._known[tool] = _resolved(tool, self._said[tool])
        return self._known[tool]

    def __iter__(self) -> Iterator[str]:
        return iter(self._said)

    def __len__(self) -> int:
        return len(self._said)


def _resolved(tool: str, said: Vouched) -> Safety:
    try:
        return Safety(
            capability=_capability(said),
            no_effect_on=tuple(_exception(name) for name in said.no_effect_on),
            lease_s=LEASE_S if said.lease_s is None else said.lease_s,
        )
    except ConfigError as error:
        return Safety(broken=f"{tool}: {error} ({error.slug})")


def _capability(said: Vouched) -> Capability | None:
    if said.keyed is not None:
        param, retention_s = said.keyed
        return Keyed(param=param, retention_s=retention_s)
    if said.probe is None:
        return None
    name, settle_s = said.probe
    function = _named(name)
    if not callable(function):
        raise ConfigError(
            f"backstop.yaml names {name}, which cannot be called; name a function",
            slug="config-name",
        )
    return Probe(ask=function, settle_s=settle_s)


def _exception(name: str) -> type[Exception]:
    kind = _named(name) if ":" in name else getattr(builtins, name, None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        raise ConfigError(
            f"backstop.yaml names {name}, which is no exception class; write a built-in one's "
            "name, or package.module:Name",
            slug="config-name",
        )
    return kind


def _named(name: str) -> Any:  # noqa: ANN401 - whatever stands under a user's name
    """What stands under ``package.module:Name``; raises `ConfigError` (``config-name``)."""
    module, _, member = name.partition(":")
    try:
        return getattr(importlib.import_module(module), member)
    except Exception as error:  # a user's module may raise anything on import
        raise ConfigError(
            f"backstop.yaml names {name}, which cannot be imported: {type(error).__name__}: "
            f"{error}; correct the name, or install what it needs",
            slug="config-name",
        ) from error
