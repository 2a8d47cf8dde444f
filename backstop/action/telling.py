"""Tells an outcome wherever somebody may look: log, annotations, summary, report, outputs, comment.

A place that cannot be written is named in the log, and changes no decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from backstop.action.inputs import Inputs
from backstop.action.outcome import (
    Failed,
    Judged,
    NotApplicable,
    Outcome,
    compared_of,
    outputs_of,
)
from backstop.action.reporting import write_report
from backstop.adapters.github.client import Denied
from backstop.adapters.github.comments import Comments, Outrun, When
from backstop.adapters.github.runner import Level, Runner
from backstop.core.verdict import Verdict
from backstop.reports.annotations import Annotation, annotations_of, error_annotation
from backstop.reports.body import State, state_of
from backstop.reports.comment import (
    marker,
    render_comment,
    render_error,
    render_not_applicable,
)
from backstop.reports.context import CommentContext
from backstop.reports.escape import plain, public
from backstop.reports.summary import (
    render_error_summary,
    render_not_applicable_summary,
    render_summary,
)
from backstop.wiring.faults import as_ours

TITLE: Final = "Backstop"
_REASONS: Final = 20
_QUIET: Final = frozenset({State.PASSED, State.EMPTY})

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where an outcome is told; None is not there: no pull request, or inputs that were refused."""

    runner: Runner
    workspace: Path
    inputs: Inputs | None
    comments: Comments | None
    writes_report: bool = True
    fork: bool = False


def tell(outcome: Outcome, context: CommentContext, places: Places) -> bool:
    """Tell `outcome` in every place there is; False if a comment was due, and is not there.

    Raises nothing.
    """
    runner, inputs = places.runner, places.inputs
    _tried(runner, "log", lambda: _log(outcome, runner))
    _tried(runner, "annotation", lambda: _annotate(outcome, context, runner))
    summary = _summary_of(outcome, context)
    _tried(runner, "summary", lambda: runner.summary(summary))
    folder = ""
    if (
        inputs is not None
        and places.writes_report
        and _tried(runner, "report", lambda: _report(outcome, inputs, places.workspace, summary))
    ):
        folder = str(inputs.report_path)
    _tried(runner, "outputs", lambda: _outputs(outcome, runner, folder))
    return bool(_tried(runner, "comment", lambda: _comment(outcome, context, places)))


def _tried(runner: Runner, place: str, do: Callable[[], Result]) -> Result | None:
    """What `do` gives; None, and a warning, where it fails."""
    try:
        return do()
    except Exception as error:  # noqa: BLE001  # the other places have to be told all the same
        ours = as_ours(error)
        runner.annotate(
            Level.WARNING,
            f"The {place} could not be written. error[{ours.slug}]: {plain(str(ours))}",
            title=f"{TITLE}: no {place}",
        )
        return None


def _log(outcome: Outcome, runner: Runner) -> None:
    # Names of tools and runs, and lines of builds: the runner must obey none of them.
    with runner.untrusted() as log:
        for line in _lines(outcome):
            log.write(plain(public(line)) + "\n")


def _lines(outcome: Outcome) -> Iterator[str]:
    """The outcome in a few lines; the values of arguments are in none of them."""
    match outcome:
        case Failed():
            yield f"error[{outcome.slug}]: {outcome.message}"
        case NotApplicable():
            yield "Not applicable: this change touches no agent."
            yield from outcome.judgement.remarks
        case Judged():
            yield headline(outcome.verdict)
            for agent in outcome.verdict.agents:
                yield f"{agent.agent}: {'new' if agent.neutral else agent.decision}"
                yield from (f"- {line}" for line in (*agent.why, *agent.notes)[:_REASONS])
            yield from outcome.judgement.remarks


def headline(verdict: Verdict) -> str:
    """Decision, coverage and counts on one line."""
    compared, total = compared_of(verdict)
    counts = ", ".join(
        f"{sum(agent.counts.get(kind, 0) for agent in verdict.agents)} {kind}"
        for kind in ("match", "duplicate", "mutated", "missing", "extra")
    )
    return f"{verdict.decision}: compared {compared} of {total} runs; {counts}"


def _annotate(outcome: Outcome, context: CommentContext, runner: Runner) -> None:
    if isinstance(outcome, Judged):
        runner.annotate(Level.NOTICE, headline(outcome.verdict), title=TITLE)
    for one in _annotations_of(outcome, context):
        runner.annotate(
            Level(one.level.value),
            one.message,
            title=one.title,
            file="" if one.place is None else one.place.file,
            line=None if one.place is None else one.place.line,
        )


def _annotations_of(outcome: Outcome, context: CommentContext) -> tuple[Annotation, ...]:
    match outcome:
        case Failed():
            return (error_annotation(outcome.slug, outcome.message, context),)
        case NotApplicable():
            return ()
        case Judged():
            return annotations_of(outcome.verdict, context)


def _summary_of(outcome: Outcome, context: CommentContext) -> str:
    match outcome:
        case Failed():
            return render_error_summary(
                outcome.slug, outcome.message, context, exit_code=outcome.exit_code
            )
        case NotApplicable():
            return render_not_applicable_summary(context)
        case Judged():
            return render_summary(outcome.verdict, context)


def _report(outcome: Outcome, inputs: Inputs, workspace: Path, summary: str) -> bool:
    write_report(
        workspace,
        inputs.report_path,
        outcome,
        markdown=summary,
        show_values=inputs.show_values,
    )
    return True


def _outputs(outcome: Outcome, runner: Runner, folder: str) -> None:
    for name, value in outputs_of(outcome, report_path=folder).items():
        runner.output(name, value)


def _comment(outcome: Outcome, context: CommentContext, places: Places) -> bool:
    if places.comments is None:
        return True
    when = When.ALWAYS if places.inputs is None else places.inputs.comment
    posted = places.comments.upsert(
        marker(context.config_id),
        _comment_of(outcome, context),
        when=when,
        finding=_is_finding(outcome),
    )
    match posted:
        case Denied():
            _say_denied(posted, places)
            return False
        case Outrun():
            places.runner.say("A later run has commented already; its comment stays.")
        case _:
            pass
    return True


def _comment_of(outcome: Outcome, context: CommentContext) -> str:
    match outcome:
        case Failed():
            return render_error(outcome.slug, outcome.message, context, exit_code=outcome.exit_code)
        case NotApplicable():
            return render_not_applicable(context)
        case Judged():
            return render_comment(outcome.verdict, context)


def _is_finding(outcome: Outcome) -> bool:
    match outcome:
        case Failed():
            return True
        case NotApplicable():
            return False
        case Judged():
            return state_of(outcome.verdict) not in _QUIET


def _say_denied(denied: Denied, places: Places) -> None:
    """G10: the report stands in the summary, and nothing else changes."""
    if places.fork:
        level, why = Level.NOTICE, "a pull request from a fork gets a token that only reads"
    else:
        level, why = Level.WARNING, "give the job `pull-requests: write`"
    places.runner.annotate(
        level,
        f"No comment was written, the report is in the summary of this run: {plain(str(denied))}; "
        f"{why}.",
        title=f"{TITLE}: no comment",
    )
