"""Does an intents file say anything that the ledger it claims to replay contradicts?

An intents file is our own artefact and sealed, but a seal is no signature: whoever edits the
file can seal it again. What it says of runs, steps and answers decides how far it is believed,
so it is held to the ledger. Keys are held to their arguments by `backstop.core.keycheck`.
"""

from __future__ import annotations

from collections.abc import Mapping

from backstop.core.declaration import Scope
from backstop.core.history import History, Row
from backstop.core.intents import Intent, IntentsHeader, Pass
from backstop.core.intentsfile import Intents


def contradiction(intents: Intents, history: History) -> str | None:
    """The first thing that a replay of this ledger cannot have said, in words; or None."""
    known = set(history.runs)
    told: set[str] = set()
    for run in intents.runs:
        if run.run not in known:
            return f"run {run.run!r} was replayed, and is not in the ledger"
        if run.run in told:
            return f"run {run.run!r} is told of twice"
        if run.steps_assumed < 0:
            return f"run {run.run!r} has fewer than no assumed steps"
        told.add(run.run)
    cursors = {(row.run, row.step): row.cursor for row in history.rows}
    rows = {row.index: row for row in history.rows}
    for number, intent in enumerate(intents.intents, start=1):
        row = rows.get(-1 if intent.answered_by is None else intent.answered_by)
        if row is not None and (row.run, row.step, row.cursor) == _place(intent):
            continue  # what nearly every intent says: the call of its own step answered it
        if wrong := (
            _out_of_place(intent, history, known, cursors)
            or _answered_from_elsewhere(intent, history, rows, intents.header)
        ):
            return f"intent {number} ({intent.tool}) {wrong}"
    return None


def _place(intent: Intent) -> tuple[str, str, int] | None:
    """Run, step and cursor; None for a handover, of which more must hold."""
    if intent.replay is not Pass.FULL:
        return None
    return intent.run, intent.step, intent.cursor


def _out_of_place(
    intent: Intent, history: History, known: set[str], cursors: Mapping[tuple[str, str], int]
) -> str | None:
    if intent.run not in known:
        return f"is of run {intent.run!r}, which is not in the ledger"
    if intent.replay is Pass.HANDOVER and intent.run not in history.open:
        return f"is of the handover of run {intent.run!r}, which is closed"
    cursor = cursors.get((intent.run, intent.step), intent.cursor)
    if intent.cursor != cursor:
        return f"has step {intent.step!r} at {intent.cursor}, where the ledger has it at {cursor}"
    return None


def _answered_from_elsewhere(
    intent: Intent, history: History, rows: Mapping[int, Row], header: IntentsHeader
) -> str | None:
    index = intent.answered_by
    if index is None:
        return None
    if not 0 <= index < history.events:
        return f"was answered by event {index}, of {history.events}"
    row = rows.get(index)
    declared = header.declarations.get(intent.tool)
    everywhere = declared is not None and declared.scope is Scope.AGENT
    if row is not None and row.run != intent.run and not everywhere:
        return f"was answered by a call of run {row.run!r}, and belongs to run {intent.run!r}"
    return None
