"""Rows and intents in a few words, for tests of the comparison.

    pay = call("pay", vendor="acme", amount=10)
    compared([out(pay)], [ask(pay, step="s1")])

A step is ``s0``, ``s1`` ...; its number is its cursor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import msgspec

from backstop.core.canon import canonical
from backstop.core.declaration import Declaration, Namespace
from backstop.core.divergence import Comparison, compare
from backstop.core.events import CallAnswered
from backstop.core.history import History, Outcome, Row
from backstop.core.identity import identify
from backstop.core.intents import Answered, Intent, RunReplayed
from backstop.core.keying import Rules

NAMESPACE = Namespace(agent="procure")
PAY = Declaration(tool="pay", identity=("vendor",))
MAIL = Declaration(tool="mail")
DECLARED: Mapping[str, Declaration] = {
    "pay": PAY,
    "mail": MAIL,
    "remind": Declaration(tool="remind", identity=("to",)),
    "update": Declaration(tool="update", identity=("record",)),
}


@dataclass(frozen=True)
class Called:
    """A tool and its arguments."""

    tool: str
    args: Mapping[str, Any]

    def but(self, **changes: Any) -> Called:
        """The same call with other arguments."""
        return replace(self, args={**self.args, **changes})


def call(tool: str, /, **args: Any) -> Called:
    """A call of a tool."""
    return Called(tool, args)


def _names(
    called: Called, run: str, step: str, declared: Mapping[str, Declaration]
) -> tuple[str, str]:
    declaration = declared.get(called.tool, Declaration(tool=called.tool))
    found = identify(called.args, declaration, namespace=NAMESPACE, run=run, step=step)
    return found.key, found.fingerprint


def _raw(called: Called) -> msgspec.Raw:
    return msgspec.Raw(canonical(dict(called.args)).encode())


def out(
    called: Called,
    *,
    step: str = "s0",
    run: str = "r1",
    outcome: Outcome = Outcome.COMMITTED,
    declared: Mapping[str, Declaration] = DECLARED,
    guarded: bool = True,
    v: str = "v1",
) -> Row:
    """A row of the ledger; its index is given by `history`."""
    key, fingerprint = _names(called, run, step, declared)
    declaration = declared.get(called.tool)
    return Row(
        index=0,
        run=run,
        step=step,
        cursor=int(step[1:]),
        tool=called.tool,
        key=key,
        fingerprint=fingerprint,
        args=_raw(called),
        outcome=outcome,
        decl="" if declaration is None else declaration.digest,
        v=v,
        guarded=guarded,
    )


def ask(  # noqa: PLR0913  # a test names only what it is about
    called: Called,
    *,
    step: str = "s0",
    run: str = "r1",
    declared: Mapping[str, Declaration] = DECLARED,
    by: int | None = None,
    how: Answered | None = None,
    assumed: bool = False,
    holes: tuple[str, ...] = (),
    override: str | None = None,
) -> Intent:
    """An intent; `by` is the index of the row that answered it."""
    key, fingerprint = _names(called, run, step, declared)
    answered = how or (Answered.NOTHING if by is None else Answered.RECORDED)
    return Intent(
        run=run,
        step=step,
        cursor=int(step[1:]),
        tool=called.tool,
        key=key,
        fingerprint=fingerprint,
        args=_raw(called),
        answered=answered,
        answered_by=by,
        assumed=assumed,
        holes=holes,
        override=override,
    )


def history(rows: Sequence[Row], *, answered: Sequence[CallAnswered] = ()) -> History:
    """A history of these rows, indexed in their order."""
    numbers = count()
    for row in rows:
        row.index = next(numbers)
    runs = list(dict.fromkeys(row.run for row in rows))
    return History(rows=list(rows), runs=runs, answered=list(answered), events=len(rows))


def rules(
    *,
    declared: Mapping[str, Declaration] = DECLARED,
    candidate: Mapping[str, Declaration] | None = None,
    replayed: bool = True,
    guarded: frozenset[str] = frozenset(),
    finds_old_keys: frozenset[str] = frozenset(),
    offered: frozenset[str] | None = None,
) -> Rules:
    """Rules under which the candidate keeps the declarations unless told otherwise."""
    return Rules(
        namespace=NAMESPACE,
        recorded={one.digest: one for one in declared.values()},
        declared=declared,
        candidate=declared if candidate is None else candidate,
        guarded=guarded,
        finds_old_keys=finds_old_keys,
        offered=offered,
        replayed=replayed,
    )


def compared(
    rows: Sequence[Row],
    intents: Sequence[Intent],
    under: Rules | None = None,
    *,
    answered: Sequence[CallAnswered] = (),
    replayed: Mapping[str, RunReplayed] | None = None,
) -> Comparison:
    """Compare; without `replayed` every run was replayed in full."""
    under = under or rules()
    told = history(rows, answered=answered)
    runs = {row.run for row in rows} | {intent.run for intent in intents}
    whole = {run: RunReplayed(run=run) for run in runs} if replayed is None else replayed
    return compare(
        told,
        intents,
        under,
        keyed_under=under.declared,
        replayed=whole if under.replayed else None,
    )


def found(comparison: Comparison) -> list[str]:
    """Kinds and reasons of what was found, in order, and what was counted besides."""
    told = [f"{one.kind} {one.reason}" for one in comparison.divergences]
    counted = ("matched", "absorbed", "failed", "recorded_twice")
    return told + [f"{name} {n}" for name in counted if (n := getattr(comparison, name))]
