"""``backstop baseline write``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from backstop.adapters.files import check_writable, read_bytes, write_atomic
from backstop.cli.progress import progress_bar
from backstop.config import load
from backstop.core import baseline as baselines
from backstop.core.baseline import AgentBaseline, Known
from backstop.gate.request import GateRequest, ReplayRequest
from backstop.reports.document import document, read
from backstop.reports.escape import plain
from backstop.reports.explain import count_of
from backstop.reports.form import AgentDocument, VerdictDocument
from backstop.wiring.accepting import BASELINE, baselines_in


def write(
    request: ReplayRequest,
    *,
    verdict: Path | None,
    add: bool,
    by: str,
    now: datetime,
) -> str:
    """Write down what is found now as known, beside the configuration; what that is, in lines.

    What is found is in the report `verdict`, or else the gate tells. A baseline that is there
    loses what is gone; only with `add` it gets more. Raises `BackstopError`.
    """
    names = load(request.config).agents
    file = request.config.parent / BASELINE
    held = baselines_in(file)
    check_writable(file)
    report = _judged(request) if verdict is None else read(read_bytes(verdict), name=str(verdict))
    kept = {name: one for name, one in held.items() if name in names}
    lines: list[str] = []
    for agent in report.agents:
        if agent.agent not in names or not agent.ledger.digest:
            lines.append(f"{plain(agent.agent)}: was not judged, so nothing is known of it")
            continue
        found = baselines.taken(_found(agent), at=now, by=by, ledger=agent.ledger.digest)
        before = held.get(agent.agent)
        kept[agent.agent] = after = _after(before, found, agent, add=add)
        lines += _told(agent, before, found, after)
    write_atomic(file, baselines.write(kept))
    return "\n".join([f"{plain(str(file))}: written by {plain(by)}", *lines, _NEXT])


_NEXT: Final = "next: review and commit it, and let CODEOWNERS guard it (docs/waivers.md)"


def _judged(request: ReplayRequest) -> VerdictDocument:
    from backstop.wiring.gating import gate

    with progress_bar() as progress:
        judgement = gate(GateRequest(replay=request), progress=progress)
    told = document(judgement.verdict, timing_ms=judgement.timing_ms)
    return msgspec.convert(told, type=VerdictDocument)


def _found(agent: AgentDocument) -> Iterator[Known]:
    """What stands: not what nobody can vouch for, nor what a waiver lets pass for a while."""
    for one in agent.divergences:
        if not one.assumed and one.waiver is None:
            yield Known(
                fingerprint=one.fingerprint,
                count=1,
                kind=one.kind,
                tool=one.tool,
                run=one.run,
                step=one.step,
            )


def _after(
    before: AgentBaseline | None, found: AgentBaseline, agent: AgentDocument, *, add: bool
) -> AgentBaseline:
    unspoken = [one.run for one in agent.coverage.not_replayable]
    if before is None:
        return found
    if add:
        return baselines.grown(before, found, unspoken)
    return baselines.shrunk(before, found, unspoken)


def _told(
    agent: AgentDocument, before: AgentBaseline | None, found: AgentBaseline, after: AgentBaseline
) -> Iterator[str]:
    known, held = baselines.counts(after), baselines.counts(before)
    kinds: Counter[str] = Counter()
    for one in after.findings:
        kinds[one.kind] += one.count
    listed = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()))
    yield (
        f"{plain(agent.agent)}: {count_of(known.total(), 'known finding')}"
        f"{f' ({listed})' if listed else ''}"
    )
    if before is not None:
        gone, new = (held - known).total(), (baselines.counts(found) - known).total()
        more = f", {(known - held).total():,} added" if known - held else ""
        left = f", {new:,} new not taken (--add takes them)" if new else ""
        yield f"  of {count_of(held.total(), 'finding')} before: {gone:,} gone{more}{left}"
    coverage = agent.coverage
    if coverage.runs_compared < coverage.runs_total:
        yield (
            f"  compared {coverage.runs_compared:,} of {count_of(coverage.runs_total, 'run')}: "
            "what is in the others is not known, and will block"
        )
