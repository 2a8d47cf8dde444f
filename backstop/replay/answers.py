"""What the candidate is answered in the replay of one run (semantics.md A1-A5, S3).

Pure: no process, no clock. The driver hands in what the candidate asks, and sends what
comes back. One `Answers` is one pass over one run; it also keeps what was asked for, and
from where on the record cannot vouch for it any more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import msgspec

from backstop.core.canon import Json, NotCanonical, canonical, parse
from backstop.core.events import RequestDigests
from backstop.core.history import Row
from backstop.core.intents import Answered, Intent, Pass
from backstop.core.keying import Rules
from backstop.core.redaction import NO_KEY, NoRedactionKey, Redaction
from backstop.core.runs import RecordedRun, Step
from backstop.errors import WireError
from backstop.replay.calls import CallRecord, Told, known_calls, nested_calls
from backstop.replay.keyed import Ask, Known, key_ask
from backstop.replay.live import Live, LiveAsking
from backstop.replay.models import Drift, ModelRecord, Served, Trust
from backstop.replay.replies import END_OF_RECORD, NONE, recorded_at, refused, reply_to
from backstop.replay.standins import StandIns, holes
from backstop.replay.wire import IntentAsked, IntentReply, ModelAsked, ModelGiven, ModelReply

_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """All that the replay of one run may draw on.

    `elsewhere` are calls of other runs whose keys hold over all runs (G9); `shapes` are
    results by tool, for stand-ins to look like. `window` is how much of its history to show
    at first, None for all of it. `redaction` makes tokens of what the ledger holds tokens of.
    `live` answers model requests that have no proven answer on record.
    """

    run: RecordedRun
    rules: Rules
    trust: Trust = field(default_factory=Trust)
    elsewhere: Sequence[Known] = ()
    shapes: Mapping[str, Json] = field(default_factory=dict)
    window: int | None = None
    redaction: Redaction = NO_KEY
    live: Live | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a run cannot be replayed further, and in which step."""

    step: Step
    why: str


