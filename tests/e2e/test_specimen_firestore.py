"""The specimen comes out of Firestore as it was committed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from backstop.adapters.content import version_of
from backstop.adapters.firestore import FirestoreStore, Options
from backstop.core.sealing import EVENT, seal_lines
from backstop.ports import Clock, LedgerStore
from examples.vendor_onboarding.record import AGENT, HERE, declared, header, record
from tests.emulators import firestore, fresh_name

LEDGER: Final = Path(__file__).parents[2] / "ledgers" / "vendor-onboarding.jsonl"
THE_END: Final = datetime(2026, 12, 31, tzinfo=UTC)


@pytest.mark.emulator
def test_the_specimen_told_into_firestore_and_pulled_is_the_committed_ledger() -> None:
    opening = header(declared(), version_of(HERE / "v1"))
    opened: list[FirestoreStore] = []

    def store(clock: Clock, is_alive: Callable[[str], bool]) -> LedgerStore:
        opened.append(
            FirestoreStore(
                project="p",
                database="(default)",
                collection=fresh_name(),
                agent=AGENT,
                header=opening,
                clock=clock,
                emulator=firestore(),
                options=Options(is_alive=is_alive, patience_s=30),
            )
        )
        return opened[0]

    _, told = record(store)
    (ours,) = opened
    stamped = [each for part in ours.parts(THE_END) for each in ours.pull(part, at=THE_END)]
    pulled = [EVENT.decode(each.line) for each in sorted(stamped)]
    ours.close()
    assert pulled == told
    assert b"".join(seal_lines(ours.header, pulled)) == LEDGER.read_bytes()
