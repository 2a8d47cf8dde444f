"""Which leftover call is the same work under another name (semantics.md G3).

The driver asks this while a replay runs, to serve a relabelled call the result of its
counterpart; the gate asks it afterwards. Both use `rank`, so that the pair that was served
is the pair that is reported. The order of asking never matters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from backstop.core.canon import Json, canonical
from backstop.core.fields import fold, pointers

Rank: TypeAlias = tuple[int, int, bool, str, str]
"""Smaller is closer: tier, differing paths, another step, canonical bytes of both sides."""

SAME_WHEN_FOLDED: Final = 0
SAME_STEP: Final = 1


@dataclass(frozen=True, kw_only=True)
class Side:
    """One call of a run, as far as pairing looks at it.

    `identity` and `arguments` are canonical; `holes` names the arguments that hold a
    stand-in, which are ignored (A3).
    """

    run: str
    step: str
    identity: Mapping[str, Json]
    arguments: Mapping[str, Json]
    holes: frozenset[str] = frozenset()

    @cached_property
    def text(self) -> str:
        """Canonical text of the arguments, to break ties with."""
        return canonical(dict(self.arguments))

    @cached_property
    def folded(self) -> str:
        """The identity after NFKC, case-folding and dropping punctuation and blanks."""
        return canonical(fold(dict(self.identity)))


def without(members: Mapping[str, Json], names: frozenset[str]) -> dict[str, Json]:
    """`members` less those that are named."""
    return {name: value for name, value in members.items() if name not in names}


def same_when_folded(recorded: Side, intended: Side) -> bool:
    """Is the identity of both equal once folded, stand-ins ignored?"""
    holes = recorded.holes | intended.holes
    if not holes:
        return recorded.folded == intended.folded
    left, right = without(recorded.identity, holes), without(intended.identity, holes)
    return bool(left) and canonical(fold(left)) == canonical(fold(right))


def rank(recorded: Side, intended: Side) -> Rank | None:
    """How close two calls of one run and tool are; None if they are not the same work."""
    same_step = (recorded.run, recorded.step) == (intended.run, intended.step)
    if same_when_folded(recorded, intended):
        tier = SAME_WHEN_FOLDED
    elif same_step:
        tier = SAME_STEP
    else:
        return None
    holes = recorded.holes | intended.holes
    paths = pointers(without(recorded.arguments, holes), without(intended.arguments, holes))
    return tier, len(paths), not same_step, recorded.text, intended.text


def pair(recorded: Sequence[Side], intended: Sequence[Side]) -> list[tuple[int, int]]:
    """Pair leftovers of one tool, closest first; indexes into both sequences.

    Each call is in at most one pair. Equal ranks are broken by place in `recorded` and
    `intended`, where all that is left to tell them apart is equal anyway.
    """
    ranked = sorted(
        (found, i, j)
        for i, j in _candidates(recorded, intended)
        if (found := rank(recorded[i], intended[j])) is not None
    )
    free_rows, free_intents = set(range(len(recorded))), set(range(len(intended)))
    pairs: list[tuple[int, int]] = []
    for _, i, j in ranked:
        if i in free_rows and j in free_intents:
            free_rows.discard(i)
            free_intents.discard(j)
            pairs.append((i, j))
    return pairs


def _candidates(recorded: Sequence[Side], intended: Sequence[Side]) -> Iterable[tuple[int, int]]:
    """The pairs worth ranking: equal when folded, or of one step. Near linear in the leftovers."""
    buckets: dict[object, list[int]] = defaultdict(list)
    for i, row in enumerate(recorded):
        buckets[row.folded].append(i)
        buckets[row.run, row.step].append(i)
    for j, intent in enumerate(intended):
        if intent.holes:
            yield from ((i, j) for i in range(len(recorded)))
            continue
        near = {*buckets.get(intent.folded, ()), *buckets.get((intent.run, intent.step), ())}
        yield from ((i, j) for i in sorted(near))
