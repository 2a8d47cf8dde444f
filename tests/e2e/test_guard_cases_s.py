"""The S cases of real incidents, F08, F12, K25 and W13: processes that are killed and come back.

The same file runs on the newest framework and, by `test_guard_oldest.py`, on the oldest.

| case | here | why not, or where else |
| --- | --- | --- |
| F08 W13 K25 | yes | |
| F12 | a run that is closed | a no that comes before a yes: `test_guard_cases_f.py` |
| S01 S03 | what a record rules | the framework has no lease: `ruling` is asked, as stores ask it |
| S09 S10 S11 | yes | |
| S10 | the approval is void in so many words | the framework keeps no approval to give back |
| S06 S07 | no | a worker's: `test_pubsub.py` |
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.function_tool import FunctionTool

from backstop.adapters.memory import MemoryStore
from backstop.adapters.records import Doubtful, Record, ruling
from backstop.core.declaration import Declaration, Namespace
from backstop.core.effectgate import Precondition
from backstop.core.events import (
    CallAnswered,
    EffectClaimed,
    EffectCommitted,
    EffectInDoubt,
    Event,
)
from backstop.core.lifecycle import Life, Phase
from backstop.errors import BackstopError
from backstop.guard.claims.capability import DidNotHappen, keyed, probe
from backstop.guard.claims.safety import Safety
from backstop.guard.journal import Journal
from backstop.guard.plugin.recorder import RecordingPlugin
from backstop.ports import Answer, Claim, Held, Liveness, Settlement
from tests.e2e.till import Scripted, asked_of, calls, says, told, words, yes

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")


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

    def claim(
        self, intent: EffectClaimed, precondition: Precondition | None = None
    ) -> Claim | Answer:
        self._reach()
        return self._store.claim(intent, precondition)

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
