"""What a version asked for, held against the record: its full replay, and its handover (S2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from backstop.core.declaration import Declaration
from backstop.core.divergence import Comparison, Divergence, Kind, compare
from backstop.core.history import History
from backstop.core.intents import Escaped, Intent, Pass, RunReplayed
from backstop.core.keying import Rules
from backstop.core.spending import LiveUse
from backstop.core.unshown import Unshown
from backstop.core.verdict import identity_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a version asked for.

    `keyed_under` are the declarations of the stored keys, `schemas` the parameters that the
    version's tools have, by tool, and `offered` those tools where only their names are known;
    None where they are not. `said` is what the code of tools declares. `replayed` says how far
    a replay of this ledger went; it is None for a candidate that is itself a ledger, whose
    `declarations` its rows name by digest. `spoken` are then the runs that the candidate speaks
    for; None is all. `version` is its content digest. `again` is what it asked for in other worlds.
    `live` tells of a live model that could be asked. `unshown` are those of the `uncovered` that a
    person may accept.
    """

    intents: Sequence[Intent]
    keyed_under: Mapping[str, Declaration] = field(default_factory=dict)
    schemas: Mapping[str, Mapping[str, object]] | None = None
    offered: frozenset[str] | None = None
    said: Mapping[str, Declaration] = field(default_factory=dict)
    declarations: Mapping[str, Declaration] = field(default_factory=dict)
    guarded: frozenset[str] = frozenset()
    replayed: Mapping[str, RunReplayed] | None = None
    spoken: Mapping[str, RunReplayed] | None = None
    uncovered: tuple[str, ...] = ()
    unshown: tuple[Unshown, ...] = ()
    escapes: tuple[Escaped, ...] = ()
    version: str = ""
    live: LiveUse | None = None
    again: Sequence[Asked] = ()


def comparing(history: History, asked: Asked, rules: Rules) -> Comparison:
    """Compare a full replay, and add what only the handover of open runs shows (S2)."""
    intents = [intent for intent in asked.intents if intent.replay is Pass.FULL]
    full = compare(history, intents, rules, keyed_under=asked.keyed_under, replayed=asked.replayed)
    if asked.replayed is None or not history.open:
        return full
    handed = compare(
        _of_runs(history, history.open),
        [intent for intent in asked.intents if intent.replay is Pass.HANDOVER],
        rules,
        keyed_under=asked.keyed_under,
        replayed=asked.replayed,
    )
    known = Counter(_place_of(divergence) for divergence in full.divergences)
    more: list[Divergence] = []
    for divergence in handed.divergences:
        if divergence.kind is Kind.MISSING and _is_assumed(divergence, asked.replayed):
            continue  # as in a full replay: nobody knows what is asked for there (D2)
        if known[_place_of(divergence)] > 0:
            known[_place_of(divergence)] -= 1
        else:
            more.append(replace(divergence, handover=True))
    return replace(
        full,
        divergences=(*full.divergences, *more),
        regrouped={**handed.regrouped, **full.regrouped},
        unkeyed=(*full.unkeyed, *(one for one in handed.unkeyed if one not in full.unkeyed)),
    )


def _is_assumed(divergence: Divergence, replayed: Mapping[str, RunReplayed]) -> bool:
    run = replayed.get(divergence.run)
    return run is not None and divergence.cursor in run.handed_over


def _place_of(divergence: Divergence) -> tuple[str, ...]:
    return (*identity_of(divergence), divergence.run, divergence.step)


def _of_runs(history: History, runs: set[str]) -> History:
    return History(
        rows=[row for row in history.rows if row.run in runs],
        answered=[ask for ask in history.answered if ask.run in runs],
        runs=[run for run in history.runs if run in runs],
        open=set(runs),
        events=history.events,
    )
