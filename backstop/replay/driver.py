"""The driver's side of a conversation: hands out runs and steps, answers, believes nothing.

What the harness may say next is fixed at every point; anything else ends the conversation
with a `WireError`. A candidate that breaks, hangs or leaves makes its run not replayable,
with the reason; it never makes a finding, and never a traceback.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

import msgspec

from backstop.core.canon import short
from backstop.core.intents import Pass
from backstop.core.runs import RecordedRun, Step
from backstop.errors import SandboxError, WireError
from backstop.ports import Conversation
from backstop.replay.answers import Answers
from backstop.replay.code import Reached
from backstop.replay.handover import session_before
from backstop.replay.missing import Failure, missing
from backstop.replay.reader import read_message
from backstop.replay.replies import members
from backstop.replay.toolsets import Listings
from backstop.replay.triggers import Pending, rewritten
from backstop.replay.wire import (
    PROTOCOL,
    BeginRun,
    BeginStep,
    EndRun,
    Escape,
    Fault,
    FromDriver,
    FromHarness,
    IntentAsked,
    ModelAsked,
    ModelGiven,
    Quit,
    Ready,
    RunDone,
    RunReady,
    StepDone,
)

_SHOWN: Final = 300
_ASKS_AT_LEAST: Final = 2_000
_ASKS_PER_RECORDED: Final = 20
_LOAD_SLUGS: Final = frozenset(
    {
        "adk-missing",
        "agent-adk-too-old",
        "agent-exited",
        "agent-hangs",
        "agent-import",
        "agent-missing",
        "agent-no-root",
        "clock-missing",
    }
)
_ENCODER: Final = msgspec.json.Encoder()


class _Phase(Enum):
    OPENING = auto()
    IN_STEP = auto()
    CLOSING = auto()
    BROKEN = auto()


@dataclass(slots=True, kw_only=True)
class Played:
    """How a run went, apart from what it asked for: that is in its `Answers`.

    `escapes` are what the candidate tried and was barred from, by step. `digest` is of its
    event log, `reached` what it reached of its code. `broken` says that the process cannot be
    used for another run.
    """

    escapes: list[tuple[str, str]] = field(default_factory=list)
    digest: str = ""
    reached: Reached = field(default_factory=Reached)
    broken: bool = False


class _Line:
    """The wire to one candidate; `turn` is the message of its that waits for our next word."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._seen: set[int] = set()
        self.turn = 0

    def send(self, message: FromDriver) -> None:
        self._conversation.send(_ENCODER.encode(message) + b"\n")

    def receive(self) -> FromHarness:
        line = self._conversation.receive()
        if line is None:
            raise SandboxError(
                "the candidate's process left in the middle of the replay; run it by hand to see "
                "why",
                slug="agent-exited",
            )
        message = read_message(line)
        if not isinstance(message, Escape | Fault):
            if message.id in self._seen:
                raise WireError(
                    f"the harness used the id {message.id} twice; answers would go astray",
                    slug="wire-order",
                )
            self._seen.add(message.id)
        return message


