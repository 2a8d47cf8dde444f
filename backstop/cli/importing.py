"""``backstop ledger import``: a record made elsewhere becomes a sealed ledger."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from backstop.adapters.chat import Selection
from backstop.cli.options import keep_apart, moment, pairs
from backstop.config import load
from backstop.reports.escape import plain
from backstop.wiring.importing import Source, import_record
from backstop.wiring.redacting import redaction_key


def import_ledger(
    file: str,
    *,
    kind: str,
    out: Path,
    config: Path,
    agent: str | None,
    where: list[str],
    run_field: str | None,
    at: str,
) -> str:
    """Import `file`, a path or a URL, to `out`; what came of it, in one line.

    What the record could not tell is counted there, and named in the ledger's header.
    """
    keep_apart(out, *_files(file), config, option="--out")
    chosen = load(config).agent(agent)
    source = Source(
        place=file,
        namespace=chosen.namespace,
        declarations=chosen.declarations,
        selection=Selection(where=pairs(where, option="--where"), run_field=run_field),
        at=moment(at, option="--at"),
        key=redaction_key(),
    )
    summary = import_record(kind, source, out)
    gaps = summary.header.gaps or []
    untold = f", incomplete: {plain('; '.join(gaps))}" if gaps else ""
    return (
        f"{plain(str(out))}: imported. runs: {summary.runs:,}, events: {summary.events:,}, "
        f"side effects: {summary.effects:,}{untold}"
    )


def _files(place: str) -> list[Path]:
    """The files that are read at a path or URL: a ledger must take the place of none."""
    _, separator, file = place.partition(":///")
    named = Path(unquote(file.partition("?")[0]) if separator else place)
    return list(named.rglob("*.json")) if named.is_dir() else [named]
