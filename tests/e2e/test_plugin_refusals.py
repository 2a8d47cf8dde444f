"""What the plugin does where it cannot guard, and where it only observes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool

from backstop.adapters.memory import MemoryStore
from backstop.core.declaration import Declaration, Namespace
from backstop.core.effectgate import Precondition
from backstop.core.events import (
    CallAnswered,
    CursorAdvanced,
    EffectClaimed,
    EffectInDoubt,
    Event,
    ToolRead,
)
from backstop.errors import BackstopError
from backstop.guard.claims.capability import downstream_key, keyed
from backstop.guard.claims.safety import Safety
from backstop.guard.effect import effect
from backstop.guard.journal import Journal
from backstop.guard.plugin.recorder import RecordingPlugin
from backstop.guard.plugin.scope import Closed
from backstop.guard.plugin.standalone import SessionPlugin
from backstop.guard.plugin.station import Station
from backstop.ports import Answer, Claim, Recorded, Settlement, Standing
from tests.e2e.till import PAY, Till, calls, says, told

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")

LOOK = calls(("look", {"order": "7"}))


@pytest.fixture
def till(tmp_path: Path) -> Till:
    return Till(folder=tmp_path)


@pytest.mark.parametrize(
    ("config", "said", "reason"),
    [
        ("version: 2\n", {}, "config-value"),
        (None, {"store": "bolt://x"}, "store-url"),
        (None, {"store": "sqlite:////nowhere/at/all/guard.db"}, "store-"),
        (None, {"mode": "loose"}, "guard-mode"),
        (None, {"agent": "desk"}, "config-agent"),
        ("version: 1\nagents: {till: {path: agent}}\n", {}, "guard-store"),
        ("version: 1\nagents: {till: {store: 'sqlite:///x.db'}}\n", {}, "guard-path"),
    ],
)
def test_a_guard_that_cannot_be_set_up_never_raises_and_refuses_with_one_reason(
    till: Till, caplog: pytest.LogCaptureFixture, config: str | None, said: Any, reason: str
) -> None:
    if config is not None:
        (till.folder / "backstop.yaml").write_text(config, encoding="utf-8")
    with caplog.at_level(logging.ERROR, logger="backstop"):
        plugin = till.plugin(**said)
        events = till.chat(till.agent(PAY, says("hm")), "pay", plugins=[plugin])
    assert till.sent == []
    (answer,) = told(events, "pay")
    assert answer["backstop"] == "refused"
    assert reason in answer["reason"]
    assert len([r for r in caplog.records if r.name == "backstop"]) == 1


def test_reads_are_served_while_the_store_cannot_be_opened(till: Till) -> None:
    plugin = till.plugin(store="sqlite:////nowhere/at/all/guard.db")
    root = till.agent(
        calls(("look", {"order": "7"}), ("pay", {"order": "7", "amount": 1})), says("x")
    )
    events = till.chat(root, "look and pay", plugins=[plugin])
    assert told(events, "look") == [{"order": "7"}]
    assert till.sent == []


class Moody:
    """A store that is out of reach for whatever `down` names."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.down: set[str] = set()
        self.blocking = True
        self.header = store.header

    def _up(self, what: str) -> None:
        if what in self.down:
            raise BackstopError("the store is out of reach", slug="store-down")

    def append(self, event: Event) -> bool:
        self._up("append")
        return self.store.append(event)

    def claim(
        self, intent: EffectClaimed, precondition: Precondition | None = None
    ) -> Claim | Answer:
        self._up("claim")
        return self.store.claim(intent, precondition)

    def settle(self, settlement: Settlement, *, claim: Claim | None = None) -> None:
        self._up("settle")
        self.store.settle(settlement, claim=claim)

    def read(self, run: str | None = None) -> Iterator[Event]:
        self._up("read")
        return self.store.read(run)

    def standings(self, key: str | None = None) -> Iterator[Standing]:
        return self.store.standings(key)


class Fixed(SessionPlugin):
    """The session plugin on a station that a test has made."""

    def __init__(self, station: Station) -> None:
        super().__init__("backstop")
        self.station = station

    async def _station_of(self, context: Any) -> Station | Closed:
        return self.station


class Clock:
    """It is always the same time of another day than today."""

    def now(self) -> Any:
        from datetime import UTC, datetime

        return datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


def station(store: Moody | MemoryStore, **more: Any) -> Station:
    journal = Journal(
        store=store,
        namespace=Namespace(agent="till"),
        declarations={
            "pay": Declaration(tool="pay", identity=("order",)),
            "look": Declaration(tool="look", effect=False),
        },
        version="v1",
        owner="w",
    )
    return Station(journal=journal, **more)


