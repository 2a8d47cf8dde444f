"""What was tried to make the guard lie, on the real runner: each of these once did."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import BaseAgent, LlmAgent, SequentialAgent
from google.adk.apps.app import ResumabilityConfig

from backstop.cli.ledgers import verify
from backstop.core.events import (
    AttemptEnded,
    AttemptStarted,
    CallBlocked,
    CursorAdvanced,
    EffectInDoubt,
    EffectResolved,
)
from backstop.core.sealing import seal_lines
from backstop.errors import BackstopError
from backstop.guard.claims.resolving import Word, resolve
from backstop.guard.effect import effect
from backstop.ports import Claim
from backstop.wiring.plugin import Plugin
from backstop.wiring.stores import find_store
from tests.e2e.till import CONFIG, PAY, Scripted, Till, calls, says, told, words

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")

START = calls(("start", {"order": "7"}))


def with_tool(folder: Path, said: str) -> Till:
    return Till(folder=folder, config=CONFIG.replace("      look", f"      {said}\n      look"))


@pytest.mark.parametrize("in_a_thread", [True, False])
def test_what_outlives_its_run_is_refused_and_goes_out_on_no_record(
    tmp_path: Path, in_a_thread: bool
) -> None:
    till, found = Till(folder=tmp_path), list[str]()

    @effect
    def ring(order: str) -> str:
        till.sent.append(order)
        return order

    def late() -> None:
        try:
            ring("7")
        except BackstopError as error:
            found.append(error.slug)

    async def go() -> None:
        over, left = threading.Event(), list[asyncio.Future[None]]()
        told_so = asyncio.Event()

        async def wait() -> None:
            await told_so.wait()
            late()

        def after() -> None:
            over.wait(10)
            late()

        async def start(order: str) -> str:
            """Starts something, and does not wait for it."""
            if in_a_thread:
                context = contextvars.copy_context()
                work = asyncio.to_thread(context.run, after)
                left.append(asyncio.ensure_future(work))
            else:
                left.append(asyncio.create_task(wait()))
            return order

        await till.session()
        await till.say(till.runner(till.agent(START, says("begun"), tools=[start])), "go")
        over.set()
        told_so.set()
        await asyncio.gather(*left)

    asyncio.run(go())
    assert (till.sent, found) == ([], ["effect-refused"])


def test_a_consumer_that_left_its_run_early_calls_its_own_functions_as_ever(
    tmp_path: Path,
) -> None:
    till = Till(folder=tmp_path)

    @effect
    def ring(order: str) -> str:
        till.sent.append(order)
        return order

    async def go() -> None:
        await till.session()
        agent = till.agent(PAY, says("done"))
        root = SequentialAgent(name="till_flow", sub_agents=[agent])
        async for event in till.runner(root).run_async(
            user_id="u", session_id="c1", new_message=words("pay")
        ):
            if event.is_final_response():
                break  # and nobody closes it: the loop does, in a task of its own
        gc.collect()
        await asyncio.sleep(0.01)
        assert till.rows(AttemptEnded)
        ring("7")

    asyncio.run(go())
    assert till.sent == [("7", 10), "7"]


def test_a_tool_vouches_for_its_own_errors_and_not_for_what_cannot_be_kept(tmp_path: Path) -> None:
    till = with_tool(tmp_path, "start: {{no_effect_on: [Exception]}}")

    def start(order: str) -> dict[str, float]:
        """Starts."""
        till.sent.append(order)
        return {"took": float("nan")}

    events = till.chat(till.agent(START, says("a"), START, says("b"), tools=[start]), "go", "again")
    assert till.sent == ["7"]
    assert [answer["backstop"] for answer in told(events, "start")] == ["in_doubt", "in_doubt"]
    assert till.rows(CursorAdvanced) == []
    till.verified()


def test_i4_what_an_earlier_attempt_left_undone_holds_the_cursor_until_it_is_given_up(
    tmp_path: Path,
) -> None:
    """I4: the model that is asked anew forgets a call which certainly did not happen."""
    till = with_tool(tmp_path, "start: {{no_effect_on: [ConnectionError]}}")

    def start(order: str) -> str:
        """Starts."""
        raise ConnectionError(order)

    async def go() -> None:
        await till.session()
        root = till.agent(START, says("forgot it"), says("hello"), tools=[start])
        runner = till.runner(root, resumability_config=ResumabilityConfig(is_resumable=True))
        with pytest.raises(ConnectionError):
            await till.say(runner, "go")
        (first,) = till.rows(AttemptStarted)
        await till.say(runner, None, invocation_id=first.delivery)
        assert till.rows(CursorAdvanced) == []
        store = find_store(till.url, agent="till")
        (open_,) = store.standings()
        resolve(store, open_.claimed.key, Word(to="failed", by="person:ana"))
        await till.say(runner, "hello")

    asyncio.run(go())
    assert [row.cursor for row in till.rows(CursorAdvanced)] == [1, 2]
    till.verified()


def test_a_call_that_was_turned_away_and_never_corrected_is_no_silent_skip(tmp_path: Path) -> None:
    till = Till(folder=tmp_path)
    till.chat(till.agent(calls(("pay", {"order": "7"})), says("never mind")), "pay")
    assert till.sent == []
    assert [row.by for row in till.rows(CallBlocked)] == ["agent"]
    assert len(till.rows(CursorAdvanced)) == 1
    till.verified()


def test_a_cursor_catches_up_over_what_another_run_did(tmp_path: Path) -> None:
    config = CONFIG.replace("[order]", "[order], scope: agent")
    till = Till(folder=tmp_path, config=config)

    def start(order: str) -> str:
        """Starts."""
        raise TimeoutError

    async def go() -> None:
        await till.session("c1")
        await till.session("c2")
        root = till.agent(
            PAY, says("paid"), START, says("hm"), PAY, says("paid before"), says("bye"),
            tools=[till.pay, start],
        )  # fmt: skip
        runner = till.runner(root)
        await till.say(runner, "pay", session="c1")
        await till.say(runner, "start", session="c2")
        store = find_store(till.url, agent="till")
        (open_,) = store.standings()
        key, run = open_.claimed.key, open_.claimed.run
        store.settle(EffectResolved(run=run, at="", key=key, to="committed", by="person:x"))
        await till.say(runner, "pay", session="c2")
        await till.say(runner, "bye", session="c2")

    asyncio.run(go())
    moved = [row.cursor for row in till.rows(CursorAdvanced) if row.run == "till:u:c2"]
    assert moved == [1, 2, 3]
    assert till.sent == [("7", 10)]
    till.verified()


def test_k26_threads_that_find_one_function_at_once_find_one_function(tmp_path: Path) -> None:
    """K26: that several functions have one name is said of several only."""
    till = Till(folder=tmp_path)

    @effect
    def ring(order: str) -> str:
        till.sent.append(order)
        return order

    def at_once(order: str, meet: threading.Barrier) -> Any:
        meet.wait()
        time.sleep(0.001)
        return ring(order)

    async def start(order: str) -> list[Any]:
        """Starts."""
        meet = threading.Barrier(4)
        ringing = [asyncio.to_thread(at_once, f"{order}{n}", meet) for n in range(4)]
        return await asyncio.gather(*ringing)

    till.chat(till.agent(START, says("rung"), tools=[start]), "go")
    assert sorted(till.sent) == ["70", "71", "72", "73"]
    till.verified()


def test_observing_hands_on_what_a_keyed_tool_was_given_where_there_is_no_key(
    tmp_path: Path,
) -> None:
    till = with_tool(tmp_path, "start: {{identity: [order], keyed: {{param: k, retention: 1d}}}}")

    def start(order: str | None, k: str = "") -> str:
        """Starts."""
        till.sent.append(k)
        return k

    asked = calls(("start", {"order": None, "k": "the model's"}))
    guard = till.plugin(mode="observe")
    till.chat(till.agent(asked, says("x"), tools=[start]), "go", plugins=[guard])
    assert till.sent == ["the model's"]


def test_arguments_that_cannot_be_copied_are_refused_in_words(tmp_path: Path) -> None:
    till = Till(folder=tmp_path)

    def before(tool: Any, args: dict[str, Any], tool_context: Any) -> None:
        args["amount"] = threading.Lock()

    events = till.chat(till.agent(PAY, says("x"), before_tool_callback=before), "pay")
    (answer,) = told(events, "pay")
    assert (answer["backstop"], till.sent) == ("refused", [])
    assert till.rows(CursorAdvanced) == []


def test_whoever_checks_the_ledger_is_told_what_may_be_out_twice(tmp_path: Path) -> None:
    till = Till(folder=tmp_path)

    def start(order: str) -> str:
        """Starts, while somebody decides that it did not and shall begin anew."""
        store = find_store(till.url, agent="till")
        (open_,) = store.standings()
        run, key, owner = open_.claimed.run, open_.claimed.key, open_.claimed.owner
        claim = Claim(run=run, key=key, owner=owner, fence=1)
        store.settle(EffectInDoubt(run=run, at="", key=key, reason="?"), claim=claim)
        store.settle(EffectResolved(run=run, at="", key=key, to="reopened", by="p", fence=2))
        return order

    till.chat(till.agent(START, says("begun"), tools=[start]), "go")
    file = tmp_path / "till.jsonl"
    file.write_bytes(b"".join(seal_lines(till.header(), till.events())))
    assert "0 side effects, 1 may be out twice, 1 run" in verify(file, agent=None)


def test_k26_tools_of_two_agents_that_share_a_name_and_no_code_are_refused(tmp_path: Path) -> None:
    """K26: one was answered with what the other did, and never ran."""
    till = Till(folder=tmp_path)

    def crm() -> Any:
        def start(order: str) -> str:
            """Creates a customer."""
            till.sent.append(f"customer {order}")
            return order

        return start

    def billing() -> Any:
        def start(order: str) -> str:
            """Creates a bill."""
            till.sent.append(f"bill {order}")
            return order

        return start

    agents: list[BaseAgent] = [
        LlmAgent(name=name, model=Scripted(model="m", lines=[START, says("x")]), tools=[tool])
        for name, tool in (("crm", crm()), ("billing", billing()))
    ]
    events = till.chat(SequentialAgent(name="till_flow", sub_agents=agents), "go")
    assert till.sent == []
    assert [answer["backstop"] for answer in told(events, "start")] == ["refused"] * 2
    assert till.rows(CursorAdvanced) == []


@pytest.mark.parametrize("mode", ["guard", "observe"])
def test_of_two_guards_of_one_run_one_serves_it_and_one_that_refuses_comes_first(
    tmp_path: Path, mode: str
) -> None:
    """The app attaches one, and the server that it runs on loads another."""
    till = Till(folder=tmp_path)
    another = Plugin("a", config=tmp_path / "backstop.yaml", mode=mode)
    guards = [till.plugin(), another]
    events = till.chat(till.agent(PAY, says("x"), PAY, says("y")), "pay", "pay", plugins=guards)
    assert till.sent == [("7", 10)]
    assert told(events, "pay") == [{"paid": "7", "amount": 10}] * 2
    assert len(till.rows(AttemptStarted)) == 2
    till.verified()
