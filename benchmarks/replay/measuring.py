"""Replays with a meter: CPU seconds of driver and children, wall time, peak memory."""

from __future__ import annotations

import re
import resource
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Final

from backstop.adapters import process
from backstop.adapters.bounds import Limits
from backstop.adapters.content import version_of
from backstop.adapters.process import ProcessSandbox
from backstop.core.events import RequestDigests
from backstop.core.ledgerfile import Ledger
from backstop.replay.bundle import MODULE, write_bundle
from backstop.replay.driver import Driver
from backstop.replay.service import Plan, Replay, replay
from backstop.replay.window import RECENT

_INSIDE: Final = Path(__file__).parent / "inside"
_HARNESS: Final = "backstop_harness/replay/harness"
_SPENT: Final = re.compile(r"^SPENT (.*)$", re.MULTILINE)
_HOURS: Final = 7200.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """CPU seconds of the driver and of the candidate's processes, and seconds of wall time.

    `shares` are the seconds of the runs by owner, where a sampler was inside.
    """

    driver: float
    children: float
    wall: float
    shares: Mapping[str, float]

    @property
    def cpu(self) -> float:
        """All CPU seconds."""
        return self.driver + self.children


@dataclass(slots=True, kw_only=True)
class Metered:
    """The process sandbox; keeps what its candidates print."""

    bundle: Callable[[Path], None] = write_bundle
    noise: list[process.Conversation] = field(default_factory=list)

    def start(self, agent: Path) -> process.Conversation:
        """Start the candidate."""
        limits = Limits(silence_s=_HOURS, wall_s=_HOURS)
        sandbox = ProcessSandbox(bundle=self.bundle, module=MODULE, limits=limits)
        conversation = sandbox.start(agent)
        self.noise.append(conversation)
        return conversation

    def shares(self) -> dict[str, float]:
        """What samplers said, added up."""
        found: dict[str, float] = {}
        for conversation in self.noise:
            for told in _SPENT.findall(conversation.noise):
                for share in told.split():
                    name, _, seconds = share.partition("=")
                    found[name] = found.get(name, 0.0) + float(seconds)
        return found


def stock_bundle(folder: Path) -> None:
    """The harness with the framework's own sessions."""
    write_bundle(folder)
    shutil.copyfile(_INSIDE / "stock.py", folder / _HARNESS / "sessions.py")


def sampled_bundle(folder: Path) -> None:
    """The harness with a sampler inside."""
    write_bundle(folder)
    shutil.copyfile(_INSIDE / "sampler.py", folder / _HARNESS / "sampler.py")
    with (folder / _HARNESS / "runs.py").open("a", encoding="utf-8") as runs:
        runs.write("\n\nfrom .sampler import sampled  # noqa: E402\n\nplay = sampled(play)\n")


def start_only(agent: Path) -> float:
    """CPU seconds of a harness that imports `agent` and leaves."""
    _, before = _spent()
    driver = Driver(Metered().start(agent))
    driver.ready()
    driver.quit()
    return _spent()[1] - before


def measured(
    ledger: Ledger,
    agent: Path,
    *,
    bundle: Callable[[Path], None] = write_bundle,
    control: Mapping[int, RequestDigests] | None = None,
    is_control: bool = False,
    workers: int = 1,
    recent: int = RECENT,
    drift: str = "none",
) -> tuple[Replay, Measured]:
    """A replay, and what it cost; each of its runs must have come to its end with this `drift`."""
    plan = Plan(
        header=ledger.header,
        events=ledger.events,
        ledger=ledger.digest,
        candidate=agent,
        version=version_of(agent),
        control=control or {},
        is_control=is_control,
        workers=workers,
        recent=recent,
    )
    sandbox = Metered(bundle=bundle)
    began, (driver, children) = perf_counter(), _spent()
    done = replay(plan, sandbox)
    wall, (driver_after, children_after) = perf_counter() - began, _spent()
    broken = [run.not_replayable for run in done.runs if run.not_replayable]
    if broken or any(run.drift != drift for run in done.runs):
        raise SystemExit(f"the replay is not what was to be measured: {broken or done.runs}")
    return done, Measured(
        driver=driver_after - driver,
        children=children_after - children,
        wall=wall,
        shares=sandbox.shares(),
    )


def _spent() -> tuple[float, float]:
    mine, theirs = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return mine.ru_utime + mine.ru_stime, theirs.ru_utime + theirs.ru_stime