class Answers:
    """One pass over one run. `seed` tells passes with other stand-ins apart.

    With a `window` the pass fails at the first request that is not known to be the recorded
    one: then the model may have seen more than the window shows.
    """

    def __init__(
        self,
        recording: Recording,
        *,
        seed: int = 1,
        replay: Pass = Pass.FULL,
        window: int | None = None,
    ) -> None:
        run = recording.run
        self._recording = recording
        self.replay = replay
        self.window = window
        self._known = known_calls(run.id, run.steps, recording.rules)
        self._calls = CallRecord(self._known, recording.elsewhere)
        self._nested = nested_calls(self._known)
        self._carried: set[int] = set()
        self._models = ModelRecord(run.steps, recording.trust, handover=replay is Pass.HANDOVER)
        self._stand_ins = StandIns(seed, recording.shapes)
        self._live = LiveAsking(run=run.id, live=recording.live)
        self._repeats: Counter[str] = Counter()
        self._told: list[tuple[Told, bool]] = []
        self._drifted: dict[str, set[str]] = defaultdict(set)
        self._drift = Drift.SAME
        self._step: Step | None = None
        self._now = ""
        self.requests: dict[int, RequestDigests] = {}
        self.assumed_from: int | None = None
        self.failure: Failure | None = None

    def begin(self, step: Step) -> None:
        """From now on what is asked belongs to `step`; time starts at its recorded time (S3)."""
        self._step = step
        self._now = step.at

    @property
    def step(self) -> Step:
        """The step in progress. Raises `WireError` between steps."""
        if self._step is None:
            raise WireError(
                "the harness asked for something outside of a step; run again, and report it "
                "if it stays",
                slug="wire-order",
            )
        return self._step

    @property
    def stand_ins_were_used(self) -> bool:
        """Does the outcome of this pass possibly depend on made-up answers (A3)?"""
        return self._stand_ins.were_used

    @property
    def live(self) -> int:
        """How many answers of a live model were played."""
        return self._live.answers

    @property
    def drift(self) -> Drift:
        """The worst drift met: drifted, then unknown, then live."""
        return self._drift

    @property
    def drifted(self) -> dict[str, tuple[str, ...]]:
        """The parts of requests that differ from the recorded ones, by agent."""
        return {agent: tuple(sorted(parts)) for agent, parts in sorted(self._drifted.items())}

    def fail(self, why: str, *, step: Step | None = None) -> None:
        """The run cannot be replayed from `step` on: the first reason stands."""
        step = step or self.step
        if self.failure is None:
            self.failure = Failure(step=step, why=f"step {step.id}: {why}")

    def all_asked(self) -> bool:
        """Were all recorded calls of the step in progress asked for?"""
        return self._calls.all_asked(self.step)

    def model(self, asked: ModelAsked) -> ModelReply:
        """A4, A5: the recorded answer to a model request, or why there is none."""
        request = RequestDigests(
            instruction=asked.instruction,
            tools=asked.tools,
            contents=asked.contents,
            settings=asked.settings,
        )
        served = self._models.serve(self.step.id, asked.agent, asked.ordinal, request)
        if served is None:
            return self._no_answer(asked)
        if self.window is not None and not served.proven:
            self.fail("the model may have seen more than the window shows")
            return ModelReply(id=asked.id, missing=NONE)
        if self._recording.live is not None and served.drift is not Drift.SAME:
            return self._live.want(asked, served)
        self.requests[served.index] = request
        self._note_drift(asked.agent, served)
        self._move(served.answer.at)
        return ModelReply(
            id=asked.id,
            response=served.answer.response,
            more=tuple(row.response for row in served.more),
            drift=served.drift.value,
            now=self._now,
        )

    def _no_answer(self, asked: ModelAsked) -> ModelReply:
        """The end of the record, where it is that; else the run cannot be replayed further.

        In a step whose record is whole, an agent that was never asked there, or that had
        said its last word, is no end of anything: what it would do now, nobody knows.
        """
        step = self.step
        is_new = step.ended == "done" and (
            not self._models.knows(step.id, asked.agent)
            or self._models.has_finished(step.id, asked.agent)
        )
        # Whoever was answered live goes on to its own end, where the recorded one came to one.
        goes_on = self.live > 0 and step.ended == "done"
        if not is_new and not goes_on and self._models.is_spent(step.id) and self.all_asked():
            return ModelReply(id=asked.id, missing=END_OF_RECORD)
        if self._recording.live is not None and self.window is None:
            return self._live.want(asked, None)
        others = self._models.others(asked.agent)
        shown = ", ".join(others[:_SHOWN]) + (", …" if len(others) > _SHOWN else "")
        self.fail(
            f"agent {asked.agent} asks its model for the {_nth(asked.ordinal + 1)} time, and the "
            "record has no answer to that"
            + (f": all its answers are to {shown}; was an agent renamed?" if others else "")
        )
        return ModelReply(id=asked.id, missing=NONE)

    def given(self, given: ModelGiven) -> ModelReply:
        """A live model's answer to a whole request. Raises `WireError` for one not wanted."""
        asked, served = self._live.taken(given)
        answer = self._live.answer(given)
        if served is not None and served.parts:
            self._drifted[asked.agent].update(served.parts)
        if isinstance(answer, str):
            self.fail(f"agent {asked.agent} got no live answer from its model: {answer}")
            return ModelReply(id=given.id, missing=NONE)
        if self._drift is Drift.SAME:
            self._drift = Drift.LIVE
        if served is not None:
            self._move(served.answer.at)
        return ModelReply(
            id=given.id, response=answer.response, drift=Drift.LIVE.value, now=self._now
        )

    def _note_drift(self, agent: str, served: Served) -> None:
        if served.drift is Drift.SAME:
            return
        if served.parts:
            self._drifted[agent].update(served.parts)
        if self._drift is not Drift.DRIFTED:
            self._drift = served.drift
        self._assume()

    def _assume(self) -> None:
        if self.assumed_from is None:
            self.assumed_from = self.step.cursor

    def call(self, asked: IntentAsked) -> IntentReply:
        """A1-A3: the answer to a call. Raises `WireError` for arguments that are no object."""
        if asked.refused:
            self.fail(
                f"{asked.tool} is asked for with arguments that no ledger can hold: {asked.refused}"
            )
            return IntentReply(id=asked.id, result=refused(asked.refused))
        args = self._redacted(asked)
        if isinstance(args, str):
            # Nobody can say whether this is what the ledger holds.
            self.fail(f"{asked.tool} is asked for with a value that cannot be compared: {args}")
            return IntentReply(id=asked.id, result=refused(args))
        ask = key_ask(
            asked.tool,
            args,
            self.step,
            self._recording.rules,
            run=self._recording.run.id,
            agent=asked.agent,
            call=asked.call,
        )
        assumed = self.assumed_from is not None
        if ask.effect and ask.unkeyed:
            self._told.append((Told(ask=ask, how=Answered.NOTHING), assumed))
            return IntentReply(id=asked.id, result=refused(ask.unkeyed))
        if self.step.cut_off and self.all_asked() and self._calls.is_of_later_steps(ask):
            # Whoever asked that died before it could, and a later step made up for it.
            return IntentReply(id=asked.id, missing=END_OF_RECORD)
        told = self._calls.answer(ask, holes=holes(ask.args))
        self._told.append((told, assumed))
        self._carry(told, assumed=assumed)
        if told.early:
            # Nobody knows what the answer would have been at this time (G5).
            self._assume()
        return self._reply(asked.id, told)

    def _redacted(self, asked: IntentAsked) -> Mapping[str, Json] | str:
        """The arguments as the ledger would hold them, or why nobody can tell."""
        rules, redaction = self._recording.rules, self._recording.redaction
        args = _arguments(asked)
        try:
            return redaction.arguments(args, rules.judged(asked.tool))
        except (NoRedactionKey, NotCanonical) as fault:
            return str(fault)

    def _carry(self, told: Told, *, assumed: bool) -> None:
        """What the recorded call's body asked for is asked for with it: no body runs here."""
        known = told.known
        if known is None or (known.index in self._carried and isinstance(known.call, Row)):
            return  # an effect that is asked for again need not run again; that is its finding
        self._carried.add(known.index)
        for nested in self._nested.get(known.index, ()):
            ask = key_ask(
                nested.name,
                nested.args,
                self.step,
                self._recording.rules,
                run=self._recording.run.id,
            )
            if ask.effect and ask.identified is not None:
                carried = self._calls.answer(ask)
                self._told.append((carried, assumed))
                self._carry(carried, assumed=assumed)

    def _reply(self, number: int, told: Told) -> IntentReply:
        known = told.known
        if known is None:
            name = told.ask.key or told.ask.text
            nth = self._repeats[name]
            self._repeats[name] += 1
            value = self._stand_ins.value(told.ask.tool, name, nth)
            return IntentReply(id=number, result=_sendable(value), now=self._now)
        if known.step is self._step:
            self._move(recorded_at(known))
        return reply_to(number, told, self._recording.run.steps, now=self._now)

    def _move(self, at: str) -> None:
        """S3: time advances to the recorded event's, and never runs back."""
        if at and (not self._now or datetime.fromisoformat(at) > datetime.fromisoformat(self._now)):
            self._now = at

    def replayed_id(self, recorded: str) -> str | None:
        """S4: the call id that the candidate gave to the call recorded under `recorded`."""
        keys = {known.key for known in self._known if known.id == recorded}
        if len(keys) > 1:
            return None  # two calls under one id: the answer could go to the wrong one (F13)
        indexes = {known.index for known in self._known if known.id == recorded}
        for told, _ in reversed(self._told):
            answered = told.known is not None and told.known.index in indexes
            if told.ask.call and (answered or told.ask.key in keys):
                return told.ask.call
        return None

    def intents(self) -> list[Intent]:
        """The effects that were asked for, in the order of asking."""
        return [
            _intent(told, assumed=assumed, replay=self.replay)
            for told, assumed in self._told
            if told.ask.effect
        ]


