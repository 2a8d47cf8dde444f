"""One run from start to end: the storm, the person who looks, the calm, and the count."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from backstop.core.events import CursorAdvanced, EffectFenced, EffectResolved
from backstop.core.lifecycle import Lives, Phase
from benchmarks.hammer.broker import Broker, Report
from benchmarks.hammer.plan import Mode, Run
from benchmarks.hammer.stores import key_of, opened
from benchmarks.hammer.truth import Truth
from benchmarks.hammer.worker import FATES

_ROUNDS: Final = 3
"""How often a person looks: a probe's answer may have to wait once more."""


class Seen(msgspec.Struct, kw_only=True):
    """What the store shows after the storm: the listing, and the ledger."""

    listed: list[str] = []
    advanced: list[str] = []
    resolved: int = 0
    fenced: int = 0
    illegal: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """What came of a run.

    `unlisted` are ticks in doubt that the store did not list; `unhit` is how many blows, each
    at its point of the protocol, were never dealt.
    """

    run: Run
    report: Report
    effects: int
    duplicates: int
    skips: int
    unfinished: int
    unlisted: int
    illegal: int
    in_doubt: int
    by_hand: int
    fenced: int
    unhit: int

    @property
    def right(self) -> bool:
        """Whether nothing went wrong."""
        wrong = self.duplicates + self.skips + self.unfinished + self.unlisted + self.illegal
        return not wrong and not self.unhit


def strike(run: Run, progress: Callable[[Report], None]) -> Count:
    """Hammer one store, and count what became of each tick."""
    with tempfile.TemporaryDirectory(prefix="hammer-") as name:
        folder = Path(name)
        ticks = [f"tick-{n:04d}" for n in range(run.ticks)]
        report = Broker(run, folder, progress).deliver(ticks)
        if run.mode is Mode.NAIVE:
            seen = Seen(advanced=sorted(report.acknowledged))
            return _count(run, folder, report, seen, Aftermath())
        return _cleared(run, folder, report, ticks)


@dataclass(slots=True)
class Aftermath:
    """What the storm left: how many ticks undone, how many of them unlisted, or said by hand."""

    in_doubt: int = 0
    unlisted: int = 0
    by_hand: int = 0
    unhit: int = 0


def _cleared(run: Run, folder: Path, report: Report, ticks: list[str]) -> Count:
    """After the storm a person decides what is in doubt, and what is undone comes once more."""
    undone = set(ticks) - report.acknowledged
    seen = _looked(run, folder)
    blows = set((folder / "blows").read_text(encoding="utf-8").splitlines())
    after = Aftermath(
        in_doubt=len(undone), unlisted=len(undone - set(seen.listed)), unhit=len(FATES) - len(blows)
    )
    for _ in range(_ROUNDS):
        missing = sorted(set(ticks) - set(seen.advanced))
        if not missing:
            break
        after.by_hand += _decided(run, folder).resolved
        calm = Broker(run, folder, lambda _: None, calm=True).deliver(missing)
        report.acknowledged |= calm.acknowledged
        seen = _looked(run, folder)
    return _count(run, folder, report, seen, after)


def _count(run: Run, folder: Path, report: Report, seen: Seen, after: Aftermath) -> Count:
    effects = Truth(folder / "truth").effects(run.mode)
    through = set(seen.advanced) | report.acknowledged
    return Count(
        run=run,
        report=report,
        effects=sum(effects.values()),
        duplicates=sum(times - 1 for times in effects.values()),
        skips=sum(tick not in effects for tick in through),
        unfinished=run.ticks - len(seen.advanced),
        unlisted=after.unlisted,
        illegal=seen.illegal,
        in_doubt=after.in_doubt,
        by_hand=after.by_hand,
        fenced=seen.fenced,
        unhit=after.unhit,
    )


def _looked(run: Run, folder: Path) -> Seen:
    return _apart(lambda: _look(run, folder))


def _decided(run: Run, folder: Path) -> Seen:
    return _apart(lambda: _decide(run, folder))


def _apart(ask: Callable[[], Seen]) -> Seen:
    """`ask` in a process of its own: the one that forks workers must never open a store."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reads)
            with os.fdopen(writes, "wb") as answer:
                answer.write(msgspec.json.encode(ask()))
            code = 0
        finally:
            os._exit(code)
    os.close(writes)
    with os.fdopen(reads, "rb") as answer:
        said = answer.read()
    _, status = os.waitpid(pid, 0)
    if status:
        raise SystemExit("the store could not be looked at")
    return msgspec.json.decode(said, type=Seen)


def _look(run: Run, folder: Path) -> Seen:
    store = opened(run, folder)
    lives = Lives(guarded=True)
    seen = Seen(listed=[one.claimed.run for one in store.standings()])
    for event in store.read():
        seen.illegal += lives.follow(event) is not None
        seen.fenced += isinstance(event, EffectFenced)
        if isinstance(event, CursorAdvanced):
            seen.advanced.append(event.run)
    return seen


def _decide(run: Run, folder: Path) -> Seen:
    """Everybody who could be at it is dead: a person looks at the world, and says what is so."""
    store, truth = opened(run, folder), Truth(folder / "truth")
    seen = Seen()
    for one in list(store.standings()):
        if one.phase is not Phase.IN_DOUBT:
            continue
        tick = one.claimed.run
        to = "committed" if truth.happened(tick) else "reopened"
        store.settle(
            EffectResolved(
                run=tick,
                at="",
                key=key_of(tick),
                to=to,
                by="a person",
                fence=one.fence + (to == "reopened"),
                reason="looked at the ground truth",
            )
        )
        seen.resolved += 1
    return seen
