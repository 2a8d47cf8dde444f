"""The F and S cases of real incidents, and K25 and W13, on the real framework.

The same file runs on the newest framework and, by `test_guard_oldest.py`, on the oldest.

| case | here | why not, or where else |
| --- | --- | --- |
| F02 F03 F05 F07 F08 F12 F13 F14 F17 F18 F20 F21 F22 F31 F35 | yes | |
| F05 F13 | that the guard acts once | which answer belongs to which call the framework decides |
| F12 | a run that is closed, and a no that comes before a yes | |
| F31 | the run-time half | that a repeated effect is a DUPLICATE is the gate's |
| F35 | the run-time half | the gate's half is G7: clean only where the guard answers |
| S01 S03 | what a record rules | the framework has no lease: `ruling` is asked, as stores ask it |
| S09 S10 S11 | yes | |
| S10 | the approval is void in so many words | the framework keeps no approval to give back |
| F15 | no | that an approved call never comes is MISSING: the gate's |
| F23 F26 F27 F28 F32 F33 | no | keys: `test_identity.py`; repeats: `test_repeats.py` |
| S06 S07 | no | a worker's: `test_pubsub.py` |
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.events.request_input import RequestInput
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.function_tool import FunctionTool
from google.adk.workflow import START, Workflow, node
from google.genai import types

from backstop.adapters.memory import MemoryStore
from backstop.adapters.records import Doubtful, Record, ruling
from backstop.core.events import (
    CallAnswered,
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectInDoubt,
    Event,
    ToolRead,
)
from backstop.core.identity import Declaration, Namespace
from backstop.core.lifecycle import Life, Phase
from backstop.errors import BackstopError
from backstop.guard.claims.capability import DidNotHappen, keyed, probe
from backstop.guard.claims.safety import Safety
from backstop.guard.effect import effect
from backstop.guard.journal import Journal
from backstop.guard.plugin.recorder import RecordingPlugin
from backstop.ports import Answer, Claim, Held, Liveness, Settlement
from tests.e2e.till import Scripted, Till, calls, says, told, words

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def till(tmp_path: Path) -> Till:
    return Till(folder=tmp_path)


PAY = calls(("pay", {"order": "7", "amount": 10}))


def asked_of(events: list[Any]) -> list[str]:
    """The ids under which a person is asked to confirm calls."""
    return [
        call.id
        for event in events
        for call in event.get_function_calls()
        if call.name == "adk_request_confirmation"
    ]


def answer(call: str, response: dict[str, Any], name: str = "adk_request_confirmation") -> Any:
    told_so = types.FunctionResponse(id=call, name=name, response=response)
    return types.Content(role="user", parts=[types.Part(function_response=told_so)])


def yes(call: str) -> Any:
    return answer(call, {"confirmed": True})


def no(call: str) -> Any:
    return answer(call, {"confirmed": False})


def test_f02_a_node_with_two_questions_does_each_thing_once(till: Till) -> None:
    """F02: it runs again after each answer, from its first line."""

    @effect
    def first(order: str) -> str:
        till.sent.append("a")
        return order

    @effect
    def second(order: str) -> str:
        till.sent.append("b")
        return order

    @node(rerun_on_resume=True)
    async def work(ctx: Any, node_input: Any) -> Any:
        first("7")
        if "one" not in ctx.resume_inputs:
            yield RequestInput(interrupt_id="one", message="ok?", response_schema=None)
            return
        second("7")
        if "two" not in ctx.resume_inputs:
            yield RequestInput(interrupt_id="two", message="really?", response_schema=None)
            return
        yield "done"

    def pending(events: list[Any]) -> tuple[str, str]:
        [found] = [
            (call.id, call.name)
            for event in events
            for call in event.get_function_calls()
            if call.id in (event.long_running_tool_ids or ())
        ]
        return found

    async def go() -> None:
        await till.session()
        runner = till.runner(Workflow(name="till", edges=[(START, work)]))
        events = await till.say(runner, "go")
        for _ in range(2):
            call, name = pending(events)
            events = await till.say(runner, answer(call, {"result": "yes"}, name))

    asyncio.run(go())
    assert till.sent == ["a", "b"]
    till.verified()


def test_f03_what_ran_beside_a_call_that_waits_is_not_run_again(till: Till) -> None:
    """F03: one of two parallel calls waits for a person; on resume both are asked for again."""
    both = calls(("pay", {"order": "7", "amount": 10}), ("approve", {"order": "8"}))

    def approve(order: str) -> str:
        """Approves."""
        till.sent.append(order)
        return order

    async def go() -> list[Any]:
        await till.session()
        tools = [till.pay, FunctionTool(approve, require_confirmation=True)]
        runner = till.runner(till.agent(both, both, says("done"), says("done"), tools=tools))
        events = await till.say(runner, "go")
        [call] = asked_of(events)
        return await till.say(runner, yes(call))

    events = asyncio.run(go())
    assert sorted(till.sent, key=str) == [("7", 10), "8"]
    assert told(events, "pay") == [{"paid": "7", "amount": 10}]
    till.verified()


def test_f05_an_answer_to_one_of_two_waiting_calls_lets_the_other_wait(till: Till) -> None:
    """F05: an approval belongs to one call with its arguments; one for no call does nothing."""
    both = calls(("pay", {"order": "A", "amount": 1}), ("pay", {"order": "B", "amount": 2}))

    async def go() -> None:
        await till.session()
        tools = [FunctionTool(till.pay, require_confirmation=True)]
        runner = till.runner(till.agent(both, says("a"), says("b"), says("c"), tools=tools))
        first, second = asked_of(await till.say(runner, "go"))
        await till.say(runner, yes(first))
        assert till.sent == [("A", 1)]
        with suppress(ValueError):  # the newest framework refuses it by itself
            await till.say(runner, yes("nobody"))
        await till.say(runner, no(second))

    asyncio.run(go())
    assert till.sent == [("A", 1)]
    till.verified()


def test_f07_a_second_answer_to_one_question_changes_nothing(till: Till) -> None:
    """F07: the approval is consumed; the effect stays as it is, and the record says so."""

    async def go() -> None:
        await till.session()
        tools = [FunctionTool(till.pay, require_confirmation=True)]
        runner = till.runner(till.agent(PAY, says("a"), says("b"), says("c"), tools=tools))
        [call] = asked_of(await till.say(runner, "go"))
        for reply in (yes(call), no(call), yes(call)):
            await till.say(runner, reply)

    asyncio.run(go())
    assert till.sent == [("7", 10)]
    assert len(till.rows(EffectCommitted)) == 1
    till.verified()


def test_f12_a_no_that_was_given_is_no_yes_later(till: Till) -> None:
    """F12: resume on what is finished must not turn a denial into an approval."""

    async def go() -> None:
        await till.session()
        tools = [FunctionTool(till.pay, require_confirmation=True)]
        runner = till.runner(till.agent(PAY, says("a"), says("b"), says("c"), tools=tools))
        [call] = asked_of(await till.say(runner, "go"))
        for reply in (no(call), yes(call)):
            await till.say(runner, reply)

    asyncio.run(go())
    assert till.sent == []
    assert till.rows(EffectClaimed) == []
    till.verified()


def test_f13_an_approval_of_an_ambiguous_call_id_runs_neither_wrongly_nor_twice(
    till: Till,
) -> None:
    """F13: two waiting calls share one id; what is approved is refund{1}, never delete{2}."""

    def refund(order: str) -> str:
        """Refunds."""
        till.sent.append(("refund", order))
        return order

    def delete(order: str) -> str:
        """Deletes."""
        till.sent.append(("delete", order))
        return order

    parts = [
        types.Part(function_call=types.FunctionCall(id="dup", name=name, args={"order": order}))
        for name, order in (("refund", "1"), ("delete", "2"))
    ]

    async def go() -> None:
        await till.session()
        tools = [FunctionTool(one, require_confirmation=True) for one in (refund, delete)]
        runner = till.runner(till.agent(parts, says("a"), says("b"), tools=tools))
        call = asked_of(await till.say(runner, "go"))[0]
        with suppress(ValueError):  # the newest framework refuses it by itself
            await till.say(runner, yes(call))

    asyncio.run(go())
    assert till.sent in ([], [("refund", "1")])


def test_f14_an_approved_call_whose_reply_was_lost_is_not_made_again(till: Till) -> None:
    """F14: the approval is no pass for a second effect."""

    def ring(order: str) -> str:
        """Rings."""
        till.sent.append(order)
        raise TimeoutError("no answer")

    async def go() -> list[Any]:
        await till.session()
        asked = calls(("ring", {"order": "7"}))
        tools = [FunctionTool(ring, require_confirmation=True)]
        lines = (asked, says("a"), asked, says("b"), says("c"))
        runner = till.runner(till.agent(*lines, tools=tools))
        [call] = asked_of(await till.say(runner, "go"))
        first = await till.say(runner, yes(call))
        assert told(first, "ring")[0]["backstop"] == "in_doubt"
        again = await till.say(runner, "once more")
        return await till.say(runner, yes(asked_of(again)[0]))

    events = asyncio.run(go())
    assert till.sent == ["7"]
    assert told(events, "ring")[0]["backstop"] == "in_doubt"


def test_f17_a_retry_that_words_a_field_otherwise_pays_once(till: Till) -> None:
    """F17: identity is the order; another amount or note is a conflict, never a new effect."""
    other = calls(("pay", {"order": "7", "amount": 11}))
    events = till.chat(till.agent(PAY, says("a"), other, says("b")), "pay", "again")
    assert till.sent == [("7", 10)]
    assert told(events, "pay")[1]["backstop"] == "conflict"
    assert told(events, "pay")[1]["done"] == {"order": "7", "amount": 10}
    till.verified()


def test_f18_the_same_call_in_the_next_breath_gets_the_recorded_result(till: Till) -> None:
    """F18: same process, same arguments, the first already done; and both in one breath."""
    events = till.chat(till.agent(PAY, [*PAY, *PAY], says("done")), "pay")
    assert till.sent == [("7", 10)]
    assert told(events, "pay") == [{"paid": "7", "amount": 10}] * 3
    till.verified()


def lost(till: Till, error: Exception) -> FunctionTool:
    def ring(order: str, key: str = "") -> str:
        """Rings."""
        till.sent.append((order, key))
        if len(till.sent) == 1:
            raise error
        return order

    return FunctionTool(ring)


RING = calls(("ring", {"order": "7"}))


@pytest.mark.parametrize(
    ("error", "case"),
    [
        (ConnectionResetError("the socket dropped"), "F20"),
        (RuntimeError("session terminated"), "F21"),
        (ValueError("invalid parameter"), "F22"),
    ],
    ids=["f20", "f21", "f22"],
)
def test_f20_f21_f22_an_error_that_nobody_vouches_for_is_a_doubt_and_no_retry(
    till: Till, error: Exception, case: str
) -> None:
    """F20, F21, F22: whatever the error says, the other side may have acted."""
    root = till.agent(RING, RING, says("a"), RING, says("b"), tools=[lost(till, error)])
    events = till.chat(root, "ring", "ring again")
    assert till.sent == [("7", "")], case
    assert [one["backstop"] for one in told(events, "ring")] == ["in_doubt"] * 3
    assert str(error) in told(events, "ring")[0]["reason"]
    assert len(till.rows(EffectInDoubt)) == 1


def test_f22_a_declared_error_is_a_failure_for_now_and_may_be_tried_again(
    tmp_path: Path,
) -> None:
    """F22: the key is free only where the tool says that nothing happens on this error."""
    config = (
        "version: 1\nagents:\n  till:\n    path: agent\n    store: sqlite:///{store}\n"
        "    tools: {{ring: {{identity: [order], no_effect_on: [ValueError]}}}}\n"
    )
    till = Till(folder=tmp_path, config=config)

    async def go() -> None:
        await till.session()
        runner = till.runner(
            till.agent(RING, RING, says("a"), tools=[lost(till, ValueError("invalid"))])
        )
        with pytest.raises(ValueError, match="invalid"):
            await till.say(runner, "ring")
        await till.say(runner, "ring again")

    asyncio.run(go())
    assert till.sent == [("7", ""), ("7", "")]
    (failed,) = till.rows(EffectFailed)
    assert (failed.final, failed.error.type) == (False, "ValueError")
    assert len(till.rows(EffectCommitted)) == 1
    till.verified()


def test_f22_a_call_that_the_framework_turns_away_is_no_effect(till: Till) -> None:
    """F22: an argument is missing; the corrected call is made, and is in conflict with nothing."""
    short = calls(("pay", {"order": "7"}))
    events = till.chat(till.agent(short, short, PAY, says("done")), "pay")
    assert till.sent == [("7", 10)]
    assert "amount" in told(events, "pay")[0]["error"]
    assert told(events, "pay")[2] == {"paid": "7", "amount": 10}
    assert [row.error.type for row in till.rows(EffectFailed)] == ["CallTurnedAway"] * 2
    till.verified()


def test_f20_a_tool_that_takes_our_key_is_tried_again_under_the_same_key(tmp_path: Path) -> None:
    """F20: only a declared tool is retried by itself; the provider acts once on the key."""
    config = (
        "version: 1\nagents:\n  till:\n    path: agent\n    store: sqlite:///{store}\n"
        "    tools: {{ring: {{identity: [order], keyed: {{param: key, retention: 1d}}}}}}\n"
    )
    till = Till(folder=tmp_path, config=config)
    tool = lost(till, ConnectionResetError("dropped"))
    root = till.agent(RING, says("a"), RING, says("b"), tools=[tool])
    events = till.chat(root, "ring", "again")
    assert [order for order, _ in till.sent] == ["7", "7"]
    (claimed, again) = till.rows(EffectClaimed)
    assert {key for _, key in till.sent} == {claimed.key} == {again.key}
    assert told(events, "ring")[1] == {"result": "7"}
    till.verified()


def test_f31_a_read_is_made_again_and_an_effect_is_not(till: Till) -> None:
    """F31: the same call steps later; nobody caches what only looks."""
    both = calls(("look", {"order": "7"}), ("pay", {"order": "7", "amount": 10}))
    till.chat(till.agent(both, says("a"), both, says("b")), "go", "go on")
    assert len(till.rows(ToolRead)) == 2
    assert till.sent == [("7", 10)]


def test_f35_a_repaired_workflow_that_begins_anew_opens_no_second_ticket(till: Till) -> None:
    """F35: step 2 failed, somebody mended it and runs it all again from the start."""
    ticket = calls(("pay", {"order": "7", "amount": 10}))

    def broken(order: str) -> str:
        """Looks."""
        raise KeyError(order)

    look = FunctionTool(broken)
    look.name = "look"
    failing = till.agent(ticket, calls(("look", {"order": "7"})), tools=[till.pay, look])
    mended = till.agent(ticket, calls(("look", {"order": "7"})), says("done"))

    async def go() -> list[Any]:
        await till.session()
        with pytest.raises(KeyError):
            await till.say(till.runner(failing), "go")
        return await till.say(till.runner(mended), "go")

    events = asyncio.run(go())
    assert till.sent == [("7", 10)]
    assert told(events, "pay") == [{"paid": "7", "amount": 10}]
    assert told(events, "look") == [{"order": "7"}]


# --- owners that die, hang, or lose their store: on a store that can be told so ---


class Weeks:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.at = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at


class Killed(BaseException):
    """The process is gone, as by kill -9."""


class Mortal:
    """A store as a process sees it that dies, or cannot reach it for a while."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.dead = False
        self.away = False
        self.header, self.blocking = store.header, store.blocking
        self.read, self.standings = store.read, store.standings

    def append(self, event: Event) -> bool:
        self._reach()
        return self._store.append(event)

    def claim(self, intent: EffectClaimed) -> Claim | Answer:
        self._reach()
        return self._store.claim(intent)

    def settle(self, settlement: Settlement, *, claim: Claim | None = None) -> None:
        self._reach()
        self._store.settle(settlement, claim=claim)

    def _reach(self) -> None:
        if self.dead:
            raise Killed
        if self.away:
            raise BackstopError("the store cannot be reached; start it", slug="store-busy")


