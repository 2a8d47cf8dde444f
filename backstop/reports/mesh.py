"""The mesh for a person at a terminal: what holds, why something does not, what would be done.

Pure: verdicts in, text out. All that came from an agent is escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from backstop.core.checkpoint import Checkpoint, Usage
from backstop.core.detectors import Finding
from backstop.core.effectgate import Control, Lease, Reach
from backstop.core.recovery import Link, Receipt, RecoveryPlan, total
from backstop.core.trust import Reason, State, Verdict
from backstop.core.trustbreak import TrustBreak
from backstop.meshports import OutEffect
from backstop.reports.escape import in_json, plain
from backstop.reports.explain import count_of

SCHEMA: Final = "backstop.mesh/1"
_WIDTH: Final = 80
_MOST: Final = 60
_RUNS: Final = 20
_STATE: Final = 11
_STEP: Final = 30
_KEY: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class RunShown:
    """One run: its steps, what of it is frozen, who recovers it, and actions `due` to go out."""

    run: str
    steps: Sequence[tuple[Checkpoint, Verdict]]
    frozen: Sequence[str]
    lease: Lease | None
    findings: Sequence[Finding]
    plan: RecoveryPlan
    receipt: Receipt
    due: Sequence[str] = ()

    @property
    def clean(self) -> bool:
        """Does all of it hold, with nothing frozen and no action that is still to go out?"""
        held = all(verdict.state is State.VERIFIED for _, verdict in self.steps)
        return held and not self.frozen and not self.due


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshShown:
    """A ledger's mesh. `remarks` say what nobody looked at; `options` reach the same one again.

    `is_file` says that it is a ledger, which is only read.
    """

    name: str
    control: Control
    runs: Sequence[RunShown]
    distrusted: Sequence[OutEffect]
    remarks: Sequence[str]
    options: str = ""
    is_file: bool = False

    @property
    def clean(self) -> bool:
        """Is there nothing to do? A mesh of no steps is none that holds."""
        return bool(self.runs) and all(one.clean for one in self.runs) and not self.distrusted


def status(shown: MeshShown) -> str:
    """What holds for each step."""
    steps = sum(len(one.steps) for one in shown.runs)
    size = f"{count_of(steps, 'step')} in {count_of(len(shown.runs), 'run')}"
    breaks = count_of(len(shown.control.breaks), "trust break")
    lines = [
        f"{plain(shown.name)}",
        f"  {size}, epoch {shown.control.epoch}, {breaks}",
        f"  {_counts(shown.runs)}",
        *_folded(shown.remarks, "  note: "),
    ]
    told, left = _told(shown)
    for run in told:
        lines += ["", f"run {plain(run.run)}", *_standing(run), *_steps(run)]
    lines += left
    lines += _effects(shown)
    lines += ["", f"next: {_next(shown)}"]
    return "\n".join(lines)


def _told(shown: MeshShown) -> tuple[Sequence[RunShown], Sequence[str]]:
    """The runs that a terminal is told of: of many only those with something to do, and so many."""
    runs = shown.runs
    wanted = runs if len(runs) <= _RUNS else [one for one in runs if not one.clean]
    left = len(runs) - len(wanted[:_RUNS])
    more = f"and {count_of(left, 'run')} more; --format json has all"
    return wanted[:_RUNS], ["", more] if left else []


def _counts(runs: Iterable[RunShown]) -> str:
    found = Counter(verdict.state for run in runs for _, verdict in run.steps)
    return ", ".join(f"{found[state]:,} {state}" for state in State if found[state]) or "no steps"


def _standing(run: RunShown) -> Iterator[str]:
    if run.frozen:
        yield f"  frozen: {count_of(len(run.frozen), 'step')}"
        yield from (f"    {plain(one)}" for one in run.frozen if one.startswith("agent "))
    yield from _folded([f"not out, may be asked for again: {plain(one)}" for one in run.due], "  ")
    if run.lease is not None:
        yield f"  recovered now by {plain(run.lease.holder)}, fence {run.lease.fence}"


def _steps(run: RunShown) -> Iterator[str]:
    bad = [one for one in run.steps if one[1].state is not State.VERIFIED]
    told = list(run.steps) if len(run.steps) <= _MOST else bad
    for record, verdict in told[:_MOST]:
        frozen = "frozen" if record.step in run.frozen else ""
        about = frozen if verdict.reason is Reason.OK else _because(record.step, verdict)
        yield from _row(verdict.state, plain(record.step), about)
    left = len(run.steps) - min(len(told), _MOST)
    if left:
        yield f"  and {count_of(left, 'step')} more; --format json has all"


def _because(step: str, verdict: Verdict) -> str:
    culprit = verdict.culprit
    return f"{verdict.reason}" + (f": {plain(culprit)}" if culprit and culprit != step else "")


def _row(state: str, step: str, about: str) -> Iterator[str]:
    line = f"  {state:<{_STATE}}  {step}"
    if not about:
        yield line
    elif len(line) <= _STATE + _STEP + 4 and _STATE + _STEP + 6 + len(about) <= _WIDTH:
        yield f"{line:<{_STATE + _STEP + 4}}  {about}"
    else:
        yield line
        yield from _folded([about], " " * (_STATE + 6))


def _effects(shown: MeshShown) -> Iterator[str]:
    if shown.distrusted:
        yield ""
        yield f"effects in which trust broke: {len(shown.distrusted)}"
    for one in shown.distrusted[:_MOST]:
        claimed = one.standing.claimed
        about = f"{plain(claimed.key[:_KEY])}  {plain(claimed.tool, limit=24)}  {one.trust}"
        yield f"  {about}, run {plain(claimed.run, limit=20)}"


def _next(shown: MeshShown) -> str:
    if shown.clean:
        return "nothing"
    if not shown.runs:
        return "nothing is on record: see docs/mesh.md"
    if shown.distrusted and all(one.clean for one in shown.runs):
        return f"`backstop effects list{shown.options}`"
    return f"`backstop mesh plan{shown.options}`"


def why(run: str, links: Sequence[Link], verdict: Verdict, breaks: Sequence[TrustBreak]) -> str:
    """The chain from a step to the culprit; `breaks` are those that name the culprit."""
    lines = [f"{plain(links[0].step)} in run {plain(run)}: {links[0].state}"]
    for link in links:
        lines += _row(link.state, plain(link.step), "" if link.reason is Reason.OK else link.reason)
        if link.read or link.now:
            lines += [f"    read {plain(link.read)}", f"    now  {plain(link.now)}"]
    if verdict.culprit:
        lines += _folded([f"culprit: {plain(verdict.culprit)}"], "")
    for one in breaks:
        text = f"broken in epoch {one.epoch} by {plain(one.detector)}: {plain(one.reason)}"
        lines += _folded([text], "  ")
    return "\n".join(lines)


def plans(shown: MeshShown) -> str:
    """What a recovery would do: a dry run."""
    lines = [f"{plain(shown.name)}: a dry run, nothing is changed"]
    lines += _folded(shown.remarks, "  note: ")
    told, left = _told(shown)
    for run in told:
        lines += ["", *_plan(run)]
    lines += left
    todo = [run for run in shown.runs if not run.clean]
    where = " --store URL" if shown.is_file else shown.options
    apply = f"`backstop mesh apply{where} --with MODULE:NAME`"
    return "\n".join([*lines, "", f"next: {apply if todo else _next(shown)}"])


def _plan(run: RunShown) -> Iterator[str]:
    planned = run.plan
    yield f"run {plain(run.run)}"
    for finding in run.findings:
        found = ", ".join(map(plain, finding.steps))
        yield from _folded([f"to be broken first: {plain(finding.detector)}: {found}"], "  ")
    named = (
        ("run again", planned.rerun),
        ("kept", planned.reuse),
        ("frozen effects", planned.frozen),
        ("asked for again", run.due),
        ("waits", tuple(step for step in planned.hold if step not in planned.frozen)),
        ("from before", planned.unknown),
    )
    for name, steps in named:
        if steps:
            yield f"  {name}: {len(steps)}"
            shown = steps if name != "kept" else ()
            yield from (f"    {plain(step)}" for step in shown[:_MOST])
            if len(shown) > _MOST:
                yield f"    and {len(shown) - _MOST:,} more; --format json has all"
    yield from _to_spend(run)


def _to_spend(run: RunShown) -> Iterator[str]:
    of = run.receipt
    yield "  receipt"
    yield f"    spent so far (measured):   {_usage(of.spent)}"
    yield f"    at most to be spent:       {_usage(expected(run))}"
    yield f"    avoided (recorded usage):  {_usage(of.avoided)}"
    yield f"    a restart, as recorded:    {_usage(of.restart)}"


def expected(run: RunShown) -> Usage:
    """What the steps that are still to be run again cost when they were last recorded."""
    wanted = set(run.plan.rerun)
    return total(
        record.usage
        for record, verdict in run.steps
        if record.step in wanted and verdict.state is not State.VERIFIED
    )


def _usage(usage: Usage) -> str:
    return f"{count_of(usage.calls, 'call')} / {usage.input_tokens:,} input tokens"


def broke(found: TrustBreak, reach: Sequence[Reach], *, options: str) -> str:
    """A break that is on record now."""
    steps = sum(len(one.steps) for one in reach)
    frozen = f"{count_of(steps, 'step')} frozen in {count_of(len(reach), 'run')}"
    lines = [f"broken, epoch {found.epoch}: {frozen}"]
    for one in reach:
        lines += [
            f"run {plain(one.run)}",
            *(f"  {plain(step)}" for step in sorted(one.steps)[:_MOST]),
        ]
        if len(one.steps) > _MOST:
            lines.append(f"  and {len(one.steps) - _MOST:,} more")
    return "\n".join([*lines, f"next: `backstop mesh plan{options}`"])


def recovered(
    run: str, receipt: Receipt, *, settled: Sequence[tuple[str, str, str, str]], stopped: str
) -> str:
    """What a recovery did; `settled` are tool, key, fate and note of effects it saw to."""
    lines = [f"run {plain(run)}: " + ("recovered" if not stopped else "not recovered")]
    lines += _folded([f"why: {plain(stopped)}"] if stopped else [], "  ")
    for tool, key, fate, note in settled:
        lines += _folded([f"{plain(tool)} {plain(key[:_KEY])}: {fate}: {plain(note)}"], "  ")
    if not receipt.steps_run:
        return "\n".join([*lines, "  nothing was run again"])
    cut = f", {receipt.cut_off} of them since what they read came out as it was"
    lines.append(
        f"  run again {receipt.steps_run}, kept {receipt.steps_kept}{cut * bool(receipt.cut_off)}"
    )
    lines.append(f"  spent (measured):          {_usage(receipt.spent)}")
    lines.append(f"  avoided (recorded usage):  {_usage(receipt.avoided)}")
    lines.append(f"  a restart, as recorded:    {_usage(receipt.restart)}")
    return "\n".join(lines)


def _folded(texts: Iterable[str], before: str) -> Iterator[str]:
    """Lines of at most 80 characters; a word that is longer stays whole."""
    for text in texts:
        line, indent = before, " " * len(before)
        for word in text.split(" "):
            if line.strip() and len(line) + len(word) + 1 > _WIDTH:
                yield line.rstrip()
                line = indent
            line += word + " "
        yield line.rstrip()


def told(shown: MeshShown) -> Mapping[str, Any]:
    """All of it as JSON values."""
    return {
        "schema": SCHEMA,
        "ledger": shown.name,
        "clean": shown.clean,
        "epoch": shown.control.epoch,
        "breaks": [
            {"run": one.run, "frozen": bool(one.frozen), **msgspec.to_builtins(one.broken)}
            for one in shown.control.breaks
        ],
        "runs": [_run(one) for one in shown.runs],
        "distrusted": [
            {"key": one.standing.claimed.key, "run": one.standing.claimed.run, "trust": one.trust}
            for one in shown.distrusted
        ],
        "remarks": list(shown.remarks),
    }


def _run(run: RunShown) -> Mapping[str, Any]:
    return {
        "run": run.run,
        "clean": run.clean,
        "frozen": list(run.frozen),
        "due": list(run.due),
        "recovered_by": None if run.lease is None else run.lease.holder,
        "steps": [
            {
                "step": record.step,
                "seq": record.seq,
                "gen": record.gen,
                "kind": record.kind,
                "state": verdict.state,
                "reason": verdict.reason,
                "culprit": verdict.culprit,
                "output": record.output,
                "producer": record.producer,
            }
            for record, verdict in run.steps
        ],
        "findings": [msgspec.to_builtins(one) for one in run.findings],
        "plan": {name: list(getattr(run.plan, name)) for name in RecoveryPlan.__slots__},
        "receipt": receipt(run.receipt),
        "expected": msgspec.to_builtins(expected(run)),
    }


def receipt(of: Receipt) -> Mapping[str, Any]:
    """A receipt: what was spent is measured, what was avoided is what was recorded."""
    return {
        "spent_measured": msgspec.to_builtins(of.spent),
        "avoided_recorded": msgspec.to_builtins(of.avoided),
        "restart_recorded": msgspec.to_builtins(of.restart),
        "steps_run": of.steps_run,
        "steps_kept": of.steps_kept,
        "cut_off": of.cut_off,
    }


def why_document(
    run: str, links: Sequence[Link], verdict: Verdict, breaks: Sequence[TrustBreak]
) -> str:
    """What `why` says, as a JSON document."""
    return document(
        {
            "schema": SCHEMA,
            "run": run,
            "links": [
                {
                    "step": one.step,
                    "state": one.state,
                    "reason": one.reason,
                    "read": one.read or None,
                    "now": one.now or None,
                }
                for one in links
            ],
            "culprit": verdict.culprit,
            "breaks": [msgspec.to_builtins(one) for one in breaks],
        }
    )


def broke_document(found: TrustBreak, reach: Sequence[Reach]) -> str:
    """What `broke` says, as a JSON document."""
    return document(
        {
            "schema": SCHEMA,
            "break": msgspec.to_builtins(found),
            "reach": [{"run": one.run, "steps": sorted(one.steps)} for one in reach],
        }
    )


def recovered_document(
    run: str, of: Receipt, *, settled: Sequence[tuple[str, str, str, str]], stopped: str
) -> Mapping[str, Any]:
    """What `recovered` says, as JSON values."""
    named = ("tool", "key", "fate", "note")
    return {
        "run": run,
        "stopped": stopped or None,
        "receipt": receipt(of),
        "effects": [dict(zip(named, one, strict=True)) for one in settled],
    }


def document(value: object) -> str:
    """Any of it as a JSON document."""
    text = in_json(msgspec.json.encode(value).decode())
    return msgspec.json.format(text.encode(), indent=2).decode()
