"""``backstop ledger import``: a record made elsewhere becomes a sealed ledger."""

from __future__ import annotations

from pathlib import Path

from backstop.adapters.chat import Selection, import_chat
from backstop.adapters.files import read_bytes, write_atomic
from backstop.cli.options import keep_apart, moment, pairs
from backstop.config import load
from backstop.core.ledgerfile import seal_lines, verify
from backstop.errors import UsageError
from backstop.reports.escape import plain
from backstop.wiring.redacting import redaction_key


def import_ledger(
    file: Path,
    *,
    kind: str,
    out: Path,
    config: Path,
    agent: str | None,
    where: list[str],
    run_field: str | None,
    at: str,
) -> str:
    """Import `file` to `out`; what came of it, in one line."""
    if kind != "chat":
        raise UsageError(f"--from: {kind!r} cannot be imported; this version knows: chat")
    keep_apart(out, file, config, option="--out")
    chosen = load(config).agent(agent)
    header, events = import_chat(
        read_bytes(file),
        name=str(file),
        namespace=chosen.namespace,
        declarations=chosen.declarations,
        selection=Selection(where=pairs(where, option="--where"), run_field=run_field),
        at=moment(at, option="--at"),
        key=redaction_key(),
    )
    data = b"".join(seal_lines(header, events))
    # What is written must stand up to the strict reader, whoever wrote the trajectories.
    summary = verify([data], name=str(out))
    write_atomic(out, data)
    return (
        f"{plain(str(out))}: imported. runs: {summary.runs:,}, events: {summary.events:,}, "
        f"side effects: {summary.effects:,}"
    )
