"""The body of a report in GitHub's Markdown: headline, counts, an agent a section, what to do.

A comment and a job summary are this body under different limits.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum
from typing import Final

from backstop.core.verdict import AgentVerdict, Decision, Verdict
from backstop.reports.accepted import brought
from backstop.reports.carried import Carried
from backstop.reports.context import CommentContext
from backstop.reports.escape import code, fenced
from backstop.reports.explain import accepted_line, count_of
from backstop.reports.living import model_calls
from backstop.reports.markdown import (
    Spelling,
    alert,
    bullets,
    details,
    few,
    fitting,
    link,
    row,
    shares,
    shell,
    size,
    table,
)
from backstop.reports.section import (
    WORDS,
    Limits,
    Section,
    passed_over,
    report_of,
    spelling_of,
    tally,
    warns,
)

_RANK: Final = (Decision.BLOCK, Decision.INCONCLUSIVE, Decision.PASS)
_MAX_NOTES: Final = 12
_NOTE: Final = 400
_ROOM_FOR_NOTES: Final = 6_000
_MAX_COMMANDS: Final = 5
_WIDTH: Final = 90
_USUAL: Final = "backstop.yaml"
_ROOM_FOR_CARRIED: Final = 16_000
_MESSAGE: Final = 1_500
_LOG_READ: Final = 40_000
_LOG_LINES: Final = 60
_LOG_LINE: Final = 200
_LOG_ROOM: Final = 16_000


class State(Enum):
    """What a headline says; each looks unlike the others."""

    BLOCKED = "⛔ Backstop: deploy blocked"
    WARNED = "⚠️ Backstop: pass with warnings"
    PASSED = "✅ Backstop: pass"
    EMPTY = "🌱 Backstop: nothing to compare yet"
    INCONCLUSIVE = "❓ Backstop: inconclusive, not a pass"
    ERROR = "💥 Backstop: error, nothing was judged"
    NOT_APPLICABLE = "⚪ Backstop: not applicable"


_NEXT: Final[Mapping[State, str]] = {
    State.BLOCKED: "do not deploy this version. See the findings again on your machine:",
    State.WARNED: "nothing blocks. Look at each finding before this version ships:",
    State.PASSED: "nothing blocks, this version may ship.",
    State.EMPTY: "this pass says nothing about the version. Record runs, then gate again.",
    State.INCONCLUSIVE: "remove what is missing, or allow it in the policy, and run again:",
}

_ACCEPTING: Final = (
    "A change that no replay shows has a finding's name: who has read it may accept it, by "
    '`backstop waive FINDING --reason "..." --days 14`.'
)
_FIRST_LEDGER: Final = (
    "bring a ledger, or let the pull request that brings Backstop in pass with "
    "`allow-empty: true` (on a command line, `--allow-empty`)."
)


def state_of(verdict: Verdict, spared: Collection[str] = ()) -> State:
    """Which of its looks a verdict gets, where the agents `spared` were not judged."""
    if verdict.agents and all(passed_over(agent, spared) for agent in verdict.agents):
        return State.NOT_APPLICABLE
    if verdict.decision is Decision.BLOCK:
        return State.BLOCKED
    if verdict.decision is Decision.INCONCLUSIVE:
        return State.INCONCLUSIVE
    if all(agent.coverage.runs_compared == 0 for agent in verdict.agents):
        return State.EMPTY
    return State.WARNED if any(map(warns, verdict.agents)) else State.PASSED


def body_of(verdict: Verdict, context: CommentContext, limits: Limits, digest: str) -> str:
    """The body of at most ``limits.room`` bytes; what does not fit is left out whole, and said.

    `digest` is the verdict's.
    """
    state = state_of(verdict, context.spared)
    if state is State.NOT_APPLICABLE:
        return not_applicable_body(context, verdict, digest)
    # What is not touched is not judged, and its place among the verdicts is a formality.
    agents = sorted(
        (agent for agent in verdict.agents if not passed_over(agent, context.spared)),
        key=lambda agent: (agent.neutral, _RANK.index(agent.decision)),
    )
    several = len({agent.agent for agent in agents} | set(context.spared)) > 1
    top = [f"## {state.value}", _compared(agents, context)]
    top += [*brought(agents, spelling_of(context)), *_notes(context)]
    if several:
        top += _overview(agents, context, limits.room // 6)
    bottom = [_next(state, agents, context), _footer(context, verdict, digest)]
    carried = fitting(_carried(context, agents), limits.room // 6, gap=2)
    told = [
        Section(agent=agent, context=context, limits=limits, headed=several)
        for agent in agents
        if not several or agent.judged or agent.why or agent.notes
    ]
    room = limits.room - sum(size(part) + 2 for part in (*top, *bottom, *carried))
    return "\n\n".join([*top, *_sections(told, limits, room), *carried, *bottom])


def _compared(agents: Sequence[AgentVerdict], context: CommentContext) -> str:
    """The first line after the headline: how much the verdict speaks for, and the counts."""
    done = sum(agent.coverage.runs_compared for agent in agents)
    total = sum(agent.coverage.runs_total for agent in agents)
    compared = f"Compared **{done:,} of {count_of(total, 'run')}**{_at(context)}: {tally(agents)}."
    if accepted := sum(agent.coverage.accepted for agent in agents):
        compared += f" **{accepted_line(accepted).capitalize()}.**"
    return compared


def _at(context: CommentContext) -> str:
    spelling = spelling_of(context)
    head = f" at {spelling.name(context.head[:7])}" if context.head else ""
    return head + (f" against {spelling.name(context.base[:7])}" if context.base else "")


def _notes(context: CommentContext) -> Iterator[str]:
    if context.notes:
        spelling, notes = spelling_of(context), context.notes
        told = (spelling.words(line, _NOTE) for line in notes)
        yield bullets(few(told, len(notes), most=_MAX_NOTES, room=_ROOM_FOR_NOTES))


def _overview(agents: Sequence[AgentVerdict], context: CommentContext, room: int) -> Iterator[str]:
    spelling = spelling_of(context)
    rows = [
        row(
            (
                Section(agent=agent, context=context, limits=_NO_LIMITS, headed=True).heading(),
                f"{agent.coverage.runs_compared:,}&nbsp;of&nbsp;{agent.coverage.runs_total:,}",
                tally([agent]),
            )
        )
        for agent in agents
    ]
    known = {one.agent for one in context.carried}
    judged = {agent.agent for agent in agents}
    for name in (name for name in context.spared if name not in judged):
        said = "see below, does not count" if name in known else "not judged, does not count"
        rows.append(row((f"⚪ {spelling.name(name)}: not touched", "—", said)))
    shown = fitting(rows, room)
    yield table(("Agent", "Runs", "Findings"), shown)
    if (more := len(rows) - len(shown)) > 0:
        yield f"… and {count_of(more, 'more agent')}."


_NO_LIMITS: Final = Limits(room=0, rows=0, details=0)


def _sections(told: Sequence[Section], limits: Limits, room: int) -> Iterator[str]:
    kept = told[: _that_fit([section.least() for section in told], room)]
    whole = [section.render(limits.room) for section in kept]
    if sum(size(text) + 2 for text in whole) <= room:
        yield from whole
    else:
        floor = [section.least() + 2 for section in kept]
        needs = [size(text) for text in whole]
        wanted = [max(need - least, 0) for need, least in zip(needs, floor, strict=True)]
        extra = shares(wanted, room - sum(floor))
        for section, least, more in zip(kept, floor, extra, strict=True):
            yield section.render(least + more)
    if (left := len(told) - len(kept)) > 0:
        yield f"… and {count_of(left, 'more agent')} in the {report_of(told[0].context)}."


def _that_fit(sizes: Sequence[int], room: int) -> int:
    """How many of `sizes`, from the first on, fit into `room` together."""
    sums = itertools.accumulate(sizes, lambda so_far, more: so_far + more + 2)
    return sum(1 for _ in itertools.takewhile(lambda so_far: so_far <= room, sums))


def _carried(context: CommentContext, agents: Sequence[AgentVerdict] = ()) -> Iterator[str]:
    """What an earlier comment said of agents that were not judged now, as `agents` were."""
    judged = {agent.agent for agent in agents}
    for one in context.carried:
        if one.agent not in judged:
            yield _as_of(one, context)


def _as_of(carried: Carried, context: CommentContext) -> str:
    spelling = spelling_of(context)
    when = f"as of {spelling.html(carried.head[:7])}" if carried.head else "earlier"
    summary = (
        f"⚪ {spelling.html(carried.agent)} is not touched by this change: "
        f"{WORDS[carried.decision]} {when}, does not count now"
    )
    rows = [
        row(
            (
                f"{one.kind.value} {one.reason.value}",
                spelling.name(one.tool),
                f"{spelling.name(one.run)}, {spelling.name(one.step)}",
            )
        )
        for one in carried.rows
    ]
    compared_then = f"Compared {carried.compared:,} of {count_of(carried.total, 'run')} then"
    told = [f"{compared_then}; {count_of(carried.findings, 'finding')}."]
    if carried.accepted:
        told.append(f"{accepted_line(carried.accepted).capitalize()}.")
    if rows:
        told.append(table(("Finding", "Tool", "Run, step"), rows))
    return details(summary, "\n\n".join(told))


def _next(state: State, agents: Sequence[AgentVerdict], context: CommentContext) -> str:
    if state is State.INCONCLUSIVE and all(agent.neutral for agent in agents):
        return f"**Next:** {_FIRST_LEDGER}"
    first = f"**Next:** {_NEXT[state]}"
    if state in {State.PASSED, State.EMPTY}:
        return first
    parts = [first, shell(*_commands(agents, context))]
    if state is State.BLOCKED:
        parts.append("A finding that is meant can be waived: its fold above holds the command.")
    if any(one.waiver is None for agent in agents for one in agent.coverage.unshown):
        parts.append(_ACCEPTING)
    return "\n\n".join(parts)


def _commands(agents: Sequence[AgentVerdict], context: CommentContext) -> Iterator[str]:
    # A good agent beside a bad one need not be looked at again.
    agents = [agent for agent in agents if agent.judged or agent.why] or agents
    based = bool(context.base) and any(agent.agent in context.base_paths for agent in agents)
    if based:
        yield f"git worktree add --detach ../backstop-base {shlex.quote(context.base)}"
    for agent in agents[:_MAX_COMMANDS]:
        name = agent.agent
        command = ["backstop gate"]
        if context.config != _USUAL:
            command.append(f"--config {shlex.quote(context.config)}")
        command.append(f"--agent {shlex.quote(name)}")
        if name in context.paths:
            command.append(f"--candidate {shlex.quote(context.paths[name])}")
        if based and name in context.base_paths:
            command.append(f"--base {shlex.quote(f'../backstop-base/{context.base_paths[name]}')}")
        if context.sandbox:
            command.append(f"--runtime {shlex.quote(context.sandbox)}")
        yield from _lines_of(command)
    if (more := len(agents) - _MAX_COMMANDS) > 0:
        yield f"# and {more} more agents"


def _lines_of(command: Sequence[str]) -> Iterator[str]:
    """A command on one line where it is short, else an option a line."""
    if len(line := " ".join(command)) <= _WIDTH:
        yield line
    else:
        yield from (f"{part} \\" for part in (command[0], *(f"  {part}" for part in command[1:-1])))
        yield f"  {command[-1]}"


def _footer(context: CommentContext, verdict: Verdict | None = None, digest: str = "") -> str:
    """Where it comes from: digest, versions, the run, the full report."""
    spelling = spelling_of(context)
    told: list[str] = []
    if verdict is not None:
        told.append(f"verdict {code(digest, limit=19)} (exit code {verdict.exit_code})")
        told.append(model_calls(verdict))
    told += [
        f"{spelling.words(name, 40)} {spelling.words(version, 40)}"
        for name, version in context.versions.items()
    ]
    if context.run_url:
        told.append(link("run", context.run_url))
    if context.report:
        told.append(report_of(context))
    return f"<sub>{' · '.join(told)}</sub>" if told else ""


def error_body(
    slug: str, message: str, context: CommentContext, *, exit_code: int, log: str
) -> str:
    """Nothing was judged: what happened, where it is explained, what to do (exit 2 or 3)."""
    spelling = spelling_of(context)
    name = spelling.name(f"error[{slug}]")
    explained = link(f"what {name} means", f"{context.docs}/errors.md#{slug}")
    said = f"**{name}** {spelling.words(message, _MESSAGE)}"
    parts = [
        f"## {State.ERROR.value}",
        f"Compared **0 runs**{_at(context)}.",
        alert("CAUTION", f"{said}\n\nThis is no pass: the check fails (exit code {exit_code})."),
        *_notes(context),
    ]
    if log:
        parts.append(details("The end of its output", fenced(_end_of(log, spelling))))
    parts.append(f"**Next:** mend what the line above names{_explained(explained, name)}.")
    return "\n\n".join(part for part in (*parts, _footer(context)) if part)


def not_applicable_body(
    context: CommentContext, verdict: Verdict | None = None, digest: str = ""
) -> str:
    """No agent is touched: nothing to judge, and the check need not wait."""
    spelling = spelling_of(context)
    names = ", ".join(spelling.name(name) for name in context.spared[:_MAX_NOTES])
    more = len(context.spared) - _MAX_NOTES
    listed = f" ({names}{f' and {more} more' if more > 0 else ''})" if names else ""
    parts = [
        f"## {State.NOT_APPLICABLE.value}",
        f"Compared **0 runs**{_at(context)}: this change touches no agent{listed}.",
        "Nothing was judged; this is neither a pass nor a fault.",
        *_notes(context),
        *fitting(_carried(context), _ROOM_FOR_CARRIED, gap=2),
        _footer(context, verdict, digest),
    ]
    return "\n\n".join(part for part in parts if part)


def _explained(linked: str, name: str) -> str:
    return f"; {linked}" if linked != f"what {name} means" else ""


def _end_of(log: str, spelling: Spelling) -> str:
    lines = log[-_LOG_READ:].rstrip().split("\n")[-_LOG_LINES:]
    told = (spelling.line(line, _LOG_LINE) for line in reversed(lines))
    return "\n".join(reversed(fitting(told, _LOG_ROOM)))
