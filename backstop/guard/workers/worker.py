"""The worker: one message, one step of a run; acknowledged only when the step is behind.

It takes the run's next step, lets the agent run it behind the guard, and moves the cursor,
which lives in the store and passes nothing that is not committed or failed for good (I4). In
every other case the message is given back, and comes again: a step that another delivery is
at, one in doubt, one whose turn has not come. So a message may be delivered as often as it
likes, to as many workers as there are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar

import msgspec
from google.adk.apps import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import BaseSessionService
from google.genai import types

from backstop.core.events import EffectClaimed, Event, RunOpened, StepStarted
from backstop.core.lifecycle import Lives, Phase
from backstop.errors import BackstopError
from backstop.guard.journal import Attempt, Journal
from backstop.guard.workers.attendance import Attendance
from backstop.guard.workers.chain import AttemptSession, Left, Links
from backstop.guard.workers.standdown import StandDown
from backstop.guard.workers.ticks import Behind, Course, NotYet, Tick, Turn, course, due, parse_tick
from backstop.ports import Delivery, Done, Handled, Later, Liveness, Records, Standing

R = TypeVar("R")


class Worker:
    """Handles the messages of one agent's runs, as one process of it.

    `journal` writes into `store`; `guard` makes the plugin that stands before the agent's
    tools, given the journal that it has to write to. `sessions` keeps what each attempt adds
    to its run's session, in sessions of their own. `attendance` says who else is at a step.
    """

    def __init__(
        self,
        *,
        app: App,
        store: Records,
        journal: Callable[[Records], Journal],
        guard: Callable[[Journal], BasePlugin],
        sessions: BaseSessionService,
        attendance: Attendance,
    ) -> None:
        self._store = StandDown(store)
        self._journal = journal(self._store)
        plugins = [guard(self._journal), *app.plugins]
        self._app = app.model_copy(update={"plugins": plugins})
        self._sessions = sessions
        self._links = Links(sessions, app=app.name)
        self._attendance = attendance
        self._unsaid: list[Attempt] = []

    async def handle(self, delivery: Delivery) -> Handled:
        """Do what a message asks for, if it is its turn, and say whether it is behind now."""
        try:
            await self._asked(self._make_up)
            return await self._handle(parse_tick(delivery))
        except BackstopError as error:
            return Later(reason=f"error[{error.slug}]: {error}")

    async def _handle(self, tick: Tick) -> Handled:
        events = await self._asked(lambda: list(self._store.read(tick.run)))
        run = course(events)
        if run.opened is None:
            if tick.state is None:
                return Later(reason=f"run {tick.run} is not open: its first message says `state`")
            run = await self._asked(lambda: self._open(tick, tick.state or {}))
        match due(tick, run):
            case Behind():
                return Done(reason="the step was done before")
            case NotYet(reason=reason):
                return Later(reason=reason)
            case Turn(cursor=cursor):
                held = await self._asked(lambda: self._held(run, events, f"s{cursor}"))
                if held is not None:
                    return Later(reason=held)
                return await self._step(tick, run, cursor)

    def _open(self, tick: Tick, state: Mapping[str, Any]) -> Course:
        self._journal.open_run(tick.run, app=self._app.name, user=tick.user, state=state)
        return course(self._store.read(tick.run))

    def _held(self, run: Course, events: Iterable[Event], step: str) -> str | None:
        """Why another try at the step would come to nothing; None if it may be tried."""
        taken = self._is_taken(run, step)
        for claimed, phase in _undecided(events, step):
            name = f"{claimed.tool} {claimed.key[:12]}…"
            # What this very version claimed without a capability, it can do nothing about.
            mute = not claimed.capability and claimed.v == self._journal.version
            if phase is Phase.IN_DOUBT and mute:
                return f"{name} is in doubt: resolve it"
            if phase is Phase.EXECUTING and any(map(_runs, self._store.standings(claimed.key))):
                return f"{claimed.owner} is at {name}"
        return f"another delivery is at step {step}" if taken else None

    def _is_taken(self, run: Course, step: str) -> bool:
        """Whether an attempt at the step is under way."""
        return any([*map(self._attendance.is_under_way, run.open.get(step, {}).values())])

    async def _step(self, tick: Tick, run: Course, cursor: int) -> Handled:
        assert run.opened is not None  # noqa: S101 - for the type checker
        if "" in run.links:
            raise BackstopError(
                f"run {tick.run} was driven by something else than a worker, which keeps its "
                "session elsewhere; go on with that",
                slug="session-elsewhere",
            )
        left = await self._links.left(
            run.links, user=run.opened.user, opening=_state(run.opened.state)
        )
        begun = await self._asked(lambda: self._begin(tick, cursor, left))
        if not isinstance(begun, tuple):
            return begun
        attempt, step = begun
        own = f"{attempt.run}.{attempt.step}.{attempt.number}"
        self._attendance.begins(attempt)
        ending: Callable[[], Handled]
        try:
            await self._attempt(attempt, step, run.opened, left, own)
        except Exception as error:  # noqa: BLE001 - whatever it was, the message comes again
            ending = partial(self._gave_up, attempt, error)
        except BaseException:
            self._unsaid.append(attempt)
            raise
        else:
            ending = partial(self._advance, attempt, own)
        finally:
            self._store.over(attempt)
            self._attendance.ends(attempt)
        return await self._asked(ending)

    def _begin(self, tick: Tick, cursor: int, left: Left) -> tuple[Attempt, StepStarted] | Handled:
        """The only try at the step; what set it off first is what it is about, ever after."""
        self._journal.start(
            tick.run,
            cursor=cursor,
            trigger=tick.trigger,
            message=tick.content,
            state=left.state,
            trigger_key=tick.trigger_key,
        )
        run = course(self._store.read(tick.run))
        step = run.steps[cursor]
        if step.trigger_key != tick.trigger_key:
            return Later(reason=f"step {step.step} was begun meanwhile, by another message")
        if run.cursor > cursor:
            return Done(reason="another delivery did the step")
        attempt = None
        if not self._is_taken(run, step.step):
            # Whoever has this number is at the step: the store gives it away once.
            attempt = self._journal.take_attempt(
                tick.run,
                cursor=cursor,
                number=run.tries.get(step.step, 0) + 1,
                delivery=tick.delivery,
                owner=self._attendance.process,
            )
        if attempt is None:
            return Later(reason=f"another delivery is at step {step.step}")
        return attempt, step

    async def _attempt(
        self, attempt: Attempt, step: StepStarted, opened: RunOpened, left: Left, own: str
    ) -> None:
        sessions = AttemptSession(self._sessions, run=attempt.run, own=own, left=left)
        runner = Runner(app=self._app, session_service=sessions)
        message = types.Content.model_validate(msgspec.json.decode(step.message))
        with self._journal.within(attempt):
            running = runner.run_async(
                user_id=opened.user, session_id=attempt.run, new_message=message
            )
            async with aclosing(running):
                async for _ in running:
                    pass

    def _gave_up(self, attempt: Attempt, error: Exception) -> Later:
        if attempt.unfinished is not None:
            return self._hold(attempt, attempt.unfinished)
        self._end(attempt, "error", error)
        return Later(reason=f"{type(error).__name__}: {error}")

    def _hold(self, attempt: Attempt, why: str) -> Later:
        self._end(attempt, "held")
        return Later(reason=why)

    def _advance(self, attempt: Attempt, own: str) -> Handled:
        if attempt.unfinished is not None:
            return self._hold(attempt, attempt.unfinished)
        self._end(attempt, "done")
        moved = self._journal.advance(attempt, session=own)
        return Done(reason="the step is done" if moved else "another delivery did the step")

    def _end(self, attempt: Attempt, outcome: str, error: Exception | None = None) -> None:
        try:
            self._journal.end(attempt, outcome=outcome, error=error)
        except BackstopError:
            self._unsaid.append(attempt)
            raise

    def _make_up(self) -> None:
        """End what could not be ended at its time: others wait for it while this process lives."""
        while self._unsaid:
            self._journal.end(self._unsaid[-1], outcome="error")
            self._unsaid.pop()

    async def _asked(self, ask: Callable[[], R]) -> R:
        """`ask` the store; off the event loop where it waits for a network."""
        if not self._store.blocking:
            return ask()
        return await asyncio.to_thread(ask)


def _state(raw: msgspec.Raw) -> dict[str, Any]:
    return msgspec.json.decode(raw) or {}


def _undecided(events: Iterable[Event], step: str) -> list[tuple[EffectClaimed, Phase]]:
    """The effects of a step that are under way or in doubt, by their last claim."""
    lives, claims = Lives(guarded=True), dict[str, EffectClaimed]()
    for event in events:
        lives.follow(event)
        if isinstance(event, EffectClaimed) and event.step == step:
            claims[event.key] = event
    standing = ((claimed, lives.phase(key)) for key, claimed in claims.items())
    return [(one, phase) for one, phase in standing if phase in {Phase.EXECUTING, Phase.IN_DOUBT}]


def _runs(standing: Standing) -> bool:
    """Whether somebody is at the effect, for all that can be seen."""
    if standing.phase is not Phase.EXECUTING:
        return False
    leased = standing.since_s < standing.claimed.lease_s
    return standing.owner is Liveness.ALIVE or (standing.owner is Liveness.UNKNOWN and leased)
