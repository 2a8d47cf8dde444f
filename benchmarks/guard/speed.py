"""The race: one table for contenders of like durability, ours set against each of them."""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.guard.contenders import (
    AT_MOST,
    AT_MOST_MS,
    AT_MOST_MS_AGAIN,
    CONTENDERS,
    RACES,
)
from benchmarks.guard.disk import sync_ms
from benchmarks.guard.hosts import Host, hosted
from benchmarks.guard.servers import Servers


@dataclass(slots=True, kw_only=True)
class Times:
    """Milliseconds: the median of each turn, and all calls together."""

    turns: list[float] = field(default_factory=list)
    calls: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)
    syncs: list[float] = field(default_factory=list)


def report(folder: Path, servers: Servers, *, rounds: int) -> None:
    """Run and print every race."""
    for names in RACES:
        survives = CONTENDERS[names[0]].survives
        print(f"\na claim that was granted survives: {survives}; {rounds} rounds, ms a call")
        times = race(names, folder, servers, rounds=rounds)
        _print(names, times)


def race(
    names: tuple[str, ...], folder: Path, servers: Servers, *, rounds: int
) -> dict[str, Times]:
    """All of them take a turn in each round, each from another place."""
    times = {name: Times() for name in names}
    with ExitStack() as stack:
        hosts = [stack.enter_context(hosted(name, folder, servers)) for name in names]
        for host in hosts:
            host.fresh(CONTENDERS[host.name].warm)
        for number in range(rounds):
            for host in hosts[number % len(hosts) :] + hosts[: number % len(hosts)]:
                _turn(host, times[host.name], folder)
    return times


def _turn(host: Host, times: Times, folder: Path) -> None:
    times.syncs.append(sync_ms(folder))
    spent, refs = host.fresh(CONTENDERS[host.name].calls)
    times.turns.append(statistics.median(spent))
    times.calls += spent
    if host.name.startswith("dbos"):
        host.single(refs[:3])  # a workflow of its own each: only such a call can be repeated
        refs = refs[:3]
    times.again += host.again(refs)


def _print(names: tuple[str, ...], times: dict[str, Times]) -> None:
    print(f"  {'':26} {'p50':>7} {'p95':>7} {'again':>7} {'fdatasync':>10}   ours/theirs")
    ours = times[names[0]]
    for name in names:
        one = times[name]
        p95 = statistics.quantiles(one.calls, n=20)[-1]
        print(
            f"  {name:26} {statistics.median(one.calls):7.3f} {p95:7.3f} "
            f"{statistics.median(one.again):7.3f} {statistics.median(one.syncs):10.3f}   "
            f"{_judged(name, one, ours)}"
        )


def _judged(name: str, one: Times, ours: Times) -> str:
    said = []
    if one is not ours:
        # Turn by turn: a disk that changes its pace meanwhile changes it for both.
        pairs = zip(ours.turns, one.turns, strict=True)
        said.append(_goal(statistics.median(a / b for a, b in pairs), AT_MOST.get(name), "x"))
    if name in AT_MOST_MS:
        said.append(_goal(statistics.median(one.calls), AT_MOST_MS[name], " ms"))
    if name in AT_MOST_MS_AGAIN:
        said.append("again " + _goal(statistics.median(one.again), AT_MOST_MS_AGAIN[name], " ms"))
    return ", ".join(said)


def _goal(value: float, limit: float | None, unit: str) -> str:
    if limit is None:
        return f"{value:.2f}{unit}"
    held = "reached" if value <= limit else "MISSED"
    return f"{value:.2f}{unit} (goal <= {limit:g}{unit}: {held})"
