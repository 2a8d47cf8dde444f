"""The worker: what becomes of a message, with the real runner behind it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import threading
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.events.event import Event as AdkEvent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from backstop.adapters.memory import MemoryStore
from backstop.core.events import (
    AttemptEnded,
    AttemptStarted,
    CallAnswered,
    CursorAdvanced,
    EffectClaimed,
    EffectResolved,
    Event,
    RunClosed,
    RunOpened,
    StepStarted,
)
from backstop.core.identity import Declaration, Namespace
from backstop.errors import BackstopError
from backstop.guard.journal import Journal
from backstop.guard.recorder import RecordingPlugin
from backstop.guard.worker import Worker
from backstop.ports import Answer, Claim, Delivery, Done, Handled, Later, Settlement

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")


class Noon:
    """It is always noon."""

    def now(self) -> datetime:
        return datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


class Scripted(BaseLlm):
    """Makes the calls that the last message lists, one a request, then stops.

    What it does depends on the conversation alone, as a real model's answer does.
    """

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        calls, done = _wanted(llm_request.contents)
        part = types.Part(text=f"seen {len(llm_request.contents)}")
        if done < len(calls):
            name, args = calls[done]
            part = types.Part(function_call=types.FunctionCall(name=name, args=args))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def _wanted(contents: list[types.Content]) -> tuple[list[Any], int]:
    calls, done = [], 0
    for content in contents:
        for part in content.parts or []:
            if content.role == "user" and part.text:
                calls, done = json.loads(part.text), 0
            elif part.function_response is not None:
                done += 1
    return calls, done


class Died(BaseException):
    """The worker's process is gone, as by kill -9."""


class Raced(MemoryStore):
    """Lets others get in between."""

    before_claim: Callable[[EffectClaimed], None] | None = None
    before_append: Callable[[Event], None] | None = None
    unreachable = False

    def settle(self, settlement: Settlement, *, claim: Claim | None = None) -> None:
        if self.unreachable:
            raise Died
        super().settle(settlement, claim=claim)

    def claim(self, intent: EffectClaimed) -> Claim | Answer:
        if (hook := self.before_claim) is not None:
            self.before_claim = None
            hook(intent)
        return super().claim(intent)

    def append(self, event: Event) -> bool:
        if self.before_append is not None:
            self.before_append(event)
        return super().append(event)


@dataclass
class Town:
    """A store, a session service, the world behind the tools, and workers that die."""

    sessions: BaseSessionService = field(default_factory=InMemorySessionService)
    mails: list[str] = field(default_factory=list)
    dead: set[str] = field(default_factory=set)
    faults: list[Exception] = field(default_factory=list)
    on_mail: Callable[[str], Any] | None = None

    def __post_init__(self) -> None:
        self.store = Raced(
            clock=Noon(), is_alive=lambda owner: owner.split("/")[0] not in self.dead
        )

    async def send_mail(self, to: str, tool_context: ToolContext) -> dict[str, str]:
        """Send a mail."""
        if self.on_mail is not None:
            await self.on_mail(to)
        self.mails.append(to)
        tool_context.state["mails"] = tool_context.state.get("mails", 0) + 1
        if self.faults:
            raise self.faults.pop()
        return {"sent": to}

    def worker(self, name: str, *, version: str = "v1") -> Worker:
        agent = LlmAgent(
            name="desk", model=Scripted(model="scripted"), tools=[FunctionTool(self.send_mail)]
        )
        return Worker(
            app=App(name="desk", root_agent=agent),
            store=self.store,
            journal=lambda store: Journal(
                store=store,
                namespace=Namespace(agent="desk"),
                declarations={"send_mail": Declaration(tool="send_mail", identity=("to",))},
                version=version,
                owner=name,
            ),
            guard=RecordingPlugin,
            sessions=self.sessions,
        )

    def cursor(self, run: str = "r1") -> int:
        return max((e.cursor for e in self.events(CursorAdvanced, run)), default=0)

    def events(self, kind: type[Any], run: str = "r1") -> list[Any]:
        return [event for event in self.store.read(run) if isinstance(event, kind)]

    def dies_at(self, kind: type[Any], worker: str) -> None:
        """The worker is gone at its next event of this kind, before that is written."""

        def die(event: Event) -> None:
            if isinstance(event, kind):
                self.store.before_append = None
                self.dead.add(worker)
                raise Died

        self.store.before_append = die

    def resolve(self, to: str, fence: int) -> None:
        claimed = self.events(EffectClaimed)[-1]
        self.store.settle(
            EffectResolved(
                run=claimed.run, at="", key=claimed.key, to=to, by="person:me", fence=fence
            )
        )


