"""Reads conversations out of OpenTelemetry's spans (OTLP JSON, GenAI conventions).

A conversation is a run; an outermost invocation in it is a step. ``execute_tool`` spans tell
what ran, with which arguments and what it gave; the spans of models tell who asked for it,
where they hold what was said. ADK's older attributes (``gcp.vertex.agent.*``) are read too.

A tool that answered has happened. One whose span ended in an error, or has no answer, is told
as never answered: nobody knows whether it happened, and the run's gaps say so.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from backstop.adapters.importing.contents import Tools, executes
from backstop.adapters.importing.conversation import Answered, Conversation, Item, Message, Spoken
from backstop.adapters.importing.genai import (
    Ran,
    is_model,
    ran,
    said_by,
    stamp,
    words_for,
)
from backstop.adapters.importing.spans import LATEST, Id, Span, read_spans
from backstop.adapters.told import Call, Result
from backstop.core.canon import Json

_INVOCATIONS: Final = frozenset({"invoke_agent", "invoke_workflow"})

# Of things at one time: what was answered, then what was asked, then what ran in no time.
_ANSWER, _MODEL, _TOOL, _AT_ONCE = range(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Around:
    """What the spans around a span say of it; the outermost conversation and invocation count."""

    agent: str = ""
    conversation: str | None = None
    invocation: Id | None = None


@dataclass(slots=True, kw_only=True)
class _Step:
    """One invocation: its models and tools in the order of their beginnings."""

    tools: Tools
    models: dict[Id, tuple[Span, str]] = field(default_factory=dict)
    ran: list[tuple[Ran, str]] = field(default_factory=list)
    orphans: int = 0

    @property
    def spans(self) -> list[Span]:
        """All of its spans that count."""
        return [span for span, _ in self.models.values()] + [one.span for one, _ in self.ran]


def read_traces(files: Iterable[tuple[str, bytes]], *, tools: Tools) -> Iterator[Conversation]:
    """The conversations in these files (name and content), by their beginnings.

    An agent that was called as a tool is told by its own spans.

    Raises `ImportRefused` (``import-not-json``, ``import-shape``, ``import-span-twice``,
    ``import-no-content``).
    """
    spans = read_spans(files)
    around: dict[Id, _Around] = {}
    for span in spans.values():
        above = _Around() if span.parent is None else around.get(span.parent, _Around())
        around[span.id] = _within(span, above)
    agents = frozenset(found.agent for found in around.values())
    tools = replace(tools, agents=agents)
    by_trace: dict[str, set[str]] = {}
    for (trace, _), found in around.items():
        if found.conversation is not None:
            by_trace.setdefault(trace, set()).add(found.conversation)
    runs: dict[str, dict[Id, _Step]] = {}
    for span in spans.values():
        found = around[span.id]
        trace = span.id[0]
        of_trace = by_trace.get(trace, set())
        only = next(iter(of_trace)) if len(of_trace) == 1 else trace
        steps = runs.setdefault(found.conversation or only, {})
        _file(
            span,
            steps.setdefault(found.invocation or (trace, ""), _Step(tools=tools)),
            around,
            spans,
        )
    for run, steps in runs.items():
        if told := [step for step in steps.values() if step.spans]:
            yield _told(run, told)


def _within(span: Span, above: _Around) -> _Around:
    starts = span.text("gen_ai.operation.name") in _INVOCATIONS or span.name == "invocation"
    named = span.text("gen_ai.conversation.id", "gcp.vertex.agent.session_id")
    return _Around(
        agent=span.text("gen_ai.agent.name") or above.agent,
        conversation=above.conversation or named or None,
        invocation=above.invocation or (span.id if starts else None),
    )


def _file(span: Span, step: _Step, around: Mapping[Id, _Around], spans: Mapping[Id, Span]) -> None:
    """Put a span where it belongs, if it is one of a model or a tool."""
    tool = ran(span)
    if tool is None and not is_model(span):
        return
    agent = around[span.id].agent
    above = None if span.parent is None else spans.get(span.parent)
    step.orphans += span.parent is not None and above is None
    if tool is not None:
        step.ran.append((tool, agent))
        return
    if above is not None and is_model(above):
        # ADK's older traces hold one request in two spans, one in the other.
        if said_by(above, step.tools) is not None:
            return
        step.models.pop(above.id, None)
    step.models[span.id] = span, agent


def _told(run: str, steps: list[_Step]) -> Conversation:
    steps = sorted(steps, key=lambda step: min(span.start for span in step.spans))
    telling = _Telling()
    until = -1
    for step in steps:
        telling.overlap += min(span.start for span in step.spans) < until
        until = max(until, *(max(span.start, span.end) for span in step.spans))
        telling.step(step)
    return Conversation(
        run=run,
        at=telling.items[0].at,
        items=telling.items,
        place=steps[0].spans[0].place,
        gaps=telling.gaps(),
    )


@dataclass(slots=True, kw_only=True)
class _Telling:
    """One run as it is told; the numbers count what its spans cannot tell."""

    items: list[Item] = field(default_factory=list)
    open: int = 0
    silent: int = 0
    wordless: int = 0
    orphans: int = 0
    overlap: int = 0
    coded: int = 0

    def gaps(self) -> list[str]:
        """What the spans cannot tell."""
        counted = (
            (
                self.open,
                "of its calls ended in an error or without an answer, and may have happened",
            ),
            (self.silent, "of its models' answers are not in their spans"),
            (self.wordless, "of its steps do not tell what the user said"),
            (self.orphans, "of its spans lie in a span that was not exported"),
            (self.coded, "of its models' answers executed code; what that did is not told"),
            (self.overlap, "of its steps began before the one before had ended"),
        )
        return [f"{count} {what}" for count, what in counted if count]

    def step(self, step: _Step) -> None:
        """One invocation, in the order of time."""
        self.orphans += step.orphans
        words = next((words_for(span) for span, _ in step.models.values()), None)
        self.wordless += words is None
        first = min(step.spans, key=lambda span: span.start)
        content: Json = {"role": "user", "parts": words or [{"text": ""}]}
        self.items.append(Message(at=stamp(first), content=content, place=first.place))
        placed = [*self._models(step)]
        placed += [one for tool, agent in step.ran for one in self._tool(tool, agent, step.tools)]
        self.items += [item for *_, item in sorted(placed, key=lambda one: one[:2])]

    def _models(self, step: _Step) -> Iterator[tuple[int, int, Item]]:
        """What models said, with each call as it ran where a span tells that."""
        by_tool: dict[str, list[Ran]] = {}
        for tool, _ in step.ran:
            by_tool.setdefault(tool.tool, []).append(tool)
        for span, agent, again in _asked_again(step):
            said = said_by(span, step.tools)
            if said is None:
                self.silent += 1
                continue
            parts: list[Json | Call] = []
            for part in said:
                if not isinstance(part, Call):
                    parts.append(part)
                elif (run := _run_of(part, by_tool.get(part.tool, []), span, again)) is None:
                    self.open += not part.steering
                    parts.append(part)
                else:
                    parts.append(run.asked(part, step.tools))
            self.coded += executes(parts)
            if parts:
                spoken = Spoken(at=stamp(span), parts=parts, agent=agent, place=span.place)
                yield span.start, _MODEL, spoken

    def _tool(self, tool: Ran, agent: str, tools: Tools) -> Iterator[tuple[int, int, Item]]:
        span = tool.span
        if tool.call is None:
            # No model says that it asked: what ran was asked for all the same.
            call = tool.asked(None, tools)
            yield (
                span.start,
                _TOOL,
                Spoken(at=stamp(span), parts=[call], agent=agent, place=span.place),
            )
        else:
            call = tool.call
        unsure = tool.span.error is not None and tool.tool not in tools.reads
        if not tool.answered or (unsure and not call.steering):
            self.open += not call.steering
            return
        end = max(span.start, span.end)
        yield (
            end,
            _ANSWER if end > span.start else _AT_ONCE,
            Answered(
                at=stamp(span, end=True),
                result=Result(value=tool.result),
                call=call.id,
                tool=call.tool,
                place=span.place,
            ),
        )


def _asked_again(step: _Step) -> list[tuple[Span, str, int]]:
    """Each request to a model, its agent, and when that agent's model was asked again."""
    again: dict[str, int] = {}
    told = []
    for span, agent in reversed(step.models.values()):
        told.append((span, agent, again.get(agent, LATEST)))
        again[agent] = span.start
    return told[::-1]


def _run_of(asked: Call, runs: Sequence[Ran], model: Span, again: int) -> Ran | None:
    """The span in which a call that a model asked for ran, None if there is none.

    `runs` are those of its tool. ADK's models and tools give one call two ids, so its arguments
    may have to tell; whatever ran, ran before its model was asked again.
    """
    first = bisect_left(runs, model.start, key=lambda run: run.span.start)
    last = bisect_left(runs, again, key=lambda run: run.span.start)
    fitting = [run for run in runs[first:last] if run.call is None]
    by_id = (run for run in fitting if asked.id and run.id == asked.id)
    alike = (run for run in fitting if run.arguments == asked.arguments)
    return next(by_id, None) or next(alike, None) or next(iter(fitting), None)
