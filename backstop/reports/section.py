"""One agent's part of a comment: what stands against it, worst first, in the room it is given."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from backstop.core.divergence import Divergence, Half, Kind
from backstop.core.verdict import AgentVerdict, Decision, Judged
from backstop.reports.accepted import known_line, to_mend
from backstop.reports.context import CommentContext
from backstop.reports.covered import covered, drift
from backstop.reports.escape import code
from backstop.reports.explain import accepted_line, anchor, at, count_of, remedy, rule, sentence
from backstop.reports.living import spent
from backstop.reports.markdown import (
    Spelling,
    alert,
    bullets,
    details,
    few,
    fitting,
    link,
    row,
    shell,
    size,
    table,
)
from backstop.reports.unsteady import unsteady

MARKS: Final[Mapping[Decision, str]] = {
    Decision.PASS: "✅",
    Decision.BLOCK: "⛔",
    Decision.INCONCLUSIVE: "❓",
}
WORDS: Final[Mapping[Decision, str]] = {
    Decision.PASS: "pass",
    Decision.BLOCK: "blocked",
    Decision.INCONCLUSIVE: "inconclusive",
}
_HEADER: Final = ("", "Finding", "Run, step", "Where it differs", "What removes it")
_FRAME: Final = 500
"""Bytes for what holds the parts together: heads of tables, blank lines, counts of the rest."""
_MAX_LINES: Final = 8
_ROOM_FOR_LINES: Final = 4_000
_MAX_FIELDS: Final = 8
_TEMPERS: Final = (
    ("also on base", "the version that runs now shows the same"),
    ("known of the baseline", "there when Backstop was adopted"),
    ("waived", "accepted for a time"),
    ("assumed", "after an answer that the record cannot vouch for"),
    ("unstable", "each replay of this version comes out otherwise there"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a sink takes: bytes over all, rows and folded details for each agent."""

    room: int
    rows: int
    details: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One agent's part, before it is known how much room it gets."""

    agent: AgentVerdict
    context: CommentContext
    limits: Limits
    headed: bool
    """With a heading of its own, where there are several agents."""

    def before(self) -> str:
        """What stands above the findings: decision and, where it is no pass, why."""
        agent, spelling = self.agent, spelling_of(self.context)
        parts: list[str] = []
        if self.headed:
            parts += [f"### {self.heading()}", _counted(agent)]
            if agent.coverage.accepted:
                parts.append(f"**{accepted_line(agent.coverage.accepted).capitalize()}.**")
        parts += known_line(agent, spelling)
        if agent.neutral:
            parts.append("New: there is no history to judge it by yet, so it does not count.")
        elif agent.decision is Decision.INCONCLUSIVE:
            reasons = bullets(_reasons(agent, spelling))
            parts.append(alert("WARNING", f"**This is not a pass.** What is missing:\n{reasons}"))
        return "\n\n".join(parts)

    def after(self) -> str:
        """What stands below the findings: coverage, notes, the ledger."""
        agent, spelling = self.agent, spelling_of(self.context)
        notes = [*_lines(unsteady(agent), spelling), *_lines(agent.notes, spelling)]
        lines = [
            *_coverage(agent, spelling),
            *_accepted(agent, spelling),
            *to_mend(agent, spelling),
            *notes,
        ]
        ledger = self._ledger(spelling)
        return f"{bullets(lines)}\n\n{ledger}" if lines else ledger

    def least(self) -> int:
        """Bytes of what is said in any case."""
        return size(self.before()) + size(self.after()) + _FRAME

    def heading(self) -> str:
        """Mark, name and decision."""
        agent = self.agent
        if agent.neutral:
            return f"🌱 {spelling_of(self.context).name(agent.agent)}: new"
        name = spelling_of(self.context).name(agent.agent)
        if agent.decision is Decision.PASS and warns(agent):
            return f"⚠️ {name}: pass with warnings"
        return f"{MARKS[agent.decision]} {name}: {WORDS[agent.decision]}"

    def render(self, room: int) -> str:
        """The section in at most `room` bytes, or in `least()` where that is more."""
        room -= self.least()
        parts = [self.before()]
        live = live_of(self.agent, self.context)
        rows = fitting((_row(*one, self.context) for one in self._numbered(live)), room * 6 // 10)
        if rows:
            parts.append(table(_HEADER, rows))
            room -= sum(size(line) + 1 for line in rows)
        if (more := len(live) - len(rows)) > 0:
            parts.append(f"… and **{more:,} more** in the {report_of(self.context)}.")
        numbered = self._numbered(live[: min(len(rows), self.limits.details)])
        folds = fitting((_fold(*one, self.context) for one in numbered), room * 7 // 10)
        room -= sum(size(fold) + 1 for fold in folds)
        parts += ["\n".join(folds), *self._tempered(room), self.after()]
        return "\n\n".join(part for part in parts if part)

    def _numbered(self, found: Sequence[Judged]) -> Iterator[tuple[int, Judged]]:
        return iter(enumerate(found[: self.limits.rows], start=1))

    def _tempered(self, room: int) -> Iterator[str]:
        """Findings that do not count, apart and folded."""
        for name, why in _TEMPERS:
            found = [judged for judged in self.agent.judged if tempered(judged) == name]
            room -= _FRAME
            if not found or room < 0:
                continue
            numbered = self._numbered(found)
            rows = fitting((_row(*one, self.context) for one in numbered), room)
            room -= sum(size(line) + 1 for line in rows)
            parts = [table(_HEADER, rows)] if rows else []
            if (more := len(found) - len(rows)) > 0:
                parts.append(f"… and {more:,} more in the {report_of(self.context)}.")
            summary = f"{count_of(len(found), 'finding')} {name}, not blocking: {why}"
            yield details(summary, "\n\n".join(parts))

    def _ledger(self, spelling: Spelling) -> str:
        facts = self.agent.ledger
        source = self.context.ledgers.get(self.agent.agent, "")
        told = (
            f"Ledger: {count_of(facts.events, 'event')}, "
            f"{count_of(facts.effects, 'side effect')}, {count_of(facts.runs, 'run')}"
        )
        digest = f", {code(facts.digest, limit=19)}" if facts.digest else ""
        return f"<sub>{told}{digest}{f'; {spelling.words(source, 120)}' if source else ''}</sub>"


def passed_over(agent: AgentVerdict, spared: Collection[str]) -> bool:
    """Is its verdict a formality, since the change does not touch it? Never where it says more."""
    said = agent.decision is not Decision.PASS or agent.judged or agent.coverage.runs_compared
    return agent.agent in spared and not said


def live_of(agent: AgentVerdict, context: CommentContext) -> list[Judged]:
    """The findings that nothing tempers, worst first."""
    live = [judged for judged in agent.judged if tempered(judged) is None]
    return sorted(live, key=lambda judged: judged.divergence.kind not in context.fail_on)


def warns(agent: AgentVerdict) -> bool:
    """Is there something to look at, although nothing may block?"""
    return bool(agent.unstable or agent.coverage.accepted) or any(
        tempered(one) is None for one in agent.judged
    )


def tempered(judged: Judged) -> str | None:
    """Why a finding does not count, in a word or two; None where it does."""
    if judged.pre_existing:
        return "also on base"
    if judged.known:
        return "known of the baseline"
    if judged.waiver is not None:
        return "waived"
    if judged.divergence.assumed:
        return "assumed"
    return "unstable" if judged.unstable else None


def spelling_of(context: CommentContext) -> Spelling:
    """How agent text is written under `context`."""
    return Spelling(show_values=context.show_values)


def tally(agents: Sequence[AgentVerdict]) -> str:
    """``3 DUPLICATE, 39 calls match`` over all `agents`, tempered findings apart."""
    live = Counter(
        judged.divergence.kind
        for agent in agents
        for judged in agent.judged
        if tempered(judged) is None
    )
    told = [f"**{live[kind]:,} {kind.value}**" for kind in Kind if live[kind]]
    for name, _ in _TEMPERS:
        if count := sum(tempered(one) == name for agent in agents for one in agent.judged):
            told.append(f"{count:,} {name}")
    matched = sum(agent.counts.get("match", 0) for agent in agents)
    return ", ".join(
        [*told, f"{count_of(matched, 'call')} {'match' if matched != 1 else 'matches'}"]
    )


def _counted(agent: AgentVerdict) -> str:
    coverage = agent.coverage
    return (
        f"Compared **{coverage.runs_compared:,} of {count_of(coverage.runs_total, 'run')}**: "
        f"{tally([agent])}."
    )


def _lines(lines: Sequence[str], spelling: Spelling) -> list[str]:
    told = (spelling.words(line) for line in lines)
    return few(told, len(lines), most=_MAX_LINES, room=_ROOM_FOR_LINES)


def _reasons(agent: AgentVerdict, spelling: Spelling) -> list[str]:
    """Why it is no pass; what may be accepted with the name to accept it by."""
    named = {one.why: one.fingerprint for one in agent.coverage.unshown}
    told = (
        spelling.words(line)
        + (f" (finding {spelling.digest(named[line])})" if line in named else "")
        for line in agent.why
    )
    return few(told, len(agent.why), most=_MAX_LINES, room=_ROOM_FOR_LINES)


def _accepted(agent: AgentVerdict, spelling: Spelling) -> list[str]:
    """What no replay shows and a person accepted."""
    accepted = [one for one in agent.coverage.unshown if one.waiver is not None]
    told = (
        f"Accepted: {spelling.words(one.told)} (finding {spelling.digest(one.fingerprint)}): "
        f"{spelling.name(one.waiver or '', 120)}"
        for one in accepted
    )
    return few(told, len(accepted), most=_MAX_LINES, room=_ROOM_FOR_LINES)


def _coverage(agent: AgentVerdict, spelling: Spelling) -> list[str]:
    coverage = agent.coverage
    lines: list[str] = []
    if coverage.steps_total:
        lines.append(
            f"Covered: **{covered(coverage)}**; request drift: {spelling.words(drift(coverage))}"
        )
    asked = (
        f"{spelling.name(name)} is asked otherwise: "
        + ", ".join(spelling.name(part) for part in parts[:_MAX_FIELDS])
        for name, parts in sorted(coverage.drifted.items())
    )
    drifted = few(asked, len(coverage.drifted), most=_MAX_LINES, room=_ROOM_FOR_LINES)
    if agent.live is not None:
        drifted.append(spent(agent.live, spelling.name))
    return [*lines, *drifted]


def _row(number: int, judged: Judged, context: CommentContext) -> str:
    divergence, spelling = judged.divergence, spelling_of(context)
    tool, mark = spelling.name(divergence.tool), ""
    if tempered(judged) is None:
        mark = "⛔" if divergence.kind in context.fail_on else "⚠️"
    removed = remedy(divergence, spelling.part)
    if judged.waiver is not None:
        removed = f"waived: {spelling.name(judged.waiver, 120)}"
    return row(
        (
            f"{mark}&nbsp;{number}" if mark else str(number),
            f"**{_linked(divergence, context)}** {divergence.reason.value}<br>{tool}",
            f"{spelling.name(divergence.run, 40)}, {spelling.name(divergence.step, 40)}",
            spelling.fields(divergence) or "—",
            removed,
        )
    )


def _linked(divergence: Divergence, context: CommentContext) -> str:
    url = f"{context.docs}/divergences.md#{anchor(divergence)}" if context.docs else ""
    return link(divergence.kind.value, url)


def _fold(number: int, judged: Judged, context: CommentContext) -> str:
    divergence, spelling = judged.divergence, spelling_of(context)
    summary = (
        f"{number} · {divergence.kind.value} {divergence.reason.value}: "
        f"{spelling.html(divergence.tool)} in {spelling.html(divergence.run, 40)}, "
        f"{spelling.html(divergence.step, 40)}"
    )
    told = [sentence(divergence, spelling.part)]
    told += [f"*{note}*" for note in _notes(divergence)]
    told.append(_sides(divergence, spelling))
    removed = f"What removes it: {remedy(divergence, spelling.part)}."
    if (line := rule(divergence)) is not None:
        removed = f"What removes it, in {code(context.config)}: {spelling.name(line, 200)}."
    if divergence.kind in context.fail_on:
        told += [f"{removed} If it is meant, waive it for a time:", shell(_waiving(divergence))]
    else:
        told.append(removed)
    return details(summary, "\n\n".join(part for part in told if part))


def _waiving(divergence: Divergence) -> str:
    return f'backstop waive {shlex.quote(divergence.fingerprint)} --reason "..." --days 14'


def _notes(divergence: Divergence) -> Iterator[str]:
    if divergence.handover:
        yield "Only a version that takes the open run over shows it, not a replay from its start."
    if divergence.in_doubt:
        yield "The recorded call may or may not be out."


def _sides(divergence: Divergence, spelling: Spelling) -> str:
    recorded, intended = divergence.recorded, divergence.intended
    header = ("", "recorded", "asked for")
    rows: list[str] = []
    if recorded is not None and intended is not None and recorded.step != intended.step:
        rows.append(
            row(("step", spelling.name(recorded.step, 40), spelling.name(intended.step, 40)))
        )
    if recorded is not None or intended is not None:
        rows.append(row(("key", _key(recorded, spelling), _key(intended, spelling))))
    if spelling.show_values:
        rows += _values(divergence, spelling)
    return table(header, rows) if rows else ""


def _key(side: Half | None, spelling: Spelling) -> str:
    return "—" if side is None else spelling.name(side.key[:12])


def _values(divergence: Divergence, spelling: Spelling) -> Iterator[str]:
    recorded, intended = divergence.recorded, divergence.intended
    paths: Sequence[str] = divergence.paths
    if recorded is None or intended is None:
        only = recorded or intended
        paths = [
            "/" + name.replace("~", "~0").replace("/", "~1")
            for name in sorted(only.args if only is not None else ())
        ]
    for path in paths[:_MAX_FIELDS]:
        yield row(
            (
                spelling.name(path),
                *(
                    "—" if side is None else spelling.value(at(side.args, path))
                    for side in (recorded, intended)
                ),
            )
        )
    if (more := len(paths) - _MAX_FIELDS) > 0:
        yield row((f"and {more} more", "", ""))


def report_of(context: CommentContext) -> str:
    """The full report, as a link or as the name of an artifact."""
    linked = link("full report", context.report)
    if linked != "full report":
        return linked
    return f"full report, artifact {spelling_of(context).name(context.report)}"
