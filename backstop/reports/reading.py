"""A verdict's document read back into a verdict, as far as a report needs it.

What was hidden stays hidden, and what a person accepted comes back as a note. Nothing is decided
anew: the document says what another run decided.
"""

from __future__ import annotations

from typing import Final

import msgspec

from backstop.core.baseline import BaselineUse
from backstop.core.divergence import Divergence, Half, Kind, Reason
from backstop.core.spending import LiveUse
from backstop.core.stability import UnstableField
from backstop.core.unshown import UnshownFinding
from backstop.core.verdict import AgentVerdict, Coverage, Decision, Judged, LedgerFacts, Verdict
from backstop.reports.document import VerdictFault
from backstop.reports.form import (
    AgentDocument,
    CallDocument,
    DivergenceDocument,
    LiveDocument,
    VerdictDocument,
)

_ADDED: Final = "this change accepts findings itself, by "


def verdict_of(document: VerdictDocument, *, name: str) -> Verdict:
    """The verdict that `document` tells. Raises `VerdictFault` for words that no verdict has."""
    try:
        verdict = Verdict(agents=tuple(_agent(agent) for agent in document.agents))
    except ValueError as fault:
        raise VerdictFault(f"{name}: {fault}; run the gate again") from None
    if verdict.agents and verdict.decision.value != document.decision:
        raise VerdictFault(
            f"{name}: it says {document.decision}, and its agents come to {verdict.decision}; run "
            "the gate again"
        )
    return verdict


def _agent(agent: AgentDocument) -> AgentVerdict:
    coverage, baseline = agent.coverage, agent.baseline
    counts = {name: getattr(agent.counts, name) for name in agent.counts.__struct_fields__}
    more = agent.other_counts
    added = tuple(f"{_ADDED}{waiver.about}" for waiver in agent.waivers if waiver.added)
    return AgentVerdict(
        agent=agent.agent,
        decision=Decision(agent.decision),
        ledger=LedgerFacts(
            events=agent.ledger.events,
            effects=agent.ledger.effects,
            runs=agent.ledger.runs,
            digest=agent.ledger.digest,
        ),
        coverage=Coverage(
            runs_compared=coverage.runs_compared,
            runs_total=coverage.runs_total,
            steps_total=coverage.steps_total,
            steps_assumed=coverage.steps_assumed,
            steps_lost=coverage.steps_lost,
            drift=coverage.drift,
            drifted={name: tuple(parts) for name, parts in coverage.drifted.items()},
            not_replayable={one.run: one.reason for one in coverage.not_replayable},
            uncovered=tuple(coverage.uncovered),
            unshown=tuple(
                UnshownFinding(**{name: getattr(one, name) for name in one.__struct_fields__})
                for one in coverage.unshown
            ),
            doubts=tuple(coverage.doubts),
        ),
        counts={**counts, **{name: getattr(more, name) for name in more.__struct_fields__}},
        judged=tuple(_judged(one) for one in agent.divergences),
        why=tuple(agent.why),
        notes=(*added, *agent.notes),
        neutral=agent.neutral,
        baseline=None
        if baseline is None
        else BaselineUse(**{name: getattr(baseline, name) for name in baseline.__struct_fields__}),
        replays=agent.replays,
        live=None if agent.live is msgspec.UNSET else _live(agent.live),
        unstable=tuple(
            UnstableField(**{name: getattr(one, name) for name in one.__struct_fields__})
            for one in agent.unstable
        ),
    )


def _live(told: LiveDocument) -> LiveUse:
    return LiveUse(
        repeats=told.repeats,
        agreement=told.agreement,
        calls=told.calls,
        tokens_in=told.tokens_in,
        tokens_out=told.tokens_out,
        models=tuple(told.models),
        unusual=tuple(told.unusual),
        runs=told.runs,
        answers=told.answers,
    )


def _judged(told: DivergenceDocument) -> Judged:
    return Judged(
        divergence=Divergence(
            kind=Kind(told.kind),
            reason=Reason(told.reason),
            tool=told.tool,
            run=told.run,
            step=told.step,
            cursor=0,
            recorded=_half(told.recorded, told),
            intended=_half(told.intended, told),
            fingerprint=told.fingerprint,
            paths=tuple(told.paths),
            difference=tuple(told.difference),
            assumed=told.assumed,
            in_doubt=told.in_doubt,
            handover=told.handover,
        ),
        pre_existing=told.pre_existing,
        waiver=told.waiver,
        known=told.known,
        unstable=told.unstable,
    )


def _half(side: CallDocument | None, told: DivergenceDocument) -> Half | None:
    if side is None:
        return None
    return Half(
        tool=told.tool, run=told.run, step=told.step, key=side.key, fingerprint="", args=side.args
    )
