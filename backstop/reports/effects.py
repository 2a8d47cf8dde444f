"""Effects that are not decided, for the person who decides: where each stands, what to type next.

Pure: standings in, text out. All that came from an agent is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from backstop.core.canon import NotCanonical, canonical, parse
from backstop.core.effecttrust import Trust
from backstop.core.events import EffectFailed, EffectInDoubt, EffectResolved
from backstop.core.fenced import OutTwice
from backstop.core.lifecycle import Phase
from backstop.meshports import OutEffect
from backstop.ports import Liveness, Standing
from backstop.reports.escape import in_json, plain
from backstop.reports.explain import count_of

SCHEMA: Final = "backstop.effects/1"

_KEY: Final = 12
_ARGUMENTS: Final = 100
_REASON: Final = 300
_LIVENESS: Final = {
    Liveness.ALIVE: "alive",
    Liveness.GONE: "gone",
    Liveness.UNKNOWN: "cannot be seen from here",
}
_OTHERWISE: Final = {
    "keyed": "the next delivery asks again: the provider acts once on the key",
    "probe": "the next delivery looks it up",
}
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a store holds that somebody must look at. `options` reach the same store again.

    `distrusted` are effects that are out, and in which trust broke.
    """

    store: str
    standings: tuple[Standing, ...]
    out_twice: tuple[OutTwice, ...]
    options: str = ""
    distrusted: tuple[OutEffect, ...] = ()


def is_ambiguous(standing: Standing) -> bool:
    """Whether it may or may not have happened: in doubt, or left behind by an owner now gone."""
    left = standing.phase is Phase.EXECUTING and standing.owner is Liveness.GONE
    return left or standing.phase is Phase.IN_DOUBT


def render(listing: Listing) -> str:
    """The listing as text; an empty one says so."""
    return "\n".join(_lines(listing)) + "\n"


def _lines(listing: Listing) -> Iterator[str]:
    if listing.out_twice:
        yield f"MAY BE OUT TWICE: {count_of(len(listing.out_twice), 'effect')}"
        for twice in listing.out_twice:
            yield from _twice(twice)
        yield ""
    if listing.distrusted:
        yield f"TRUST BROKE IN {count_of(len(listing.distrusted), 'effect')}"
        for effect in listing.distrusted:
            yield from _distrusted(effect, listing.options)
        yield ""
    standings = listing.standings
    if not standings:
        yield f"no effect waits for a decision in {plain(listing.store)}"
        return
    doubtful = sum(map(is_ambiguous, standings))
    noun = count_of(len(standings), "effect")
    yield f"{noun} not decided, {doubtful:,} in doubt, in {plain(listing.store)}"
    for standing in standings:
        yield ""
        yield from _effect(standing, listing.options)


def _twice(twice: OutTwice) -> Iterator[str]:
    fenced, claimed = twice.fenced, twice.claimed
    tool = "an effect" if claimed is None else plain(claimed.tool)
    where = "" if claimed is None else f", step {plain(claimed.step)}"
    yield f"  {fenced.key[:_KEY]}  {tool}"
    yield f"    where  run {plain(fenced.run)}{where}, at {plain(fenced.at)}"
    if claimed is not None:
        yield f"    args   {_value(claimed.args)}"
    yield f"    why    it happened under claim {fenced.fence}, which another had superseded"
    yield "    next   look in the outside world how often it is there, and take one back"


_BROKE: Final = {
    Trust.SUSPECT: "trust broke in what it was made from",
    Trust.COMPENSATION_REQUIRED: "its branch asked for something else since trust broke",
}


def _distrusted(effect: OutEffect, options: str) -> Iterator[str]:
    claimed, note = effect.standing.claimed, effect.gated.note
    yield f"  {claimed.key[:_KEY]}  {plain(claimed.tool)}  {effect.trust.value}"
    yield f"    where  run {plain(claimed.run)}, step {plain(effect.gated.place.step)}"
    yield f"    args   {_value(claimed.args)}"
    why = _BROKE.get(effect.trust) or note or "a recovery could not take it back"
    yield f"    why    {plain(why, limit=_REASON)}"
    if effect.trust is not Trust.ESCALATED:
        yield "    next   the recovery of its run takes it back, or says that it stays"
        return
    command = f"backstop effects trust {claimed.key[:_KEY]}{options}"
    yield f"    next   {command} --keep  (it may stay)"
    yield f"           {command} --taken-back  (you took it back)"


