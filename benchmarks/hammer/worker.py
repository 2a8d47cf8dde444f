"""A worker: takes ticks from a socket, performs each, and dies or stops where chance says."""

from __future__ import annotations

import os
import random
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum, auto
from pathlib import Path
from typing import Any, Final

import msgspec

from backstop.core.effectgate import Precondition
from backstop.core.events import CursorAdvanced, EffectClaimed, Event, Header
from backstop.errors import BackstopError
from backstop.guard.claims.capability import (
    Capability,
    DidNotHappen,
    Found,
    Happened,
    downstream_key,
    keyed,
    probe,
)
from backstop.guard.claims.claim import perform_now
from backstop.guard.claims.desk import Produced
from backstop.ports import Answer, Claim, InDoubt, Recorded, Settlement, Store
from benchmarks.hammer.plan import POINTS, Mode, Run
from benchmarks.hammer.stores import STEP, key_of, opened
from benchmarks.hammer.truth import Truth

FATES: Final = tuple(
    f"{blow.name} {point}" for blow in (signal.SIGKILL, signal.SIGSTOP) for point in POINTS
)
"""Every blow at every point, as it is written down by whom it hits."""


class Outcome(StrEnum):
    """What is to become of a message."""

    ACK = auto()
    """The step is behind: it never comes again."""
    HELD = auto()
    """Not done yet: it is given back."""
    DOUBT = auto()
    """In doubt, and listed for whoever may decide it."""


class Unavailable(Exception):
    """The provider said no: nothing happened."""


class Chaos:
    """Ends or stops its own process at the points of the protocol.

    A worker with a `fate` meets that blow as soon as it comes to its point, so that every run
    has every blow; all others are up to chance. A calm one does itself no harm.
    """

    def __init__(self, run: Run, folder: Path, *, fate: str, seed: int, calm: bool) -> None:
        self._run = run
        self._random = random.Random(seed)
        self._calm = calm
        self._fate = fate
        self._told = os.open(folder / "blows", os.O_APPEND | os.O_WRONLY)

    def point(self, name: str) -> None:
        """Nothing; or death, by a signal that nobody can catch; or a pause beyond the lease."""
        if self._calm:
            return
        if self._fate:
            if self._fate.endswith(f" {name}"):
                fate, self._fate = self._fate.split(" ")[0], ""
                self._hit(signal.Signals[fate], name)
            return  # nothing else happens to it before
        chance = self._random.random()
        if chance < self._run.kill:
            self._hit(signal.SIGKILL, name)
        elif chance < self._run.kill + self._run.stop:
            self._hit(signal.SIGSTOP, name)

    def _hit(self, blow: signal.Signals, name: str) -> None:
        os.write(self._told, f"{blow.name} {name}\n".encode())
        os.kill(os.getpid(), blow)

    def raises(self) -> bool:
        """Whether the provider's answer gets lost."""
        return not self._calm and self._random.random() < self._run.raises


@dataclass(slots=True)
class Watched:
    """A store with the points of the protocol around its calls."""

    inner: Store
    chaos: Chaos

    @property
    def header(self) -> Header:
        """That of the store."""
        return self.inner.header

    @property
    def blocking(self) -> bool:
        """As the store is."""
        return self.inner.blocking

    def append(self, event: Event) -> bool:
        """As the store does."""
        return self.inner.append(event)

    def claim(
        self, intent: EffectClaimed, precondition: Precondition | None = None
    ) -> Claim | Answer:
        """With a point before, and one after."""
        self.chaos.point("before claim")
        answer = self.inner.claim(intent, precondition)
        self.chaos.point("after claim")
        return answer

    def settle(self, settlement: Settlement, *, claim: Claim | None = None) -> None:
        """With a point before, and one after."""
        self.chaos.point("after execute")
        self.inner.settle(settlement, claim=claim)
        self.chaos.point("after commit")

    def read(self, run: str | None = None) -> Iterator[Event]:
        """As the store does."""
        return self.inner.read(run)


class Worker:
    """Performs ticks under the guard."""

    def __init__(self, run: Run, folder: Path, chaos: Chaos) -> None:
        self._run = run
        self._chaos = chaos
        self._truth = Truth(folder / "truth")
        self._store = Watched(opened(run, folder), chaos)
        self._taken = 0

    def perform(self, tick: str) -> Outcome:
        """One delivery of a tick: what is to become of the message."""
        intent = self._intent(tick)
        try:
            answer = perform_now(
                self._store,
                intent,
                lambda: self._call(intent),
                no_effect_on=(Unavailable,),
                capability=self._capability(tick),
            )
            if isinstance(answer, Recorded):
                self._store.append(
                    CursorAdvanced(run=tick, at="", step=STEP, cursor=1, effects=(intent.key,))
                )
                return Outcome.ACK
        except (BackstopError, Unavailable):
            return Outcome.HELD
        return Outcome.DOUBT if isinstance(answer, InDoubt) else Outcome.HELD

    def _intent(self, tick: str) -> EffectClaimed:
        self._taken += 1
        return EffectClaimed(
            run=tick,
            at="",
            step=STEP,
            tool="pay",
            key=key_of(tick),
            fingerprint="f",
            owner=f"worker {os.getpid()}/{self._taken}",
            lease_s=self._run.lease_s,
        )

    def _call(self, intent: EffectClaimed) -> Produced:
        self._chaos.point("before effect")
        if self._chaos.raises():
            raise Unavailable
        time.sleep(self._run.call_s)
        self._truth.act(intent.run, downstream_key(intent))
        self._chaos.point("after effect")
        if self._chaos.raises():
            raise TimeoutError
        return Produced(result=msgspec.Raw(msgspec.json.encode(f"paid {intent.run}")))

    def _capability(self, tick: str) -> Capability | None:
        def ask(_key: str, _arguments: Mapping[str, Any]) -> Found:
            return Happened(f"paid {tick}") if self._truth.happened(tick) else DidNotHappen()

        match self._run.mode:
            case Mode.PROBE:
                return probe(ask, settle=timedelta(seconds=self._run.settle_s))
            case Mode.KEYED:
                return keyed("key", retention="1h")
            case _:
                return None


class Naive:
    """The control: looks whether the tick is on record, runs it, and records it."""

    def __init__(self, run: Run, folder: Path, chaos: Chaos) -> None:
        self._run = run
        self._chaos = chaos
        self._truth = Truth(folder / "truth")
        self._records = folder / "records"
        self._records.mkdir(exist_ok=True)

    def perform(self, tick: str) -> Outcome:
        """One delivery of a tick."""
        self._chaos.point("before claim")
        record = self._records / tick
        if not record.exists():
            self._chaos.point("before effect")
            time.sleep(self._run.call_s)
            self._truth.act(tick, tick)
            self._chaos.point("after effect")
            record.touch()
            self._chaos.point("after commit")
        return Outcome.ACK


def work(run: Run, folder: Path, line: socket.socket, chaos: Chaos) -> None:
    """Serve one tick after the other until the line is closed."""
    worker = (Naive if run.mode is Mode.NAIVE else Worker)(run, folder, chaos)
    with line.makefile("rw", encoding="ascii") as talk:
        talk.write("ready\n")
        talk.flush()
        for tick in talk:
            talk.write(worker.perform(tick.strip()) + "\n")
            talk.flush()
