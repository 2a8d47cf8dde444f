"""``backstop ledger pull``."""

from __future__ import annotations

import os
from pathlib import Path

from backstop.cli.ledgers import signed_by, unsettled
from backstop.cli.options import moment
from backstop.cli.progress import progress_bar
from backstop.cli.stores import Place
from backstop.clock import SystemClock
from backstop.reports.escape import plain
from backstop.reports.explain import count_of
from backstop.wiring.pulling import pull as run
from backstop.wiring.signing import signer


def pull(where: Place, *, out: Path, at: str | None, key: Path | None = None) -> str:
    """Pull a store's ledger to `out`, signed if there is a key; what it holds, in one line."""
    instant = None if at is None else moment(at, option="--at")
    now = SystemClock().now()
    who = signer(key, os.environ, now=now)
    store = where.open()
    with progress_bar("pulling parts") as progress:
        pulled = run(
            store,
            url=where.url,
            agent=where.agent,
            out=out,
            at=instant,
            now=now,
            signer=who,
            progress=progress,
        )
    found = pulled.summary
    again = ", taken up again" if pulled.resumed else ""
    return (
        f"{plain(str(out))}: pulled as of {pulled.at}{again}. {count_of(found.events, 'event')}, "
        f"{count_of(found.effects, 'side effect')}{unsettled(found)}, "
        f"{count_of(found.runs, 'run')} ({found.open_runs:,} open); holds, no silent skip; "
        f"sha256:{found.digest}; {signed_by(who)}"
    )
