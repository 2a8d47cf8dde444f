"""What is to be replayed, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from backstop.core.declaration import Declaration
from backstop.core.events import Event, Header, RequestDigests
from backstop.core.intents import Intent, IntentsHeader, RunReplayed
from backstop.core.redaction import RedactionKey
from backstop.replay.broker import Broker
from backstop.replay.code import Code, Exercised
from backstop.replay.keyed import said
from backstop.replay.window import RECENT
from backstop.replay.wire import Ready

Progress: TypeAlias = Callable[[int, int], None]
"""Told runs done and runs in all, from any thread, one at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to replay: a ledger, and the candidate in folder `candidate`.

    `declarations` are the base's, by tool; `version` is the candidate's content digest as
    rows carry it. `control` are the requests of a base version's replay, which vouch for
    rows that carry none, and `handed` those of its handover; `is_control` says that this is
    that replay, and `base` is what came of it. `code` are the candidate's files; they are
    compared with the base's. `walls` says that the sandbox is to hold the candidate back.
    `unseen` is what changed and this replay cannot show, a line each. `workers` is how many
    processes to use, `recent` how many session events a bounded view shows at least (0: all
    are shown, always). `redaction_key` is the one that the ledger's
    tokens were made with: without it, values that the candidate computes anew cannot be compared.
    `live` answers model requests that have no proven answer on record; None: nobody does.
    """

    header: Header
    events: Sequence[Event]
    ledger: str
    candidate: Path
    version: str = ""
    declarations: Mapping[str, Declaration] = field(default_factory=dict)
    control: Mapping[int, RequestDigests] = field(default_factory=dict)
    handed: Mapping[int, RequestDigests] = field(default_factory=dict)
    is_control: bool = False
    base: Replay | None = None
    code: Code = field(default_factory=Code)
    walls: bool = True
    unseen: tuple[str, ...] = ()
    workers: int = 1
    recent: int = RECENT
    redaction_key: RedactionKey | None = None
    live: Broker | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What the candidate asked for, how far the replay can speak, and what the candidate is.

    `requests` go into the `control` of another candidate's plan, `handed` into its `handed`.
    `escapes` name what the candidate tried and was barred from; `logs` are digests of the
    runs' event logs.
    `exercised` is its code, and what the runs reached of it.
    """

    header: IntentsHeader
    intents: tuple[Intent, ...]
    runs: tuple[RunReplayed, ...]
    ready: Ready
    requests: Mapping[int, RequestDigests]
    handed: Mapping[int, RequestDigests]
    escapes: tuple[str, ...] = ()
    logs: Mapping[str, str] = field(default_factory=dict)
    exercised: Exercised = field(default_factory=Exercised)

    @property
    def schemas(self) -> dict[str, dict[str, object]]:
        """The parameters of the candidate's tools, by tool."""
        return {tool.tool: tool.schema for tool in self.ready.tools}

    @property
    def said(self) -> dict[str, Declaration]:
        """What the code of the candidate's tools declares of their effects, by tool."""
        return said(self.ready.tools)
