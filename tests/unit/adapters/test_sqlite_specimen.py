"""The specimen comes out of the SQLite store as it was committed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from backstop.adapters.content import version_of
from backstop.adapters.sqlite.store import SqliteStore
from backstop.clock import SystemClock
from backstop.core.sealing import EVENT, seal_lines
from backstop.ports import Clock, LedgerStore
from examples.vendor_onboarding.record import AGENT, HERE, declared, header, record

LEDGER: Final = Path(__file__).parents[3] / "ledgers" / "vendor-onboarding.jsonl"
THE_END: Final = datetime(2026, 12, 31, tzinfo=UTC)


def test_the_specimen_told_into_sqlite_and_pulled_is_the_committed_ledger(tmp_path: Path) -> None:
    file, opening = tmp_path / "ledger.db", header(declared(), version_of(HERE / "v1"))

    def store(clock: Clock, is_alive: Callable[[str], bool]) -> LedgerStore:
        return SqliteStore(file, agent=AGENT, header=opening, clock=clock, is_alive=is_alive)

    _, told = record(store)
    with closing(SqliteStore(file, agent=AGENT, header=None, clock=SystemClock())) as ours:
        parts = ours.parts(THE_END)
        stamped = sorted(one for part in parts for one in ours.pull(part, at=THE_END))
        pulled = [EVENT.decode(one.line) for one in stamped]
        assert pulled == told
        assert b"".join(seal_lines(ours.header, pulled)) == LEDGER.read_bytes()