class Shop:
    """Processes that share a store; `sent` is what really went out."""

    def __init__(self) -> None:
        self.clock = Weeks()
        self.gone: set[str] = set()
        self.store = MemoryStore(
            clock=self.clock, is_alive=lambda owner: owner.split("/")[0] not in self.gone
        )
        self.sent: list[Any] = []

    def process(self, name: str, *, safety: Safety | None = None) -> Process:
        return Process(self, name, safety or Safety())

    def rows(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.store.read() if isinstance(event, kind)]


class Process:
    """One process of the agent, which pays; `until` runs in the tool's body."""

    def __init__(self, shop: Shop, name: str, safety: Safety) -> None:
        self.shop, self.name = shop, name
        self.store = Mortal(shop.store)
        self.journal = Journal(
            store=self.store,
            namespace=Namespace(agent="shop"),
            declarations={"pay": Declaration(tool="pay", identity=("order",))},
            version="v1",
            owner=name,
        )
        self.plugin = RecordingPlugin(self.journal, safety={"pay": safety})

    def die(self) -> None:
        self.store.dead = True
        self.shop.gone.add(self.name)

    async def step(self, tool: Any, *, cursor: int = 0, order: str = "7") -> list[Any]:
        """One try at a step, in which the model asks for one payment."""
        asked = calls(("pay", {"order": order}))
        root = LlmAgent(
            name="shop", model=Scripted(model="m", lines=[asked, says("done")]), tools=[tool]
        )
        sessions = InMemorySessionService()
        await sessions.create_session(app_name="shop", user_id="u", session_id="r1")
        app = App(name="shop", root_agent=root, plugins=[self.plugin])
        runner = Runner(app=app, session_service=sessions)
        attempt = self.journal.begin("r1", cursor=cursor, trigger="tick", message={}, state={})
        with self.journal.within(attempt):
            return [
                event
                async for event in runner.run_async(
                    user_id="u", session_id="r1", new_message=words("tick")
                )
            ]


