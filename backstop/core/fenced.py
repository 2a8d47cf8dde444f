"""Effects that may be out twice: they happened under a claim that had been superseded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from backstop.core.events import EffectClaimed, EffectFenced, Event


@dataclass(frozen=True, slots=True, kw_only=True)
class OutTwice:
    """One such effect; `claimed` is the claim that had been superseded, None if it is lost."""

    fenced: EffectFenced
    claimed: EffectClaimed | None


def out_twice(read: Callable[[], Iterable[Event]]) -> tuple[OutTwice, ...]:
    """Every effect that may be out twice, in the order of the ledger that `read` gives."""
    fenced = [event for event in read() if isinstance(event, EffectFenced)]
    if not fenced:
        return ()  # the usual case, and claims are many: they are looked at only where needed
    wanted = {(event.key, event.fence) for event in fenced}
    claims = {
        (event.key, event.fence): event
        for event in read()
        if isinstance(event, EffectClaimed) and (event.key, event.fence) in wanted
    }
    return tuple(
        OutTwice(fenced=event, claimed=claims.get((event.key, event.fence))) for event in fenced
    )
