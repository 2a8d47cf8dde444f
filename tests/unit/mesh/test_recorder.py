"""What the recorder puts on record, what it survives, and what it leaves to no chance."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import pytest
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.tool_context import ToolContext

from backstop.core.checkpoint import Checkpoint, DepKind, StepKind, Usage
from backstop.core.trust import State, World
from backstop.core.trustgraph import TrustGraph
from backstop.core.trustverdicts import Verdicts
from backstop.errors import BackstopError
from backstop.guard.effect import effect
from backstop.mesh.books import Books
from backstop.mesh.declare import Evidence, depends_on, evidence, step
from backstop.mesh.definitions import definitions_of
from backstop.mesh.recorder import MeshPlugin
from backstop.mesh.spots import current
from tests.e2e.oracle import Held, books, steps_of
from tests.unit.mesh.runs import House, desk


def count(tool_context: ToolContext) -> dict[str, Any]:
    """Count."""
    tool_context.state["n"] = tool_context.state.get("n", 0) + 1
    return {"ok": True}


def upstream(kept: Checkpoint) -> set[str]:
    return {dep.ref for dep in kept.upstream}


def left(house: House, kept: Checkpoint) -> dict[str, Any]:
    payload = house.kept.payloads.get(kept.output)
    assert payload is not None
    found: dict[str, Any] = msgspec.json.decode(payload)
    return found


def test_each_turn_and_call_is_a_step_with_a_name_of_its_own() -> None:
    house = House(state={"n": 1})
    house.say(desk([("count", {}), ("count", {}), "done"], [count], instruction="From {n}"))
    steps = steps_of(house.kept)
    assert list(steps) == [
        "s0/user",
        "s0/state:n",
        "s0/desk#0",
        "s0/desk#0/count",
        "s0/desk#1",
        "s0/desk#1/count",
        "s0/desk#2",
    ]
    assert steps["s0/desk#0"].kind is StepKind.MODEL
    assert steps["s0/desk#0"].usage == Usage(calls=1, input_tokens=100, output_tokens=7)
    assert upstream(steps["s0/desk#0"]) == {"s0/user", "s0/state:n"}
    assert upstream(steps["s0/desk#1/count"]) == {"s0/desk#1", "s0/desk#0/count"}
    # "ok" is no digest of what it left: the count is.
    assert steps["s0/desk#0/count"].output != steps["s0/desk#1/count"].output
    assert left(house, steps["s0/desk#1/count"])["state"]["n"]["value"] == 3


def test_what_an_output_key_writes_is_the_turns() -> None:
    house = House()
    house.say(desk(["four"], output_key="answer"))
    house.say(desk(["five"], instruction="It was {answer}", include_contents="none"), text="and?")
    steps = steps_of(house.kept)
    assert left(house, steps["s0/desk#0"])["state"]["answer"]["value"] == "four"
    assert "s0/desk#0" in upstream(steps["s1/desk#0"])


def test_another_process_knows_whose_words_it_is_shown() -> None:
    house = House()
    for _ in range(2):
        house.say(desk([("count", {}), "done"], [count]))  # by a recorder of its own each
    steps = steps_of(house.kept)
    assert upstream(steps["s1/desk#0"]) >= {"s0/user", "s0/desk#0", "s0/desk#0/count", "s1/user"}
    assert not any("so-far" in name for name in steps)


def test_words_whose_payload_is_gone_may_be_anybodys() -> None:
    house = House()
    house.say(desk(["one"]))
    assert isinstance(house.kept.payloads, Held)
    house.kept.payloads.by.clear()
    house.say(desk(["two"]))
    steps = steps_of(house.kept)
    assert upstream(steps["s1/desk#0"]) == {"s1/user", "s1/so-far#0"}
    assert upstream(steps["s1/so-far#0"]) >= {"s0/user", "s0/desk#0"}


def test_a_step_that_is_made_again_is_the_next_attempt_at_it_and_reads_no_later_step() -> None:
    house = House()
    again = MeshPlugin(house.kept, where=lambda _: ("r", "s0"))
    house.say(desk([("count", {}), "done"], [count]))
    house.sessions = InMemorySessionService()
    house.say(desk([("count", {}), "done"], [count]), again)
    steps = steps_of(house.kept)
    assert {kept.gen for kept in steps.values()} == {1}
    graph = TrustGraph()
    for kept in steps.values():
        graph.put(kept)
    world = World(now=kept.observed_at, producers=frozenset({"recorder"}))
    pins = {(dep.kind, dep.ref): dep.digest for kept in steps.values() for dep in kept.outside}
    verdicts = Verdicts(graph, replace(world, pins=pins))
    assert {verdict.state for _, verdict in verdicts.items()} == {State.VERIFIED}


class Down:
    """A store that takes nothing for a while."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.down = True

    def append(self, event: Any) -> bool:
        """Refuse, or hand on."""
        if self.down:
            raise BackstopError("the store is down", slug="store-unavailable")
        return bool(self.inner.append(event))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def test_a_store_that_is_down_ends_no_run_and_makes_no_trust() -> None:
    house = House()
    store: Any = Down(house.kept.store)
    kept = replace(house.kept, store=store)

    def mend() -> dict[str, Any]:
        """The store comes back in the middle of the run."""
        store.down = False
        return {"ok": True}

    plugin = house.say(desk(["one"]), MeshPlugin(kept))
    assert steps_of(house.kept) == {}
    store.down = True
    house.say(desk([("mend", {}), "done"], [mend]), plugin)
    # What could not be written is written once that is possible, in its order.
    assert next(iter(steps_of(house.kept))) == "s1/user"
    assert plugin.faults == 0