@pytest.mark.parametrize(
    ("down", "sent", "kind"),
    [({"claim", "append"}, [], "refused"), ({"settle", "append"}, [("7", 10)], "in_doubt")],
)
def test_a_store_that_fails_in_a_run_refuses_what_has_not_begun_and_doubts_what_has(
    till: Till, down: set[str], sent: list[Any], kind: str
) -> None:
    store = Moody(MemoryStore(clock=Clock()))

    def look(order: str) -> str:
        """Looks; from here on the store is gone."""
        store.down |= down
        return order

    asked = till.agent(LOOK, PAY, LOOK, says("hm"), tools=[look, till.pay])
    events = till.chat(asked, "look, pay, look", plugins=[Fixed(station(store))])
    assert till.sent == sent
    (answer,) = told(events, "pay")
    assert (answer["backstop"], "out of reach" in answer["reason"]) == (kind, True)
    assert told(events, "look") == [{"result": "7"}] * 2
    assert events[-1].content.parts[0].text == "hm"


def test_a_store_that_is_gone_at_the_start_refuses_the_run_and_no_later_one(till: Till) -> None:
    store = Moody(MemoryStore(clock=Clock()))
    store.down = {"read"}
    guard = Fixed(station(store))

    async def go() -> list[Any]:
        await till.session()
        runner = till.runner(till.agent(PAY, says("hm"), PAY, says("done")), plugins=[guard])
        events = await till.say(runner, "pay")
        store.down = set()
        return events + await till.say(runner, "pay")

    first, second = told(asyncio.run(go()), "pay")
    assert first["backstop"] == "refused"
    assert second == {"paid": "7", "amount": 10}


def test_a_recorded_result_that_cannot_be_read_is_no_reason_to_run_again(till: Till) -> None:
    """S09: a typed answer, no run, and the row stays as it is."""

    class Torn(Moody):
        def claim(
            self, intent: EffectClaimed, precondition: Precondition | None = None
        ) -> Claim | Answer:
            answer = super().claim(intent, precondition)
            if isinstance(answer, Recorded):
                return msgspec.structs.replace(answer, result=msgspec.Raw(b"{"))
            return answer

    store = Torn(MemoryStore(clock=Clock()))
    events = till.chat(
        till.agent(PAY, says("x"), PAY, says("y")), "pay", "pay", plugins=[Fixed(station(store))]
    )
    assert till.sent == [("7", 10)]
    assert "recorded result cannot be read" in told(events, "pay")[1]["reason"]


def test_a_call_without_identity_is_refused_and_holds_the_cursor(till: Till) -> None:
    def ping() -> str:
        """Pings."""
        till.sent.append("ping")
        return "pong"

    root = till.agent(calls(("ping", {})), says("hm"), tools=[ping])
    events = till.chat(root, "ping")
    assert till.sent == []
    assert told(events, "ping")[0]["backstop"] == "refused"
    till.verified()


class Shelf(BaseToolset):
    """Lists its tools while the agent runs."""

    def __init__(self, *tools: BaseTool) -> None:
        super().__init__()
        self.tools = list(tools)

    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        return self.tools


def test_a_tool_that_only_a_toolset_knows_is_registered_before_its_first_call(till: Till) -> None:
    def ship(order: str) -> str:
        """Ships."""
        till.sent.append(order)
        return order

    root = till.agent(calls(("ship", {"order": "7"})), says("x"), tools=[Shelf(FunctionTool(ship))])
    till.chat(root, "ship")
    assert till.sent == ["7"]
    header = till.header()
    (claimed,) = till.rows(EffectClaimed)
    assert header.declarations[claimed.decl].schema["required"] == ["order"]
    assert header.tools["ship"] == claimed.decl
    till.verified()


# --- observing ---


def test_observing_refuses_nothing_and_says_what_it_would_have_refused(
    till: Till, caplog: pytest.LogCaptureFixture
) -> None:
    guard = till.plugin(mode="observe")
    root = till.agent(
        PAY, says("x"), PAY, says("y"), calls(("pay", {"order": "7", "amount": 11})), says("z")
    )
    with caplog.at_level(logging.WARNING, logger="backstop"):
        events = till.chat(root, "pay", "again", "more", plugins=[guard])
    assert till.sent == [("7", 10), ("7", 10), ("7", 11)]
    assert told(events, "pay")[2] == {"paid": "7", "amount": 11}
    rows = till.rows(CallAnswered)
    assert [row.how for row in rows] == ["observed_recorded", "observed_conflict"]
    assert not till.header().guarded
    assert len([r for r in caplog.records if "only observes" in r.getMessage()]) == 2
    till.verified()


