"""Reads ADK's evaluation sets: one run an evaluation case, one step an invocation.

An evalset says what an evaluation *expects*, and may hold what a session gave when it was
made. A tool use whose answer stands in it has happened. One without is an expectation, and no
history: it is told as asked for and never answered, so that another call can be held against
it, and the run's gaps say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import PurePath, PureWindowsPath
from typing import Final

import msgspec

from backstop.adapters.importing.contents import (
    Given,
    Tools,
    executes,
    given_in,
    given_of,
    moment,
    object_of,
    parts_of,
)
from backstop.adapters.importing.conversation import Answered, Conversation, Item, Message, Spoken
from backstop.adapters.importing.fields import member, members, objects, text
from backstop.adapters.told import Call, ImportRefused, Result
from backstop.core.canon import Json, NotCanonical, parse

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_LATEST: Final = 253_402_300_799  # the last second of the year 9999
_SHOWN: Final = 5
_SUFFIXES: Final = (".test.json", ".evalset.json", ".json")


def read_evalset(
    data: bytes, *, name: str, tools: Tools, at: datetime, folder: str = ""
) -> Iterator[Conversation]:
    """The cases of an evalset: ADK's `EvalSet` in either spelling, or one of its older lists.

    `folder` stands before the name of each run. A case that does not say when it was made
    begins `at`; its items are a second apart. Raises `ImportRefused` (``import-not-json``,
    ``import-shape``).
    """
    try:
        document = parse(data)
    except NotCanonical as error:
        reason = str(error).removeprefix("not JSON: ")
        raise ImportRefused(
            f"{name}: not JSON: {reason}; give the evalset as ADK writes it",
            slug="import-not-json",
        ) from error
    for number, case in enumerate(_cases(document, name=name)):
        place = f"{name}: case {number}"
        telling = _Telling(tools=tools, now=at)
        try:
            told = _case(object_of(case, "it"), telling, place=place, name=name)
        except ImportRefused as error:
            inside = f", {telling.place}" if telling.place else ""
            raise ImportRefused(f"{place}{inside}: {error}", slug=error.slug) from error
        yield replace(told, run=folder + told.run)


def _cases(document: Json, *, name: str) -> Sequence[Json]:
    if isinstance(document, dict):
        cases = member(document, "eval_cases")
        if isinstance(cases, list):
            return cases
    elif isinstance(document, list) and document:
        first = document[0]
        # The oldest form holds the turns of a single case.
        return [{"data": document}] if isinstance(first, dict) and "query" in first else document
    raise ImportRefused(
        f"{name}: neither an EvalSet with 'eval_cases' nor a list of cases or queries; give an "
        "evalset as ADK writes it"
    )


def _case(case: Mapping[str, Json], telling: _Telling, *, place: str, name: str) -> Conversation:
    run = _run(text(case, "eval_id") or text(case, "name"), name)
    session = members(case, "session_input") or members(case, "initial_session")
    began = telling.now = _created(case) or telling.now
    turns = member(case, "conversation")
    turns = member(case, "data") if turns is None else turns
    if turns is None and member(case, "conversation_scenario") is not None:
        telling.gaps.append("it is a scenario for a simulated user, of which nothing is recorded")
    elif not isinstance(turns, list):
        raise ImportRefused("neither a 'conversation' nor 'data'; give an evalset of ADK's")
    for number, turn in enumerate(turns or []):
        telling.place = f"invocation {number}"
        before = len(telling.items)
        telling.turn(object_of(turn, "it"))
        telling.unanswered += not any(isinstance(it, Spoken) for it in telling.items[before:])
    return Conversation(
        run=run,
        at=telling.items[0].at if telling.items else moment(began, 0),
        items=telling.items,
        place=place,
        user=text(session, "user_id") or "user",
        state=members(session, "state"),
        gaps=telling.found_gaps(),
    )


def _run(case: str, file: str) -> str:
    """The case's own name. One that was made of an older form is named by the path of its file.

    That is a path on somebody's machine, and says no more than the file's name does.
    """
    is_its_path = PureWindowsPath(case).name == PureWindowsPath(file).name
    return _stem(file) if is_its_path else case or _stem(file)


def _stem(name: str) -> str:
    base = PurePath(name).name
    return next((base.removesuffix(end) for end in _SUFFIXES if base.endswith(end)), base)


def _created(given: Mapping[str, Json]) -> datetime | None:
    """When it was made, None where that is not told (ADK writes 0.0)."""
    stamp = member(given, "creation_timestamp")
    if stamp is None or stamp == 0:
        return None
    if isinstance(stamp, bool) or not isinstance(stamp, int | Decimal):
        raise ImportRefused("'creation_timestamp' is no number of seconds; correct the file")
    if not 0 <= stamp <= _LATEST:
        raise ImportRefused("'creation_timestamp' is out of range; correct the file")
    return EPOCH + timedelta(microseconds=int(stamp * 1_000_000))


def _later(moment: datetime, seconds: int) -> datetime:
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        raise ImportRefused("a time past the year 9999; correct it") from None


@dataclass(slots=True, kw_only=True)
class _Telling:
    """One case as it is told; `expected` are the tools whose uses nothing answered."""

    tools: Tools
    now: datetime
    place: str = ""
    items: list[Item] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    unplaced: int = 0
    unanswered: int = 0

    def found_gaps(self) -> list[str]:
        """What the case cannot tell."""
        if self.expected:
            self.gaps.append(
                f"{len(self.expected)} of its tool uses are what an evaluation expects: nothing "
                f"says that they ran, or what they gave ({_some(self.expected)})"
            )
            unknown = set(self.expected) - self.tools.declared
            if self.tools.declared and unknown:
                self.gaps.append(
                    f"it expects {_some(unknown)}, of which the configuration says nothing: "
                    "declare it, or take the case out if the agent has it no longer"
                )
        if self.unanswered:
            self.gaps.append(
                f"it holds no answer to {self.unanswered} of its messages: nothing says what the "
                "agent does then"
            )
        if self.unplaced:
            self.gaps.append(
                f"{self.unplaced} texts of sub-agents have no place in its order, and are left out"
            )
        return self.gaps

    def turn(self, turn: Mapping[str, Json]) -> None:
        """One invocation, in the new form or in the old one."""
        if "query" in turn:
            self._old(turn)
            return
        if (stamp := _created(turn)) is not None:
            self.now = max(stamp, self.now) if self.items else stamp
        content = object_of(member(turn, "user_content"), "'user_content'")
        parts: list[Json] = [*parts_of(content)]
        for given in given_in(content):
            self._answer(given)  # a call that had waited for it
        self.items.append(
            Message(at=self._tick(), place=self.place, content={"role": "user", "parts": parts})
        )
        data, last = members(turn, "intermediate_data"), member(turn, "final_response")
        if member(data, "invocation_events") is not None:
            self._events(objects(data, "invocation_events"), last)
        else:
            self._uses(data)
            self._final(self.tools.said(last), agent="")

    def _old(self, turn: Mapping[str, Json]) -> None:
        content: Json = {"role": "user", "parts": [{"text": text(turn, "query")}]}
        self.items.append(Message(at=self._tick(), place=self.place, content=content))
        for use in objects(turn, "expected_tool_use"):
            given = use.get("tool_input")
            call = self.tools.call("", text(use, "tool_name"), {} if given is None else given)
            self._asked(call)
            self._expect(call)
        self.unplaced += len(objects(turn, "expected_intermediate_agent_responses"))
        words = text(turn, "reference")
        self._final([{"text": words}] if words else [], agent="")

    def _uses(self, data: Mapping[str, Json]) -> None:
        """Tool uses and their answers, in two lists; who asked, and what at once, is not told."""
        answers = [given_of(one) for one in objects(data, "tool_responses")]
        for use in objects(data, "tool_uses"):
            call = self._asked(self.tools.called(use))
            given = next((one for one in answers if one.fits(call)), None)
            if given is None:
                self._expect(call)
            else:
                answers.remove(given)
                self._answer(given)
        for given in answers:
            self._answer(given)
        # Pairs of an author and parts: lists, not objects.
        texts = member(data, "intermediate_responses")
        self.unplaced += len(texts) if isinstance(texts, list) else 0

    def _asked(self, call: Call) -> Call:
        """A call of nobody in particular."""
        if call.tool not in self.tools.declared and _looks_like_agent(call):
            call = msgspec.structs.replace(call, steering=True)
            self.gaps.append(
                f"{call.tool} looks like an agent that is a tool, and what such an agent does is "
                "not in an evalset; declare it in backstop.yaml if it is none"
            )
        self._spoken([call], agent="")
        return call

    def _expect(self, call: Call) -> None:
        """Nothing answers this call; what only steers needs no answer."""
        if not call.steering:
            self.expected.append(call.tool)

    def _events(self, events: Sequence[Mapping[str, Json]], last: Json) -> None:
        """Events in order; the last words stand apart from them, and their author here."""
        waiting: list[Call] = []
        agent, told = "", False
        for event in events:
            content = member(event, "content")
            agent = text(event, "author") or agent
            told = told or (content is not None and content == last)
            parts = self.tools.said(content)
            self._spoken(parts, agent=agent)
            waiting += [part for part in parts if isinstance(part, Call) and not part.steering]
            for given in given_in(content):
                fitting = [call for call in waiting if given.fits(call)]
                for call in fitting[:1]:
                    waiting.remove(call)
                self._answer(given)
        for call in waiting:
            self._expect(call)
        self._final([] if told else self.tools.said(last), agent=agent)

    def _final(self, parts: Sequence[Json | Call], *, agent: str) -> None:
        """The last words. A call that waits is repeated in them, and was told before."""
        self._spoken([part for part in parts if not isinstance(part, Call)], agent=agent)

    def _spoken(self, parts: Sequence[Json | Call], *, agent: str) -> None:
        if executes(parts):
            self.gaps.append("it executed code; what that did is not told")
        if parts:
            self.items.append(Spoken(at=self._tick(), parts=parts, agent=agent, place=self.place))

    def _answer(self, given: Given) -> None:
        self.items.append(
            Answered(
                at=self._tick(),
                result=Result(value=given.value),
                call=given.call,
                tool=given.tool,
                place=self.place,
            )
        )

    def _tick(self) -> str:
        """The time of the next item."""
        told = moment(self.now, 0)
        self.now = _later(self.now, 1)
        return told


def _some(tools: Iterable[str]) -> str:
    """The first of these names, each once."""
    names = sorted(set(tools))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _looks_like_agent(call: Call) -> bool:
    """An agent that is a tool takes one text, its request."""
    return list(call.arguments) == ["request"] and isinstance(call.arguments["request"], str)
