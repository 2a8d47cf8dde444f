"""What each run of a ledger is replayed from, under which rules, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from backstop.core.canon import Json, NotCanonical, parse
from backstop.core.declaration import Namespace, Scope
from backstop.core.erasure import runs_erased
from backstop.core.history import Outcome, Row
from backstop.core.keying import Rules
from backstop.core.redaction import Redaction
from backstop.core.runs import RecordedRun, recorded_runs
from backstop.replay.answers import Recording
from backstop.replay.calls import known_calls
from backstop.replay.keyed import Known, declarations
from backstop.replay.plan import Plan
from backstop.replay.window import window_for
from backstop.replay.wire import Ready, ToolSeen


def rules_of(plan: Plan, tools: Sequence[ToolSeen]) -> Rules:
    """The base's declarations on the candidate's parameters, over those of the ledger."""
    header = plan.header
    declared = {
        tool: header.declarations[digest]
        for tool, digest in header.tools.items()
        if digest in header.declarations
    }
    return Rules(
        namespace=Namespace(agent=header.agent, app=header.app, tenant=header.tenant),
        recorded=header.declarations,
        declared=declared,
        candidate=declarations({**declared, **plan.declarations}, tools),
        offered=frozenset(tool.tool for tool in tools),
        replayed=True,
        canon=header.canon,
    )


def recordings(plan: Plan, rules: Rules, ready: Ready) -> dict[str, Recording]:
    """What each run is replayed from, in ledger order; whom to trust is left open."""
    runs, history = recorded_runs(plan.events)
    erased = runs_erased(plan.events)
    whole = [run for run in runs.values() if run.id not in erased]
    everywhere = _of_every_run(whole, rules)
    shapes = _shapes(whole)
    redaction = Redaction(declarations=rules.candidate, key=plan.redaction_key)
    return {
        name: Recording(
            run=runs[name],
            rules=rules,
            elsewhere=[call for call in everywhere if call.run != name],
            shapes=shapes,
            window=window_for(runs[name], ready, recent=plan.recent),
            redaction=redaction,
        )
        for name in dict.fromkeys(history.runs)
    }


def _of_every_run(runs: Iterable[RecordedRun], rules: Rules) -> list[Known]:
    """G9: the recorded calls whose keys hold over all runs."""
    shared = {
        declaration.tool
        for declaration in rules.candidate.values()
        if declaration.scope is Scope.AGENT
    }
    if not shared:
        return []
    return [
        call
        for run in runs
        for call in known_calls(run.id, run.steps, rules)
        if call.tool in shared
    ]


def _shapes(runs: Iterable[RecordedRun]) -> dict[str, Json]:
    """The first result of each tool in the ledger: what a stand-in of it looks like."""
    shapes: dict[str, Json] = {}
    for run in runs:
        for step in run.steps:
            for call in step.calls:
                if isinstance(call, Row):
                    tool, result = call.tool, call.result
                    answered = call.outcome is Outcome.COMMITTED
                else:
                    tool, result = call.event.tool, call.event.result
                    answered = call.event.error is None
                if answered and tool not in shapes:
                    shapes[tool] = _shape(bytes(result))
    return {tool: shape for tool, shape in shapes.items() if shape is not None}


def _shape(result: bytes) -> Json:
    try:
        return parse(result)
    except NotCanonical:
        return None


def open_first(recordings: Mapping[str, Recording]) -> list[str]:
    """D6: open runs first, then the newest."""
    return sorted(
        recordings,
        key=lambda name: (recordings[name].run.status is None, recordings[name].run.at),
        reverse=True,
    )