def _effect(standing: Standing, options: str) -> Iterator[str]:
    claimed = standing.claimed
    owner = plain(claimed.owner) or "nobody"
    yield f"{claimed.key[:_KEY]}  {plain(claimed.tool)}  {_phase(standing)}"
    yield f"  where  run {plain(claimed.run)}, step {plain(claimed.step)}"
    yield f"  args   {_value(claimed.args)}"
    yield f"  since  {span(standing.since_s)}"
    yield f"  owner  {owner}: {_LIVENESS[standing.owner]}"
    if reason := _reason(standing):
        yield f"  why    {plain(reason, limit=_REASON)}"
    for label, line in zip(("next", "", ""), _next(standing, options), strict=False):
        yield f"  {label:<6} {line}"
    if is_ambiguous(standing) and (otherwise := _OTHERWISE.get(claimed.capability)):
        yield f"  else   {otherwise}"


def _phase(standing: Standing) -> str:
    left = standing.phase is Phase.EXECUTING and standing.owner is Liveness.GONE
    return "in doubt (left behind)" if left else standing.phase.value


def _reason(standing: Standing) -> str:
    match standing.settled:
        case EffectInDoubt(reason=reason):
            return reason
        case EffectFailed(error=error):
            return f"{error.type}: {error.message}"
        case EffectResolved(to=to, by=by, reason=reason):
            return f"{to} by {by}" + (f": {reason}" if reason else "")
        case _ if is_ambiguous(standing):
            return "its owner is gone and left no outcome"
        case _:
            return ""


def _next(standing: Standing, options: str) -> tuple[str, ...]:
    if is_ambiguous(standing):
        command = f"backstop effects resolve {standing.claimed.key[:_KEY]}{options}"
        return (
            f"{command} --committed RESULT  (it happened)",
            f"{command} --failed  (it did not; drop it)",
            f"{command} --retry  (it did not; try again)",
        )
    if standing.phase is Phase.EXECUTING:
        return ("wait: its owner is at it; once that is gone, it is in doubt",)
    return ("nothing: the next delivery tries it again",)


def _value(raw: msgspec.Raw) -> str:
    try:
        return plain(canonical(parse(bytes(raw))), limit=_ARGUMENTS)
    except NotCanonical:
        return plain(bytes(raw).decode("utf-8", "replace"), limit=_ARGUMENTS)


def span(seconds: float) -> str:
    """A time span in its largest unit that fits: ``3 min``, ``2 d``."""
    whole = int(seconds)
    return next(
        (f"{whole // size:,} {unit}" for size, unit in _UNITS if whole >= size), "less than 1 s"
    )


def render_json(listing: Listing) -> str:
    """The listing as a JSON document; keys whole."""
    told = {
        "schema": SCHEMA,
        "store": listing.store,
        "effects": [_told(standing) for standing in listing.standings],
        "out_twice": [
            {
                "key": twice.fenced.key,
                "run": twice.fenced.run,
                "at": twice.fenced.at,
                "fence": twice.fenced.fence,
                "tool": None if twice.claimed is None else twice.claimed.tool,
                "step": None if twice.claimed is None else twice.claimed.step,
            }
            for twice in listing.out_twice
        ],
        "distrusted": [
            {
                "key": effect.standing.claimed.key,
                "tool": effect.standing.claimed.tool,
                "run": effect.standing.claimed.run,
                "step": effect.gated.place.step,
                "trust": effect.trust.value,
                "undo": effect.gated.undo,
                "note": effect.gated.note,
                "args": effect.standing.claimed.args,
            }
            for effect in listing.distrusted
        ],
    }
    text = in_json(msgspec.json.encode(told).decode())
    return msgspec.json.format(text.encode(), indent=2).decode() + "\n"


def _told(standing: Standing) -> dict[str, Any]:
    claimed = standing.claimed
    return {
        "key": claimed.key,
        "tool": claimed.tool,
        "run": claimed.run,
        "step": claimed.step,
        "phase": standing.phase.value,
        "in_doubt": is_ambiguous(standing),
        "since_s": round(standing.since_s, 3),
        "fence": standing.fence,
        "owner": claimed.owner,
        "owner_is": standing.owner.name.lower(),
        "reason": _reason(standing),
        "capability": claimed.capability or "none",
        "args": claimed.args,
    }
