"""The passes over one run, and what they say together (semantics.md A3, S2, D2).

A full pass asks for everything once. Where it met stand-ins, a second one with others shows
what depends on them. Steps of an open run are also replayed alone, from the session that a
new version would be handed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from backstop.core.canon import parse
from backstop.core.events import RequestDigests
from backstop.core.intents import Intent, Pass, RunReplayed
from backstop.core.runs import RecordedRun, Step
from backstop.replay.answers import Answers, Recording
from backstop.replay.driver import Played
from backstop.replay.models import Drift
from backstop.replay.standins import masked

Player = Callable[[RecordedRun, Sequence[Step], Answers], Played]
"""Replays steps of a run with these answers; never raises for what the candidate does."""

_SEEDS = (1, 2)
"""Of the stand-ins in the first and the second pass; one odd, one even."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """All that the replay of one run came to.

    `requests` are the digests of the model requests by place of the answer they got, `handed`
    those of the handover;
    `digest` is of the full pass's event log; `escapes` name what the candidate was barred
    from. `broken` says that the candidate's process cannot be used again.
    """

    intents: tuple[Intent, ...]
    replayed: RunReplayed
    requests: dict[int, RequestDigests] = field(default_factory=dict)
    handed: dict[int, RequestDigests] = field(default_factory=dict)
    digest: str = ""
    escapes: tuple[str, ...] = ()


def replay_run(recording: Recording, play: Player) -> RunOutcome:
    """Replay one run: the full pass, again with other stand-ins if need be, and handover."""
    run = recording.run
    steps = [step for step in run.steps if _has_record(step)]
    first, intents, unsure = _pass(recording, steps, play, Pass.FULL)
    failure = None if first.answers.failure is None else first.answers.failure.why
    escapes = list(first.played.escapes)
    if first.answers.window is None:
        recording = replace(recording, window=None)  # tried once and found too small
    alone: list[_Passed] = []
    doubtful: set[int] = set()
    if run.status is None and failure is None:
        for step in steps:
            handover, handed, shaky = _pass(recording, [step], play, Pass.HANDOVER)
            alone.append(handover)
            intents += handed
            escapes += handover.played.escapes
            doubtful |= shaky
            if handover.answers.assumed_from is not None:
                doubtful.add(step.cursor)
            if handover.answers.failure is not None:
                failure = failure or f"handover, {handover.answers.failure.why}"
    told = [f"step {step}: {what}" if step else what for step, what in escapes]
    if told and failure is None:
        failure = f"{told[0]}: barred, so an effect was not intercepted"
    return RunOutcome(
        intents=tuple(intents),
        replayed=_replayed(
            run, [first, *alone], unsure=unsure, handed_over=frozenset(doubtful), failure=failure
        ),
        requests=first.answers.requests,
        handed={k: v for one in alone for k, v in one.answers.requests.items()},
        digest=first.played.digest,
        escapes=tuple(f"run {run.id}, {what}" for what in dict.fromkeys(told)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Passed:
    answers: Answers
    played: Played


def _pass(
    recording: Recording, steps: Sequence[Step], play: Player, kind: Pass
) -> tuple[_Passed, list[Intent], frozenset[int]]:
    """One pass, and a second where stand-ins were met: the intents, and the unsure cursors."""
    first = _once(recording, steps, play, kind, _SEEDS[0])
    intents = first.answers.intents()
    if not first.answers.stand_ins_were_used or first.answers.failure is not None:
        return first, ordered(intents), frozenset()
    second = _once(recording, steps, play, kind, _SEEDS[1])
    merged = settled(intents, second.answers.intents())
    if second.answers.failure is not None:
        first.answers.fail(
            f"with other stand-ins: {second.answers.failure.why}", step=second.answers.failure.step
        )
    sure = {id(intent) for intent in intents}
    unsure = frozenset(intent.cursor for intent in merged if id(intent) not in sure)
    return first, ordered(merged), unsure


def _once(
    recording: Recording, steps: Sequence[Step], play: Player, kind: Pass, seed: int
) -> _Passed:
    """Play once; with a bounded view of the history only if nothing speaks against it."""
    if recording.window is not None:
        tried = _played(recording, steps, play, kind, seed, window=recording.window)
        if tried.answers.failure is None:
            return tried
    return _played(recording, steps, play, kind, seed)


def _played(
    recording: Recording,
    steps: Sequence[Step],
    play: Player,
    kind: Pass,
    seed: int,
    *,
    window: int | None = None,
) -> _Passed:
    answers = Answers(recording, seed=seed, replay=kind, window=window)
    if not steps:
        return _Passed(answers=answers, played=Played())
    return _Passed(answers=answers, played=play(recording.run, steps, answers))


def _has_record(step: Step) -> bool:
    """Is there anything to replay? A step that nobody ended and nothing answered never ran."""
    return bool(step.models or step.calls or step.ended == "done")


def settled(first: Sequence[Intent], second: Sequence[Intent]) -> list[Intent]:
    """A3: what came out equal with both sets of stand-ins stands as it is; the rest is assumed.

    An intent that differs only in the stand-ins it holds is one intent.
    """
    sure = Counter(map(_exact, second))
    alike = Counter(map(_masked, second))
    merged: list[Intent] = []
    for intent in first:
        stands = sure[_exact(intent)] > 0
        if stands:
            sure[_exact(intent)] -= 1
        alike[_masked(intent)] -= 1
        merged.append(intent if stands else msgspec.structs.replace(intent, assumed=True))
    for intent in second:
        if alike[_masked(intent)] > 0:
            alike[_masked(intent)] -= 1
            merged.append(msgspec.structs.replace(intent, assumed=True))
    return merged


def _exact(intent: Intent) -> tuple[str, ...]:
    return intent.step, intent.tool, intent.key, intent.fingerprint, bytes(intent.args).decode()


def _masked(intent: Intent) -> tuple[str, ...]:
    if not intent.holes:
        return _exact(intent)
    args = parse(bytes(intent.args))
    return intent.step, intent.tool, masked(args if isinstance(args, dict) else {})


def ordered(intents: Iterable[Intent]) -> list[Intent]:
    """By step, then canonically: parallel calls arrive in an order that means nothing."""
    return sorted(
        intents,
        key=lambda intent: (
            intent.cursor,
            intent.step,
            intent.tool,
            intent.key,
            intent.fingerprint,
            bytes(intent.args),
            intent.agent,
            -1 if intent.answered_by is None else intent.answered_by,
            intent.answered,
            intent.assumed,
        ),
    )


def _replayed(
    run: RecordedRun,
    passes: Sequence[_Passed],
    *,
    unsure: frozenset[int],
    handed_over: frozenset[int],
    failure: str | None,
) -> RunReplayed:
    """How far the replay can speak for the run (D2): the full pass first, then each handover."""
    full = passes[0].answers
    since = full.assumed_from
    assumed = {step.cursor for step in run.steps if since is not None and step.cursor >= since}
    ends = [since] if since is not None else []
    if full.failure is not None:
        ends.append(full.failure.step.cursor)
    drifts = {one.answers.drift for one in passes}
    drifted: dict[str, set[str]] = defaultdict(set)
    for one in passes:
        for agent, parts in one.answers.drifted.items():
            drifted[agent].update(parts)
    order = (Drift.DRIFTED, Drift.UNKNOWN, Drift.LIVE)
    worst = next((d.value for d in order if d in drifts), "none")
    return RunReplayed(
        run=run.id,
        steps_total=len(run.steps),
        steps_assumed=len(assumed | unsure | handed_over),
        drift=worst,
        drifted={agent: tuple(sorted(parts)) for agent, parts in sorted(drifted.items())},
        assumed_from=min(ends, default=None),
        handed_over=tuple(sorted(handed_over)),
        not_replayable=failure,
        live=sum(one.answers.live for one in passes) or msgspec.UNSET,
    )
