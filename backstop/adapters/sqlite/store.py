"""The embedded store: a SQLite file that several processes of one machine share.

A fresh claim is one statement that is on the disk before the effect starts, its settlement one
that outlives the process. All else is done in a transaction of its own. Whether the owner of a
claim runs is told by a lock that its process holds (`backstop.adapters.owners`), not by a lease.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import ClassVar, Final

from backstop.adapters.memory import SEEN
from backstop.adapters.owed import Owed
from backstop.adapters.records import (
    Doubtful,
    Granted,
    Record,
    Ruling,
    check_owner,
    ruling,
    settling,
    standing,
    undecided,
)
from backstop.adapters.sqlite import rows as sql
from backstop.adapters.sqlite.backlog import transaction
from backstop.adapters.sqlite.database import Database
from backstop.adapters.sqlite.erasing import rewrite, scrub
from backstop.adapters.sqlite.file import Durability, is_read_only
from backstop.adapters.sqlite.rows import Columns, Row, Values, event_of, line_of, row_of
from backstop.adapters.stamps import Stamps, micros, seconds
from backstop.core.events import (
    RECORDED,
    CallAnswered,
    CursorAdvanced,
    EffectClaimed,
    EffectResolved,
    Event,
    Header,
    RunClosed,
    once,
)
from backstop.core.header import merged
from backstop.core.lifecycle import Illegal, Life, Move, Phase, advance, move_of
from backstop.core.sealing import encode
from backstop.errors import BackstopError, LedgerError
from backstop.ports import (
    Answer,
    Claim,
    Clock,
    Liveness,
    Rewriting,
    Settlement,
    Stamped,
    Standing,
)

_REMEMBERED: Final = 1 << 16
"""Of how many keys a store remembers that they are taken, and need no attempt at a first claim."""


class SqliteStore:
    """A `Store` in the file at `path`, which may hold the ledgers of several agents.

    With a `header` it is opened to write: the file is made where there is none, and the header
    registered. Without one the ledger of `agent` has to be there. `is_alive` takes the place of
    the locks that tell whether an owner still runs; None means that nobody can see. Safe from
    several threads; a forked child opens the file anew.
    """

    blocking: ClassVar[bool] = False

    def __init__(
        self,
        path: Path,
        *,
        agent: str,
        header: Header | None,
        clock: Clock,
        durability: Durability = Durability.POWER,
        is_alive: Callable[[str], bool | None] | None = None,
    ) -> None:
        # One place for all: whoever changes folder, or comes by a link, finds the same locks.
        path = self._path = Path(os.path.realpath(path))
        self._agent = agent
        self._is_alive = is_alive
        self._stamps = Stamps(clock)
        self._rows: set[str] = set()  # keys that have a row, which none ever loses
        self._owed = Owed()
        self._file = Database(
            path, create=header is not None, durability=durability, stamp=self._stamps.next
        )
        self._ledger, self.header = self._file.work(
            self._known if header is None else lambda db: self._register(db, header), synced=True
        )

    def close(self) -> None:
        """Let go of the file. Owners stay what they are: their processes still run."""
        self._file.close()

    def append(self, event: Event) -> bool:
        """Add a fact that is not about an effect's record, once."""
        if move_of(event) is not None:
            raise BackstopError(
                f"{type(event).__name__} cannot be appended: claim or settle the effect",
                slug="illegal-move",
            )
        if isinstance(event, CallAnswered) and event.how == RECORDED:
            # It follows from what is on record, and nothing was done for it: it may wait.
            self._file.put_off(sql.APPEND, (self._ledger, event.run, line_of(event)))
            return True
        # A message is acknowledged once the cursor has moved: nothing brings it back.
        synced = isinstance(event, CursorAdvanced | RunClosed)
        return self._file.work(lambda db: self._appended(db, event), synced=synced)

    def claim(self, intent: EffectClaimed) -> Claim | Answer:
        """Take the right to run `intent`, or say why not."""
        self._owed.pay(self._settled)
        # What is known, or comes after what was told from the record, mostly is told from it
        # too: there is nothing to write then, nor to sync.
        if intent.key in self._rows or self._file.is_behind:
            answer = self._file.work(lambda db: self._answer(db, intent), behind=True)
            if answer is not None:
                return answer
        return self._file.work(lambda db: self._claimed(db, intent), synced=True)

    def settle(self, settlement: Settlement, *, claim: Claim | None = None) -> None:
        """Say what became of an effect."""
        self._settled(settlement, claim)

    def read(self, run: str | None = None) -> Iterator[Event]:
        """The events of one run, or of all, in the order in which they happened."""
        self._owed.pay(self._settled)
        said: Values = {"ledger": self._ledger, "run": run}
        found = sql.OF_ALL if run is None else sql.OF_RUN

        def told(db: sqlite3.Connection) -> list[tuple[int, str, bytes]]:
            rows = db.execute(found, said).fetchall()
            rows.sort(key=lambda row: row[:2])
            self._stamps.seen(rows[-1][0] if rows else None)
            return rows

        return (event_of(stamp, line) for stamp, _, line in self._file.work(told))

    def standings(self, key: str | None = None) -> Iterator[Standing]:
        """Every effect that is not decided, oldest first; or that of `key`, decided or not."""
        said: Values = {"ledger": self._ledger, "key": key}
        found = sql.UNDECIDED if key is None else sql.BY_PREFIX

        def shown(db: sqlite3.Connection) -> list[Standing]:
            rows = sorted(map(row_of, db.execute(found, said)), key=lambda row: row.since)
            now = seconds(self._stamps.now())
            return [standing(row.record, owner=self._owner(db, row), now=now) for row in rows]

        return iter(self._file.work(shown))

    def parts(self, at: datetime) -> Sequence[str]:
        """One part: all of it. From now on nothing is written into the time up to `at`."""
        self._file.work(lambda db: self._close_off(db, at))
        self._ledger, self.header = self._file.work(self._known)
        return ("all",)

    def pull(self, part: str, *, at: datetime) -> Iterator[Stamped]:  # noqa: ARG002 - the only one
        """The events up to `at`."""
        self._file.work(lambda db: self._close_off(db, at))
        return self._pulled(micros(at))

    def rewrite(self, rewriting: Rewriting) -> None:
        """Change all lines at once, or none; nothing of what was there stays in the files."""

        def changed(db: sqlite3.Connection) -> None:
            with transaction(db):
                rewrite(db, self._ledger, rewriting)

        self._file.work(changed, synced=True)
        self._file.work(scrub)

    def _pulled(self, last: int) -> Iterator[Stamped]:
        with self._file.snapshot() as db:
            yield from sql.stamped(db.execute(sql.UP_TO, {"ledger": self._ledger, "last": last}))

    def _register(self, db: sqlite3.Connection, header: Header) -> tuple[int, Header]:
        with transaction(db):
            found = self._found(db)
            if found is None:
                self._said_header(db, header, sql.FIRST_HEADER)
            elif (grown := merged(found[1], header)) != found[1]:
                self._said_header(db, grown, sql.LATER_HEADER)
            return self._known(db)

    def _said_header(self, db: sqlite3.Connection, header: Header, statement: str) -> None:
        db.execute(statement, {"agent": self._agent, "header": encode(header)})

    def _known(self, db: sqlite3.Connection) -> tuple[int, Header]:
        found = self._found(db)
        if found is None:
            raise LedgerError(
                f"{self._path} holds no ledger of agent {self._agent!r}; correct the name",
                slug="store-missing",
            )
        return found

    def _found(self, db: sqlite3.Connection) -> tuple[int, Header] | None:
        row = db.execute(sql.HEADER, {"agent": self._agent}).fetchone()
        return None if row is None else (row[0], sql.header_of(row[1]))

    def _appended(self, db: sqlite3.Connection, event: Event) -> bool:
        if not isinstance(event, CursorAdvanced):
            return self._append(db, event)
        with transaction(db):
            self._check_cursor(db, event)
            return self._append(db, event)

    def _append(self, db: sqlite3.Connection, event: Event) -> bool:
        name, line = once(event), line_of(event)
        if name is None:
            db.execute(sql.APPEND, (self._ledger, event.run, line))
            return True
        if db.execute(sql.APPEND_ONCE, (self._ledger, event.run, line, name)).rowcount == 1:
            return True
        self._stamps.seen(db.execute(sql.SAID, (self._ledger, event.run, name)).fetchone()[0])
        return False

    def _check_cursor(self, db: sqlite3.Connection, event: CursorAdvanced) -> None:
        said: Values = {"ledger": self._ledger, "run": event.run, "step": event.step}
        of_step = db.execute(sql.OF_STEP, said).fetchall()
        named = [
            db.execute(sql.NAMED, {"ledger": self._ledger, "key": key}).fetchone()
            or (key, Phase.ABSENT, None, None)
            for key in event.effects
        ]
        for _, _, claimed_at, settled_at in (*of_step, *named):
            self._stamps.seen(claimed_at, settled_at)
        undecided(
            event,
            [(key, Phase(phase)) for key, phase, *_ in of_step],
            [(key, Phase(phase)) for key, phase, *_ in named],
        )

    def _claimed(self, db: sqlite3.Connection, intent: EffectClaimed) -> Claim | Answer:
        if intent.key not in self._rows:
            try:
                if (claim := self._claim_fresh(db, intent)) is not None:
                    return claim
            except sqlite3.OperationalError:
                # What is on record is told even where nothing can be written.
                if (answer := self._answer(db, intent)) is None:
                    raise
                return answer
            if (answer := self._answer(db, intent)) is not None:
                return answer
        self._file.owner(db)  # what it puts on record outlives a transaction that fails
        with transaction(db):
            return self._claim_known(db, intent)

    def _claim_fresh(self, db: sqlite3.Connection, intent: EffectClaimed) -> Claim | None:
        """The claim on a key that has no row; None, and nothing done, if it has one."""
        ruled = ruling(None, intent, owner=lambda: Liveness.UNKNOWN, now=lambda: 0)
        if not isinstance(ruled, Granted):
            return None
        event = ruled.event
        said = (
            self._ledger,
            event.key,
            ruled.record.life.phase.value,
            event.fence,
            event.owner,
            self._file.owner(db),
            event.run,
            event.step,
            line_of(event),
        )
        granted = db.execute(sql.CLAIM, said).rowcount == 1
        if len(self._rows) >= _REMEMBERED:
            self._rows.clear()
        self._rows.add(event.key)
        return _claim(event) if granted else None

    def _answer(self, db: sqlite3.Connection, intent: EffectClaimed) -> Answer | None:
        """What is said of a key that has a row; None if something has to be written first."""
        _, ruled = self._ruled(db, intent)
        return None if isinstance(ruled, Granted | Doubtful) else ruled

    def _claim_known(self, db: sqlite3.Connection, intent: EffectClaimed) -> Claim | Answer:
        while True:
            row, ruled = self._ruled(db, intent)
            match ruled:
                case Granted(event=event, record=record):
                    self._keep(db, row, record, event)
                    return _claim(event)
                case Doubtful(event=doubt, record=record):
                    self._keep(db, row, record, doubt)
                case answer:
                    return answer

    def _ruled(self, db: sqlite3.Connection, intent: EffectClaimed) -> tuple[Row | None, Ruling]:
        row = self._row(db, intent.key)
        ruled = ruling(
            None if row is None else row.record,
            intent,
            owner=partial(self._owner, db, row),
            now=lambda: seconds(self._stamps.now()),
        )
        return row, ruled

    def _settled(self, settlement: Settlement, claim: Claim | None) -> None:
        synced = isinstance(settlement, EffectResolved)
        try:
            self._file.work(lambda db: self._settle(db, settlement, claim), synced=synced)
        except BackstopError as error:
            self._owed.note(settlement, claim, error)
            raise

    def _settle(self, db: sqlite3.Connection, settlement: Settlement, claim: Claim | None) -> None:
        if claim is not None and self._settle_first(db, settlement, claim):
            return
        with transaction(db):
            row = self._row(db, settlement.key)
            record = None if row is None else row.record
            check_owner(record, settlement, claim)
            self._keep(db, row, settling(record, settlement), settlement)

    def _settle_first(self, db: sqlite3.Connection, settlement: Settlement, claim: Claim) -> bool:
        """Settle what runs under `claim`, as it nearly always is; False, and nothing done, else."""
        moved = move_of(settlement)
        assert moved is not None, "every settlement moves a record"  # noqa: S101 - for the types
        key, move, fence = moved
        phase = _settled(move, claim.fence, fence)
        if phase is None:
            return False
        line = line_of(settlement)
        said = (phase, line, self._ledger, key, claim.fence, claim.owner, settlement.run)
        return db.execute(sql.SETTLE, said).rowcount == 1

    def _keep(
        self,
        db: sqlite3.Connection,
        row: Row | None,
        record: Record,
        event: EffectClaimed | Settlement,
    ) -> None:
        """Write the record of a key that has a row; what it takes the place of stays readable."""
        assert row is not None, "a key without a row is claimed afresh"  # noqa: S101 - for the types
        stamp = self._stamps.next(db.execute(sql.FLOOR, {"ledger": self._ledger}).fetchone()[0])
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
            db.execute(sql.MOVE, {"ledger": self._ledger, **one})

    def _row(self, db: sqlite3.Connection, key: str) -> Row | None:
        columns: Columns | None = db.execute(sql.BY_KEY, (self._ledger, key)).fetchone()
        if columns is None:
            return None
        row = row_of(columns)
        self._stamps.seen(row.claimed_at, row.settled_at)
        return row

    def _owner(self, db: sqlite3.Connection, row: Row | None) -> Liveness:
        if row is None:
            return Liveness.UNKNOWN
        if self._is_alive is not None:
            return SEEN[self._is_alive(row.record.claimed.owner)]
        return self._file.liveness(db, row.process)

    def _close_off(self, db: sqlite3.Connection, at: datetime) -> None:
        """No event gets a stamp up to `at` any more, as far as that has passed."""
        said = {"ledger": self._ledger, "floor": min(micros(at), self._stamps.now())}
        try:
            db.execute(sql.CLOSE_OFF, said)
        except sqlite3.OperationalError as error:
            if not is_read_only(error):
                raise  # where nothing can be written, nothing has to be kept from it


@lru_cache(maxsize=256)
def _settled(move: Move, held: int, fence: int) -> str | None:
    """The phase after a move that is made under `fence` while the claim `held` is executed."""
    after = advance(Life(phase=Phase.EXECUTING, fence=held), move, fence=fence)
    return None if isinstance(after, Illegal) else after.phase.value


def _claim(event: EffectClaimed) -> Claim:
    return Claim(run=event.run, key=event.key, owner=event.owner, fence=event.fence)