@pytest.fixture
def shop() -> Shop:
    return Shop()


def paying(shop: Shop) -> Any:
    def pay(order: str) -> str:
        """Pays."""
        shop.sent.append(order)
        return order

    return pay


def killed(shop: Shop, process: Process, *, after: bool) -> list[Any]:
    """The process dies in the tool's body, before or after the effect; what it saw there."""
    seen: list[Any] = []

    def pay(order: str) -> str:
        """Pays."""
        seen.extend(shop.rows(EffectClaimed))
        if after:
            shop.sent.append(order)
        process.die()
        raise Killed

    with suppress(BaseException):  # the framework may wrap it
        asyncio.run(process.step(pay))
    return seen


@pytest.mark.parametrize("after", [False, True], ids=["before the effect", "after the effect"])
def test_f08_w13_a_kill_in_the_body_leaves_a_doubt_and_never_nothing(
    shop: Shop, after: bool
) -> None:
    """F08, W13: the claim stands before the effect, so its row is there in every order."""
    assert len(killed(shop, shop.process("w1"), after=after)) == 1
    assert [type(row) for row in shop.store.read()][-1] is EffectClaimed  # no outcome at all
    events = asyncio.run(shop.process("w2").step(paying(shop)))
    assert told(events, "pay")[0]["backstop"] == "in_doubt"
    assert shop.sent == (["7"] if after else [])
    assert len(shop.rows(EffectInDoubt)) == 1