def _parts(event: AdkEvent) -> list[types.Part]:
    return (event.content.parts if event.content else None) or []


def tick(*mails: str, cursor: int | None = 0, id: str = "m1", **said: str) -> Delivery:  # noqa: A002 - a message's
    attributes = {"run": "r1", "user": "u", "state": "{}", **said}
    if cursor is not None:
        attributes["cursor"] = str(cursor)
    calls = [["send_mail", {"to": to}] for to in mails]
    return Delivery(id=id, attributes=attributes, data=json.dumps(calls).encode())


def handle(worker: Worker, delivery: Delivery) -> Handled:
    return asyncio.run(worker.handle(delivery))


def test_a_step_that_is_done_is_acknowledged_and_the_cursor_moves() -> None:
    town = Town()
    assert isinstance(handle(town.worker("a"), tick("x@y")), Done)
    assert (town.mails, town.cursor()) == (["x@y"], 1)
    assert [end.outcome for end in town.events(AttemptEnded)] == ["done"]


def test_s06_s07_one_tick_delivered_three_times_is_one_step_whatever_its_ids() -> None:
    """S06, S07: a step is known by run and cursor (S1), never by the message's id."""
    town = Town()
    answers = [handle(town.worker(f"w{n}"), tick("x@y", id=name)) for n, name in enumerate("aab")]
    assert all(isinstance(answer, Done) for answer in answers)
    assert (town.mails, town.cursor()) == (["x@y"], 1)
    assert len(town.events(AttemptStarted)) == 1  # what is behind costs no further try


def test_s1_two_ticks_of_equal_content_are_two_steps() -> None:
    """S1: two weekly ticks look alike."""
    town = Town()
    worker = town.worker("a")
    assert [type(handle(worker, tick(cursor=n))) for n in (0, 1)] == [Done, Done]
    assert (town.cursor(), len(town.events(StepStarted))) == (2, 2)


def test_a_tick_ahead_of_the_cursor_is_given_back_and_leaves_no_trace() -> None:
    town = Town()
    worker = town.worker("a")
    handle(worker, tick(cursor=0))
    before = len(list(town.store.read()))
    answer = handle(worker, tick("x@y", cursor=2))
    assert answer == Later(reason="the run is at step s1")
    assert (town.mails, len(list(town.store.read()))) == ([], before)


def test_s06_a_delivery_beside_one_that_is_at_work_is_given_back() -> None:
    """S06: a message handled twice while the first still works is held, not run."""
    town = Town()
    seen: list[Handled] = []

    async def meanwhile(to: str) -> None:
        other = asyncio.create_task(town.worker("b").handle(tick("x@y")))
        seen.append(await other)

    town.on_mail = meanwhile
    assert isinstance(handle(town.worker("a"), tick("x@y")), Done)
    assert isinstance(seen[0], Later)
    assert "a/s0.1 is at send_mail" in seen[0].reason
    assert (town.mails, town.cursor()) == (["x@y"], 1)
    assert isinstance(handle(town.worker("b"), tick("x@y")), Done)  # its redelivery


def test_s07_a_redelivery_after_the_effect_gets_what_is_on_record() -> None:
    """S07: the worker died between the effect and the move of the cursor."""
    town = Town()
    town.dies_at(CursorAdvanced, "a")
    with contextlib.suppress(Died):
        handle(town.worker("a"), tick("x@y"))
    assert (town.mails, town.cursor()) == (["x@y"], 0)
    assert isinstance(handle(town.worker("b"), tick("x@y")), Done)
    assert (town.mails, town.cursor()) == (["x@y"], 1)
    assert [said.how for said in town.events(CallAnswered)] == ["recorded"]


