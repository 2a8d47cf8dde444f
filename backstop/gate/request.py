"""What the faces ask of the gate and of a replay, and what they get: values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from backstop.core.divergence import Kind
from backstop.core.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """Replay a version: `candidate` overrules the configured folder, `sandbox` the kind.

    `base` is the folder of the version that runs now, for a control run. Without `agent`, a
    configuration of one agent is meant.
    """

    config: Path
    agent: str | None = None
    candidate: Path | None = None
    base: Path | None = None
    sandbox: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRequest:
    """Judge a version; without `agent`, all agents of the configuration.

    `fail_on` overrules the configured kinds; `allow_empty` adds to the configuration.
    """

    replay: ReplayRequest
    fail_on: frozenset[Kind] | None = None
    allow_empty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict, and the milliseconds that it took: `load`, `replay` and `verdict`."""

    verdict: Verdict
    timing_ms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The sealed intents of a replay, as the bytes of their file, and their counts."""

    data: bytes
    intents: int
    runs_replayed: int
    runs_total: int