class Driver:
    """One conversation with one candidate; replays runs in turn. Close it in the end.

    `escapes` are what the candidate tried before its first run, and was barred from; `reached`
    is what it reached of its code on import and in all runs. `is_base` says that it is the version
    that runs now.
    """

    def __init__(self, conversation: Conversation, *, is_base: bool = False) -> None:
        self._conversation = conversation
        self._line = _Line(conversation)
        self._speaker = ""
        self._is_base = is_base
        self.escapes: list[str] = []
        self.reached = Reached()

    def ready(self) -> Ready:
        """What the candidate is, once it is imported.

        Raises `SandboxError` with the slug of what keeps it from being replayed, and
        `WireError` for anything else than the protocol says.
        """
        while True:
            match self._line.receive():
                case Escape() as escape:
                    self.escapes.append(_told(escape))
                case Fault() as fault:
                    raise _cannot_load(fault, self.escapes, is_base=self._is_base)
                case Ready() as ready if ready.protocol == PROTOCOL:
                    self._line.turn = ready.id
                    self._speaker = _speaker(ready)
                    self.reached = Reached.by(ready)
                    return ready
                case Ready() as ready:
                    raise WireError(
                        f"the harness speaks protocol {ready.protocol}, this driver {PROTOCOL}; "
                        "remove what shadows the harness in the candidate's environment",
                        slug="wire-protocol",
                    )
                case other:
                    raise _out_of_order(other, "its first word")

    def play(
        self,
        run: RecordedRun,
        steps: Sequence[Step],
        answers: Answers,
        *,
        toolsets: Listings | None = None,
    ) -> Played:
        """Replay `steps` of `run`; what ends it early is then in ``answers.failure``.

        `toolsets` are what those of the candidate list that can ask nobody, by key.
        """
        play = _Play(
            self._line, run, steps, answers, speaker=self._speaker, toolsets=toolsets or {}
        )
        played = play.to_the_end()
        if answers.window is None or answers.failure is None:
            # Where a bounded view led before it was refused, the whole one may never come.
            self.reached |= played.reached
        return played

    def quit(self) -> None:
        """Let the candidate go, if it still listens, and end the conversation."""
        try:
            self._line.send(Quit(id=self._line.turn))
        except SandboxError:
            pass  # it left before it was told to
        finally:
            self.close()

    def close(self) -> None:
        """End the conversation and the candidate."""
        self._conversation.close()


class _Play:
    """One run in play."""

    def __init__(
        self,
        line: _Line,
        run: RecordedRun,
        steps: Sequence[Step],
        answers: Answers,
        *,
        speaker: str,
        toolsets: Listings,
    ) -> None:
        self._line = line
        self._toolsets = toolsets
        self._speaker = speaker
        self._run = run
        self._left = list(reversed(steps))
        self._first = steps[0] if steps else None
        self._step = self._first
        self._answers = answers
        self._phase = _Phase.OPENING
        self._pending: list[Pending] = []
        self._asked: set[str] = set()
        self._played = Played()
        recorded = sum(len(step.models) + len(step.calls) for step in run.steps)
        self._budget = _ASKS_AT_LEAST + _ASKS_PER_RECORDED * recorded

    def to_the_end(self) -> Played:
        """Play until the run is done or cannot go on."""
        try:
            self._line.send(self._begin())
            while not self._takes(self._line.receive()):
                pass
        except (SandboxError, WireError) as error:
            self._fail(f"{error} [{error.slug}]")
            self._played.broken = True
        return self._played

    def _begin(self) -> BeginRun:
        run, first = self._run, self._first
        handover = self._answers.replay is Pass.HANDOVER and first is not None
        history: list[object] = []
        if handover and first is not None:
            window = self._answers.window
            history += session_before(run, first, speaker=self._speaker, recent=window)
        return BeginRun(
            id=self._line.turn,
            run=run.id,
            app=run.app,
            user=run.user,
            at=first.at if handover and first is not None else run.at,
            state=members(first.state if handover and first is not None else run.state),
            history=history,
            window=self._answers.window,
            toolsets=dict(self._toolsets),
        )

    def _takes(self, message: FromHarness) -> bool:
        """Take one message; True once the run is done."""
        match message:
            case Escape():
                self._played.escapes.append((message.step, _told(message)))
            case Fault():
                self._fail(f"{_shown(message.detail)} [{_slug(message)}]")
                self._phase = _Phase.BROKEN
            case RunReady() if self._phase is _Phase.OPENING:
                self._next_step(message.id)
            case ModelAsked() if self._phase is _Phase.IN_STEP:
                self._count()
                self._asked.add(message.agent)
                self._line.send(self._answers.model(message))
            case ModelGiven() if self._phase is _Phase.IN_STEP:
                self._count()
                self._line.send(self._answers.given(message))
            case IntentAsked() if self._phase is _Phase.IN_STEP:
                self._count()
                self._line.send(self._answers.call(message))
            case StepDone() if self._phase is _Phase.IN_STEP and message.step == self._name:
                self._ended(message)
                self._next_step(message.id)
            case RunDone() if (
                self._phase in {_Phase.CLOSING, _Phase.BROKEN} and message.run == self._run.id
            ):
                self._line.turn = message.id
                self._played.digest = message.digest
                self._played.reached = Reached.by(message, agents=self._asked)
                return True
            case _:
                raise _out_of_order(message, f"run {self._run.id}, {self._phase.name.lower()}")
        return False

    @property
    def _name(self) -> str:
        return self._step.id if self._step is not None else ""

    def _next_step(self, turn: int) -> None:
        upcoming = None if self._answers.failure is not None else self._upcoming()
        if upcoming is None:
            self._phase = _Phase.CLOSING
            self._line.send(EndRun(id=turn))
            return
        step, message = upcoming
        self._phase = _Phase.IN_STEP
        self._line.send(
            BeginStep(
                id=turn,
                step=step.id,
                at=step.at,
                seed=int(short(f"{self._run.id}/{step.id}")[:12], 16),
                message=message,
            )
        )

    def _upcoming(self) -> tuple[Step, object] | None:
        """The next step, begun, and what sets it off; None after the last one.

        An answer to what this version never asked will not come, and sets nothing off.
        """
        while self._left:
            step = self._step = self._left.pop()
            self._answers.begin(step)
            if (message := self._message(step)) is not None:
                return step, message
        return None

    def _message(self, step: Step) -> object:
        """S4: what set the step off, with recorded call ids told as the replay's own."""
        if self._answers.replay is Pass.HANDOVER:
            return step.message  # the session it is handed holds the recorded ids
        return rewritten(step.message, self._answers.replayed_id, self._pending)

    def _ended(self, done: StepDone) -> None:
        self._pending = [Pending.of(told) for told in done.pending]
        match done.outcome:
            case "done" | "end_of_record":
                return
            case "fault" if self._is_recorded_so():
                return
            case "fault":
                self._fail(f"the candidate raised {_shown(done.error)}")
            case _:
                self._fail(f"the step ended as {_shown(done.outcome)}")

    def _is_recorded_so(self) -> bool:
        """Did the recorded step not end well either, after all that it asked for?"""
        step = self._step
        return step is not None and step.ended != "done" and self._answers.all_asked()

    def _fail(self, why: str) -> None:
        if self._step is not None:
            self._answers.fail(why, step=self._step)

    def _count(self) -> None:
        self._budget -= 1
        if self._budget < 0:
            raise WireError(
                f"the candidate asks without end in step {self._name}; bound its loop",
                slug="agent-loops",
            )


