"""``backstop report audit``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from backstop.cli.archiving import read_mark
from backstop.cli.options import Format
from backstop.cli.stores import place
from backstop.clock import SystemClock
from backstop.core.reckoning import Audit
from backstop.errors import UsageError
from backstop.reports.audit import audit_document, audit_table
from backstop.wiring.archives import is_archive, open_archive
from backstop.wiring.auditing import audit_archive, audit_file, audit_store


def audit(
    where: str, *, high_water: Path | None, config: Path, agent: str | None, form: Format
) -> str:
    """The audit of a ledger file, a store or an archive, as text or JSON."""
    found = _found(where, high_water=high_water, config=config, agent=agent)
    return audit_document(found) if form is Format.JSON else audit_table(found)


def _found(where: str, *, high_water: Path | None, config: Path, agent: str | None) -> Audit:
    if is_archive(where):
        mark = None if high_water is None else read_mark(high_water)
        with closing(open_archive(where, create=False)) as kept:
            return audit_archive(kept, name=where, agent=agent, mark=mark)
    if high_water is not None:
        raise UsageError(
            f"--high-water: {where} is no archive; `backstop ledger verify` holds a ledger to its "
            "own mark"
        )
    if "://" not in where:
        return audit_file(Path(where), source=where, agent=agent)
    named = place(store=where, config=config, agent=agent)
    return audit_store(named.open(), url=where, agent=named.agent, now=SystemClock().now())
