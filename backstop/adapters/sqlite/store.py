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
from pathlib import Path
from typing import ClassVar

from backstop.adapters.owed import Owed
from backstop.adapters.records import (
    standing,
    undecided,
)
from backstop.adapters.sqlite import rows as sql
from backstop.adapters.sqlite.backlog import transaction
from backstop.adapters.sqlite.database import Database
from backstop.adapters.sqlite.effects import Effects
from backstop.adapters.sqlite.erasing import rewrite, scrub
from backstop.adapters.sqlite.file import Durability, is_read_only
from backstop.adapters.sqlite.mesh import Mesh
from backstop.adapters.sqlite.rows import Values, event_of, line_of, row_of
from backstop.adapters.stamps import Stamps, micros, seconds
from backstop.core.effectgate import Control, Lease, Precondition, Reach
from backstop.core.effecttrust import Ruled
from backstop.core.events import (
    RECORDED,
    CallAnswered,
    Checkpointed,
    CursorAdvanced,
    EffectClaimed,
    EffectResolved,
    Event,
    Header,
    RunClosed,
    once,
)
from backstop.core.header import merged
from backstop.core.lifecycle import Phase, move_of
from backstop.core.sealing import encode
from backstop.core.trustbreak import TrustBreak
from backstop.errors import BackstopError, LedgerError
from backstop.meshports import OutEffect
from backstop.ports import (
    Answer,
    Claim,
    Clock,
    Held,
    Rewriting,
    Settlement,
    Stamped,
    Standing,
)


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
        self._stamps = Stamps(clock)
        self._owed = Owed()
        self._file = Database(
            path, create=header is not None, durability=durability, stamp=self._stamps.next
        )
        self._effects = Effects(self._file, self._stamps, is_alive)
        self._mesh = Mesh(self._effects, self._file, self._stamps, clock)
        self._effects.ledger, self.header = self._file.work(
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

    def claim(
        self, intent: EffectClaimed, precondition: Precondition | None = None
    ) -> Claim | Answer:
        """Take the right to run `intent`, or say why not."""
        self._owed.pay(self._settled)
        if precondition is not None:
            return self._mesh.claim(intent, precondition)
        # What is known, or comes after what was told from the record, mostly is told from it
        # too: there is nothing to write then, nor to sync.
        if intent.key in self._effects.known or self._file.is_behind:
            answer = self._file.work(lambda db: self._effects.answer(db, intent), behind=True)
            if answer is not None:
                return answer
        return self._file.work(lambda db: self._effects.claimed(db, intent), synced=True)

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
            return [
                standing(row.record, owner=self._effects.owner(db, row), now=now) for row in rows
            ]

        return iter(self._file.work(shown))

    def control(self) -> Control:
        """The control state of the mesh."""
        return self._mesh.control()

    def break_trust(self, found: TrustBreak, *, run: str, reach: Sequence[Reach]) -> Control:
        """Put a break on record, freeze what it reaches, and begin an epoch."""
        return self._mesh.break_trust(found, run=run, reach=reach)

    def out(self, run: str | None = None) -> Iterator[OutEffect]:
        """The effects of a run, or of all, that passed the gate, oldest first."""
        return self._mesh.out(run)

    def lease(
        self, run: str, holder: str, *, lease_s: float, held: Lease | None = None
    ) -> Lease | Held:
        """Take the right to recover a run, or go on with the one `held`."""
        return self._mesh.lease(run, holder, lease_s=lease_s, held=held)

    def recovering(self, run: str) -> Lease | None:
        """The lease on a run that is in force."""
        return self._mesh.recovering(run)

    def rule(self, ruled: Sequence[Ruled], *, lease: Lease | None) -> None:
        """Say what becomes of effects in which trust broke."""
        self._mesh.rule(ruled, lease=lease)

    def thaw(self, reach: Sequence[Reach], *, lease: Lease, epoch: int) -> bool:
        """Let go of what was frozen up to `epoch`, unless trust broke since."""
        return self._mesh.thaw(reach, lease=lease, epoch=epoch)

    def record(self, made: Checkpointed, *, lease: Lease) -> None:
        """Add a checkpoint that was made under a lease, if that is in force."""
        self._mesh.record(lease, lambda db: self._append(db, made))

    def release(self, lease: Lease) -> None:
        """Give the right to recover a run back."""
        self._mesh.release(lease)

    def parts(self, at: datetime) -> Sequence[str]:
        """One part: all of it. From now on nothing is written into the time up to `at`."""
        self._file.work(lambda db: self._close_off(db, at))
        self._effects.ledger, self.header = self._file.work(self._known)
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

    @property
    def _ledger(self) -> int:
        return self._effects.ledger

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

    def _settled(self, settlement: Settlement, claim: Claim | None) -> None:
        synced = isinstance(settlement, EffectResolved)
        try:
            self._file.work(lambda db: self._effects.settle(db, settlement, claim), synced=synced)
        except BackstopError as error:
            self._owed.note(settlement, claim, error)
            raise

    def _close_off(self, db: sqlite3.Connection, at: datetime) -> None:
        """No event gets a stamp up to `at` any more, as far as that has passed."""
        said = {"ledger": self._ledger, "floor": min(micros(at), self._stamps.now())}
        try:
            db.execute(sql.CLOSE_OFF, said)
        except sqlite3.OperationalError as error:
            if not is_read_only(error):
                raise  # where nothing can be written, nothing has to be kept from it
