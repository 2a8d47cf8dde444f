"""The mesh's part of a SQLite store: its control state, what passed the gate, the recovery leases.

Its tables are made by the first write that needs them: a file without a mesh has none. A claim
with a precondition is one transaction that holds the write lock from its first look on, so a
trust break stands before it or behind it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar

import msgspec

from backstop.adapters.gating import (
    CONTROL,
    GATED,
    Leased,
    Passed,
    check_lease,
    claimed_override,
    event_of_break,
    gated_ruling,
    in_force,
    leasing,
    released,
    ruled_upon,
    spelled_control,
)
from backstop.adapters.records import Doubtful, Granted, standing
from backstop.adapters.sqlite import rows as sql
from backstop.adapters.sqlite.backlog import transaction
from backstop.adapters.sqlite.database import Database
from backstop.adapters.sqlite.effects import Effects
from backstop.adapters.sqlite.rows import Row, line_of
from backstop.adapters.stamps import Stamps, micros, seconds
from backstop.core.effectgate import (
    Control,
    Lease,
    Precondition,
    Reach,
    Times,
    broken,
    thawed,
    withheld,
)
from backstop.core.effecttrust import Gated, Ruled, trust_in
from backstop.core.events import EffectClaimed
from backstop.core.trustbreak import TrustBreak
from backstop.errors import BackstopError
from backstop.meshports import OutEffect
from backstop.ports import Answer, Claim, Clock, Held

R = TypeVar("R")

_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS mesh (
        ledger INTEGER PRIMARY KEY, seen INTEGER NOT NULL, control BLOB NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS mesh_effects (
        ledger INTEGER NOT NULL, key TEXT NOT NULL, run TEXT NOT NULL, gated BLOB NOT NULL,
        PRIMARY KEY (ledger, key)) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS mesh_effects_of_run ON mesh_effects (ledger, run)",
    """CREATE TABLE IF NOT EXISTS mesh_leases (
        ledger INTEGER NOT NULL, run TEXT NOT NULL, leased BLOB NOT NULL,
        PRIMARY KEY (ledger, run)) WITHOUT ROWID""",
)
_MADE: Final = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'mesh_leases'"
_STATE: Final = "SELECT seen, control FROM mesh WHERE ledger = ?"
_SEEN: Final = """
    INSERT INTO mesh (ledger, seen, control) VALUES (?1, ?2, ?3)
    ON CONFLICT DO UPDATE SET seen = ?2 WHERE seen < ?2
"""
_KEEP: Final = """
    INSERT INTO mesh (ledger, seen, control) VALUES (?1, ?2, ?3)
    ON CONFLICT DO UPDATE SET seen = max(seen, ?2), control = ?3
"""
_GATED: Final = "SELECT gated FROM mesh_effects WHERE ledger = ? AND key = ?"
_LET: Final = "INSERT OR REPLACE INTO mesh_effects (ledger, key, run, gated) VALUES (?, ?, ?, ?)"
_OUT: Final = """
    SELECT key, gated FROM mesh_effects WHERE ledger = ?1 AND (?2 IS NULL OR run = ?2)
