"""Answers at the edges: blocked, pending, imported, refused, out of place."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from backstop.core.events import CallBlocked, EffectFailed, Failure, ToolRead
from backstop.errors import WireError
from backstop.guard.results import told as told_of
from backstop.ports import Refused
from backstop.replay.wire import IntentAsked
from tests.dsl import Scenario, raw, scenario
from tests.unit.replay.asking import Asking

TOOLS = """
tool check reads
tool pay identity vendor fields again=override
run r1
step s1
"""


def asked(tool: str, args: bytes, refused: str = "") -> IntentAsked:
    """A call as the harness words it."""
    return IntentAsked(id=1, tool=tool, args=msgspec.Raw(args), refused=refused)


def test_a_recorded_block_is_told_and_is_not_owed_at_the_end_of_the_record() -> None:
    asking = Asking(TOOLS + "block pay{vendor: acme}\nmodel\nadvance\n").step("s1")
    assert asking.answers.all_asked()
    assert asking.call("pay", vendor="acme")["backstop"] == "blocked"


def test_a_read_that_raised_raises_and_one_that_never_ended_ends_the_record() -> None:
    told = scenario(TOOLS + "read check{po: 7}\nread check{po: 8}\n")

    def changed(event: object) -> object:
        if isinstance(event, ToolRead) and event.args == raw({"po": 7}):
            return msgspec.structs.replace(event, error=Failure(type="LookupError"))
        if isinstance(event, ToolRead):
            return msgspec.structs.replace(event, pending=True)
        return event

    told = replace(told, events=[changed(event) for event in told.events])  # type: ignore[misc]
    asking = Asking(told).step("s1")
    assert asking.call("check", po=7) == "LookupError"
    assert asking.call("check", po=8) == "end_of_record"


def test_an_imported_failure_is_told_in_words_since_nothing_was_raised() -> None:
    told = scenario(TOOLS + "fail pay{vendor: acme}\n")
    events = [
        msgspec.structs.replace(event, error=Failure(type="", message="Error: no seats"))
        if isinstance(event, EffectFailed)
        else event
        for event in told.events
    ]
    assert Asking(replace(told, events=events)).step("s1").call("pay", vendor="acme") == (
        "Error: no seats"
    )


def test_what_a_person_declined_is_told_in_the_guards_words_since_nothing_was_raised() -> None:
    """What the agent hears in production: no tool ran, so none failed."""
    asking = Asking(TOOLS + "doubt pay{vendor: acme}\nresolve failed pay{vendor: acme}\n").step(
        "s1"
    )
    declined = Refused(error=Failure(type="Resolved"))
    assert asking.call("pay", vendor="acme") == told_of(declined)
    assert asking.call("pay", vendor="acme") == told_of(declined)


def test_a_recorded_state_delta_is_handed_on_to_the_session() -> None:
    told = scenario(TOOLS + "read check{po: 7} -> free\n")
    events = [
        msgspec.structs.replace(event, state_delta=raw({"seen": 7}))
        if isinstance(event, ToolRead)
        else event
        for event in told.events
    ]
    asking = Asking(replace(told, events=events)).step("s1")
    assert asking.reply("check", po=7).state_delta == {"seen": msgspec.Raw(b"7")}


def test_a_deliberate_repeat_carries_its_reason() -> None:
    asking = Asking(TOOLS + "commit pay{vendor: acme}\n").step("s1")
    asking.call("pay", vendor="acme", again="customer asked twice")
    assert asking.intents[0].override == '{"again":"customer asked twice"}'


def test_f33_each_reason_gets_the_result_of_its_own_repeat() -> None:
    """F33, A1: the guard keeps what every deliberate repeat gave; so does its replay."""
    told = TOOLS + (
        "commit pay{vendor: acme} -> first\n"
        "commit pay{vendor: acme, again: asked twice} -> second\n"
        "advance\n"
        "step s2\n"
    )
    asking = Asking(told).step("s1")
    assert asking.call("pay", vendor="acme", again="asked twice") == "second"
    assert asking.call("pay", vendor="acme") == "first"
    asking.step("s2")
    assert asking.call("pay", vendor="acme") == "first"
    assert asking.call("pay", vendor="acme", again="asked twice") == "second"
    assert asking.call("pay", vendor="acme", again="never before") == "second"


def test_arguments_that_no_ledger_can_hold_end_the_run_by_name() -> None:
    asking = Asking(TOOLS + "commit pay{vendor: acme}\n").step("s1")
    reply = asking.answers.call(asked("pay", b"{}", refused="opaque-value: a socket"))
    assert reply.result == {"backstop": "refused", "reason": "opaque-value: a socket"}
    assert asking.answers.failure is not None
    assert "step s1: pay" in asking.answers.failure.why


@pytest.mark.parametrize("args", [b"[]", b'{"a":NaN}', b'{"a":1,"a":2}', b'{"a":1e999}'])
def test_arguments_that_are_no_strict_object_are_a_fault_of_the_wire(args: bytes) -> None:
    asking = Asking(TOOLS).step("s1")
    with pytest.raises(WireError) as error:
        asking.answers.call(asked("pay", args))
    assert error.value.slug == "wire-arguments"


def test_what_is_asked_between_steps_is_a_fault_of_the_wire() -> None:
    asking = Asking(TOOLS)
    with pytest.raises(WireError) as error:
        asking.call("check", po=7)
    assert error.value.slug == "wire-order"


def test_a_row_that_cannot_be_keyed_anew_keeps_its_stored_key() -> None:
    """K3: under rules that refuse it, a row still pairs by what it was."""
    told: Scenario = scenario(TOOLS + "block pay{vendor: acme}\n")
    events = [
        msgspec.structs.replace(event, args=msgspec.Raw(b"{broken"), decl="")
        if isinstance(event, CallBlocked)
        else event
        for event in told.events
    ]
    asking = Asking(replace(told, events=events)).step("s1")
    assert asking.call("pay", vendor="acme")["backstop"] == "blocked"
