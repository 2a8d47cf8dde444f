"""What the parts need from outside: protocols of at most four methods.

An expected answer ("done before", "held by another") is a value; an exception means that
the work could not be done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

import msgspec

from backstop.core.effectgate import (
    Frozen,
    LeaseLost,
    PastHorizon,
    Precondition,
    StaleEpoch,
    Unverified,
)
from backstop.core.events import (
    NOTHING,
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectInDoubt,
    EffectResolved,
    Event,
    Failure,
    Header,
)
from backstop.core.lifecycle import Phase


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """The current instant, timezone-aware, in UTC."""
        ...


class Claim(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The exclusive right to run one effect: who holds it, and under which fence.

    `override` is what makes it another than the effect that went out under the key before, where
    the store said so itself: that one was taken back.
    """

    run: str
    key: str
    owner: str
    fence: int
    override: str | None = None


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
    """It may have happened; it never runs again by itself.

    `fence` is the record's, `capability`, `retention_s` and `settle_s` are those of the claim
    that ended in doubt: what was not claimed as keyed was not sent with a key. `age_s` is how
    long it has been in doubt, `claim_age_s` how long ago it was first claimed, both by the
    store's time. `gone` says that whoever ran it provably runs no more. `override` is that of
    the claim; `repeats` says that the effect was committed before, and this is once more.
    """

    reason: str
    fence: int = 0
    capability: str = ""
    retention_s: float = 0
    settle_s: float = 0
    age_s: float = 0
    claim_age_s: float = 0
    gone: bool = False
    override: str | None = None
    repeats: bool = False


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """The key is taken by a call with other arguments: those, as canonical JSON.

    `compensate` says that it went out, that trust in it broke, and that it is to be taken back.
    """

    fingerprint: str
    args: msgspec.Raw
    compensate: bool = False


Answer: TypeAlias = (
    Recorded
    | Refused
    | Held
    | InDoubt
    | Conflict
    | Frozen
    | StaleEpoch
    | PastHorizon
    | Unverified
    | LeaseLost
)
"""What is said instead of granting a claim; the last five are what the mesh withholds."""

Settlement: TypeAlias = EffectCommitted | EffectFailed | EffectInDoubt | EffectResolved


class LedgerStore(Protocol):
    """Keeps the ledger, and decides who may run an effect. It stamps events with its own time.

    `header` says whose ledger it is and holds every declaration that rows were written under.
    `blocking` says that its methods wait for a network, and do not belong on an event loop.
    """

    @property
    def header(self) -> Header:
        """Whose ledger it is, and under which rules its rows were written."""
        ...

    @property
    def blocking(self) -> bool:
        """Does it wait for a network?"""
        ...

    def append(self, event: Event) -> bool:
        """Add a fact that is not about an effect's record; its `at` is set here.

        False, and nothing added, if the run says it already and can say it only once (`once`).
        Raises `BackstopError` (``cursor-held``) for a cursor over an effect of its step, or one
        that it names, that is not decided (I4).
        """
        ...

    def claim(
        self, intent: EffectClaimed, precondition: Precondition | None = None
    ) -> Claim | Answer:
        """Take the right to run `intent`, or say why not; `at` and `fence` are set here.

        A claim whose owner is gone, or whose lease is over where nobody can see its owner,
        becomes in doubt. What is committed is granted again, once for each override. Raises
        `BackstopError` if the store cannot decide.

        With a `precondition` nothing is granted, or told from the record, unless it holds in the
        very transaction that writes the claim. A suspect effect that is asked for again as it
        was is reaffirmed then; asked for otherwise, it is to be taken back; and once it was, its
        key is free.
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


class Liveness(Enum):
    """What can be seen of the owner of a claim."""

    ALIVE = auto()
    GONE = auto()
    """Provably: it will never act again."""
    UNKNOWN = auto()
    """It runs, or ran, where nobody here can look: only its lease tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where one effect stands in a store: its claim in force, and what can be seen of its owner.

    `since_s` is how long ago it last moved, by the store's time; `settled` is what moved it
    last, None while it runs.
    """

    claimed: EffectClaimed
    phase: Phase
    fence: int
    owner: Liveness
    since_s: float
    settled: Settlement | None


class Custody(Protocol):
    """Who holds what: for the person who decides what is in doubt."""

    def standings(self, key: str | None = None) -> Iterator[Standing]:
        """Every effect that is not decided, oldest first; or the effect of `key`, decided or not.

        `key` may be the beginning of one.
        """
        ...


class Judge(Protocol):
    """Knows the verdicts of a mesh."""

    def judge(self, intent: EffectClaimed) -> Precondition | Unverified:
        """What a claim on `intent` must come with, as judged now; or why it may not be made.

        Raises `BackstopError` if nobody can tell.
        """
        ...


class Records(LedgerStore, Custody, Protocol):
    """What the guard needs of a store."""


class Stamped(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """An event on its way out of a store. All stamps of a ledger, sorted, are its order.

    `stamp` never falls along cause and effect; `tie` tells equal stamps apart, the same way at
    each look.
    """

    stamp: int
    tie: str
    line: bytes


class Snapshots(Protocol):
    """Lets a ledger be pulled as it was at one instant, part by part."""

    def parts(self, at: datetime) -> Sequence[str]:
        """Names of the parts that make the ledger, the same ones at each call for one instant."""
        ...

    def pull(self, part: str, *, at: datetime) -> Iterator[Stamped]:
        """The events of one part up to `at`, in no order; the same ones at each call."""
        ...


class Store(Records, Snapshots, Protocol):
    """All that an adapter of a store offers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A message as it was handed over; the same one may come again, under this id or another."""

    id: str
    attributes: Mapping[str, str]
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Acknowledge the message: what it asks for is behind."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """Give the message back: what it asks for is not done, and it has to come again."""

    reason: str


Handled: TypeAlias = Done | Later


class Rewriting(Protocol):
    """Changes stored lines; each line of a ledger is shown to it before any is changed."""

    def look(self, line: bytes) -> None:
        """Take note of what a line says."""
        ...

    def erased(self, line: bytes) -> Mapping[str, msgspec.Raw] | None:
        """The members that the line has from now on; None if it stays as it is."""
        ...


@runtime_checkable
class Erasable(Protocol):
    """A store whose past can be changed, so that a person can be taken out of it."""

    def rewrite(self, rewriting: Rewriting) -> None:
        """Change lines where they stand; what is cut off is finished by doing it again.

        Nothing of what was there stays where the store can reach it.
        """
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """A request to a model: `body` is a JSON object of its `contents` and its `config`.

    `answer` is how many tokens it allows the model to answer; None if it does not say.
    """

    model: str
    body: bytes
    answer: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSaid:
    """A model's answer in the framework's form, as JSON, and the tokens that it took."""

    response: bytes
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSilent:
    """There is no answer that could be used, and `why`; it may have cost tokens all the same."""

    why: str
    tokens_in: int = 0
    tokens_out: int = 0


class ModelBroker(Protocol):
    """Asks models in a candidate's place, which has no network."""

    def ask(self, request: ModelRequest) -> ModelSaid | ModelSilent:
        """Ask once, within a bounded time; never raises for what a model or a network does."""
        ...
