"""What came out otherwise in another replay of the same version: an argument a line."""

from __future__ import annotations

from typing import Final

from backstop.core.stability import UnstableField
from backstop.core.verdict import AgentVerdict
from backstop.reports.explain import count_of

_LISTED: Final = 25


def unsteady(agent: AgentVerdict) -> list[str]:
    """What `agent`'s replays did not agree on; nothing where it was replayed once."""
    if agent.replays == 1:
        return []
    if not agent.unstable:
        return [f"replayed {agent.replays:,} times, each with another clock and chance: all alike"]
    told = [f"unstable: {_told(field)}" for field in agent.unstable[:_LISTED]]
    if (more := len(agent.unstable) - _LISTED) > 0:
        told.append(f"unstable: {count_of(more, 'more argument')}; --format json names all of them")
    return told


def _told(field: UnstableField) -> str:
    more = f", and {count_of(field.times - 1, 'more call')}" if field.times > 1 else ""
    said = f"{field.tool} {field.path} (first in run {field.run}, step {field.step}{more})"
    return f"{said} comes out otherwise in each replay; {_means(field)}{_base(field)}. {_do(field)}"


def _means(field: UnstableField) -> str:
    if field.names_target:
        return "it is part of the key, so the guard would not know a redelivery again"
    return "the guard would refuse a redelivery as a conflict"


def _base(field: UnstableField) -> str:
    match field.in_base:
        case True:
            return "; so it is in the version that runs now"
        case False:
            return "; not so in the version that runs now"
        case None:
            return ""


def _do(field: UnstableField) -> str:
    if field.is_order:
        return "Only its order differs: declare it a set"
    if field.names_target:
        return "Make it from what the step is about, or take it out of the identity"
    return "If it may differ, declare it generated"
