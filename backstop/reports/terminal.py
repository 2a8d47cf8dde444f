"""The verdict for a person at a terminal: what was compared, each divergence a card, the decision.

Pure: a verdict in, text out. Nothing in it comes from a model, and all that came from one
is escaped.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Final

from rich.box import ROUNDED, SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from backstop.core.divergence import Divergence, Half, Kind
from backstop.core.verdict import AgentVerdict, Decision, Judged, Verdict
from backstop.core.waivers import WaiverUse
from backstop.reports.covered import covered, drift
from backstop.reports.document import digest_of
from backstop.reports.escape import plain
from backstop.reports.explain import accepted_line, at, count_of, rule, sentence
from backstop.reports.living import model_calls, spent
from backstop.reports.unsteady import unsteady

WIDTH: Final = 80
_VALUE: Final = 120
_SENTENCE: Final = 400
_MAX_PATHS: Final = 8
_MAX_CARDS: Final = 50
_COUNTED: Final = ("match", "duplicate", "mutated", "missing", "extra")

_OTHERS: Final[Mapping[str, tuple[str, str]]] = {
    "absorbed": ("repeat", "absorbed by the guard"),
    "in_doubt": ("recorded call", "in doubt"),
    "failed": ("call", "failed again, as recorded"),
    "recorded_twice": ("call", "recorded twice already"),
    "assumed": ("finding", "assumed"),
    "waived": ("finding", "waived"),
    "pre_existing": ("finding", "pre-existing"),
    "known": ("finding", "known of the baseline"),
    "unstable": ("finding", "unstable"),
}
"""Noun and predicate of what the table of counts leaves out."""
_HEADLINES: Final[Mapping[Decision, str]] = {
    Decision.PASS: "PASS",
    Decision.BLOCK: "DEPLOY BLOCKED",
    Decision.INCONCLUSIVE: "INCONCLUSIVE",
}
_COLOURS: Final[Mapping[Decision, str]] = {
    Decision.PASS: "bold green",
    Decision.BLOCK: "bold red",
    Decision.INCONCLUSIVE: "bold yellow",
}
_WARNED: Final = "nothing blocks; look at each finding before this version ships"
_ACCEPTING: Final = (
    "this is no pass: remove what is named above, or accept what has a finding by `backstop waive "
    "FINDING`, or allow it in the policy, and run again"
)
_UNTRIED: Final = "nothing was compared, so this says nothing about the version"
_NEXT: Final[Mapping[Decision, str]] = {
    Decision.PASS: "nothing blocks: this version may ship",
    Decision.BLOCK: (
        "do not ship; docs/divergences.md says what each finding means and what removes it"
    ),
    Decision.INCONCLUSIVE: (
        "this is no pass: remove what is named above, or allow it in the policy, and run again"
    ),
}


def render(verdict: Verdict, *, colour: bool = False, width: int = WIDTH) -> str:
    """The report as text of at most `width` columns; its first line says how much was compared."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    compared = sum(agent.coverage.runs_compared for agent in verdict.agents)
    total = sum(agent.coverage.runs_total for agent in verdict.agents)
    console.print(f"compared {compared:,} of {count_of(total, 'run')}")
    for agent in verdict.agents:
        for line in _accepted(agent, several=len(verdict.agents) > 1):
            console.print(Text(plain(line, limit=_SENTENCE)))
    for agent in verdict.agents:
        _agent(console, agent)
    _closing(console, verdict)
    # Rich fills lines with blanks; a golden file and a diff want none.
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _agent(console: Console, agent: AgentVerdict) -> None:
    ledger = agent.ledger
    console.print()
    console.print(
        Text.assemble(
            (plain(agent.agent, limit=60), "bold"),
            f": {count_of(ledger.events, 'event')}, {count_of(ledger.effects, 'side effect')}, "
            f"{count_of(ledger.runs, 'run')}",
        )
    )
    for line in _coverage(agent):
        console.print(Text(line))
    # What may block comes first; what was known at adoption is counted on top, and is no news.
    shown = sorted((one for one in agent.judged if not one.known), key=lambda one: one.is_tempered)
    for number, judged in enumerate(shown[:_MAX_CARDS], start=1):
        console.print(_card(number, judged))
    if (more := len(shown) - _MAX_CARDS) > 0:
        console.print(f"... and {more} more; --format json shows all of them")
    console.print(_counts(agent))
    named = {one.why: one.fingerprint for one in agent.coverage.unshown}
    said = (*_also(agent), *agent.why, *unsteady(agent), *agent.notes, *_to_mend(agent))
    for line in said:
        console.print(Text(f"- {plain(line, limit=_SENTENCE)}"))
        if line in named:
            console.print(f"  finding {plain(named[line])}")
    for one in agent.coverage.unshown:
        if one.waiver is not None:
            told = f"accepted: {one.told}; waived: {one.waiver}"
            console.print(Text(f"- {plain(told, limit=_SENTENCE)}"))
            console.print(f"  finding {plain(one.fingerprint)}")


