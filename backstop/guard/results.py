"""What an agent is told of a call: the recorded result, or who answered in its place and why.

The recorded result is the stored, serialised value, the first time too. Everything else is a
small dict that bears the member `MARK`; its value tells the kinds apart:

    result = await tool(...)
    if isinstance(result, dict) and result.get("backstop") == "held": ...
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias, TypedDict, assert_never

import msgspec

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


class Failed(TypedDict):
    """It failed for good, now or before: it certainly did not happen, and is not tried again."""

    backstop: Literal["failed"]
    error: str


class Refused(TypedDict):
    """The call cannot be guarded (no key, no store), so nothing was done."""

    backstop: Literal["refused"]
    reason: str


Told: TypeAlias = Held | InDoubt | Conflict | Failed | Refused
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
        case _Conflict(args=args):
            return Conflict(
                backstop="conflict",
                reason="done before with other arguments",
                done=msgspec.json.decode(args),
            )
        case never:  # pragma: no cover - the union is closed
            assert_never(never)


def refused(why: str) -> Refused:
    """What the agent is told where a call cannot be guarded: nothing was done."""
    return Refused(backstop="refused", reason=why)
