"""A run that a live model takes part in, replayed as often as the policy demands.

Each repeat is a whole replay with answers of its own, since one answer decides what is asked
next. What the repeats show is compared by the gate; here their intents are told apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from backstop.core.intents import Intent, RunReplayed
from backstop.replay.answers import Recording
from backstop.replay.passes import Player, RunOutcome, replay_run

_WORST: tuple[str, ...] = ("drifted", "unknown", "live")


def replay_repeatedly(recording: Recording, play: Player) -> RunOutcome:
    """Replay a run once, and again where a live model has answered in it.

    The first repeat that cannot be played to its end is the last: more of them cost, and the
    run is not covered anyway.
    """
    live = recording.live
    first = replay_run(recording, play)
    if live is None or first.replayed.live in {msgspec.UNSET, 0}:
        return first
    outcomes = [first]
    for repeat in range(2, live.broker.limits.repeats + 1):
        if outcomes[-1].replayed.not_replayable is not None:
            break
        outcomes.append(replay_run(replace(recording, live=replace(live, repeat=repeat)), play))
    if len(outcomes) == 1:
        return first
    return replace(
        first,
        intents=tuple(
            _of_repeat(intent, number)
            for number, outcome in enumerate(outcomes, start=1)
            for intent in outcome.intents
        ),
        replayed=_together([outcome.replayed for outcome in outcomes]),
        escapes=tuple(dict.fromkeys(one for outcome in outcomes for one in outcome.escapes)),
    )


def _of_repeat(intent: Intent, number: int) -> Intent:
    return msgspec.structs.replace(intent, repeat=number)


def _together(runs: Sequence[RunReplayed]) -> RunReplayed:
    """How far all repeats together can speak for a run: as far as the one that went least."""
    drifted: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        for agent, parts in run.drifted.items():
            drifted[agent].update(parts)
    since = [run.assumed_from for run in runs if run.assumed_from is not None]
    drifts = {run.drift for run in runs}
    return msgspec.structs.replace(
        runs[0],
        steps_assumed=max(run.steps_assumed for run in runs),
        drift=next((drift for drift in _WORST if drift in drifts), runs[0].drift),
        drifted={agent: tuple(sorted(parts)) for agent, parts in sorted(drifted.items())},
        assumed_from=min(since, default=None),
        handed_over=tuple(sorted({cursor for run in runs for cursor in run.handed_over})),
        not_replayable=next((run.not_replayable for run in runs if run.not_replayable), None),
        live=sum(run.live for run in runs if run.live is not msgspec.UNSET),
        repeats=len(runs),
    )
