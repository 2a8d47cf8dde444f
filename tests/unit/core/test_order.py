"""The order of runs, steps and attempts, as `ledger verify` sees it."""

from __future__ import annotations

import msgspec
import pytest

from backstop.core import ledgerfile
from backstop.core.events import Checkpointed, Event, Recovered, TrustBroken
from backstop.errors import LedgerError
from tests.dsl import scenario, sealed


def fault_of(data: bytes) -> LedgerError | None:
    try:
        ledgerfile.verify((data,), name="L")
    except LedgerError as exc:
        return exc
    return None


def without(text: str, *kinds: str) -> bytes:
    """The ledger of a text with the events of some kinds left out before sealing."""
    made = scenario(text)
    kept = [e for e in made.events if type(e).__name__ not in kinds]
    return b"".join(ledgerfile.seal_lines(made.header, kept))


FULL = "run r\nstep s\nread look{at: 1}\ncommit pay{to: a}\nadvance\nclose complete"


@pytest.mark.parametrize(
    ("missing", "says"),
    [
        ("RunOpened", "run 'r' was never opened"),
        ("StepStarted", "step 's' has not started"),
        ("AttemptStarted", "attempt 1 ends as 'done'"),
    ],
)
def test_what_never_began_cannot_go_on(missing: str, says: str) -> None:
    fault = fault_of(without(FULL, missing))
    assert fault is not None
    assert fault.slug == "ledger-order"
    assert says in str(fault)


def test_a_settlement_in_a_run_that_was_never_opened_is_refused() -> None:
    fault = fault_of(
        without(FULL, "RunOpened", "StepStarted", "AttemptStarted", "ToolRead", "EffectClaimed")
    )
    assert fault is not None
    assert "line 2: run 'r' was never opened" in str(fault)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("run r\nclose complete\nstep s", "run 'r' is closed"),
        ("run r\nclose finished", "closed as 'finished'"),
        ("run r\nstep s cursor 1", "step 's' is at cursor 1; next in the run is 0"),
        ("run r\nstep s\nstep t cursor 0", "step 't' is at cursor 0"),
        ("run r\nstep s\nadvance\nadvance", "the cursor goes to 1"),
        ("run r\nstep s\nstep t\nadvance\nstep s\nadvance", "the cursor goes to 1"),
        ("run r\nstep s\nattempt 1", "attempt 1 follows attempt 1"),
        ("run r\nstep s\nend done\nend done", "attempt 1 ends"),
        ("run r\nstep s\nend perhaps", "attempt 1 ends as 'perhaps'"),
    ],
)
def test_what_is_out_of_order_is_refused(text: str, says: str) -> None:
    fault = fault_of(sealed(text))
    assert fault is not None
    assert fault.slug == "ledger-order"
    assert says in str(fault)


def test_a_run_or_a_step_begins_once() -> None:
    made = scenario("run r\nstep s")
    for again in (made.events[0], made.events[1]):
        events: list[Event] = [*made.events, again]
        fault = fault_of(b"".join(ledgerfile.seal_lines(made.header, events)))
        assert fault is not None
        assert "twice" in str(fault)


def test_a_row_of_an_attempt_that_has_not_started_is_refused() -> None:
    made = scenario("run r\nstep s\nread look{at: 1}\nheld pay{to: a}")
    for index, field in ((3, {"attempt": 2}), (3, {"attempt": 0}), (4, {"how": "ignored"})):
        events = list(made.events)
        events[index] = msgspec.structs.replace(events[index], **field)
        fault = fault_of(b"".join(ledgerfile.seal_lines(made.header, events)))
        assert fault is not None
        assert fault.slug == "ledger-order"


def test_deliveries_at_the_same_time_are_in_order() -> None:
    text = """
    run r
    step s
    claim pay{to: a}
    attempt 2
    held pay{to: a}
    end held
    settle pay{to: a}
    advance
    """
    assert fault_of(sealed(text)) is None


def test_imported_rows_need_no_attempts() -> None:
    text = (
        "agent desk unguarded\nrun r\nstep s\nread look{at: 1}\ncommit pay{to: a}\nclose complete"
    )
    assert fault_of(without(text, "AttemptStarted")) is None


def test_the_mesh_may_speak_about_a_closed_run() -> None:
    made = scenario(FULL)
    at = made.events[-1].at
    mesh: list[Event] = [
        Checkpointed(run="r", at=at, step="s"),
        TrustBroken(run="r", at=at),
        Recovered(run="r", at=at),
    ]
    assert fault_of(b"".join(ledgerfile.seal_lines(made.header, [*made.events, *mesh]))) is None


def test_a_late_settlement_may_follow_the_end_of_an_abandoned_run() -> None:
    text = "run r\nstep s\ndoubt pay{to: a}\nclose abandoned\nresolve failed pay{to: a}"
    assert fault_of(sealed(text)) is None


def test_a_row_names_a_declaration_of_the_header() -> None:
    made = scenario("tool pay identity to\ntool look reads\nrun r\nstep s\ncommit pay{to: a}")
    (other,) = (name for tool, name in made.header.tools.items() if tool == "look")
    for decl in ("feed", other):
        events = [
            msgspec.structs.replace(e, decl=decl) if hasattr(e, "decl") else e for e in made.events
        ]
        fault = fault_of(b"".join(ledgerfile.seal_lines(made.header, events)))
        assert fault is not None
        assert fault.slug == "ledger-declaration"
        assert "line 5" in str(fault)
    bare = msgspec.structs.replace(made.header, declarations={})
    fault = fault_of(b"".join(ledgerfile.seal_lines(bare, made.events)))
    assert fault is not None
    assert "line 1: tool 'pay' names a declaration that is not there" in str(fault)