def test_a_store_that_cannot_be_read_leaves_the_run_unrecorded() -> None:
    class Unread(Down):
        def read(self, run: str | None = None) -> Any:
            raise BackstopError("the store is down", slug="store-unavailable")

    house = House()
    store: Any = Unread(house.kept.store)
    plugin = MeshPlugin(replace(house.kept, store=store))
    house.say(desk(["one"]), plugin)
    store.down = False
    assert steps_of(house.kept) == {}


def test_a_fault_of_the_recorders_own_ends_no_run_and_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Faulty(MeshPlugin):
        def _made_with(self, agent: Any) -> Any:
            raise ZeroDivisionError

    house = House()
    plugin = house.say(desk(["one"]), Faulty(house.kept))
    assert plugin.faults == 1
    assert "records this run no further" in caplog.text
    assert list(steps_of(house.kept)) == ["s0/user"]
    session = asyncio.run(house.sessions.get_session(app_name="desk", user_id="u", session_id="r"))
    assert session is not None
    assert session.events[-1].content is not None


def test_evidence_says_how_long_it_is_fresh_and_whence_it_is() -> None:
    @evidence(ttl=200, source="prices")
    def price() -> dict[str, Any]:
        """The price."""
        return {"price": 4}

    house = House(state={"history": "h"})
    plugin = MeshPlugin(house.kept, evidence={"history": Evidence(ttl=60, source="history")})
    agent = desk([("price", {}), "done"], [price], instruction="Use {history}")
    house.say(agent, plugin)
    steps = steps_of(house.kept)
    seen = steps["s0/desk#0/price/price#0"]
    assert (seen.kind, seen.ttl) == (StepKind.INPUT, 200)
    assert [dep.ref for dep in seen.deps if dep.kind is DepKind.EVIDENCE] == ["prices"]
    assert seen.step in upstream(steps["s0/desk#0/price"])
    assert steps["s0/state:history"].ttl == 60


def test_an_effect_is_told_with_what_it_intends_and_where_it_stands() -> None:
    standing: list[Any] = []

    @effect
    def send(to: str) -> dict[str, Any]:
        """Send it."""
        standing.append(current())
        return {"sent": True}

    house = House()
    house.say(desk([("send", {"to": "Bo"}), "done"], [send]))
    kept = steps_of(house.kept)["s0/desk#0/send"]
    assert (kept.kind, kept.rerunnable) == (StepKind.EFFECT, False)
    assert left(house, kept)["intent"] == {"tool": "send", "args": {"to": "Bo"}}
    (stood,) = standing
    assert stood.id == kept.step
    assert "s0/desk#0" in {dep.ref for dep in stood.deps}
    assert current() is None


def test_what_stands_behind_steps_is_what_is_pinned() -> None:
    def told(context: Any) -> str:
        return "made by code"

    agent = desk([("count", {}), "done"], [count], instruction=told)
    house = House()
    house.say(agent)
    pins = asyncio.run(definitions_of(agent))
    behind = {
        (dep.kind, dep.ref): dep.digest
        for kept in steps_of(house.kept).values()
        for dep in kept.outside
    }
    assert behind == pins
    assert {kind for kind, _ in pins} == {
        DepKind.PROMPT,
        DepKind.MODEL,
        DepKind.CODE,
        DepKind.TOOL,
    }


def test_rules_are_inputs_of_what_they_judge() -> None:
    rules = {"count": {"limit": "1"}, "desk": {"tone": "2"}}
    house = House()
    plugin = MeshPlugin(house.kept, rules=lambda name: rules.get(name, {}))
    house.say(desk([("count", {}), "done"], [count]), plugin)
    steps = steps_of(house.kept)

    def judged(step: str) -> set[str]:
        return {dep.ref for dep in steps[step].deps if dep.kind is DepKind.POLICY}

    assert (judged("s0/desk#0"), judged("s0/desk#0/count")) == ({"tone"}, {"limit"})


