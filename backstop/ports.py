"""What the parts need from outside: protocols of at most four methods.

An expected answer ("done before", "held by another") is a value; an exception means that
the work could not be done.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeAlias

import msgspec

from backstop.core.events import (
    NOTHING,
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectInDoubt,
    EffectResolved,
    Event,
    Failure,
)


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """The current instant, timezone-aware, in UTC."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The exclusive right to run one effect: who holds it, and under which fence."""

    run: str
    key: str
    owner: str
    fence: int


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """The effect is committed: its stored result, and what it changed in the session, as JSON.

    `actions` is what the tool's body did to the flow of the run.
    """

    result: msgspec.Raw = NOTHING
    state_delta: msgspec.Raw = NOTHING
    actions: msgspec.Raw = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The effect failed for good: what it raised."""

    error: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Another owner is at it; not done yet, so nobody may move past it."""

    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InDoubt:
    """It may have happened; it never runs again by itself."""

    reason: str


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """The key is taken by a call with other arguments: those, as canonical JSON."""

    fingerprint: str
    args: msgspec.Raw


Answer: TypeAlias = Recorded | Refused | Held | InDoubt | Conflict
"""What a store says instead of granting a claim."""

Settlement: TypeAlias = EffectCommitted | EffectFailed | EffectInDoubt | EffectResolved


class LedgerStore(Protocol):
    """Keeps the ledger, and decides who may run an effect. It stamps events with its own time."""

    def append(self, event: Event) -> None:
        """Add a fact that is not about an effect's record; its `at` is set here."""
        ...

    def claim(self, intent: EffectClaimed) -> Claim | Answer:
        """Take the right to run `intent`, or say why not; `at` and `fence` are set here.

        `intent.owner` is a token of this one attempt. A claim whose owner is gone becomes
        in doubt. Raises `BackstopError` if the store cannot decide.
        """
        ...

    def settle(self, settlement: Settlement, *, claim: Claim | None = None) -> None:
        """Say what became of an effect. Without a `claim` only a resolution is accepted.

        Raises `StaleClaim` if the claim was superseded, and `BackstopError`
        (``illegal-move``) for a move that the lifecycle does not have.
        """
        ...

    def read(self, run: str | None = None) -> Iterator[Event]:
        """The events of one run, or of all, in the order in which they happened."""
        ...


class Conversation(Protocol):
    """A candidate that runs in a sandbox: lines to it, and lines from it, which nobody trusts."""

    def send(self, line: bytes) -> None:
        """Send one line, newline included. Raises `SandboxError` if the candidate is gone."""
        ...

    def receive(self) -> bytes | None:
        """The next line without its newline; None once the candidate has left.

        Raises `WireError` for a line beyond bounds, `SandboxError` for a candidate that is
        silent for too long or out of time.
        """
        ...

    def close(self) -> None:
        """End the candidate and whatever it started, and leave nothing behind."""
        ...


class Sandbox(Protocol):
    """Runs candidates where they can do no harm."""

    def start(self, agent: Path) -> Conversation:
        """Start the candidate in folder `agent`; it speaks first. Raises `SandboxError`."""
        ...