def test_w05_who_loses_one_effect_starts_no_other_of_the_step() -> None:
    """W05: the loser of a step must stop, not go on to the mail that comes after."""
    town = Town()

    def taken(intent: EffectClaimed) -> None:
        town.store.claim(msgspec.structs.replace(intent, owner="a/s0.9"))

    town.store.before_claim = taken
    answer = handle(town.worker("b"), tick("first@y", "second@y"))
    assert isinstance(answer, Later)
    assert [said.how for said in town.events(CallAnswered)] == ["held", "held"]
    assert (town.mails, town.cursor()) == ([], 0)
    assert [end.outcome for end in town.events(AttemptEnded)] == ["held"]


def test_w06_a_step_that_a_live_worker_is_at_is_not_adopted() -> None:
    """W06: a claim has an owner; while that lives, nobody else tries the step."""
    town = Town()

    async def second(to: str) -> None:
        town.on_mail = None
        for _ in range(3):
            assert isinstance(await town.worker("b").handle(tick("x@y")), Later)

    town.on_mail = second
    handle(town.worker("a"), tick("x@y"))
    assert (town.mails, len(town.events(AttemptStarted))) == (["x@y"], 1)


def test_w13_a_worker_killed_in_an_effect_leaves_it_in_doubt_and_nobody_does_it_again() -> None:
    """W13: neither output nor error is on record; that is a legal state."""
    town = Town()

    async def die(to: str) -> None:
        town.dead.add("a")
        town.store.unreachable = True
        raise Died

    town.on_mail = die
    with contextlib.suppress(Died):
        handle(town.worker("a"), tick("x@y"))
    town.on_mail, town.store.unreachable = None, False
    answers = [handle(town.worker("b"), tick("x@y")) for _ in range(3)]
    assert all(isinstance(answer, Later) for answer in answers)
    assert "is in doubt: resolve it" in answers[-1].reason
    assert (town.mails, town.cursor()) == ([], 0)
    assert len(town.events(AttemptStarted)) == 2  # once told, it waits without trying

    town.resolve("reopened", fence=2)
    assert isinstance(handle(town.worker("b"), tick("x@y")), Done)
    assert (town.mails, town.cursor()) == (["x@y"], 1)


def test_an_effect_in_doubt_holds_the_step_until_a_person_resolves_it() -> None:
    town = Town(faults=[TimeoutError("no answer")])
    worker = town.worker("a")
    assert isinstance(handle(worker, tick("x@y")), Later)
    assert isinstance(handle(worker, tick("x@y")), Later)
    assert (town.mails, town.cursor()) == (["x@y"], 0)
    town.resolve("committed", fence=1)
    assert isinstance(handle(worker, tick("x@y")), Done)
    assert (town.mails, town.cursor()) == (["x@y"], 1)


def test_a_doubt_that_another_version_left_is_tried_since_this_one_may_know_more() -> None:
    town = Town(faults=[TimeoutError("no answer")])
    handle(town.worker("a"), tick("x@y"))
    assert isinstance(handle(town.worker("a", version="v2"), tick("x@y")), Later)
    assert len(town.events(AttemptStarted)) == 2


def test_a_failed_attempt_is_given_back_with_what_it_raised() -> None:
    town = Town()
    answer = handle(town.worker("a"), Delivery(
        id="m", attributes={"run": "r1", "cursor": "0", "user": "u", "state": "{}"}, data=b"no list"
    ))  # fmt: skip
    assert isinstance(answer, Later)
    assert "JSONDecodeError" in answer.reason
    assert [end.outcome for end in town.events(AttemptEnded)] == ["error"]
    assert town.cursor() == 0


def test_the_content_that_set_a_step_off_is_what_every_try_at_it_is_about() -> None:
    town = Town(faults=[TimeoutError("no answer")])
    handle(town.worker("a"), tick("x@y"))
    town.resolve("reopened", fence=2)
    assert isinstance(handle(town.worker("a"), tick("other@y", id="m2")), Done)
    assert town.mails == ["x@y", "x@y"]


def test_s1_a_trigger_key_names_a_step_once() -> None:
    """S1: whoever ticks by the calendar need not know the cursor."""
    town = Town()
    worker = town.worker("a")
    weeks = [tick(cursor=None, trigger_key=f"2026-W{week}") for week in (10, 10, 11, 10, 11)]
    assert all(isinstance(handle(worker, week), Done) for week in weeks)
    steps = town.events(StepStarted)
    assert [(step.cursor, step.trigger_key) for step in steps] == [(0, "2026-W10"), (1, "2026-W11")]
    assert town.cursor() == 2