def test_s01_a_claim_without_an_outcome_is_in_doubt_however_long_ago(shop: Shop) -> None:
    """S01: the effect happened, its result is lost; a week later the key is not free."""
    killed(shop, shop.process("w1", safety=Safety(lease_s=30)), after=True)
    shop.clock.at += timedelta(days=7)
    events = asyncio.run(shop.process("w2", safety=Safety(lease_s=30)).step(paying(shop)))
    assert told(events, "pay")[0]["backstop"] == "in_doubt"
    assert shop.sent == ["7"]


@pytest.mark.parametrize(
    ("lease_s", "later", "lapsed"),
    [(30, 29, False), (30, 31, True), (0, 0, True)],
    ids=["s01 within", "s01 after", "s03 zero"],
)
def test_s01_s03_a_lease_that_ends_makes_a_doubt_and_zero_is_an_end(
    shop: Shop, lease_s: float, later: float, lapsed: bool
) -> None:
    """S01, S03: where nobody can see the owner, its lease decides; zero is no "unknown"."""
    process = shop.process("w1", safety=Safety(lease_s=lease_s))
    killed(shop, process, after=False)
    (claimed,) = shop.rows(EffectClaimed)
    assert claimed.lease_s == lease_s
    record = Record(claimed=claimed, life=Life(phase=Phase.EXECUTING, fence=1), moved=100)
    ruled = ruling(record, claimed, owner=lambda: Liveness.UNKNOWN, now=lambda: 100 + later)
    assert isinstance(ruled, Doubtful if lapsed else Held)


