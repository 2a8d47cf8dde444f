"""The world around the agent while it is recorded: scheduler, workers, services that fail."""

from __future__ import annotations

import asyncio
import functools
import heapq
import itertools
from collections.abc import Awaitable, Callable, Iterator
from contextvars import Context
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import msgspec
from google.adk.apps import App
from google.adk.platform import uuid as platform_uuid
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from backstop import ports
from backstop.adapters.memory import MemoryStore
from backstop.core.effectgate import Precondition
from backstop.core.events import (
    EffectClaimed,
    EffectCommitted,
    EffectInDoubt,
    EffectResolved,
    Event,
)
from backstop.guard.journal import Attempt, Journal, raw
from backstop.guard.plugin.recorder import RecordingPlugin
from backstop.ports import Answer, Claim, LedgerStore, Settlement
from examples.vendor_onboarding.story import (
    APPROVED_AFTER,
    REDELIVERED_AFTER,
    RESOLVED_AFTER,
    START,
    VENDORS,
    Incident,
    Vendor,
    ticks,
)
from examples.vendor_onboarding.v1 import agent

USER = "purchasing"


class Clock:
    """Stands where it is put, and moves a little with each look at it."""

    def __init__(self) -> None:
        self._now = START

    def now(self) -> datetime:
        """The next instant."""
        self._now += timedelta(milliseconds=41)
        return self._now

    def wait_until(self, instant: datetime) -> None:
        """Jump ahead; never back."""
        self._now = max(self._now, instant)


Opened: TypeAlias = Callable[[ports.Clock, Callable[[str], bool]], LedgerStore]
"""Opens the store that the story is told into: on its clock, with who of its owners lives."""


def in_memory(clock: ports.Clock, is_alive: Callable[[str], bool]) -> LedgerStore:
    """The store that the committed ledger is told into."""
    return MemoryStore(clock=clock, is_alive=is_alive)


class Died(BaseException):
    """The worker's process is gone, as by kill -9."""


class Mortal:
    """The store as one worker sees it; a worker that has died reaches nothing any more."""

    def __init__(self, store: LedgerStore, incident: Incident | None) -> None:
        self._store = store
        self._incident = incident
        self.header = store.header
        self.blocking = store.blocking
        self.dead = False

    def append(self, event: Event) -> bool:
        """Add a fact."""
        self._live()
        return self._store.append(event)

    def claim(
        self, intent: EffectClaimed, precondition: Precondition | None = None
    ) -> Claim | Answer:
        """Claim, unless the worker dies before it, or right after."""
        self._die_if(Incident.DIED_BEFORE_CLAIM)
        answer = self._store.claim(intent, precondition)
        self._die_if(Incident.DIED_AFTER_CLAIM)
        return answer

    def settle(self, settlement: Settlement, *, claim: Claim | None = None) -> None:
        """Settle, and perhaps die right after."""
        self._live()
        self._store.settle(settlement, claim=claim)
        if isinstance(settlement, EffectCommitted):
            self._die_if(Incident.DIED_AFTER_COMMIT)

    def read(self, run: str | None = None) -> Iterator[Event]:
        """The events so far."""
        return self._store.read(run)

    def _die_if(self, incident: Incident) -> None:
        self.dead = self.dead or self._incident is incident
        self._live()

    def _live(self) -> None:
        if self.dead:
            raise Died


@dataclass(frozen=True)
class Delivery:
    """A message on its way to a worker; a redelivery is the same message."""

    run: str
    trigger: str
    message: types.Content
    id: str


@dataclass
class Run:
    """A vendor's run as its scheduler sees it."""

    vendor: Vendor
    cursor: int = 0
    ticked: int = 0
    incidents: dict[int, Incident] = field(default_factory=dict)


