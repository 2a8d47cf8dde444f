"""What a recorded call makes the candidate be told, and where the record itself ends.

The words for what the guard would say in place of a tool are the guard's own, since that
is what the agent would hear in production.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from backstop.core.events import NOTHING, Failure, ToolRead
from backstop.core.history import Outcome, Row
from backstop.core.intents import Answered
from backstop.core.runs import Step
from backstop.replay.calls import Told
from backstop.replay.keyed import Known
from backstop.replay.wire import IntentReply

MARK: Final = "backstop"
"""The member by which an agent's code knows that the guard answered instead of the tool."""

END_OF_RECORD: Final = "end_of_record"
NONE: Final = "none"


def refused(why: str) -> dict[str, object]:
    """What the guard says of a call that it cannot key: nothing was done."""
    return {MARK: "refused", "reason": why}


def reply_to(number: int, told: Told, steps: Sequence[Step], *, now: str) -> IntentReply:
    """The reply to a call that `told.known` answers."""
    known = told.known
    if known is None:
        raise ValueError("a call that nothing recorded answers has no recorded reply")
    reply = _recorded(number, known, steps)
    counterpart = None
    if told.how is Answered.SUBSTITUTED:
        counterpart = {"name": known.name, "args": known.raw}
    return msgspec.structs.replace(reply, counterpart=counterpart, now=now)


def _recorded(number: int, known: Known, steps: Sequence[Step]) -> IntentReply:
    call = known.call
    if not isinstance(call, Row):
        if call.event.pending:
            return _unanswered(number, known, steps)
        if call.event.error is not None:
            return _raised(number, call.event.error)
        return _result(number, call.event)
    match call.outcome:
        case Outcome.COMMITTED:
            return _result(number, call)
        case Outcome.FAILED if call.actions != NOTHING or call.result != NOTHING:
            return _result(number, call)  # it asked a person first or never began, and said so
        case Outcome.FAILED if call.decided and call.error is not None:
            # No tool raised: the guard told the agent what a person had found out.
            word = f"{call.error.type}: {call.error.message}"
            return IntentReply(id=number, result={MARK: "failed", "error": word})
        case Outcome.FAILED:
            return _raised(number, call.error or Failure(type="Failed"))
        case Outcome.IN_DOUBT:
            # The recorded agent was told so; it never runs again by itself.
            reason = call.error.message if call.error else "it may have happened"
            return IntentReply(id=number, result={MARK: "in_doubt", "reason": reason})
        case Outcome.BLOCKED:
            return IntentReply(id=number, result={MARK: "blocked", "reason": "refused by policy"})
        case Outcome.OPEN:
            return _unanswered(number, known, steps)


def _result(number: int, given: Row | ToolRead) -> IntentReply:
    return IntentReply(
        id=number,
        result=given.result,
        state_delta=members(given.state_delta),
        actions=members(given.actions),
    )


def members(raw: msgspec.Raw) -> dict[str, object]:
    """An object's members with their values untouched; none where it is no object."""
    try:
        found = msgspec.json.decode(raw, type=dict[str, msgspec.Raw] | None)
    except msgspec.MsgspecError:
        return {}
    return dict(found or {})


def _raised(number: int, error: Failure) -> IntentReply:
    if not error.type:
        # An imported failure: the tool told of it in its answer, nothing was raised.
        return IntentReply(id=number, result=error.message)
    return IntentReply(id=number, error_type=error.type, error_message=error.message)


def _unanswered(number: int, known: Known, steps: Sequence[Step]) -> IntentReply:
    """The call had no answer. Where the recorded agent went on without one, so may this one.

    A long-running tool answers nothing at first. A crash during the call ends the record.
    """
    if _went_on(known, steps):
        return IntentReply(id=number, result=None)
    return IntentReply(id=number, missing=END_OF_RECORD)


def _went_on(known: Known, steps: Sequence[Step]) -> bool:
    step = known.step
    return (
        step.ended == "done"
        or any(i > known.index and row.attempt == known.attempt for i, row in step.models)
        or any(later.cursor > step.cursor and (later.models or later.calls) for later in steps)
    )


def recorded_at(known: Known) -> str:
    """When the recorded call had its answer."""
    call = known.call
    return (call.settled_at or call.at) if isinstance(call, Row) else call.event.at
