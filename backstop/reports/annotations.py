"""What is shown at the run and beside the changed files: few annotations, the worst first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from backstop.core.divergence import Divergence
from backstop.core.verdict import AgentVerdict, Decision, Judged, Verdict
from backstop.reports.context import CommentContext, Place
from backstop.reports.explain import remedy, sentence
from backstop.reports.markdown import Spelling
from backstop.reports.section import live_of, spelling_of

MAX_OF_A_LEVEL: Final = 10
"""How many of a level the runner takes from one step."""
MAX_MESSAGE: Final = 4_096
"""Characters of a message, as the runner counts: UTF-16 units. Ours stay below it in bytes."""

_PART: Final = 60
_MESSAGE: Final = 1_000


class Level(StrEnum):
    """How loud an annotation is: an error fails, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """One of them, as plain text on one line; who prints it escapes it for the runner."""

    level: Level
    title: str
    message: str
    place: Place | None = None


def annotations_of(verdict: Verdict, context: CommentContext) -> tuple[Annotation, ...]:
    """Reasons for doubt and findings that count, at most `MAX_OF_A_LEVEL` of a level.

    The worst come first; the last of a level says how many there are more.
    """
    found: dict[Level, list[_Said]] = {Level.ERROR: [], Level.WARNING: []}
    # What is new does not count, unless there is nothing else: then the check fails for it.
    all_new = all(agent.neutral for agent in verdict.agents)
    for agent in verdict.agents:
        if all_new or (agent.decision is Decision.INCONCLUSIVE and not agent.neutral):
            found[Level.ERROR] += [(agent, reason) for reason in agent.why]
        for judged in live_of(agent, context):
            blocks = judged.divergence.kind in context.fail_on
            found[Level.ERROR if blocks else Level.WARNING].append((agent, judged))
    return tuple(one for level, said in found.items() for one in _few(level, said, context))


def error_annotation(slug: str, message: str, context: CommentContext) -> Annotation:
    """The one annotation of an error: nothing was judged."""
    return Annotation(
        level=Level.ERROR,
        title=f"Backstop error: {slug}",
        message=spelling_of(context).line(message, _MESSAGE),
    )


_Said: TypeAlias = tuple[AgentVerdict, Judged | str]


def _few(level: Level, said: Sequence[_Said], context: CommentContext) -> Iterator[Annotation]:
    kept = said if len(said) <= MAX_OF_A_LEVEL else said[: MAX_OF_A_LEVEL - 1]
    for agent, one in kept:
        yield _annotation(level, agent, one, context)
    if (more := len(said) - len(kept)) > 0:
        message = f"and {more:,} more like these; the summary of the job lists them"
        yield Annotation(level=level, title="Backstop", message=message)


def _annotation(
    level: Level, agent: AgentVerdict, one: Judged | str, context: CommentContext
) -> Annotation:
    spelling = spelling_of(context)
    name = spelling.line(agent.agent, _PART)
    match one:
        case Judged(divergence=divergence):
            kind = f"{divergence.kind.value} {divergence.reason.value}"
            title = f"{kind}: {spelling.line(divergence.tool, _PART)}, {name}"
            message = _finding(divergence, spelling)
        case reason:
            title = f"Backstop: {name} is inconclusive, not a pass"
            message = spelling.line(reason, _MESSAGE)
    return Annotation(
        level=level, title=title, message=message, place=context.places.get(agent.agent)
    )


def _finding(divergence: Divergence, spelling: Spelling) -> str:
    def part(text: str) -> str:
        return spelling.line(spelling.pointer(text) if text.startswith("/") else text, _PART)

    return (
        f"{sentence(divergence, part)} Run {part(divergence.run)}, "
        f"step {part(divergence.step)}. What removes it: {remedy(divergence, part)}"
    )
