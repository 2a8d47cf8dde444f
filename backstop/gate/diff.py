"""`diff`: the gate's arithmetic on two files, without a replay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import Header
from backstop.core.history import History, Outcome
from backstop.core.intents import FromLedger, Intent, RunReplayed
from backstop.core.intentsfile import Intents, IntentsError
from backstop.core.ledgerfile import Ledger
from backstop.core.unshown import gap
from backstop.core.verdict import AgentVerdict, Policy
from backstop.errors import LedgerError
from backstop.gate.comparing import Asked
from backstop.gate.consistency import contradiction
from backstop.gate.judge import Recorded, judge
from backstop.gate.lacking import Lacking


def diff(
    baseline: Ledger | Recorded,
    candidate: Ledger | Recorded | Intents,
    *,
    policy: Policy,
    declarations: Mapping[str, Declaration] | None = None,
    guarded: bool | None = None,
) -> AgentVerdict:
    """What the candidate would redo, drop or change of what the baseline holds.

    Of a candidate that is a ledger, the committed effects count as asked for. `declarations`
    and `guarded` overrule what the files say. Stored keys are taken as they are: whoever read
    the files vouches for them (ADR 0013). Raises `IntentsError` for the replay of another ledger
    (``intents-foreign-ledger``) and for one that this ledger contradicts
    (``intents-contradiction``), `LedgerError` for another owner's ledger
    (``ledger-foreign-agent``).
    """
    header = baseline.header
    known = recorded(baseline)
    if isinstance(candidate, Ledger | Recorded):
        asked = _of_ledger(recorded(candidate), header)
    else:
        asked = _of_intents(candidate, known)
    return judge(
        known,
        asked,
        control=Lacking.FILES,
        declarations=[_stated(declarations, asked.keyed_under)],
        policies=[policy],
        namespace=Namespace(agent=header.agent, app=header.app, tenant=header.tenant),
        guarded=header.guarded if guarded is None else guarded,
    )


def recorded(ledger: Ledger | Recorded) -> Recorded:
    """A ledger file as the gate sees it."""
    if isinstance(ledger, Recorded):
        return ledger
    return Recorded(header=ledger.header, history=ledger.history, digest=ledger.digest)


def _of_ledger(ledger: Recorded, baseline: Header) -> Asked:
    owners = [(one.agent, one.app, one.tenant) for one in (ledger.header, baseline)]
    if owners[0] != owners[1]:
        theirs, ours = (", ".join(map(repr, owner)) for owner in owners)
        raise LedgerError(
            f"the candidate is the ledger of agent, app and tenant {theirs}, the baseline that of "
            f"{ours}: other owners have other keys; compare ledgers of one owner",
            slug="ledger-foreign-agent",
        )
    declared = _current(ledger.header)
    history = ledger.history
    gaps = tuple(gap(text) for text in ledger.header.gaps or ())
    return Asked(
        intents=list(_committed(history, ledger.header)),
        keyed_under=declared,
        declarations=ledger.header.declarations,
        guarded=frozenset(declared) if ledger.header.guarded else frozenset(),
        spoken={run: RunReplayed(run=run) for run in history.runs},
        uncovered=tuple(one.told for one in gaps),
        unshown=gaps,
    )


def _of_intents(intents: Intents, baseline: Recorded) -> Asked:
    header = intents.header
    if header.ledger and header.ledger != baseline.digest:
        raise IntentsError(
            f"these intents come from a replay of ledger {header.ledger[:12]}…, not of "
            f"{baseline.digest[:12]}…; replay this ledger and compare again",
            slug="intents-foreign-ledger",
        )
    if header.ledger and (wrong := contradiction(intents, baseline.history)):
        raise IntentsError(
            f"these intents say what the ledger contradicts: {wrong}; replay again",
            slug="intents-contradiction",
        )
    told = {run.run: run for run in intents.runs}
    asking = {intent.run: RunReplayed(run=intent.run) for intent in intents.intents}
    return Asked(
        intents=intents.intents,
        keyed_under=header.declarations,
        offered=frozenset(header.tools) if header.tools else None,
        guarded=frozenset(header.guarded),
        replayed=told if header.ledger else None,
        spoken=None if header.ledger else {**asking, **told},
        uncovered=header.uncovered,
        unshown=header.unshown,
        escapes=header.escapes,
        version=header.candidate,
        live=None if header.live is msgspec.UNSET else header.live,
    )


def _stated(
    declarations: Mapping[str, Declaration] | None, keyed_under: Mapping[str, Declaration]
) -> dict[str, Declaration]:
    """What holds for each tool: a declaration that is given takes the known parameters."""
    stated = dict(keyed_under)
    for tool, given in (declarations or {}).items():
        known = keyed_under.get(tool)
        stated[tool] = (
            given
            if given.schema or known is None
            else msgspec.structs.replace(given, schema=known.schema)
        )
    return stated


def _current(header: Header) -> dict[str, Declaration]:
    """The declaration that each tool of a ledger had last."""
    return {
        tool: header.declarations[digest]
        for tool, digest in header.tools.items()
        if digest in header.declarations
    }


def _committed(history: History, header: Header) -> Iterator[Intent]:
    for row in history.rows:
        if row.outcome is Outcome.COMMITTED:
            yield FromLedger(
                run=row.run,
                step=row.step,
                cursor=row.cursor,
                tool=row.tool,
                key=row.key,
                fingerprint=row.fingerprint,
                args=row.args,
                agent=row.agent,
                decl=row.decl or header.tools.get(row.tool, ""),
            )