def test_a_second_trigger_key_waits_for_the_step_that_is_under_way() -> None:
    town = Town(faults=[TimeoutError("no answer")])
    worker = town.worker("a")
    handle(worker, tick("x@y", cursor=None, trigger_key="k1"))
    answer = handle(worker, tick(cursor=None, trigger_key="k2"))
    assert answer == Later(reason="step s0 is under way, and it is another one")


def test_of_two_trigger_keys_that_race_for_a_step_one_waits() -> None:
    town = Town()

    def other_first(event: Event) -> None:
        if isinstance(event, StepStarted):
            town.store.before_append = None
            town.store.append(msgspec.structs.replace(event, trigger_key="k2"))

    town.store.before_append = other_first
    worker = town.worker("a")
    answer = handle(worker, tick("x@y", cursor=None, trigger_key="k1"))
    assert answer == Later(reason="step s0 was begun meanwhile, by another message")
    assert (town.mails, town.events(AttemptStarted)) == ([], [])
    assert isinstance(handle(worker, tick(cursor=None, trigger_key="k2")), Done)
    assert isinstance(handle(worker, tick("x@y", cursor=None, trigger_key="k1")), Done)
    assert (town.mails, town.cursor()) == (["x@y"], 2)


def test_a_step_known_by_name_is_not_taken_for_one_known_by_number() -> None:
    town = Town()
    worker = town.worker("a")
    handle(worker, tick(cursor=None, trigger_key="k1"))
    answer = handle(worker, tick("x@y", cursor=0))
    assert isinstance(answer, Later)  # acknowledging it would skip it in silence
    assert "step s0 is known by k1" in answer.reason


def test_a05_what_a_lost_attempt_said_is_not_in_the_session_of_the_run() -> None:
    """A05: histories of two workers on one run never interleave."""
    town = Town()
    town.dies_at(AttemptEnded, "a")
    with contextlib.suppress(Died):
        handle(town.worker("a"), tick("x@y"))
    handle(town.worker("b"), tick("x@y"))
    handle(town.worker("b"), tick(cursor=1))
    links = [event.session for event in town.events(CursorAdvanced)]
    assert links == ["r1.s0.2", "r1.s1.1"]
    last = asyncio.run(
        town.sessions.get_session(app_name="desk", user_id="u", session_id="r1.s1.1")
    )
    assert last is not None
    said = [part.text for event in last.events for part in _parts(event)]
    # Its model saw: the first message, a call, its answer, a text; then this one.
    assert said == ["[]", "seen 5"]
    assert last.state == {"mails": 1}


def test_two_workers_at_one_step_at_once_leave_one_session() -> None:
    town = Town()

    async def both() -> list[Handled]:
        workers = [town.worker(name) for name in "abc"]
        return await asyncio.gather(*(worker.handle(tick()) for worker in workers))

    assert [type(answer) for answer in asyncio.run(both())] == [Done] * 3
    assert [event.session for event in town.events(CursorAdvanced)] == ["r1.s0.1"]


def test_the_session_lives_in_the_session_service_that_all_workers_share(tmp_path: Path) -> None:
    town = Town(sessions=SqliteSessionService(str(tmp_path / "sessions.db")))
    for number, name in enumerate("abc"):
        assert isinstance(handle(town.worker(name), tick(f"{name}@y", cursor=number)), Done)
    assert bytes(town.events(StepStarted)[2].state) == b'{"mails":2}'


def test_a_session_that_is_gone_holds_the_run() -> None:
    town = Town()
    handle(town.worker("a"), tick())
    town.sessions = InMemorySessionService()
    answer = handle(town.worker("a"), tick(cursor=1))
    assert isinstance(answer, Later)
    assert answer.reason.startswith("error[session-gone]: session r1.s0.1 of user u is gone")


