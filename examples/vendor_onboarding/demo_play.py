"""The demonstration while it is on: ticks go out, workers are killed, doubts are resolved."""

from __future__ import annotations

import asyncio
import sys
import textwrap
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from backstop.adapters.pubsub import Outbox
from backstop.core.events import NOTHING
from backstop.core.lifecycle import Phase
from backstop.guard.claims.resolving import Word, may_run, resolve
from backstop.ports import Standing, Store
from examples.vendor_onboarding.demo_cast import Cast
from examples.vendor_onboarding.demo_truth import Deed, Truth, deed
from examples.vendor_onboarding.demo_worker import Report
from examples.vendor_onboarding.story import VENDORS
from examples.vendor_onboarding.world import USER

_LOOKS_EVERY_S: Final = 0.2
_AHEAD: Final = 2
"""So many ticks of a run are under way: one that comes too early has to wait."""


@dataclass(frozen=True)
class Plan:
    """What is played: how many ticks each vendor gets, and where workers are killed.

    A message that a killed worker held comes again after ten seconds; the play waits for it
    unless it is `brief`: others have done its step by then.
    """

    ticks: Mapping[str, int]
    crashes: tuple[tuple[Deed, str], ...]
    workers: int = 3
    copies: int = 3
    within_s: float = 300
    brief: bool = False


@dataclass
class Stage:
    """What is known of the play while it is on."""

    plan: Plan
    handled: int = 0
    given_back: int = 0
    acknowledged: set[str] = field(default_factory=set)
    published: set[str] = field(default_factory=set)
    reached: dict[str, int] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    def hear(self, report: Report) -> None:
        """Take in what a worker says of one delivery."""
        self.handled += 1
        if not report.done:
            self.given_back += 1
            self.reasons.append(report.reason)
            return
        self.acknowledged.add(report.id)
        self.reached[report.run] = max(self.reached.get(report.run, 0), report.cursor + 1)

    @property
    def over(self) -> bool:
        """Whether every step is done, and every message acknowledged that will be."""
        runs = {run_of(vendor): ticks for vendor, ticks in self.plan.ticks.items()}
        lost = len(self.plan.crashes) if self.plan.brief else 0
        return self.reached == runs and len(self.published - self.acknowledged) <= lost


def run_of(vendor: str) -> str:
    """The id of a vendor's run."""
    return next(one.run for one in VENDORS if one.key == vendor)


class Play:
    """Publishes the ticks, kills workers, resolves doubts, until nothing is left to do."""

    def __init__(
        self, *, stage: Stage, store: Store, outbox: Outbox, world: Path, show: Show
    ) -> None:
        self._stage = stage
        self._store = store
        self._outbox = outbox
        self._truth = Truth(world / "truth.jsonl")
        self._plans = world / "crashes"
        self._show = show
        self._sent = dict.fromkeys(stage.plan.ticks, 0)
        self._until = time.monotonic() + stage.plan.within_s

    async def go(self, cast: Cast) -> bool:
        """Play it to its end; False if time ran out before."""
        while not self._stage.over:
            if time.monotonic() > self._until:
                return False
            cast.check()
            await asyncio.to_thread(self._publish)
            for taken in await asyncio.to_thread(self._taken):
                await cast.kill(int(taken.suffix[1:]))
                self._show.say(f"kill -9  {taken.stem}")
            for doubt in await asyncio.to_thread(self._doubts):
                await asyncio.to_thread(self._resolve, doubt)
            self._show.progress(self._stage, sum(self._stage.plan.ticks.values()), cast.killed)
            await asyncio.sleep(_LOOKS_EVERY_S)
        return True

    def _publish(self) -> None:
        """Every tick three times, and some before their turn."""
        stage = self._stage
        for vendor, ticks in stage.plan.ticks.items():
            due = min(ticks, stage.reached.get(run_of(vendor), 0) + _AHEAD)
            for cursor in range(self._sent[vendor], due):
                ids = (self._send(vendor, cursor) for _ in range(stage.plan.copies))
                stage.published.update(ids)
            self._sent[vendor] = max(due, self._sent[vendor])

    def _send(self, vendor: str, cursor: int) -> str:
        opening = msgspec.json.encode({"vendor": vendor, "tick": 0}).decode()
        about = {"run": run_of(vendor), "cursor": str(cursor), "user": USER, "state": opening}
        return self._outbox.publish(b"agent.tick", about)

    def _taken(self) -> list[Path]:
        """The crashes that wait: a worker stands in the middle of an effect, and names itself."""
        taken = list(self._plans.glob("*.[0-9]*"))
        for plan in taken:
            plan.unlink()
        return taken

    def _doubts(self) -> list[Standing]:
        standings = self._store.standings()
        return [one for one in standings if one.phase is Phase.IN_DOUBT and not may_run(one)]

    def _resolve(self, doubt: Standing) -> None:
        """A person looks whether it happened: here, into the file that the tools write."""
        claimed = doubt.claimed
        arguments = msgspec.json.decode(claimed.args)
        what = deed(claimed.tool, arguments)
        assert what is not None  # noqa: S101 - only effects are claimed
        happened = what in self._truth.read()
        word = Word(
            to="committed" if happened else "reopened",
            by="person:Åsa Lindqvist",
            reason="the vendor has it" if happened else "there is none, and its worker is gone",
            result=_answer(claimed.tool, arguments) if happened else NOTHING,
            force=not happened,  # nothing of the killed process can still be under way
        )
        resolve(self._store, claimed.key, word)
        self._show.say(f"in doubt {what}: a person looks whether it happened, and says {word.to}")


def _answer(tool: str, arguments: Mapping[str, Any]) -> msgspec.Raw:
    """What the tool would have answered."""
    answer: dict[str, Any] = {"status": "sent"}
    if tool == "create_purchase_order":
        answer = {"po": arguments["po_ref"], "status": "open"}
    if tool == "schedule_reminder":
        answer = {"status": "scheduled", "in_days": arguments["days"]}
    return msgspec.Raw(msgspec.json.encode(answer))


class Show:
    """What is shown: on a terminal also how far it is."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()

    def say(self, line: str) -> None:
        """What stays, in lines of 80 columns."""
        self._clear()
        for part in textwrap.wrap(line, 80, subsequent_indent=" " * 9) or [""]:
            print(part, flush=True)

    def progress(self, stage: Stage, ticks: int, killed: int) -> None:
        """One line that goes."""
        if self._live:
            self._clear()
            told = (
                f"ticks {sum(stage.reached.values())}/{ticks}  deliveries {stage.handled}  "
                f"given back {stage.given_back}  killed {killed}"
            )
            print(told[:79], end="", file=sys.stderr, flush=True)

    def _clear(self) -> None:
        if self._live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
