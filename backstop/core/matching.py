"""The order of matching (semantics.md G1): what history holds against what is asked for.

Works on multisets of keyed calls, pass by pass, each pass on what the ones before left
over. The order in which calls were asked decides nothing; among equals the surest intents
match first (not assumed, no deliberate repeat).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from backstop.core.canon import canonical
from backstop.core.fields import pointers
from backstop.core.history import Outcome
from backstop.core.intents import Answered, RunReplayed
from backstop.core.keying import Call, IntentCall, RowCall, Rules, S, Unkeyed, incomparable
from backstop.core.pairing import pair

Pairs: TypeAlias = list[tuple[RowCall, IntentCall]]
By: TypeAlias = Callable[[RowCall | IntentCall], Hashable]


@dataclass(slots=True, kw_only=True)
class Matching:
    """What was found to belong together, and what was left over on either side.

    `same` are equal calls, `changed` those of one key with other values, `paired` the same
    work under another name, `spent` intents that met a recorded failure. `repeats` are
    intents whose key history holds for good, each with a row of that key. `erased` are calls
    that no key matched, and of which nothing else is known.
    """

    same: Pairs = field(default_factory=list)
    changed: Pairs = field(default_factory=list)
    spent: Pairs = field(default_factory=list)
    repeats: Pairs = field(default_factory=list)
    paired: Pairs = field(default_factory=list)
    rows: list[RowCall] = field(default_factory=list)
    intents: list[IntentCall] = field(default_factory=list)
    erased: list[RowCall | IntentCall] = field(default_factory=list)


def match(rows: Sequence[RowCall], intents: Sequence[IntentCall], rules: Rules) -> Matching:
    """Match every call of two files, in the order of G1."""
    found = Matching()
    every = [row for row in rows if row.source.may_be_out]
    not_out = [row for row in rows if not row.source.may_be_out]
    left = sorted(intents, key=_surest_first)
    answered = _answered_by(not_out) if rules.replayed else {}
    # An intent that met a failure cannot stand for the success that came after it: a version
    # that gives up would look like one that did the work (ADR 0008).
    left = _spend(left, answered, found.spent, _exact)
    out, left = _take(every, left, found.same, _exact_in_step)
    out, left = _take(out, left, found.same, _exact)
    if not left:
        found.rows = _known(out, found.erased)
        return found
    # A key that a person decided is taken for good, like one that went out.
    declined = [row for row in not_out if row.source.decided]
    took = {(row.group, row.key): row for row in reversed(every + declined)}
    out, left = _take_closest(out, left, found.changed)
    left = _spend(left, answered, found.spent, _key)
    left = _split_repeats(left, took, found.repeats)
    out, left = _known(out, found.erased), _known(left, found.erased)
    out, left = _pair_served(out, left, answered, found)
    out, left = _pair_rest(out, left, found.paired)
    found.rows, found.intents = out, left
    return found


def _known(calls: list[Call[S]], erased: list[RowCall | IntentCall]) -> list[Call[S]]:
    """Set erased calls apart: a key is all that is left of them to compare."""
    gone = [call for call in calls if call.is_erased]
    erased += gone  # type: ignore[arg-type]  # a call of rows, or one of intents
    return [call for call in calls if not call.is_erased] if gone else calls


def _surest_first(intent: IntentCall) -> tuple[bool, bool, int, int]:
    source = intent.source
    return source.override is not None, source.assumed, source.cursor, intent.place


def _exact_in_step(call: RowCall | IntentCall) -> Hashable:
    return call.group, call.key, call.fingerprint, call.source.run, call.source.step


def _exact(call: RowCall | IntentCall) -> Hashable:
    return call.group, call.key, call.fingerprint


def _key(call: RowCall | IntentCall) -> Hashable:
    return call.group, call.key


def _take(
    rows: list[RowCall],
    intents: list[IntentCall],
    into: Pairs,
    by: By,
) -> tuple[list[RowCall], list[IntentCall]]:
    """Match calls that are equal `by`; an intent takes the latest row not after it."""
    if not rows or not intents:
        return rows, intents
    waiting: dict[Hashable, list[RowCall]] = defaultdict(list)
    for row in rows:
        waiting[by(row)].append(row)
    left: list[IntentCall] = []
    taken: set[int] = set()
    for intent in intents:
        alike = waiting.get(by(intent))
        if not alike:
            left.append(intent)
            continue
        row = _nearest(alike, intent.source.cursor)
        alike.remove(row)
        taken.add(id(row))
        into.append((row, intent))
    return [row for row in rows if id(row) not in taken], left


def _nearest(rows: Sequence[RowCall], cursor: int) -> RowCall:
    if len(rows) == 1:
        return rows[0]
    earlier = [row for row in rows if row.source.cursor <= cursor]
    if earlier:
        # Of rows in one step the first: that is the order in which they were answered.
        latest = max(row.source.cursor for row in earlier)
        return next(row for row in earlier if row.source.cursor == latest)
    return min(rows, key=lambda row: row.source.cursor)


def _answered_by(rows: Iterable[RowCall]) -> dict[int, RowCall]:
    return {row.source.index: row for row in rows}


def _spend(
    intents: list[IntentCall],
    answered: dict[int, RowCall],
    into: Pairs,
    by: By,
) -> list[IntentCall]:
    """Failed and blocked rows use up one intent each, of those that they answered."""
    if not answered:
        return intents
    left: list[IntentCall] = []
    for intent in intents:
        row = answered.get(_answer(intent))
        if row is not None and by(row) == by(intent):
            del answered[_answer(intent)]
            into.append((row, intent))
        else:
            left.append(intent)
    return left


def _answer(intent: IntentCall) -> int:
    index = intent.source.answered_by
    return -1 if index is None else index


def _take_closest(
    rows: list[RowCall], intents: list[IntentCall], into: Pairs
) -> tuple[list[RowCall], list[IntentCall]]:
    """Match calls of one key and other values, the fewest differing paths first."""
    waiting: dict[Hashable, list[RowCall]] = defaultdict(list)
    for row in rows:
        waiting[_key(row)].append(row)
    asking: dict[Hashable, list[IntentCall]] = defaultdict(list)
    for intent in intents:
        if _key(intent) in waiting:
            asking[_key(intent)].append(intent)
    taken: set[int] = set()
    for key, asked in asking.items():
        ranked = sorted(
            (_distance(row, intent), i, j)
            for i, row in enumerate(waiting[key])
            for j, intent in enumerate(asked)
        )
        for _, i, j in ranked:
            row, intent = waiting[key][i], asked[j]
            if id(row) not in taken and id(intent) not in taken:
                taken |= {id(row), id(intent)}
                into.append((row, intent))
    return _untaken(rows, taken), _untaken(intents, taken)


def _untaken(calls: list[Call[S]], taken: set[int]) -> list[Call[S]]:
    return [call for call in calls if id(call) not in taken]


def _distance(row: RowCall, intent: IntentCall) -> tuple[int, bool, str, str]:
    left, right = row.identified.arguments, intent.identified.arguments
    return (
        len(pointers(left, right)),
        row.at != intent.at,
        canonical(left),
        canonical(right),
    )


def _split_repeats(
    intents: list[IntentCall], took: dict[tuple[str, str], RowCall], into: Pairs
) -> list[IntentCall]:
    """Set aside intents whose key is taken already: asked for more often than recorded."""
    left: list[IntentCall] = []
    for intent in intents:
        row = took.get((intent.group, intent.key))
        if row is None:
            left.append(intent)
        else:
            into.append((row, intent))
    return left


def _pair_served(
    rows: list[RowCall], intents: list[IntentCall], answered: dict[int, RowCall], found: Matching
) -> tuple[list[RowCall], list[IntentCall]]:
    """Keep the pairs that the driver served, as far as their rows are still left over."""
    by_index = {row.source.index: row for row in rows}
    taken: set[int] = set()
    for intent in intents:
        if intent.source.answered is not Answered.SUBSTITUTED:
            continue
        index = _answer(intent)
        # Under other rules than the driver's the two need not be one tool's any more.
        if (row := by_index.get(index)) is not None and _of_one_tool(row, intent):
            del by_index[index]
            found.paired.append((row, intent))
            taken |= {id(row), id(intent)}
        elif (row := answered.get(index)) is not None and _of_one_tool(row, intent):
            del answered[index]
            found.spent.append((row, intent))
            taken.add(id(intent))
    return _untaken(rows, taken), _untaken(intents, taken)


def _of_one_tool(row: RowCall, intent: IntentCall) -> bool:
    return (row.group, row.tool) == (intent.group, intent.tool)


def _pair_rest(
    rows: list[RowCall], intents: list[IntentCall], into: Pairs
) -> tuple[list[RowCall], list[IntentCall]]:
    """Pair what is left of each group and tool (G3)."""
    waiting: dict[tuple[str, str], list[RowCall]] = defaultdict(list)
    for row in rows:
        waiting[row.group, row.tool].append(row)
    asking: dict[tuple[str, str], list[IntentCall]] = defaultdict(list)
    for intent in intents:
        if (intent.group, intent.tool) in waiting:
            asking[intent.group, intent.tool].append(intent)
    taken: set[int] = set()
    for group, asked in asking.items():
        recorded = waiting[group]
        for i, j in pair([row.side for row in recorded], [intent.side for intent in asked]):
            into.append((recorded[i], asked[j]))
            taken |= {id(recorded[i]), id(asked[j])}
    return _untaken(rows, taken), _untaken(intents, taken)


def surplus_commits(found: Matching) -> tuple[list[RowCall], list[RowCall]]:
    """Rows left over, parted into those missed and those that history holds twice (G8)."""
    if not found.rows:
        return [], []
    matched = {_exact_in_step(row) for row, _ in found.same}
    missed: list[RowCall] = []
    twice: list[RowCall] = []
    for row in found.rows:
        if row.source.outcome is not Outcome.COMMITTED:
            continue
        exact = _exact_in_step(row)
        (twice if exact in matched else missed).append(row)
        matched.add(exact)
    return missed, twice


def lost(found: Matching, replayed: Mapping[str, RunReplayed]) -> Iterator[Unkeyed]:
    """Erased calls that nothing matched, but of runs that are known not to be compared."""
    for call in found.erased:
        run = replayed.get(call.source.run)
        if run is None or run.not_replayable is None:
            yield incomparable(call.source)