def _speaker(ready: Ready) -> str:
    """The candidate's first agent that has a model: it speaks where nobody is recorded to."""
    return next((agent.name for agent in ready.agents if agent.model), "")


def _told(escape: Escape) -> str:
    detail = f" ({_shown(escape.detail)})" if escape.detail else ""
    return f"{_shown(escape.what)}{detail}"


def _shown(text: str) -> str:
    """Text of the candidate's, safe to print on one line."""
    plain = "".join(sign if sign.isprintable() else " " for sign in text)
    return plain if len(plain) <= _SHOWN else f"{plain[:_SHOWN]}..."


def _slug(fault: Fault) -> str:
    return fault.slug if fault.slug in _LOAD_SLUGS else "agent-fault"


def _cannot_load(fault: Fault, attempts: Sequence[str], *, is_base: bool) -> SandboxError:
    where = f" (at {_shown(fault.where)})" if fault.where else ""
    slug = _slug(fault)
    # The first line of a longer message often ends in a colon.
    detail = fault.detail.rstrip(": ")
    if slug == "agent-import":
        failure = Failure(slug=slug, detail=detail, where=fault.where, attempts=tuple(attempts))
        python = "--base-python" if is_base else "--candidate-python"
        detail = missing(failure).at_a_gate(python=python)
    version = "the version that runs now" if is_base else "the agent"
    return SandboxError(f"{version} cannot be replayed: {_shown(detail)}{where}", slug=slug)


def _out_of_order(message: FromHarness, where: str) -> WireError:
    return WireError(
        f"the harness said {type(message).__name__} out of order ({where}); run again, and report "
        "it if it stays",
        slug="wire-order",
    )
