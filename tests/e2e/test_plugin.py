"""`backstop.Plugin` on the real runner, without a driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from backstop.core.events import (
    AttemptEnded,
    CursorAdvanced,
    EffectClaimed,
    ModelAnswered,
    RunOpened,
    StepStarted,
)
from tests.e2e.till import Till, calls, says, told

# The framework warns about its own experimental features.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def till(tmp_path: Path) -> Till:
    return Till(folder=tmp_path)


PAY = calls(("pay", {"order": "7", "amount": 10}))


def test_each_message_to_a_session_is_a_step_of_its_run(till: Till) -> None:
    root = till.agent(PAY, says("paid"), calls(("look", {"order": "7"})), says("there"))
    till.chat(root, "pay", "look")
    assert till.sent == [("7", 10)]
    (opened,) = till.rows(RunOpened)
    assert (opened.run, opened.app, opened.user) == ("till:u:c1", "till", "u")
    assert [row.step for row in till.rows(StepStarted)] == ["s0", "s1"]
    assert [row.cursor for row in till.rows(CursorAdvanced)] == [1, 2]
    assert [row.outcome for row in till.rows(AttemptEnded)] == ["done", "done"]
    assert len(till.rows(ModelAnswered)) == 4
    assert till.verified().header.guarded


def test_a_repeated_call_gets_the_recorded_result(till: Till) -> None:
    events = till.chat(till.agent(PAY, says("paid"), PAY, says("again")), "pay", "pay once more")
    assert till.sent == [("7", 10)]
    assert told(events, "pay") == [{"paid": "7", "amount": 10}] * 2
    till.verified()
