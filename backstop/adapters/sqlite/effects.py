"""The rows of effects in a SQLite store: claimed, settled, and what is told from them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final

from backstop.adapters.memory import SEEN
from backstop.adapters.records import (
    Doubtful,
    Granted,
    Record,
    Ruling,
    check_owner,
    ruling,
    settling,
)
from backstop.adapters.sqlite import rows as sql
from backstop.adapters.sqlite.backlog import transaction
from backstop.adapters.sqlite.database import Database
from backstop.adapters.sqlite.rows import Columns, Row, Values, line_of, row_of
from backstop.adapters.stamps import Stamps, seconds
from backstop.core.events import EffectClaimed
from backstop.core.lifecycle import Illegal, Life, Move, Phase, advance, move_of
from backstop.ports import Answer, Claim, Liveness, Settlement

_REMEMBERED: Final = 1 << 16
"""Of how many keys a store remembers that they are taken, and need no attempt at a first claim."""


class Effects:
    """The effects of one `ledger` in a file; `is_alive` takes the place of owners' locks.

    `known` are keys that have a row, which none ever loses.
    """

    def __init__(
        self, file: Database, stamps: Stamps, is_alive: Callable[[str], bool | None] | None
    ) -> None:
        self._file = file
        self._stamps = stamps
        self._is_alive = is_alive
        self.ledger = 0
        self.known: set[str] = set()

    def claimed(self, db: sqlite3.Connection, intent: EffectClaimed) -> Claim | Answer:
        """Take the right to run `intent`, or say why not."""
        if intent.key not in self.known:
            try:
                if (claim := self._claim_fresh(db, intent)) is not None:
                    return claim
            except sqlite3.OperationalError:
                # What is on record is told even where nothing can be written.
                if (answer := self.answer(db, intent)) is None:
                    raise
                return answer
            if (answer := self.answer(db, intent)) is not None:
                return answer
        self._file.owner(db)  # what it puts on record outlives a transaction that fails
        with transaction(db):
            return self._claim_known(db, intent)

    def _claim_fresh(self, db: sqlite3.Connection, intent: EffectClaimed) -> Claim | None:
        """The claim on a key that has no row; None, and nothing done, if it has one."""
        ruled = ruling(None, intent, owner=lambda: Liveness.UNKNOWN, now=lambda: 0)
        if not isinstance(ruled, Granted):
            return None
        granted = self.insert(db, ruled)
        self.remember(intent.key)
        return _claim(ruled.event) if granted else None

    def insert(self, db: sqlite3.Connection, ruled: Granted) -> bool:
        """Write a key's first claim; False, and nothing done, if it has a row."""
        event = ruled.event
        said = (
            self.ledger,
            event.key,
            ruled.record.life.phase.value,
            event.fence,
            event.owner,
            self._file.owner(db),
            event.run,
            event.step,
            line_of(event),
        )
        return db.execute(sql.CLAIM, said).rowcount == 1

    def remember(self, key: str) -> None:
        """The key has a row, and that is on the disk."""
        if len(self.known) >= _REMEMBERED:
            self.known.clear()
        self.known.add(key)

    def answer(self, db: sqlite3.Connection, intent: EffectClaimed) -> Answer | None:
        """What is said of a key that has a row; None if something has to be written first."""
        _, ruled = self._ruled(db, intent)
        return None if isinstance(ruled, Granted | Doubtful) else ruled

    def _claim_known(self, db: sqlite3.Connection, intent: EffectClaimed) -> Claim | Answer:
        while True:
            row, ruled = self._ruled(db, intent)
            match ruled:
                case Granted(event=event, record=record):
                    self.keep(db, row, record, event)
                    return _claim(event)
                case Doubtful(event=doubt, record=record):
                    self.keep(db, row, record, doubt)
                case answer:
                    return answer

    def _ruled(self, db: sqlite3.Connection, intent: EffectClaimed) -> tuple[Row | None, Ruling]:
        row = self.row(db, intent.key)
        ruled = ruling(
            None if row is None else row.record,
            intent,
            owner=partial(self.owner, db, row),
            now=lambda: seconds(self._stamps.now()),
        )
        return row, ruled

    def settle(self, db: sqlite3.Connection, settlement: Settlement, claim: Claim | None) -> None:
        """Say what became of an effect."""
        if claim is not None and self._settle_first(db, settlement, claim):
            return
        with transaction(db):
            row = self.row(db, settlement.key)
            record = None if row is None else row.record
            check_owner(record, settlement, claim)
            self.keep(db, row, settling(record, settlement), settlement)

    def _settle_first(self, db: sqlite3.Connection, settlement: Settlement, claim: Claim) -> bool:
        """Settle what runs under `claim`, as it nearly always is; False, and nothing done, else."""
        moved = move_of(settlement)
        assert moved is not None, "every settlement moves a record"  # noqa: S101 - for the types
        key, move, fence = moved
        phase = _settled(move, claim.fence, fence)
        if phase is None:
            return False
        line = line_of(settlement)
        said = (phase, line, self.ledger, key, claim.fence, claim.owner, settlement.run)
        return db.execute(sql.SETTLE, said).rowcount == 1

    def keep(
        self,
        db: sqlite3.Connection,
        row: Row | None,
        record: Record,
        event: EffectClaimed | Settlement,
    ) -> None:
        """Write the record of a key that has a row; what it takes the place of stays readable."""
        assert row is not None, "a key without a row is claimed afresh"  # noqa: S101 - for the types
        stamp = self._stamps.next(db.execute(sql.FLOOR, {"ledger": self.ledger}).fetchone()[0])
        line = line_of(event)
        said: Values = {"id": row.id, "stamp": stamp, "line": line}
        said |= {"phase": record.life.phase.value, "fence": record.life.fence}
        moved = [] if row.settled is None or row.told else [sql.settlement_of(row)]
        if isinstance(event, EffectClaimed):
            moved.append(sql.claim_of(row))
            said |= {"since": row.since if record.since else None, **sql.lives_of(record)}
            said |= {"process": self._file.owner(db), "owner": event.owner}
            said |= {"run": event.run, "step": event.step}
            db.execute(sql.CLAIM_ANEW, said)
        else:
            told = event.run != row.record.claimed.run
            if told:
                moved.append({"run": event.run, "stamp": stamp, "tie": event.key, "line": line})
            said["told"] = told
            db.execute(sql.SETTLE_ANEW, said)
        for one in moved:
            db.execute(sql.MOVE, {"ledger": self.ledger, **one})

    def row(self, db: sqlite3.Connection, key: str) -> Row | None:
        """The row of a key; None if it was never claimed."""
        columns: Columns | None = db.execute(sql.BY_KEY, (self.ledger, key)).fetchone()
        if columns is None:
            return None
        row = row_of(columns)
        self._stamps.seen(row.claimed_at, row.settled_at)
        return row

    def owner(self, db: sqlite3.Connection, row: Row | None) -> Liveness:
        """What can be seen of whoever has the claim in force."""
        if row is None:
            return Liveness.UNKNOWN
        if self._is_alive is not None:
            return SEEN[self._is_alive(row.record.claimed.owner)]
        return self._file.liveness(db, row.process)


@lru_cache(maxsize=256)
def _settled(move: Move, held: int, fence: int) -> str | None:
    """The phase after a move that is made under `fence` while the claim `held` is executed."""
    after = advance(Life(phase=Phase.EXECUTING, fence=held), move, fence=fence)
    return None if isinstance(after, Illegal) else after.phase.value


def _claim(event: EffectClaimed) -> Claim:
    return Claim(run=event.run, key=event.key, owner=event.owner, fence=event.fence)
