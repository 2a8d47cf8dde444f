"""What a recovery may let go, ask for again and stand by, as of what holds now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from backstop.core.checkpoint import Checkpoint, StepKind
from backstop.core.effectgate import Reach
from backstop.core.effecttrust import Act, Ruled, Trust
from backstop.core.trust import STRUCTURAL, Badness, State
from backstop.core.trustbreak import TrustBreak
from backstop.mesh.judging import Seen, answer_of
from backstop.mesh.trails import Kept
from backstop.meshports import OutEffect

TO_TAKE_BACK: Final = frozenset({Trust.SUSPECT, Trust.COMPENSATION_REQUIRED})
"""Effects that a recovery stands by, or takes back."""

WITHHELD: Final = frozenset({"frozen", "stale_epoch", "past_horizon", "unverified", "lease_lost"})
"""What an agent is told of an action that the effect gate withheld."""


def reach_of(seen: Seen, found: TrustBreak) -> Reach:
    """What of a run a break reaches: what it names, and all that was made from that."""
    # As of now: whatever is on record was there before it.
    named = seen.graph.selected(msgspec.structs.replace(found, seq=seen.whole.size + 1))
    return Reach(run=seen.run, steps=frozenset(seen.graph.blast(named)))


def to_thaw(seen: Seen) -> tuple[Reach, ...]:
    """What of the run's freeze may be let go; all of it once all holds that effects rest on."""
    frozen = [reach for one in seen.control.breaks for reach in one.frozen if reach.run == seen.run]
    if not frozen:
        return ()
    if not _is_bad_before_effects(seen):
        return (Reach(run=seen.run, everything=True),)
    named = {step for reach in frozen for step in reach.steps if step in seen.graph}
    free = frozenset(step for step in named if _may_go(seen, step))
    return (Reach(run=seen.run, steps=free),) if free else ()


def to_act(seen: Seen, payloads: Kept | None) -> tuple[str, ...]:
    """The actions that did not go out as they stand, and may be asked for again, in order.

    One that was withheld holds once its inputs came out as they were, and still is not out.
    """
    order, _ = seen.graph.order()
    return tuple(
        node.step
        for node in order
        if seen.graph[node.step].kind is StepKind.EFFECT
        and (
            seen.verdicts[node.step].badness > Badness.UNKNOWN
            or _was_withheld(seen.graph[node.step], payloads)
        )
        and not (seen.verdicts[node.step].own and seen.verdicts[node.step].reason in STRUCTURAL)
        and _may_go(seen, node.step)
    )


def _was_withheld(record: Checkpoint, payloads: Kept | None) -> bool:
    """Was the agent told that the action was withheld?"""
    payload = None if payloads is None else payloads.get(record.output)
    if payload is None:
        return False
    try:
        _, told = answer_of(payload)
    except (msgspec.DecodeError, LookupError, TypeError, AttributeError):
        return False  # it had no canonical form, or was never a recorder's
    return isinstance(told, dict) and told.get("backstop") in WITHHELD


def cut_off(seen: Seen, out: Iterable[OutEffect]) -> Sequence[Ruled]:
    """To stand by what is out, where all that it was made from came out as it was.

    Only where the step's record is the one that the effect was made by: one that was made anew
    asked for its effect by itself.
    """
    note = "what it was made from came out as it was"
    return [
        Ruled(key=one.standing.claimed.key, act=Act.REAFFIRM, note=note)
        for one in out
        if one.trust is Trust.SUSPECT and _stands(seen, one)
    ]


def _stands(seen: Seen, effect: OutEffect) -> bool:
    step = effect.gated.place.step
    if step not in seen.graph or seen.verdicts[step].state is not State.VERIFIED:
        return False
    record = seen.graph[step]
    before, after = _epochs(seen, record)
    return after and effect.gated.decided >= before


def _epochs(seen: Seen, record: Checkpoint) -> tuple[int, bool]:
    """The epoch in which a record was made, and whether trust broke since."""
    places = seen.whole.places
    unseen = seen.whole.size + 1
    breaks = [(places.get(one.broken.id, unseen), one) for one in seen.control.breaks]
    before = max((one.broken.epoch for place, one in breaks if place < record.seq), default=0)
    return before, any(place > record.seq for place, _ in breaks)


def _may_go(seen: Seen, step: str) -> bool:
    """Does a step hold, or, of an effect, all that it rests on?"""
    if seen.graph[step].kind is not StepKind.EFFECT:
        return seen.verdicts[step].state is State.VERIFIED
    return all(
        dep.ref in seen.graph and seen.verdicts[dep.ref].state is State.VERIFIED
        for dep in seen.graph[step].upstream
    )


def _is_bad_before_effects(seen: Seen) -> bool:
    """Is there a step that does not hold, for another reason than an action that was blocked?"""
    effects = [step for step in seen.graph if seen.graph[step].kind is StepKind.EFFECT]
    behind = seen.graph.blast(effects)
    return any(
        verdict.badness > Badness.UNKNOWN
        and seen.graph[step].kind is not StepKind.EFFECT
        and (verdict.own > Badness.UNKNOWN or step not in behind)
        for step, verdict in seen.verdicts.items()
    )
