"""The verdict as a document: the JSON that is API, its schema and its digest.

Fields are only ever added. The digest covers everything but the timings and itself, and is
the same on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from backstop.core.baseline import BaselineUse
from backstop.core.canon import Json, NotCanonical, parse
from backstop.core.divergence import Half
from backstop.core.drift import by_part
from backstop.core.literal import literal
from backstop.core.spending import LiveUse
from backstop.core.stability import UnstableField
from backstop.core.verdict import AgentVerdict, Judged, Verdict, content_digest
from backstop.core.waivers import WaiverUse
from backstop.errors import BackstopError
from backstop.reports.escape import in_json
from backstop.reports.explain import rule, sentence
from backstop.reports.form import (
    AgentDocument,
    BaselineDocument,
    CallDocument,
    CountsDocument,
    CoverageDocument,
    DivergenceDocument,
    LedgerDocument,
    LiveDocument,
    OtherCountsDocument,
    RunReason,
    TimingDocument,
    UnshownDocument,
    UnstableDocument,
    VerdictDocument,
    WaiverDocument,
)

SCHEMA: Final = "backstop.verdict/1"


def document(verdict: Verdict, *, timing_ms: Mapping[str, float]) -> dict[str, Json]:
    """The verdict as plain JSON values; `timing_ms` may hold `load`, `replay` and `verdict`."""
    told = VerdictDocument(
        schema=SCHEMA,
        decision=verdict.decision.value,
        exit_code=verdict.exit_code,
        digest=digest_of(verdict),
        agents=[_agent(agent) for agent in verdict.agents],
        timing_ms=TimingDocument(
            **{
                name: round(timing_ms.get(name, 0.0), 3)
                for name in TimingDocument.__struct_fields__
            }
        ),
    )
    return _plain(told)


def digest_of(verdict: Verdict) -> str:
    """``sha256:`` digest of the verdict's document less its timings."""
    return content_digest(
        {
            "schema": SCHEMA,
            "decision": verdict.decision.value,
            "exit_code": verdict.exit_code,
            "agents": [_plain(_agent(agent)) for agent in verdict.agents],
        }
    )


def render_json(verdict: Verdict, *, timing_ms: Mapping[str, float]) -> str:
    """The document as indented JSON text with a final newline."""
    text = in_json(literal(document(verdict, timing_ms=timing_ms)))
    return msgspec.json.format(text.encode(), indent=2).decode() + "\n"


class VerdictFault(BackstopError):
    """A file is no verdict, or not the one that was written."""

    slug = "verdict-damaged"


def read(data: bytes, *, name: str) -> VerdictDocument:
    """A verdict as `render_json` wrote it; `name` stands in messages.

    Raises `VerdictFault` (``verdict-damaged``) where its digest is not that of what it says.
    """
    try:
        told = parse(data)
        verdict = msgspec.json.decode(data, type=VerdictDocument)
        body = told if isinstance(told, dict) else {}
        said = content_digest({part: body[part] for part in DIGESTED})
    except (NotCanonical, msgspec.ValidationError) as fault:
        raise VerdictFault(
            f"{name}: no verdict that Backstop wrote: {fault}; write one by `backstop gate "
            "--format json --output FILE`"
        ) from None
    if verdict.schema != SCHEMA:
        raise VerdictFault(
            f"{name}: written in form {verdict.schema!r}, this Backstop reads {SCHEMA!r}; run the "
            "gate again"
        )
    if said != verdict.digest:
        raise VerdictFault(
            f"{name}: was changed since it was written: it says {verdict.digest}, and comes to "
            f"{said}; run the gate again"
        )
    return verdict


