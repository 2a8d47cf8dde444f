"""What the faces ask of the gate and of a replay, and what they get: values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeAlias

from backstop.core.divergence import Kind
from backstop.core.verdict import Verdict

MOST_REPEATS: Final = 9
"""How often a version is replayed at most."""


class SandboxKind(StrEnum):
    """Where the candidate's code runs."""

    PROCESS = "process"
    DOCKER = "docker"
    NONE = "none"


class Runtime(StrEnum):
    """Whose containers the `docker` sandbox is made of; `none` is the `process` sandbox."""

    DOCKER = "docker"
    PODMAN = "podman"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ancestor:
    """A file as an earlier commit of the base had it, fetched to `file`."""

    commit: str
    file: Path


Ancestors: TypeAlias = Callable[[Path], Ancestor | None]
"""Finds a file that the base checkout lacks in the nearest of its ancestors that has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """Replay a version: `candidate` overrules the configured folder, `sandbox` the kind.

    `base` is the folder of the version that runs now, for a control run, or the checkout that
    holds it, or its folder of the configuration; `base_is_checkout` says that it is such a one,
    whatever lies in it. `top` and `base_top` are where the two checkouts begin, found by what
    lies in them where left out. `ancestors` finds a ledger that the base's commit lacks.
    `sandbox` is a `SandboxKind`, `runtime` a `Runtime`. Without `agent`, a configuration of one
    agent is meant. `cassette` keeps the answers of live models; `offline` has none asked.
    `environ` are the variables by which one is asked, in place of our own. `candidate_python` and
    `base_python` are the interpreters with the packages of each version, in place of the one that
    the base configures: they start outside of the sandbox, so the caller has to vouch for them.
    """

    config: Path
    agent: str | None = None
    candidate: Path | None = None
    base: Path | None = None
    base_is_checkout: bool = False
    top: Path | None = None
    base_top: Path | None = None
    ancestors: Ancestors | None = None
    sandbox: str | None = None
    runtime: str | None = None
    candidate_python: str | None = None
    base_python: str | None = None
    cassette: Path | None = None
    offline: bool = False
    environ: Mapping[str, str] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRequest:
    """Judge a version; without `agent`, all agents of the configuration.

    `fail_on` overrules the configured kinds; `allow_empty` adds to the configuration. Without
    `subtract` what the base does already is a fault all the same: on a push, before a deploy (D3).
    `changed_only` carries agents forward that the change from the base cannot concern. What
    takes long is kept in `cache_dir`, sealed with the secret `cache_key`; without that one
    nothing is kept or believed. Both versions are replayed `repeat` times, each time in another
    world: what does not come out alike is unstable.
    """

    replay: ReplayRequest
    fail_on: frozenset[Kind] | None = None
    allow_empty: bool = False
    subtract: bool = True
    changed_only: bool = False
    repeat: int = 1
    cache_dir: Path | None = None
    cache_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict, and the milliseconds that it took: `load`, `replay` and `verdict`.

    `ledgers` tells by agent where its ledger was taken from, and as of when. `remarks` tell how
    the verdict came about; like the timing they are no part of it, and of no digest. `carried`
    are the agents that were not judged anew, since nothing of theirs changed.
    """

    verdict: Verdict
    timing_ms: Mapping[str, float] = field(default_factory=dict)
    ledgers: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()

    @property
    def is_applicable(self) -> bool:
        """Was anything judged? A change that concerns no agent leaves nothing to judge."""
        return len(self.carried) < len(self.verdict.agents)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The sealed intents of a replay, as the bytes of their file, and their counts.

    `calls` are those of a live model.
    """

    data: bytes
    intents: int
    runs_replayed: int
    runs_total: int
    calls: int = 0
