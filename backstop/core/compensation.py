"""Which effects a recovery takes back, in which order, and which it leaves to a person.

What was made last is taken back first. An effect that cannot be taken back by itself, or whose
undo fails, goes to a person, and so does all that it was made from: nobody takes the ground away
under something that stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from backstop.core.canon import canonical
from backstop.core.declaration import Declaration, Namespace
from backstop.core.effecttrust import Trust
from backstop.core.events import EffectClaimed
from backstop.core.identity import identify
from backstop.core.lifecycle import Phase
from backstop.core.trustgraph import TrustGraph


class Fate(StrEnum):
    """What becomes of an effect that nobody wants any more."""

    UNDO = "undo"
    ESCALATE = "escalate"
    WAIT = "wait"


class Orphan(msgspec.Struct, frozen=True, kw_only=True):
    """An effect in which trust broke. `place` is its place in the order of the ledger's claims.

    `undo` names the function that takes it back; empty where none is declared, or where the
    effect is one that nothing takes back.
    """

    key: str
    step: str
    trust: Trust
    phase: Phase
    undo: str
    place: int


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What to do about one effect, once what was made `after` it has been taken back."""

    key: str
    fate: Fate
    why: str = ""
    after: tuple[str, ...] = ()


_WANTED: Final = frozenset({Trust.SUSPECT, Trust.COMPENSATION_REQUIRED})
_MAY_BE_OUT: Final = frozenset({Phase.COMMITTED, Phase.IN_DOUBT, Phase.EXECUTING})


def compensation(orphans: Iterable[Orphan], graph: TrustGraph) -> tuple[Task, ...]:
    """What to do about the effects of a run that its recovered branch did not ask for again.

    In reverse causal order, as far as `graph` knows their steps; where it does not, whatever was
    claimed later counts as made from what was claimed before. What a person has to decide stays
    with them, and holds back all that it was made from.
    """
    out = [
        one
        for one in orphans
        if one.phase in _MAY_BE_OUT and (one.trust in _WANTED or one.trust is Trust.ESCALATED)
    ]
    after = _made_after(out, graph)
    # Whatever was made from an effect has fewer behind it than the effect has itself.
    out.sort(key=lambda one: (len(after[one.key]), -one.place))
    return tuple(_task(one, tuple(sorted(after[one.key]))) for one in out if one.trust in _WANTED)


def fate_of(task: Task, fates: Mapping[str, Fate]) -> tuple[Fate, str]:
    """What becomes of an effect, and why, given the `fates` of those that were made after it.

    A fate that is not known is one that a person has yet to decide.
    """
    behind = [(key, fates.get(key, Fate.ESCALATE)) for key in task.after]
    held = next((key for key, fate in behind if fate is Fate.WAIT), None)
    if held is not None:
        return Fate.WAIT, f"{held[:12]}…, which was made after it, is not decided"
    if task.fate is Fate.UNDO:
        kept = next((key for key, fate in behind if fate is Fate.ESCALATE), None)
        if kept is not None:
            return Fate.ESCALATE, f"{kept[:12]}…, which was made after it, was not taken back"
    return task.fate, task.why


def undoing(
    claimed: EffectClaimed, *, fence: int, owner: str, namespace: Namespace
) -> EffectClaimed:
    """The effect that takes another back: one of its own, with a key that only it can have.

    It is made within the other one, so a replay asks for both or for neither. `fence` is that of
    the claim under which the other went out: what goes out anew later is taken back anew.
    """
    arguments = {"fence": fence, "undoes": claimed.key}
    tool = f"{claimed.tool}.undo"
    named = identify(
        arguments,
        Declaration(tool=tool),
        namespace=namespace,
        run=claimed.run,
        step=claimed.step,
    )
    return EffectClaimed(
        run=claimed.run,
        at="",
        v=claimed.v,
        step=claimed.step,
        tool=tool,
        key=named.key,
        fingerprint=named.fingerprint,
        attempt=claimed.attempt,
        agent=claimed.agent,
        args=msgspec.Raw(canonical(arguments).encode()),
        owner=owner,
        lease_s=claimed.lease_s,
        within=claimed.key,
    )


def _task(one: Orphan, after: tuple[str, ...]) -> Task:
    match one.phase:
        case Phase.EXECUTING:
            return Task(key=one.key, fate=Fate.WAIT, why="it is being done", after=after)
        case Phase.IN_DOUBT:
            why = "nobody knows whether it happened"
            return Task(key=one.key, fate=Fate.ESCALATE, why=why, after=after)
        case _ if not one.undo:
            return Task(key=one.key, fate=Fate.ESCALATE, why="no undo is declared", after=after)
        case _:
            return Task(key=one.key, fate=Fate.UNDO, after=after)


def _made_after(orphans: list[Orphan], graph: TrustGraph) -> dict[str, set[str]]:
    """Of each effect: which of the others were made from it, as far as anybody can tell."""
    _, cyclic = graph.order()
    unordered = {node.step for node in cyclic}
    known = all(one.step in graph and one.step not in unordered for one in orphans)
    after: dict[str, set[str]] = {}
    for one in orphans:
        blast = graph.blast([one.step]) - {one.step} if known else set()
        after[one.key] = {
            other.key
            for other in orphans
            if other.step in blast
            or (other.place > one.place and (not known or other.step == one.step))
        }
    return after