"""
_LEASED: Final = "SELECT leased FROM mesh_leases WHERE ledger = ? AND run = ?"
_LEASE: Final = "INSERT OR REPLACE INTO mesh_leases (ledger, run, leased) VALUES (?, ?, ?)"

_LEASES: Final = msgspec.json.Decoder(Leased)
_NONE: Final = spelled_control(Control())


class _State(msgspec.Struct, frozen=True, kw_only=True):
    """The control state as it stands, and the latest time that was seen, as a stamp."""

    control: Control = Control()
    spelled: bytes = _NONE
    seen: int = 0


class Mesh:
    """The mesh of the ledger that `effects` are of. `clock` may be put back, and that is seen."""

    def __init__(self, effects: Effects, file: Database, stamps: Stamps, clock: Clock) -> None:
        self._effects = effects
        self._file = file
        self._stamps = stamps
        self._clock = clock
        self._made = False
        self._known = _State()

    def claim(self, intent: EffectClaimed, asked: Precondition) -> Claim | Answer:
        """Take the right to run `intent` if what is `asked` holds, or say why not."""

        def act(db: sqlite3.Connection) -> Claim | Answer:
            self._file.owner(db)  # what it puts on record outlives a transaction that fails
            self._make(db)
            with transaction(db):
                return self._claimed(db, intent, asked)

        answer = self._file.work(act, synced=True)
        if isinstance(answer, Claim):
            self._effects.remember(intent.key)
        return answer

    def control(self) -> Control:
        """The control state."""
        return self._read(lambda db: self._state(db).control, Control())

    def break_trust(self, found: TrustBreak, *, run: str, reach: Sequence[Reach]) -> Control:
        """Put a break on record, freeze what it reaches, and begin an epoch."""

        def act(db: sqlite3.Connection) -> Control:
            before = self._state(db).control
            control, one = broken(before, found, run=run, reach=reach)
            if control is not before:
                self._keep(db, control)
                line = line_of(event_of_break(one))
                db.execute(sql.APPEND, (self._effects.ledger, run, line))
            return control

        return self._write(act)

    def out(self, run: str | None) -> Iterator[OutEffect]:
        """The effects of a run, or of all, that passed the gate, oldest first."""

        def told(db: sqlite3.Connection) -> list[OutEffect]:
            control, now = self._state(db).control, seconds(self._stamps.now())
            found: list[tuple[Row, Gated]] = []
            for key, gated in db.execute(_OUT, (self._effects.ledger, run)).fetchall():
                row = self._effects.row(db, key)
                if row is not None:
                    found.append((row, _gated(gated)))
            found.sort(key=lambda pair: pair[0].since)
            return [
                OutEffect(
                    standing=standing(row.record, owner=self._effects.owner(db, row), now=now),
                    gated=gated,
                    trust=trust_in(gated, control),
                )
                for row, gated in found
            ]

        none: list[OutEffect] = []
        return iter(self._read(told, none))

    def lease(self, run: str, holder: str, *, lease_s: float, held: Lease | None) -> Lease | Held:
        """Take the right to recover a run, or go on with the one `held`."""

        def act(db: sqlite3.Connection) -> Lease | Held:
            now = max(seconds(self._stamps.now()), seconds(self._state(db).seen))
            known = self._leased(db, run)
            after = leasing(known, holder, lease_s=lease_s, held=held, now=now)
            if isinstance(after, Held):
                return after
            self._put_lease(db, run, after)
            return Lease(run=run, holder=holder, fence=after.fence)

        return self._write(act)

    def recovering(self, run: str) -> Lease | None:
        """The lease on a run that is in force."""

        def told(db: sqlite3.Connection) -> Lease | None:
            now = max(seconds(self._stamps.now()), seconds(self._state(db).seen))
            return in_force(self._leased(db, run), run, now=now)

        return self._read(told, None)

    def rule(self, ruled: Sequence[Ruled], *, lease: Lease | None) -> None:
        """Say what becomes of effects in which trust broke."""

        def act(db: sqlite3.Connection) -> None:
            if lease is not None:
                check_lease(lease, self._leased(db, lease.run).fence)
            control = self._state(db).control
            for one in ruled:
                before = self._gated(db, one.key)
                after = ruled_upon(before, one, control, lease=lease is not None)
                self._pass(db, one.key, after)

        self._write(act)

    def thaw(self, reach: Sequence[Reach], *, lease: Lease, epoch: int) -> bool:
        """Let go of what was frozen up to `epoch`, unless trust broke since."""

        def act(db: sqlite3.Connection) -> bool:
            check_lease(lease, self._leased(db, lease.run).fence)
            control = thawed(self._state(db).control, reach, epoch=epoch)
            if control is not None:
                self._keep(db, control)
            return control is not None

        return self._write(act)

    def record(self, lease: Lease, add: Callable[[sqlite3.Connection], object]) -> None:
        """`add` what was made under a lease, if that is in force."""

        def act(db: sqlite3.Connection) -> None:
            check_lease(lease, self._leased(db, lease.run).fence)
            add(db)

        self._write(act)

    def release(self, lease: Lease) -> None:
        """Give the right to recover a run back."""

        def act(db: sqlite3.Connection) -> None:
            after = released(self._leased(db, lease.run), lease)
            if after is not None:
                self._put_lease(db, lease.run, after)

        self._write(act)

    def _claimed(
        self, db: sqlite3.Connection, intent: EffectClaimed, asked: Precondition
    ) -> Claim | Answer:
        state = self._state(db)
        now = micros(self._clock.now())
        fence = 0 if asked.lease is None else self._leased(db, asked.lease.run).fence
        times = Times(now=seconds(now), seen=seconds(state.seen))
        if (why := withheld(state.control, asked, times, fence=fence)) is not None:
            return why
        while True:
            row = self._effects.row(db, intent.key)
            passed = self._ruled(db, row, intent, asked, state.control)
            if passed.gated is not None:
                self._pass(db, intent.key, passed.gated)
            match passed.ruled:
                case Granted(event=event, record=record) as granted:
                    if row is None:
                        self._effects.insert(db, granted)
                    else:
                        self._effects.keep(db, row, record, event)
                    db.execute(_SEEN, (self._effects.ledger, now, state.spelled))
                    return Claim(
                        run=event.run,
                        key=event.key,
                        owner=event.owner,
                        fence=event.fence,
                        override=claimed_override(granted, intent),
                    )
                case Doubtful(event=doubt, record=record):
                    self._effects.keep(db, row, record, doubt)
                case answer:
                    return answer

    def _ruled(
        self,
        db: sqlite3.Connection,
        row: Row | None,
        intent: EffectClaimed,
        asked: Precondition,
        control: Control,
    ) -> Passed:
        return gated_ruling(
            None if row is None else row.record,
            None if row is None else self._gated(db, intent.key),
            intent,
            asked,
            control,
            owner=partial(self._effects.owner, db, row),
            now=lambda: seconds(self._stamps.now()),
        )

    def _write(self, act: Callable[[sqlite3.Connection], R]) -> R:
        def whole(db: sqlite3.Connection) -> R:
            self._make(db)
            with transaction(db):
                return act(db)

        return self._file.work(whole, synced=True)

    def _read(self, act: Callable[[sqlite3.Connection], R], nothing: R) -> R:
        def look(db: sqlite3.Connection) -> R:
            if not self._made and db.execute(_MADE).fetchone() is None:
                return nothing
            db.execute("BEGIN")  # all of it as of one instant
            try:
                return act(db)
            finally:
                db.execute("ROLLBACK")

        return self._file.work(look)

    def _make(self, db: sqlite3.Connection) -> None:
        if not self._made:
            with transaction(db):
                for statement in _TABLES:
                    db.execute(statement)
            self._made = True

    def _state(self, db: sqlite3.Connection) -> _State:
        found = db.execute(_STATE, (self._effects.ledger,)).fetchone()
        if found is None:
            return _State()
        seen, spelled = found
        control = self._known.control
        if spelled != self._known.spelled:  # parsed once, however many claims look at it
            control = _parsed(spelled)
        self._known = _State(control=control, spelled=spelled, seen=seen)
        return self._known

    def _keep(self, db: sqlite3.Connection, control: Control) -> None:
        now = micros(self._clock.now())
        db.execute(_KEEP, (self._effects.ledger, now, spelled_control(control)))

    def _gated(self, db: sqlite3.Connection, key: str) -> Gated | None:
        found = db.execute(_GATED, (self._effects.ledger, key)).fetchone()
        return None if found is None else _gated(found[0])

    def _pass(self, db: sqlite3.Connection, key: str, gated: Gated) -> None:
        said = self._effects.ledger, key, gated.place.run, msgspec.json.encode(gated)
        db.execute(_LET, said)

    def _leased(self, db: sqlite3.Connection, run: str) -> Leased:
        found = db.execute(_LEASED, (self._effects.ledger, run)).fetchone()
        return Leased() if found is None else _read(_LEASES, found[0])

    def _put_lease(self, db: sqlite3.Connection, run: str, leased: Leased) -> None:
        db.execute(_LEASE, (self._effects.ledger, run, msgspec.json.encode(leased)))


def _parsed(spelled: bytes) -> Control:
    return _read(CONTROL, spelled)


def _gated(spelled: bytes) -> Gated:
    return _read(GATED, spelled)


def _read(decoder: msgspec.json.Decoder[R], spelled: bytes) -> R:
    try:
        return decoder.decode(spelled)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BackstopError(
            f"the mesh's row {spelled[:60]!r}… cannot be read ({error}): no effect goes out; "
            "restore the row, or use the Backstop that wrote it",
            slug="store-unreadable",
        ) from error