def test_a_run_that_something_else_drove_is_left_alone() -> None:
    town = Town()
    worker = town.worker("a")
    town.store.append(RunOpened(run="r1", at="", user="u"))
    town.store.append(StepStarted(run="r1", at="", step="s0", cursor=0))
    town.store.append(CursorAdvanced(run="r1", at="", step="s0", cursor=1))
    answer = handle(worker, tick(cursor=1))
    assert isinstance(answer, Later)
    assert answer.reason.startswith("error[session-elsewhere]")


def test_a_closed_run_takes_no_further_step_and_acknowledges_what_was_done() -> None:
    town = Town()
    worker = town.worker("a")
    handle(worker, tick())
    town.store.append(RunClosed(run="r1", at="", status="complete"))
    assert isinstance(handle(worker, tick()), Done)
    answer = handle(worker, tick(cursor=1))
    assert answer == Later(reason="the run is closed, and this step of it was never done")


def test_a_run_that_nobody_opened_waits() -> None:
    town = Town()
    delivery = Delivery(id="m", attributes={"run": "r1", "cursor": "0"}, data=b"[]")
    answer = handle(town.worker("a"), delivery)
    assert answer == Later(reason="run r1 is not open: its first message says `state`")


def test_a_store_that_cannot_be_reached_gives_the_message_back() -> None:
    town = Town()

    def down(event: Event) -> None:
        raise BackstopError("the store does not answer; start it", slug="store-down")

    town.store.before_append = down
    answer = handle(town.worker("a"), tick("x@y"))
    assert answer == Later(reason="error[store-down]: the store does not answer; start it")
    assert town.mails == []


def test_a_store_that_waits_for_a_network_is_asked_off_the_event_loop() -> None:
    town = Town()
    loops: list[bool] = []

    def where(event: Event) -> None:
        loops.append(threading.current_thread() is threading.main_thread())

    town.store.before_append = where
    type(town.store).blocking = True
    try:
        assert isinstance(handle(town.worker("a"), tick("x@y")), Done)
    finally:
        del type(town.store).blocking
    assert loops[:3] == [False, False, False]  # run, step and attempt


@pytest.mark.parametrize(
    ("attributes", "data", "why"),
    [
        ({}, b"", "`run` must name a run"),
        ({"run": "a/b"}, b"", "`run` must name a run, without a slash"),
        ({"run": "r" * 1501, "cursor": "0"}, b"", "`run` must name a run"),
        ({"run": "r"}, b"", "either `cursor` or `trigger_key`"),
        ({"run": "r", "cursor": "0", "trigger_key": "k"}, b"", "either `cursor` or"),
        ({"run": "r", "cursor": "-1"}, b"", "`cursor` is '-1'"),
        ({"run": "r", "cursor": "٣"}, b"", "which is no number of a step"),
        ({"run": "r", "cursor": "9" * 10}, b"", "which is no number of a step"),
        ({"run": "r", "cursor": "0", "state": "[]"}, b"", "`state` is no JSON object"),
        ({"run": "r", "cursor": "0", "state": "{}"}, b"", "with `state` goes a `user`"),
        ({"run": "r", "cursor": "0"}, b"\xff", "its data is no text/plain"),
        ({"run": "r", "cursor": "0", "content_type": "application/json"}, b"{", "its data is no"),
        ({"run": "r", "cursor": "0", "content_type": "image/png"}, b"", "write text/plain or"),
    ],
)
def test_a_message_that_cannot_be_understood_is_given_back_never_acknowledged(
    attributes: dict[str, str], data: bytes, why: str
) -> None:
    town = Town()
    answer = handle(town.worker("a"), Delivery(id="m", attributes=attributes, data=data))
    assert isinstance(answer, Later)
    assert answer.reason.startswith("error[tick]: message m cannot be understood")
    assert why in answer.reason
    assert list(town.store.read()) == []


def test_a_content_of_the_framework_goes_through_as_it_is() -> None:
    town = Town()
    content = {"role": "user", "parts": [{"text": '[["send_mail", {"to": "x@y"}]]'}]}
    delivery = tick(content_type="application/json", trigger="approval")
    delivery = dataclasses.replace(delivery, data=json.dumps(content).encode())
    assert isinstance(handle(town.worker("a"), delivery), Done)
    step = town.events(StepStarted)[0]
    assert (town.mails, step.trigger) == (["x@y"], "approval")
    assert msgspec.json.decode(step.message) == content
