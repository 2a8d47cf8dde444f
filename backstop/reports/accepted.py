"""What people accepted, as a comment tells it: waivers and the baseline (semantics.md D4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from backstop.core.baseline import BaselineUse
from backstop.core.verdict import AgentVerdict
from backstop.core.waivers import WaiverUse
from backstop.reports.explain import count_of
from backstop.reports.markdown import Spelling, alert, bullets, few

_MAX: Final = 12
_ROOM: Final = 4_000
_REASON: Final = 160


def brought(agents: Sequence[AgentVerdict], spelling: Spelling) -> Iterator[str]:
    """What the pull request under judgement accepts by itself, for the top of the comment."""
    count = sum(
        sum(use.waiver.added for use in agent.waivers) + (_added(agent) > 0) for agent in agents
    )
    if count:
        lines = (
            f"{spelling.name(agent.agent)}: {line}"
            for agent in agents
            for line in _brought(agent, spelling)
        )
        listed = bullets(few(lines, count, most=_MAX, room=_ROOM))
        yield alert("IMPORTANT", f"**This change accepts findings itself.** Review each:\n{listed}")


def known_line(agent: AgentVerdict, spelling: Spelling) -> Iterator[str]:
    """What the baseline let pass: near the top, since it makes a pass less than it looks."""
    match agent.baseline:
        case BaselineUse(findings=held, known=known, gone=gone) as baseline:
            by = f" by {spelling.name(baseline.by)}" if baseline.by else ""
            shrink = f" No longer found: {gone:,}; shrink it." if gone else ""
            yield (
                f"**{count_of(known, 'known finding')}**, not blocking: in the baseline of "
                f"{spelling.words(baseline.date)}{by}, which holds {held:,}.{shrink}"
            )
        case None:
            return


def to_mend(agent: AgentVerdict, spelling: Spelling) -> list[str]:
    """Waivers that waive nothing, or are not as they should be."""
    noted = [use for use in agent.waivers if use.note]
    lines = (
        f"waiver {spelling.digest(use.waiver.about)}: {spelling.words(use.note)}" for use in noted
    )
    return few(lines, len(noted), most=_MAX, room=_ROOM)


def _brought(agent: AgentVerdict, spelling: Spelling) -> Iterator[str]:
    for use in agent.waivers:
        if use.waiver.added:
            yield _waiver(use, spelling)
    if agent.baseline is not None and (added := _added(agent)):
        counted = "" if agent.baseline.counted else ", which do not count yet"
        yield f"{count_of(added, 'finding')} more in the baseline{counted}"


def _added(agent: AgentVerdict) -> int:
    return 0 if agent.baseline is None else agent.baseline.added


def _waiver(use: WaiverUse, spelling: Spelling) -> str:
    waiver = use.waiver
    kind = f"{waiver.kind.value} " if waiver.kind is not None else ""
    done = f"waives {use.waived:,}" if use.waived else "waives nothing"
    if use.unshown:
        done = f"accepts {count_of(use.unshown, 'change')} that no replay shows"
    return (
        f"{done}: {kind}{spelling.digest(waiver.about)}, until {waiver.expires}, "
        f"by {spelling.name(waiver.author)}: {spelling.name(waiver.reason, _REASON)}"
    )