DIGESTED: Final = ("schema", "decision", "exit_code", "agents")
"""The members that a document's digest covers."""


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the document, as published in ``docs/verdict.schema.json``."""
    schema = msgspec.json.schema(VerdictDocument)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _plain(told: msgspec.Struct) -> dict[str, Json]:
    plain: dict[str, Json] = {}
    for name in told.__struct_fields__:
        if (value := getattr(told, name)) is not msgspec.UNSET:
            plain[name] = _value(value)
    return plain


def _value(value: Any) -> Json:  # noqa: ANN401  # fields of the documents above
    match value:
        case msgspec.Struct():
            return _plain(value)
        case list():
            return [_value(item) for item in value]
        case dict():
            return {key: _value(item) for key, item in value.items()}
        case _:
            plain: Json = value
            return plain


def _agent(agent: AgentVerdict) -> AgentDocument:
    ledger, coverage = agent.ledger, agent.coverage
    return AgentDocument(
        agent=agent.agent,
        decision=agent.decision.value,
        ledger=LedgerDocument(
            events=ledger.events,
            effects=ledger.effects,
            runs=ledger.runs,
            digest=ledger.digest,
        ),
        coverage=CoverageDocument(
            runs_compared=coverage.runs_compared,
            runs_total=coverage.runs_total,
            steps_assumed=coverage.steps_assumed,
            drift=coverage.drift,
            not_replayable=[
                RunReason(run=run, reason=reason)
                for run, reason in sorted(coverage.not_replayable.items())
            ],
            uncovered=list(coverage.uncovered),
            steps_total=coverage.steps_total,
            drifted={name: list(parts) for name, parts in sorted(coverage.drifted.items())},
            doubts=list(coverage.doubts),
            steps_covered=coverage.steps_covered,
            steps_lost=coverage.steps_lost,
            changed=by_part(coverage.drifted),
            unshown=[
                UnshownDocument(
                    **{name: getattr(one, name) for name in UnshownDocument.__struct_fields__}
                )
                for one in coverage.unshown
            ],
            accepted=coverage.accepted,
        ),
        counts=CountsDocument(
            **{name: agent.counts.get(name, 0) for name in CountsDocument.__struct_fields__}
        ),
        other_counts=OtherCountsDocument(
            **{name: agent.counts.get(name, 0) for name in OtherCountsDocument.__struct_fields__}
        ),
        divergences=[_divergence(judged) for judged in agent.judged],
        why=list(agent.why),
        notes=list(agent.notes),
        neutral=agent.neutral,
        waivers=[_waiver(use) for use in agent.waivers],
        baseline=None if agent.baseline is None else _baseline(agent.baseline),
        replays=agent.replays,
        unstable=[_unstable(field) for field in agent.unstable],
        live=msgspec.UNSET if agent.live is None else _live(agent.live),
    )


def _live(use: LiveUse) -> LiveDocument:
    return LiveDocument(
        repeats=use.repeats,
        agreement=use.agreement,
        calls=use.calls,
        tokens_in=use.tokens_in,
        tokens_out=use.tokens_out,
        models=list(use.models),
        unusual=list(use.unusual),
        runs=use.runs,
        answers=use.answers,
    )


def _waiver(use: WaiverUse) -> WaiverDocument:
    waiver = use.waiver
    return WaiverDocument(
        about=waiver.about,
        kind=None if waiver.kind is None else waiver.kind.value,
        reason=waiver.reason,
        author=waiver.author,
        expires=waiver.expires.isoformat(),
        count=waiver.count,
        place=waiver.place,
        added=waiver.added,
        standing=use.standing.value,
        matched=use.matched,
        waived=use.waived,
        note=use.note,
        unshown=use.unshown,
    )


def _unstable(field: UnstableField) -> UnstableDocument:
    return UnstableDocument(
        **{name: getattr(field, name) for name in UnstableDocument.__struct_fields__}
    )


def _baseline(use: BaselineUse) -> BaselineDocument:
    return BaselineDocument(
        **{name: getattr(use, name) for name in BaselineDocument.__struct_fields__}
    )


def _divergence(judged: Judged) -> DivergenceDocument:
    divergence = judged.divergence
    return DivergenceDocument(
        kind=divergence.kind.value,
        reason=divergence.reason.value,
        run=divergence.run,
        step=divergence.step,
        tool=divergence.tool,
        recorded=_half(divergence.recorded),
        intended=_half(divergence.intended),
        paths=list(divergence.paths),
        difference=list(divergence.difference),
        suggestion=rule(divergence),
        fingerprint=divergence.fingerprint,
        waiver=judged.waiver,
        pre_existing=judged.pre_existing,
        assumed=divergence.assumed,
        in_doubt=divergence.in_doubt,
        handover=divergence.handover,
        explanation=sentence(divergence),
        known=judged.known,
        unstable=judged.unstable,
    )


def _half(side: Half | None) -> CallDocument | None:
    return None if side is None else CallDocument(key=side.key, args=dict(side.args))