def test_observing_hands_on_what_the_tool_itself_gave_or_raised(till: Till) -> None:
    def pay(order: str) -> Any:
        """Pays, and gives something that cannot be kept."""
        raise TimeoutError(order)

    async def go() -> None:
        await till.session()
        guard = till.plugin(mode="observe")
        runner = till.runner(till.agent(PAY, tools=[pay]), plugins=[guard])
        with pytest.raises(TimeoutError):
            await till.say(runner, "pay")

    asyncio.run(go())
    assert len(till.rows(EffectInDoubt)) == 1


def test_observing_without_a_store_lets_everything_run(till: Till) -> None:
    guard = till.plugin(mode="observe", store="bolt://x")
    events = till.chat(till.agent(PAY, says("x")), "pay", plugins=[guard])
    assert (till.sent, told(events, "pay")) == ([("7", 10)], [{"paid": "7", "amount": 10}])


# --- what a tool's effect is known by ---


def test_a_keyed_tool_is_handed_our_key_which_is_no_part_of_it(till: Till) -> None:
    seen: list[str] = []

    def pay(order: str, key: str = "") -> str:
        """Pays."""
        seen.append(key)
        return order

    store = MemoryStore(clock=Clock())
    safety = {"pay": Safety(capability=keyed("key", retention="24h"), lease_s=30)}
    asked = calls(("pay", {"order": "7", "key": "made up by the model"}))
    till.chat(
        till.agent(asked, says("x"), tools=[pay]),
        "pay",
        plugins=[Fixed(station(store, safety=safety))],
    )
    (claimed,) = [event for event in store.read() if isinstance(event, EffectClaimed)]
    assert seen == [claimed.key] == [downstream_key(claimed)]
    assert bytes(claimed.args) == b'{"order":"7"}'
    assert (claimed.capability, claimed.lease_s) == ("keyed", 30)


def test_a_keyed_plain_function_is_handed_our_key(till: Till) -> None:
    seen: list[str] = []
    capability = keyed("key", retention="24h")

    @effect(identity=("order",), capability=capability)
    def pay(order: str, key: str = "") -> str:
        seen.append(key)
        return order

    store = MemoryStore(clock=Clock())
    made = station(store, safety={"pay": Safety(capability=capability)})
    plugin = RecordingPlugin(made.journal, safety=made.safety)
    attempt = made.journal.begin("r1", cursor=0, trigger="tick", message={}, state={})
    with made.journal.within(attempt):
        plugin.call("pay", {"order": "7", "key": ""}, _body(pay, "7"))
    (claimed,) = [event for event in store.read() if isinstance(event, EffectClaimed)]
    assert seen == [claimed.key]


def _body(function: Any, *arguments: Any) -> Any:
    from backstop.guard.effect import Body, declared_by

    declared = declared_by(function)
    assert declared is not None
    return Body(declared, arguments, {})


def test_what_is_declared_and_cannot_be_relied_on_refuses_the_tools_effects(till: Till) -> None:
    safety = {"pay": Safety(broken="backstop.yaml names shop:Gone, which is not there")}
    store = MemoryStore(clock=Clock())
    events = till.chat(
        till.agent(PAY, says("x")), "pay", plugins=[Fixed(station(store, safety=safety))]
    )
    assert till.sent == []
    assert "shop:Gone" in told(events, "pay")[0]["reason"]
    # What was refused is not done: nobody moves past it, and a message comes again.
    assert not any(isinstance(row, CursorAdvanced) for row in store.read())


def test_the_configuration_may_say_that_the_guard_only_observes(till: Till) -> None:
    file = till.folder / "backstop.yaml"
    text = file.read_text(encoding="utf-8").replace("    tools:", "    mode: observe\n    tools:")
    file.write_text(text, encoding="utf-8")
    till.chat(till.agent(PAY, says("x"), PAY, says("y")), "pay", "again")
    assert till.sent == [("7", 10)] * 2
    assert [row.how for row in till.rows(CallAnswered)] == ["observed_recorded"]


def test_what_is_said_at_construction_wins_over_the_configuration(till: Till) -> None:
    file = till.folder / "backstop.yaml"
    text = file.read_text(encoding="utf-8").replace("    tools:", "    mode: observe\n    tools:")
    file.write_text(text, encoding="utf-8")
    guard = till.plugin(mode="guard")
    till.chat(till.agent(PAY, says("x"), PAY, says("y")), "pay", "again", plugins=[guard])
    assert till.sent == [("7", 10)]


def test_a_read_whose_result_cannot_be_kept_is_served_all_the_same(till: Till) -> None:
    thing = object()

    def look(order: str) -> Any:
        """Looks."""
        return {"thing": thing}

    events = till.chat(till.agent(LOOK, says("x"), tools=[look]), "look")
    assert told(events, "look") == [{"thing": thing}]
    assert till.rows(ToolRead) == []