def _accepted(agent: AgentVerdict, *, several: bool) -> Iterator[str]:
    """What makes a pass less than it looks, and what the change accepts by itself (D4)."""
    whose = f"{agent.agent}: " if several else ""
    if agent.coverage.accepted:
        yield f"{whose}{accepted_line(agent.coverage.accepted)}"
    for use in agent.waivers:
        if use.waiver.added:
            yield f"{whose}this change waives {_waiver(use)}"
    baseline = agent.baseline
    if baseline is not None and baseline.added:
        counted = "" if baseline.counted else "; they do not count (gate.waivers: base)"
        yield (
            f"{whose}this change puts {count_of(baseline.added, 'finding')} into the baseline"
            f"{counted}"
        )
    if baseline is not None and baseline.findings:
        by = f" ({baseline.by})" if baseline.by else ""
        verb = "does" if baseline.known == 1 else "do"
        yield (
            f"{whose}{count_of(baseline.known, 'known finding')} of the baseline of "
            f"{baseline.date}{by} {verb} not block"
        )


def _waiver(use: WaiverUse) -> str:
    waiver = use.waiver
    what = count_of(use.waived, "finding") if use.waived else "nothing"
    if use.unshown:
        what = f"{count_of(use.unshown, 'change')} that no replay shows"
    return (
        f"{what}: {waiver.about} ({waiver.place}), until {waiver.expires}, by {waiver.author}: "
        f"{waiver.reason}"
    )


def _to_mend(agent: AgentVerdict) -> Iterator[str]:
    for use in agent.waivers:
        if use.note:
            yield f"waiver {use.waiver.place} ({use.waiver.about}) {use.note}"
    if agent.baseline is not None and agent.baseline.gone:
        gone = count_of(agent.baseline.gone, "known finding")
        yield f"{gone} gone: `backstop baseline write` takes them out of the baseline"


def _coverage(agent: AgentVerdict) -> Iterator[str]:
    coverage = agent.coverage
    if coverage.steps_total:
        yield f"covered: {covered(coverage)}"
        yield f"request drift: {plain(drift(coverage), limit=_SENTENCE)}"
    for name, parts in sorted(coverage.drifted.items()):
        yield plain(f"drifted: {name} ({', '.join(parts)})", limit=_SENTENCE)
    if agent.live is not None:
        yield plain(spent(agent.live), limit=_SENTENCE)


def _card(number: int, judged: Judged) -> RenderableType:
    divergence = judged.divergence
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    place = f"run {plain(divergence.run, limit=40)}, step {plain(divergence.step, limit=40)}"
    grid.add_row("where", Text(place))
    grid.add_row("what", Text(plain(sentence(divergence), limit=_SENTENCE)))
    for name, value in _sides(divergence):
        grid.add_row(name, Text(value))
    if (removed_by := rule(divergence)) is not None:
        grid.add_row("rule", Text(plain(removed_by, limit=_SENTENCE)))
    for note in _tempers(judged):
        grid.add_row("note", Text(note))
    grid.add_row("finding", Text(divergence.fingerprint))
    title = f"{number} {divergence.kind.value} ({divergence.reason.value}) {divergence.tool}"
    return Panel(
        grid,
        title=Text(plain(title, limit=70), "bold"),
        title_align="left",
        box=ROUNDED,
        border_style="red" if divergence.kind is Kind.DUPLICATE else "yellow",
    )


