# ruff: noqa: ANN401 - the framework's contexts and session state hold values of any type
"""Runs without a driver: each session is a run, each message to it a step.

A run is named by app, user and session, and is never closed: a session may go on for ever. A
message begins a step; the same invocation taken up again without a new message is a further
attempt of its step. The cursor, which the store keeps, passes a step once everything in it is
decided and nothing that a model asked for was left out (I4); where it had to stay, it catches up
later, over all that has been decided meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote

import msgspec

from backstop.core.canon import NotCanonical
from backstop.core.events import (
    AttemptEnded,
    AttemptStarted,
    CallAnswered,
    CursorAdvanced,
    EffectClaimed,
    Event,
    RunOpened,
    StepStarted,
)
from backstop.errors import BackstopError
from backstop.guard.journal import Attempt, Journal, as_sent, raw

_PLAIN: Final = " @+=,!()~"
"""What stands in a run's name as it is, besides letters, digits and ``_.-``."""


def run_name(app: str, user: str, session: str) -> str:
    """The run of a session: its app, user and id, readable, and no other session's."""
    return ":".join(quote(part, safe=_PLAIN) for part in (app, user, session))


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What a runner is about to handle: `content` is the last word of the user, as JSON.

    `invocation` is the framework's name for the turn, which a resumed one shares.
    """

    app: str
    user: str
    session: str
    invocation: str
    content: msgspec.Raw
    state: Mapping[str, Any]

    @property
    def run(self) -> str:
        """The run that it belongs to."""
        return run_name(self.app, self.user, self.session)


@dataclass(frozen=True, slots=True)
class _Said:
    """A step that began, and the digest of the message that set it off."""

    step: str
    cursor: int
    digest: bytes


def _digest(content: msgspec.Raw) -> bytes:
    return sha256(bytes(content)).digest()


@dataclass(slots=True, kw_only=True)
class Course:
    """How far a run has come, as its events tell.

    `done` steps are behind; `tries` are the attempts of each step by number, `turns` the step
    in which an invocation was handled last, by the invocation.
    """

    opened: bool = False
    done: int = 0
    steps: list[_Said] = field(default_factory=list)
    tries: dict[str, int] = field(default_factory=dict)
    turns: dict[str, str] = field(default_factory=dict)

    def place(self, message: Message) -> int:
        """The number of the step that the message is about: a known one, or the next."""
        step = self.turns.get(message.invocation)
        for known in self.steps:
            if known.step == step and known.digest == _digest(message.content):
                return known.cursor
        return len(self.steps)

    def take(self, event: Event) -> None:
        """Go on with an event of the run."""
        match event:
            case RunOpened():
                self.opened = True
            case StepStarted(step=step, cursor=cursor, message=message):
                self.steps.append(_Said(step, cursor, _digest(message)))
            case AttemptStarted(step=step, attempt=attempt, delivery=delivery):
                self.tries[step] = attempt
                self.turns[delivery] = step
            case CursorAdvanced(cursor=cursor):
                self.done = max(self.done, cursor)
            case _:
                pass


def course(events: Iterable[Event]) -> Course:
    """How far the run of these events has come."""
    found = Course()
    for event in events:
        found.take(event)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """An attempt that began when `done` steps of its run were behind."""

    attempt: Attempt
    done: int


class Sessions:
    """Begins and ends the attempts of one journal's runs.

    How far a run has come is remembered, so that a long session is not read anew at each
    message. Another process may have gone on meanwhile; then a step of the next number is
    there already, which is seen as it is begun. `keep` runs are remembered.
    """

    def __init__(self, journal: Journal, *, keep: int = 1024) -> None:
        self._journal = journal
        self._keep = keep
        self._known: dict[str, Course] = {}
        self._unsaid: list[Callable[[], None]] = []

    def begin(self, message: Message) -> Begun:
        """A try at the step that a message is about; opens the run, begins the step if it is new.

        Raises what the store raises.
        """
        self._make_up()
        journal, run = self._journal, message.run
        known = self._known.pop(run, None)  # what fails on the way is read anew
        while True:
            if known is None:
                known = course(journal.store.read(run))
            cursor = known.place(message)
            if not known.opened:
                state = _kept(message.state)
                journal.open_run(run, app=message.app, user=message.user, state=state)
            if cursor < len(known.steps) or journal.start(
                run,
                cursor=cursor,
                trigger="message",
                message=message.content,
                state=_kept(message.state),
            ):
                break
            # Another process began a step of this number for another message.
            known = None
        step = f"s{cursor}"
        attempt = journal.start_attempt(
            run, cursor=cursor, tries=known.tries.get(step, 0), delivery=message.invocation
        )
        attempt.session = message.session
        self._remember(run, _after(known, message, attempt))
        return Begun(attempt=attempt, done=known.done)

    def end(self, begun: Begun, *, error: Exception | None = None) -> None:
        """The try is over; the cursor goes as far as all is decided.

        Raises what the store raises.
        """
        attempt = begun.attempt
        if error is not None:
            self._say_end(attempt, "error", error)
        elif attempt.unfinished is not None:
            self._say_end(attempt, "held")
        else:
            self._say_end(attempt, "done")
            self._advance(begun)

    def _say_end(self, attempt: Attempt, outcome: str, error: Exception | None = None) -> None:
        say = partial(self._journal.end, attempt, outcome=outcome, error=error)
        try:
            say()
        except BackstopError:
            self._unsaid.append(say)
            raise

    def _make_up(self) -> None:
        """Say what could not be said at its time: no cursor passes an attempt without an end."""
        while self._unsaid:
            self._unsaid[-1]()
            self._unsaid.pop()

    def _advance(self, begun: Begun) -> None:
        attempt = begun.attempt
        try:
            if begun.done >= attempt.cursor:
                self._journal.advance(attempt)
                if (known := self._known.get(attempt.run)) is not None:
                    known.done = max(known.done, attempt.cursor + 1)
            else:
                self._known.pop(attempt.run, None)
                _catch_up(self._journal, attempt)
        except BackstopError as error:
            if error.slug != "cursor-held":
                raise

    def _remember(self, run: str, known: Course) -> None:
        if len(self._known) >= self._keep:
            self._known.clear()
        self._known[run] = known


def _after(known: Course, message: Message, attempt: Attempt) -> Course:
    """How far the run has come with this attempt."""
    steps = known.steps
    if attempt.cursor == len(steps):
        steps = [*steps, _Said(attempt.step, attempt.cursor, _digest(message.content))]
    return Course(
        opened=True,
        done=known.done,
        steps=steps,
        tries={**known.tries, attempt.step: attempt.number},
        turns={**known.turns, message.invocation: attempt.step},
    )


def _catch_up(journal: Journal, attempt: Attempt) -> None:
    """Pass the steps that were left behind, one by one, as long as nothing in them is open.

    One whose last attempt has no end is still at work, or died at it: nobody may say that it is
    done.
    """
    events = list(journal.store.read(attempt.run))
    known = course(events)
    ended = {(one.step, one.attempt) for one in events if isinstance(one, AttemptEnded)}
    for step in known.steps[known.done : attempt.cursor + 1]:
        if (step.step, known.tries.get(step.step, 0)) not in ended:
            return
        moved = CursorAdvanced(
            run=attempt.run,
            at="",
            v=journal.version,
            step=step.step,
            cursor=step.cursor + 1,
            effects=_vouched(events, step.step),
        )
        if journal.skipped(moved, events) is not None:
            return
        events.append(moved)
        journal.store.append(moved)


def _vouched(events: Iterable[Event], step: str) -> tuple[str, ...]:
    """The keys that a step had to do with."""
    keys = {
        event.key: None
        for event in events
        if isinstance(event, EffectClaimed | CallAnswered) and event.step == step
    }
    return tuple(keys)


def _kept(state: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a session's state that can be kept; what has no such form is left out."""
    kept = {}
    for name, value in state.items():
        try:
            raw(value)
        except NotCanonical:
            continue
        kept[name] = value
    return kept


def message_of(context: Any) -> Message:
    """What the runner of the framework's `context` is about to handle."""
    session = context.session
    return Message(
        app=session.app_name,
        user=session.user_id,
        session=session.id,
        invocation=context.invocation_id,
        content=as_sent(_last_word(context)),
        state=session.state,
    )


def _last_word(context: Any) -> Any:
    """The newest message of this invocation; what began it, where the session holds none."""
    for event in reversed(context.session.events):
        said = event.invocation_id == context.invocation_id and event.author == "user"
        if said and event.content is not None:
            return event.content.model_dump(mode="json", exclude_none=True)
    content = context.user_content
    return None if content is None else content.model_dump(mode="json", exclude_none=True)
