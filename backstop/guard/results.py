"""What an agent is told of a call: the recorded result, or who answered in its place and why.

The recorded result is the stored, serialised value, the first time too. Everything else is a
small dict that bears the member `MARK`; its value tells the kinds apart:

    result = await tool(...)
    if isinstance(result, dict) and result.get("backstop") == "held": ...
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias, TypedDict, assert_never

import msgspec

from backstop.core.effectgate import Frozen as _Frozen
from backstop.core.effectgate import LeaseLost as _LeaseLost
from backstop.core.effectgate import PastHorizon as _PastHorizon
from backstop.core.effectgate import StaleEpoch as _StaleEpoch
from backstop.core.effectgate import Unverified as _Unverified
from backstop.ports import Answer as _Answer
from backstop.ports import Conflict as _Conflict
from backstop.ports import Held as _Held
from backstop.ports import InDoubt as _InDoubt
from backstop.ports import Recorded as _Recorded
from backstop.ports import Refused as _Refused

MARK: Final = "backstop"
"""The member by which an agent's code knows that the guard answered instead of the tool."""


class Held(TypedDict):
    """Another worker is at it: nothing was done here, and it is not done yet."""

    backstop: Literal["held"]
    reason: str


class InDoubt(TypedDict):
    """It may have happened. It never runs again by itself; whoever can find out decides."""

    backstop: Literal["in_doubt"]
    reason: str


class Conflict(TypedDict):
    """The same target was asked for before with other arguments, `done`; nothing was done now."""

    backstop: Literal["conflict"]
    reason: str
    done: dict[str, Any]


class Withheld(TypedDict):
    """What it rests on is not verified now: nothing was done. Once it is, the call may be made."""

    backstop: Literal["frozen", "stale_epoch", "past_horizon", "unverified", "lease_lost"]
    reason: str


class Failed(TypedDict):
    """It failed for good, now or before: it certainly did not happen, and is not tried again."""

    backstop: Literal["failed"]
    error: str


class Refused(TypedDict):
    """The call cannot be guarded (no key, no store), so nothing was done."""

    backstop: Literal["refused"]
    reason: str


Told: TypeAlias = Held | InDoubt | Conflict | Withheld | Failed | Refused
"""Everything that an agent may be told in place of a result."""


def told(answer: _Answer) -> Any:  # noqa: ANN401 - a tool's result
    """What the agent is told of `answer`: the recorded result, or one of `Told`.

    Raises `msgspec.DecodeError` for a stored result that does not decode.
    """
    match answer:
        case _Recorded(result=result):
            return msgspec.json.decode(result)
        case _Refused(error=error):
            return Failed(backstop="failed", error=f"{error.type}: {error.message}")
        case _Held(owner=owner):
            return Held(backstop="held", reason=f"{owner} is at it; nothing was done")
        case _InDoubt(reason=reason):
            return InDoubt(backstop="in_doubt", reason=reason)
        case _Conflict(args=args, compensate=compensate):
            to_be = "; what was done is to be taken back first" if compensate else ""
            return Conflict(
                backstop="conflict",
                reason=f"done before with other arguments{to_be}",
                done=msgspec.json.decode(args),
            )
        case _Frozen() | _StaleEpoch() | _PastHorizon() | _Unverified() | _LeaseLost():
            return _withheld(answer)
        case never:  # pragma: no cover - the union is closed
            assert_never(never)


def _withheld(
    answer: _Frozen | _StaleEpoch | _PastHorizon | _Unverified | _LeaseLost,
) -> Withheld:
    match answer:
        case _Frozen(broken=broken, reason=reason):
            why = f"frozen by trust break {broken} ({reason}) until what it reached is recovered"
            return Withheld(backstop="frozen", reason=f"{why}; nothing was done")
        case _StaleEpoch(judged=judged, epoch=epoch):
            why = f"trust broke since this was judged (epoch {judged} against {epoch})"
            return Withheld(backstop="stale_epoch", reason=f"{why}; nothing was done")
        case _PastHorizon(now=now, seen=seen) if now < seen:
            why = "the clock was turned back, so nobody can tell whether its evidence is fresh"
            return Withheld(backstop="past_horizon", reason=f"{why}; nothing was done")
        case _PastHorizon():
            why = "the evidence that it rests on is past its time"
            return Withheld(backstop="past_horizon", reason=f"{why}; nothing was done")
        case _Unverified(state=state, reason=reason, culprit=culprit):
            why = f"what it rests on is {state}: {reason}" + (f" at {culprit}" if culprit else "")
            return Withheld(backstop="unverified", reason=f"{why}; nothing was done")
        case _LeaseLost():
            why = "another worker recovers this run"
            return Withheld(backstop="lease_lost", reason=f"{why}; nothing was done")


def refused(why: str) -> Refused:
    """What the agent is told where a call cannot be guarded: nothing was done."""
    return Refused(backstop="refused", reason=why)