class World:
    """Lives through the story once; `store` then holds the ledger."""

    def __init__(
        self, *, app: App, journal: Callable[..., Journal], store: Opened = in_memory
    ) -> None:
        self._clock = Clock()
        self._dead: set[str] = set()
        self.store = store(self._clock, lambda owner: owner.split("/")[0] not in self._dead)
        self._app = app
        self._journal = journal
        self._sessions = InMemorySessionService()
        self._runs = {
            vendor.run: Run(vendor, incidents=dict(vendor.incidents)) for vendor in VENDORS
        }
        self._agenda: list[tuple[datetime, int, Callable[[], Awaitable[None]]]] = []
        self._count = itertools.count()
        self._ids = (f"{number:06x}" for number in itertools.count(1))
        self._messages = (f"msg-{number:04d}" for number in itertools.count(1))
        self._workers = (f"worker-{number}" for number in itertools.count(1))
        self._worker = next(self._workers)
        self._at_work: Delivery | None = None
        self._incident: Incident | None = None

    async def live(self) -> None:
        """Let everything happen that is due, in order, until nothing is."""
        for run in self._runs.values():
            self._at(ticks(run.vendor)[0], functools.partial(self._open, run))
        while self._agenda:
            instant, _, happens = heapq.heappop(self._agenda)
            self._clock.wait_until(instant)
            await happens()

    def _at(self, instant: datetime, happens: Callable[[], Awaitable[None]]) -> None:
        heapq.heappush(self._agenda, (instant, next(self._count), happens))

    def _in(self, span: timedelta, happens: Callable[[], Awaitable[None]]) -> None:
        self._at(self._clock.now() + span, happens)

    async def _open(self, run: Run) -> None:
        state = {"vendor": run.vendor.key, "tick": 0}
        await self._sessions.create_session(
            app_name=self._app.name, user_id=USER, session_id=run.vendor.run, state=state
        )
        self._journal(store=self.store, owner=self._worker).open_run(
            run.vendor.run, app=self._app.name, user=USER, state=state
        )
        await self._tick(run)

    async def _tick(self, run: Run) -> None:
        run.ticked += 1
        text = f"agent.tick {self._clock.now():%Y-%m-%d}"
        await self._deliver(self._message(run, "tick", types.Part(text=text)))

    def _message(self, run: Run, trigger: str, part: types.Part) -> Delivery:
        return Delivery(
            run=run.vendor.run,
            trigger=trigger,
            message=types.Content(role="user", parts=[part]),
            id=next(self._messages),
        )

    async def _deliver(self, delivery: Delivery, *, twice: bool = False) -> None:
        """Hand a message to a worker; `twice` is a second delivery while the first is at work."""
        run = self._runs[delivery.run]
        state = await self._state(run)
        incident = None
        if delivery.trigger == "tick" and not twice:
            incident = run.incidents.pop(state["tick"], None)
            self._incident, self._at_work = incident, delivery
        store = Mortal(self.store, incident)
        journal = self._journal(store=store, owner=next(self._workers) if twice else self._worker)
        attempt = journal.begin(
            delivery.run,
            cursor=run.cursor,
            trigger=delivery.trigger,
            message=delivery.message.model_dump(mode="json", exclude_none=True),
            state=state,
            delivery=delivery.id,
        )
        try:
            with journal.within(attempt):
                pending = await self._work(journal, delivery)
        except Died:
            self._dead.add(self._worker)
            self._worker = next(self._workers)
            self._in(REDELIVERED_AFTER, functools.partial(self._redeliver, delivery, run.cursor))
            return
        except agent.StillOpen:
            journal.end(attempt, outcome="held")
            self._hold(delivery, attempt)
            return
        journal.end(attempt, outcome="done")
        journal.advance(attempt)
        run.cursor += 1
        await self._go_on(run, journal, pending)

    async def _redeliver(self, delivery: Delivery, cursor: int) -> None:
        if self._runs[delivery.run].cursor == cursor:  # else: done meanwhile, only acknowledged
            await self._deliver(delivery)

    def _hold(self, delivery: Delivery, attempt: Attempt) -> None:
        """An effect is not decided: come back later, or after a person has decided it."""
        again = functools.partial(self._redeliver, delivery, attempt.cursor)
        doubts = [
            event
            for event in self.store.read(delivery.run)
            if isinstance(event, EffectInDoubt) and attempt.effects.get(event.key)
        ]
        for doubt in doubts:
            self._in(RESOLVED_AFTER, functools.partial(self._resolve, doubt))
        self._in(RESOLVED_AFTER if doubts else REDELIVERED_AFTER, again)

    async def _resolve(self, doubt: EffectInDoubt) -> None:
        """A person asks the vendor, who has the order."""
        claimed = next(
            event
            for event in self.store.read(doubt.run)
            if isinstance(event, EffectClaimed) and event.key == doubt.key
        )
        ref = msgspec.json.decode(claimed.args)["po_ref"]
        self.store.settle(
            EffectResolved(
                run=doubt.run,
                at="",
                v=doubt.v,
                key=doubt.key,
                to="committed",
                by="person:Åsa Lindqvist",
                fence=doubt.fence,
                reason="the vendor confirms the order",
                result=raw({"po": ref, "status": "open"}),
            )
        )

    async def _go_on(self, run: Run, journal: Journal, pending: types.FunctionCall | None) -> None:
        state = await self._state(run)
        if pending is not None:
            self._in(APPROVED_AFTER, functools.partial(self._approve, run, pending))
        elif state.get("done"):
            journal.close_run(run.vendor.run, status="complete")
        elif run.ticked != run.vendor.ticks:
            now = self._clock.now()
            coming = next(at for at in ticks(run.vendor) if at > now)
            self._at(coming, functools.partial(self._tick, run))

    async def _approve(self, run: Run, pending: types.FunctionCall) -> None:
        """The head of purchasing says yes, days later."""
        answer = types.FunctionResponse(
            id=pending.id,
            name=pending.name,
            response={"status": "approved", "by": "Renée Dubois"},
        )
        part = types.Part(function_response=answer)
        await self._deliver(self._message(run, "approval", part))

    async def _state(self, run: Run) -> dict[str, Any]:
        session = await self._sessions.get_session(
            app_name=self._app.name, user_id=USER, session_id=run.vendor.run
        )
        return {} if session is None else dict(session.state)

    async def _work(self, journal: Journal, delivery: Delivery) -> types.FunctionCall | None:
        """Run the agent on the message; the call that it waits for, if it waits for one."""
        platform_uuid.set_id_provider(lambda: next(self._ids))
        plugin = RecordingPlugin(journal, no_effect_on=(ConnectionRefusedError,))
        app = self._app.model_copy(update={"plugins": [plugin]})
        pending = None
        runner = Runner(app=app, session_service=self._sessions)
        async for event in runner.run_async(
            user_id=USER, session_id=delivery.run, new_message=delivery.message
        ):
            for call in event.get_function_calls():
                if call.id in (event.long_running_tool_ids or ()):
                    pending = call
        return pending

    async def service(self, tool: str, answer: Callable[[], Any]) -> Any:
        """What stands behind a tool: it answers, unless this tick's incident strikes."""
        incident, delivery = self._incident, self._at_work
        read = tool == "lookup_vendor"
        struck = incident is (Incident.LOOKUP_REFUSED if read else Incident.REFUSED)
        if struck:
            self._incident = None
            raise ConnectionRefusedError(f"{tool}: connection refused")
        if not read and incident is Incident.TIMED_OUT:
            self._incident = None
            raise TimeoutError(f"{tool}: no answer within 30 s")
        if not read and incident is Incident.REDELIVERED and delivery is not None:
            self._incident = None
            # A worker of its own: nothing of this one's context may leak into it.
            other = self._deliver(delivery, twice=True)
            await asyncio.get_running_loop().create_task(other, context=Context())
        return answer()
