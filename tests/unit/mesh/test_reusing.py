"""What may be said again, and what a recovery may not take for done."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
from google.adk.agents import LlmAgent

from backstop.adapters.memory import MemoryStore
from backstop.adapters.payloads import MemoryPayloads
from backstop.core.canon import digest
from backstop.core.checkpoint import StepKind
from backstop.errors import BackstopError
from backstop.guard.results import Withheld
from backstop.mesh.judging import look
from backstop.mesh.reusing import ReusePlugin, content_of, kept_of, state_of
from backstop.mesh.standing import WITHHELD, to_act
from tests.contract.bench import SteppingClock, header
from tests.e2e.mesh.fleet import ACTION, RUN, Fleet


def test_content_that_cannot_be_made_again_is_run_again() -> None:
    said = {"agent": "scout", "parts": [{"digest": "d", "form": {"text": "hello"}}]}
    assert content_of(said).parts[0].text == "hello"  # type: ignore[index]
    for torn in ({"agent": "scout"}, {"parts": [{"form": {"nothing": object()}}]}):
        with pytest.raises(BackstopError, match="it has to be run again"):
            content_of(torn)


def test_an_agent_of_which_no_turn_is_kept_is_not_skipped_in_silence() -> None:
    plugin = ReusePlugin("s0", {"s0/scout/feed#0": {}}, skipped=["scout"])
    agent, context = LlmAgent(name="scout", model="m"), SimpleNamespace()
    with pytest.raises(BackstopError, match="said nothing that is kept"):
        asyncio.run(plugin.before_agent_callback(agent=agent, callback_context=context))


def test_the_state_is_what_the_kept_steps_left_last() -> None:
    lefts: list[dict[str, Any]] = [
        {"state": {"a": {"digest": "1", "value": 1}, "gone": {"digest": "0"}}},
        {"state": {"a": {"digest": "2", "value": 2}}},
        {},
    ]
    assert state_of(lefts) == {"a": 2}


def test_only_what_holds_and_is_there_is_kept() -> None:
    clock = SteppingClock()
    fleet = Fleet(store=MemoryStore(clock=clock, header=header()), clock=clock)
    fleet.begins(act=False)
    seen = look(fleet.store, fleet.mind, RUN)
    assert set(kept_of(seen, fleet.payloads)) == set(seen.graph)
    assert kept_of(seen, MemoryPayloads()) == {}
    clock.jump(4000)
    kept = kept_of(look(fleet.store, fleet.mind, RUN), fleet.payloads)
    assert set(kept) == {"s0/user", "s0/scout#0"}


@pytest.mark.parametrize(("word", "due"), [("frozen", (ACTION,)), ("held", ()), (None, ())])
def test_an_action_that_was_withheld_is_due_although_all_that_it_rests_on_holds(
    word: str | None, due: tuple[str, ...]
) -> None:
    clock = SteppingClock()
    fleet = Fleet(store=MemoryStore(clock=clock, header=header()), clock=clock)
    fleet.begins(act=False)
    response = {"response": {"backstop": word, "reason": "r"}}
    told = {"parts": [{"digest": "d", "form": {"function_response": response}}]}
    left = told if word else {"parts": []}
    fleet.keep(ACTION, StepKind.EFFECT, left, [], rerunnable=False)
    seen = look(fleet.store, fleet.mind, RUN)
    assert set(fleet.states().values()) == {"V"}
    assert to_act(seen, fleet.payloads) == due
    assert to_act(seen, MemoryPayloads()) == to_act(seen, None) == ()
    assert digest(msgspec.json.encode(left, order="sorted")) == seen.graph[ACTION].output


def test_what_counts_as_withheld_is_what_an_agent_is_told() -> None:
    said = get_args(get_type_hints(Withheld)["backstop"])
    assert frozenset(said) == WITHHELD