def test_a_long_conversation_does_not_cost_the_square_of_its_length() -> None:
    house = House()
    plugin = MeshPlugin(house.kept)
    for number in range(60):
        house.say(desk([f"answer {number}"]), plugin, text=f"question {number}")
    steps = steps_of(house.kept)
    assert max(len(kept.deps) for kept in steps.values()) < 45
    graph = TrustGraph()
    for kept in steps.values():
        graph.put(kept)
    assert "s59/desk#0" in graph.blast(["s0/user"])
    assert "s59/desk#0" in graph.blast(["s30/desk#0"])


def test_a_value_that_is_changed_where_it_lies_is_nobodys() -> None:
    def look(tool_context: ToolContext) -> dict[str, Any]:
        """Look."""
        return {"names": list(tool_context.session.state["names"])}

    def sneak(tool_context: ToolContext) -> dict[str, Any]:
        """Sneak one in."""
        tool_context.session.state["names"].append("Eve")
        return {"ok": True}

    house = House(state={"names": ["Ann"]})
    agent = desk([("look", {}), ("sneak", {}), ("look", {}), "done"], [look, sneak])
    house.say(agent)
    steps = steps_of(house.kept)
    assert upstream(steps["s0/desk#0/look"]) == {"s0/desk#0", "s0/state:names"}
    everything = next(ref for ref in upstream(steps["s0/desk#2/look"]) if "so-far" in ref)
    assert "s0/desk#1/sneak" in upstream(steps[everything])


def test_declared_functions_are_what_they_were_where_nobody_records() -> None:
    @step
    def double(n: int) -> int:
        return 2 * n

    @step()
    async def triple(n: int) -> int:
        depends_on("three", 3, ttl=1)
        return 3 * n

    assert (double(2), asyncio.run(triple(2))) == (4, 6)
    with pytest.raises(TypeError, match="a generator has no one result"):

        @step
        def many() -> Any:
            yield 1

    with pytest.raises(ValueError, match="how many seconds"):
        evidence(ttl=-1)


def test_a_declared_function_that_raises_leaves_no_step_and_raises_on() -> None:
    @step
    def broken(n: int) -> int:
        raise LookupError(n)

    @step
    async def sound(n: int) -> int:
        depends_on("n", n)
        return n + 1

    async def call(tool_context: ToolContext) -> dict[str, Any]:
        """Call both."""
        try:
            broken(1)
        except LookupError:
            return {"then": await sound(2)}
        raise AssertionError

    house = House()
    house.say(desk([("call", {}), "done"], [call]))
    steps = steps_of(house.kept)
    assert [name for name in steps if "/call/" in name] == ["s0/desk#0/call/sound#0"]
    assert "s0/declared:n" in upstream(steps["s0/desk#0/call/sound#0"])


def test_books_of_a_store_that_waits_are_written_off_the_loop() -> None:
    class Slow(Down):
        blocking = True

    house = House()
    store: Any = Slow(house.kept.store)
    store.down = False
    kept: Books = replace(house.kept, store=store)
    house.say(desk([("count", {}), "done"], [count]), MeshPlugin(kept))
    assert len(steps_of(house.kept)) == 5


def test_books_are_empty_at_first() -> None:
    assert steps_of(books()) == {}


@dataclass(kw_only=True)
class Ordered:
    """Payloads that note when they were made to last."""

    inner: Any
    told: list[str] = field(default_factory=list)

    def put(self, digest: str, payload: bytes) -> None:
        self.inner.put(digest, payload)
        self.told.append("kept")

    def get(self, digest: str) -> bytes | None:
        found: bytes | None = self.inner.get(digest)
        return found

    def sync(self) -> None:
        self.told.append("synced")


@pytest.mark.parametrize("is_effect", [True, False])
def test_what_an_effect_rests_on_is_made_to_outlive_a_power_failure(is_effect: bool) -> None:
    house = House()
    kept = Ordered(inner=house.kept.payloads)
    house.kept = replace(house.kept, payloads=kept)

    def act() -> str:
        """Act."""
        return "ok"

    mesh = MeshPlugin(house.kept, effects=lambda *_: is_effect)
    house.say(desk([("act", {}), "done"], [act]), mesh)
    assert (kept.told.count("synced"), mesh.faults) == (int(is_effect), 0)
    assert not is_effect or kept.told.index("synced") >= 2  # the message, and the turn
