"""What the agent is told in place of a tool."""

from __future__ import annotations

import msgspec
import pytest

from backstop.core.declaration import Declaration
from backstop.core.events import Failure
from backstop.core.identity import Identified
from backstop.guard.calls import Call, unfinished
from backstop.guard.journal import Attempt
from backstop.guard.results import told
from backstop.ports import Answer, Conflict, Held, InDoubt, Recorded, Refused

CALL = Call(
    attempt=Attempt(run="r1", step="s0", cursor=0, number=1),
    tool="pay",
    declaration=Declaration(tool="pay"),
    named=Identified(
        key="k" * 64,
        fingerprint="f",
        identity={},
        arguments={},
        occurrence=0,
        override=None,
        passed="{}",
    ),
    args=msgspec.Raw(b"{}"),
)
CONFLICT = Conflict(fingerprint="f", args=msgspec.Raw(b'{"amount":10}'))


@pytest.mark.parametrize(
    ("answer", "words", "holds"),
    [
        (Recorded(result=msgspec.Raw(b'{"po":1}')), {"po": 1}, False),
        (Recorded(), None, False),
        (
            Refused(error=Failure(type="Closed", message="for good")),
            {"backstop": "failed", "error": "Closed: for good"},
            False,
        ),
        (
            Held(owner="worker-2"),
            {"backstop": "held", "reason": "worker-2 is at it; nothing was done"},
            True,
        ),
        (InDoubt(reason="timeout"), {"backstop": "in_doubt", "reason": "timeout"}, True),
        (
            CONFLICT,
            {
                "backstop": "conflict",
                "reason": "done before with other arguments",
                "done": {"amount": 10},
            },
            False,
        ),
    ],
    ids=["recorded", "recorded nothing", "failed", "held", "in doubt", "conflict"],
)
def test_i4_only_decided_effects_let_the_cursor_pass_and_each_answer_has_its_words(
    answer: Answer,
    words: object,
    holds: bool,
) -> None:
    """I4: held and in doubt hold the cursor."""
    assert told(answer) == words
    assert (unfinished(answer, CALL) is not None) is holds