def test_s09_a_recorded_result_that_cannot_be_read_is_an_error_and_no_new_run(shop: Shop) -> None:
    """S09: the row stays done; the agent is told, and nothing is run."""
    process = shop.process("w1")
    asyncio.run(process.step(paying(shop)))
    (done,) = shop.rows(EffectCommitted)
    broken = Shop()
    claim = broken.store.claim(shop.rows(EffectClaimed)[0])
    assert isinstance(claim, Claim)
    spoilt = msgspec.structs.replace(done, result=msgspec.Raw(b'{"v":'))
    broken.store.settle(spoilt, claim=claim)
    events = asyncio.run(broken.process("w2").step(paying(broken)))
    assert broken.sent == []
    assert told(events, "pay")[0]["backstop"] == "refused"
    assert "cannot be read" in told(events, "pay")[0]["reason"]
    (standing,) = broken.store.standings(done.key)
    assert standing.phase is Phase.COMMITTED


def test_s10_an_approval_that_meets_a_refusal_is_void_in_so_many_words(shop: Shop) -> None:
    """S10: the store is away when the answer comes; the person is asked anew, and it is paid."""
    process = shop.process("w1")
    tool = FunctionTool(paying(shop), require_confirmation=True)
    asked = calls(("pay", {"order": "7"}))

    async def go() -> None:
        lines = [asked, says("asked"), asked, says("asked again"), says("done")]
        root = LlmAgent(name="shop", model=Scripted(model="m", lines=lines), tools=[tool])
        sessions = InMemorySessionService()
        await sessions.create_session(app_name="shop", user_id="u", session_id="r1")
        app = App(name="shop", root_agent=root, plugins=[process.plugin])
        runner = Runner(app=app, session_service=sessions)

        async def say(message: Any, cursor: int, *, away: bool = False) -> list[Any]:
            attempt = process.journal.begin(
                "r1", cursor=cursor, trigger="message", message={}, state={}
            )
            process.store.away = away
            with process.journal.within(attempt):
                return [
                    event
                    async for event in runner.run_async(
                        user_id="u", session_id="r1", new_message=message
                    )
                ]

        [call] = asked_of(await say(words("pay"), 0))
        refused = await say(yes(call), 1, away=True)
        assert told(refused, "pay")[0]["backstop"] == "refused"
        assert shop.sent == []
        process.store.away = False
        again = asked_of(refused) or asked_of(await say(words("and now?"), 2))
        await say(yes(again[0]), 3)

    asyncio.run(go())
    assert shop.sent == ["7"]


