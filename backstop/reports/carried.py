"""What a comment remembers of an agent, so that the next one can say it again.

Not Markdown is carried from one comment to the next but a hidden line of data, read
strictly and rendered anew: whoever edits a comment can at most make an old finding look
otherwise, in a section that says that it is old and that no decision counts.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from backstop.core.divergence import Kind, Reason
from backstop.core.verdict import AgentVerdict, Decision, Judged
from backstop.reports.escape import brief, in_comment, public

MARKER: Final = "<!-- backstop-gate:"
_PREFIX: Final = "<!-- backstop-agent: "
_SUFFIX: Final = " -->"
_MAX_LINE: Final = 6_000
_MAX_ROWS: Final = 10
_SHOWN: Final = 60
_MOST: Final = 10**9

_COMMIT: Final = re.compile("[0-9a-f]{0,40}")

Count = Annotated[int, Meta(ge=0, le=_MOST)]
Name = Annotated[str, Meta(max_length=_SHOWN)]
Commit = Annotated[str, Meta(pattern="^[0-9a-f]{0,40}$", max_length=40)]


class CarriedFinding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One finding, as much of it as is remembered."""

    kind: Kind
    reason: Reason
    tool: Name
    run: Name
    step: Name


class Carried(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent's verdict at commit `head`: shown as of then, never counted.

    `accepted` counts the places that no replay shows and a person accepted, where there were any.
    """

    agent: Annotated[str, Meta(max_length=63)]
    decision: Decision
    head: Commit
    compared: Count
    total: Count
    findings: Count
    accepted: Count | msgspec.UnsetType = msgspec.UNSET
    rows: Annotated[tuple[CarriedFinding, ...], Meta(max_length=_MAX_ROWS)] = ()


def remembered(agent: AgentVerdict, *, head: str, show_values: bool) -> Carried:
    """What a comment is to remember of an agent that was judged at `head`."""
    return Carried(
        agent=brief(agent.agent, 63),
        decision=agent.decision,
        head=head if _is_commit(head) else "",
        compared=agent.coverage.runs_compared,
        total=agent.coverage.runs_total,
        findings=len(agent.judged),
        accepted=agent.coverage.accepted or msgspec.UNSET,
        rows=tuple(_finding(judged, show_values) for judged in agent.judged[:_MAX_ROWS]),
    )


def state_line(carried: Carried) -> str:
    """The hidden line that `carry_forward` reads."""
    return f"{_PREFIX}{in_comment(msgspec.json.encode(carried).decode())}{_SUFFIX}"


def carry_forward(old_body: str, agent: str) -> Carried | None:
    """What an earlier comment of ours remembers of `agent`; None where that is not certain.

    `old_body` is not trusted: it must begin with our marker, and hold exactly one line for
    the agent among its first lines, in the very form in which we write it.
    """
    hidden, _, _ = old_body.replace("\r\n", "\n").partition("\n\n")
    lines = hidden.split("\n")
    if not lines[0].startswith(MARKER):
        return None
    found = [one for line in lines[1:] if (one := _read(line)) is not None and one.agent == agent]
    return found[0] if len(found) == 1 else None


def _read(line: str) -> Carried | None:
    if not (line.startswith(_PREFIX) and line.endswith(_SUFFIX)) or len(line) > _MAX_LINE:
        return None
    try:
        carried = msgspec.json.decode(line[len(_PREFIX) : -len(_SUFFIX)], type=Carried)
    except (msgspec.DecodeError, UnicodeError):
        return None
    return carried if state_line(carried) == line else None


def _finding(judged: Judged, show_values: bool) -> CarriedFinding:  # noqa: FBT001
    divergence = judged.divergence

    def name(text: str) -> str:
        return brief(text if show_values else public(text), _SHOWN)

    return CarriedFinding(
        kind=divergence.kind,
        reason=divergence.reason,
        tool=name(divergence.tool),
        run=name(divergence.run),
        step=name(divergence.step),
    )


def _is_commit(text: str) -> bool:
    return _COMMIT.fullmatch(text) is not None
