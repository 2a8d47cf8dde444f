"""Which of a step's attempts a replay follows (semantics.md S1).

A replay runs a step once, over all its attempts' rows. A redelivery that began the step
anew makes what the crashed try did obsolete; one that resumed it carries on from there.
The ledger does not say which, so the first thing that each attempt did decides: the same
call, or a request of the same agent, as at the very start means anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from backstop.core.history import Row
from backstop.core.runs import Step

First: TypeAlias = tuple[str, str, str]


def began_anew(step: Step) -> int:
    """The number of the last attempt that began `step` from its start; 1 if none did again."""
    firsts = _firsts(step)
    if not firsts:
        return 1
    start = firsts[min(firsts)]
    return max(attempt for attempt, first in firsts.items() if first == start)


def _firsts(step: Step) -> dict[int, First]:
    """By attempt, the first thing that it did."""
    found: dict[int, First] = {}
    for _, attempt, first in sorted(_things(step)):
        found.setdefault(attempt, first)
    return found


def _things(step: Step) -> Iterable[tuple[int, int, First]]:
    for index, model in step.models:
        yield index, model.attempt, ("model", model.agent, "")
    for call in step.calls:
        if isinstance(call, Row):
            yield call.index, call.attempt, ("call", call.tool, call.key)
        else:
            yield call.index, call.event.attempt, ("call", call.event.tool, call.event.key)
    for index, answered in step.answered:
        yield index, answered.attempt, ("call", answered.tool, answered.key)