def test_s11_an_owner_that_cannot_be_stopped_holds_whoever_comes_after_it(shop: Shop) -> None:
    """S11: two workers on one call; the second hears that the first is at it."""
    go_on = asyncio.Event()
    began = asyncio.Event()

    async def pay(order: str) -> str:
        """Pays, and takes its time."""
        began.set()
        await go_on.wait()
        shop.sent.append(order)
        return order

    async def go() -> tuple[list[Any], list[Any]]:
        slow = asyncio.create_task(shop.process("w1").step(pay))
        await began.wait()
        held = await shop.process("w2").step(paying(shop))
        go_on.set()
        await slow
        return held, await shop.process("w3").step(paying(shop))

    held, after = asyncio.run(go())
    assert told(held, "pay")[0]["backstop"] == "held"
    assert told(after, "pay") == [{"result": "7"}]
    assert shop.sent == ["7"]


def test_s11_a_lookup_that_knows_nothing_frees_no_claim_of_a_live_owner(shop: Shop) -> None:
    """S11: a probe's no counts only once the owner is gone and the effect would have shown."""
    looked: list[str] = []

    def seen(key: str, arguments: Any) -> DidNotHappen:
        looked.append(key)
        return DidNotHappen()

    safety = Safety(capability=probe(seen, settle="30s"))

    async def go() -> list[Any]:
        go_on, began = asyncio.Event(), asyncio.Event()

        async def pay(order: str) -> str:
            """Pays."""
            began.set()
            await go_on.wait()
            shop.sent.append(order)
            return order

        slow = asyncio.create_task(shop.process("w1", safety=safety).step(pay))
        await began.wait()
        held = await shop.process("w2", safety=safety).step(paying(shop))
        go_on.set()
        await slow
        return held

    held = asyncio.run(go())
    assert told(held, "pay")[0]["backstop"] == "held"
    assert (shop.sent, looked) == (["7"], [])


def test_k25_what_was_done_is_done_also_after_weeks(shop: Shop) -> None:
    """K25: providers forget a key after a day; agents sleep for weeks, and rows do not expire."""
    safety = Safety(capability=keyed("key", retention="1d"))
    asyncio.run(shop.process("w1").step(paying(shop)))
    shop.clock.at += timedelta(days=60)
    events = asyncio.run(shop.process("w2", safety=safety).step(paying(shop)))
    assert told(events, "pay") == [{"result": "7"}]
    assert shop.sent == ["7"]
    assert [row.how for row in shop.rows(CallAnswered)] == ["recorded"]


def test_f12_nothing_is_begun_in_a_run_that_is_closed(shop: Shop) -> None:
    """F12: an approval that comes after the end."""
    process = shop.process("w1")
    asyncio.run(process.step(paying(shop)))
    process.journal.close_run("r1", status="complete")
    with pytest.raises(BackstopError) as refused:
        asyncio.run(process.step(paying(shop), cursor=1, order="8"))
    assert refused.value.slug == "run-closed"
    assert shop.sent == ["7"]
