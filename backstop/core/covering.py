"""How much of a ledger a replay can speak for, from what it says of each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backstop.core.intents import RunReplayed
from backstop.core.verdict import Coverage


def cover(replayed: Mapping[str, RunReplayed], runs: Sequence[str]) -> Coverage:
    """Coverage of a replay over the runs of its ledger."""
    drifts = {run.drift for run in replayed.values()}
    drifted: dict[str, set[str]] = {}
    for run in replayed.values():
        for agent, parts in run.drifted.items():
            drifted.setdefault(agent, set()).update(parts)
    whole = [run for run in set(runs) & set(replayed) if replayed[run].not_replayable is None]
    return Coverage(
        runs_compared=len(whole),
        runs_total=len(runs),
        steps_total=sum(run.steps_total for run in replayed.values()),
        steps_assumed=sum(run.steps_assumed for run in replayed.values()),
        steps_lost=sum(
            max(0, run.steps_total - run.steps_assumed)
            for run in replayed.values()
            if run.not_replayable is not None
        ),
        drift=next((d for d in ("drifted", "unknown", "live") if d in drifts), "none"),
        drifted={agent: tuple(sorted(parts)) for agent, parts in sorted(drifted.items())},
        not_replayable={
            **dict.fromkeys(sorted(set(runs) - set(replayed)), "nothing is said of it"),
            **{
                name: run.not_replayable
                for name, run in sorted(replayed.items())
                if run.not_replayable is not None
            },
        },
    )