def _intent(told: Told, *, assumed: bool, replay: Pass) -> Intent:
    ask = told.ask
    answered_by = told.known.index if told.known is not None and not told.released else None
    return Intent(
        run=ask.run,
        step=ask.step.id,
        cursor=ask.step.cursor,
        tool=ask.name,
        key=ask.key,
        fingerprint=ask.fingerprint,
        args=msgspec.Raw(ask.text.encode()),
        agent=ask.agent,
        answered=told.how,
        answered_by=answered_by,
        assumed=assumed,
        holes=told.holes,
        override=_override(ask),
        replay=replay,
    )


def _override(ask: Ask) -> str | None:
    if ask.identified is None or ask.identified.override is None:
        return None
    return canonical(ask.identified.override)


def _arguments(asked: IntentAsked) -> dict[str, Json]:
    try:
        value = parse(bytes(asked.args))
    except NotCanonical as fault:
        raise WireError(
            f"the harness sent arguments of {asked.tool} that are no strict JSON: {fault}; run "
            "again, and report it if it stays",
            slug="wire-arguments",
        ) from None
    if not isinstance(value, dict):
        raise WireError(
            f"the harness sent arguments of {asked.tool} that are no object; run again, and "
            "report it if it stays",
            slug="wire-arguments",
        )
    return value


def _sendable(value: Json) -> msgspec.Raw:
    return msgspec.Raw(canonical(value).encode())


def _nth(number: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    ending = "th" if number % 100 in {11, 12, 13} else endings.get(number % 10, "th")
    return f"{number}{ending}"