def _sides(divergence: Divergence) -> Iterator[tuple[str, str]]:
    recorded, intended = divergence.recorded, divergence.intended
    match recorded, intended:
        case Half(), Half():
            if recorded.step != intended.step:
                yield "recorded", f"in step {plain(recorded.step, limit=40)}"
            for path in divergence.paths[:_MAX_PATHS]:
                yield "recorded", _value(path, recorded)
                yield "asked", _value(path, intended)
            if (more := len(divergence.paths) - _MAX_PATHS) > 0:
                yield "", f"... and {more} more paths"
        case Half(), None:
            yield from _arguments("recorded", recorded)
        case None, Half():
            yield from _arguments("asked", intended)
        case _:
            return


def _arguments(name: str, side: Half) -> Iterator[tuple[str, str]]:
    for argument in sorted(side.args)[:_MAX_PATHS]:
        yield name, _value("/" + argument.replace("~", "~0").replace("/", "~1"), side)
        name = ""
    if (more := len(side.args) - _MAX_PATHS) > 0:
        yield "", f"... and {more} more arguments"


def _value(path: str, side: Half) -> str:
    return f"{plain(path, limit=60)} {plain(at(side.args, path), limit=_VALUE)}"


def _tempers(judged: Judged) -> Iterator[str]:
    if judged.divergence.assumed:
        yield "assumed: it follows an answer that the record cannot vouch for; it does not block"
    if judged.unstable:
        yield "unstable: each replay of this version comes out otherwise there; it does not block"
    if judged.divergence.handover:
        yield "only a version that takes the open run over shows it, not a replay from its start"
    if judged.divergence.in_doubt:
        yield "the recorded call may or may not be out"
    if judged.pre_existing:
        yield "pre-existing: the base version shows it too; it does not block"
    if judged.waiver is not None:
        yield f"waived: {plain(judged.waiver, limit=_SENTENCE)}"


def _counts(agent: AgentVerdict) -> RenderableType:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in _COUNTED:
        table.add_column(name if name == "match" else name.upper(), justify="right")
    table.add_row(*(f"{agent.counts.get(name, 0):,}" for name in _COUNTED))
    return table


def _also(agent: AgentVerdict) -> Iterator[str]:
    others = [
        f"{count_of(agent.counts[name], noun)} {said}"
        for name, (noun, said) in _OTHERS.items()
        if agent.counts.get(name)
    ]
    if others:
        yield f"also {'; '.join(others)}"


def _closing(console: Console, verdict: Verdict) -> None:
    decision = verdict.decision
    # What is known has no card to look at.
    warned = decision is Decision.PASS and any(
        agent.unstable or agent.coverage.accepted or not all(one.known for one in agent.judged)
        for agent in verdict.agents
    )
    compared = any(agent.coverage.runs_compared for agent in verdict.agents)
    todo = _UNTRIED if decision is Decision.PASS and not compared else _NEXT[decision]
    if decision is Decision.INCONCLUSIVE and _may_be_accepted(verdict):
        todo = _ACCEPTING
    console.print(
        Text.assemble(
            (_HEADLINES[decision] + " with warnings" * warned, _COLOURS[decision]),
            f" (exit code {verdict.exit_code}); {model_calls(verdict)}",
        )
    )
    console.print(Text(f"next: {_WARNED if warned else todo}"))
    console.print(Text(f"verdict {digest_of(verdict)}"))


def _may_be_accepted(verdict: Verdict) -> bool:
    """Does something stand against a pass that a waiver would take away (D4)?"""
    return any(
        one.waiver is None and one.why in agent.why
        for agent in verdict.agents
        for one in agent.coverage.unshown
    )
