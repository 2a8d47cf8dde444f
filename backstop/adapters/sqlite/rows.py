"""Rows of the SQLite store and the records they stand for, and the statements that touch them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

import msgspec

from backstop.adapters.records import Record
from backstop.adapters.stamps import seconds, written
from backstop.core.events import (
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectInDoubt,
    EffectResolved,
    Event,
    Header,
)
from backstop.core.lifecycle import Life, Phase
from backstop.core.sealing import EVENT, encode
from backstop.errors import BackstopError
from backstop.ports import Settlement, Stamped

# `stamp` is a function of ours. It runs while the write lock is held: the order in the file and
# the order of stamps agree. The statements of the hot path number their parameters, which costs
# less than to name them.
CLAIM: Final = """
    INSERT INTO effects (ledger, key, phase, fence, owner, process, run, step, claimed_at, claimed)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, stamp((SELECT floor FROM ledgers WHERE id = ?1)), ?9)
    ON CONFLICT DO NOTHING
"""

SETTLE: Final = """
    UPDATE effects SET phase = ?1, settled = ?2,
    settled_at = stamp(max((SELECT floor FROM ledgers WHERE id = ?3), claimed_at))
    WHERE ledger = ?3 AND key = ?4 AND fence = ?5 AND owner = ?6 AND run = ?7
    AND phase = 'executing'
"""

_AFTER: Final = """
    stamp(max((SELECT floor FROM ledgers WHERE id = ?1), coalesce(
        (SELECT max(stamp) FROM events WHERE ledger = ?1 AND run = ?2), 0)))
"""
APPEND: Final = f"""
    INSERT INTO events (ledger, run, stamp, tie, line) VALUES (?1, ?2, {_AFTER}, '', ?3)
"""  # noqa: S608 - put together from constants
APPEND_ONCE: Final = f"""
    INSERT INTO events (ledger, run, stamp, tie, line, once)
    SELECT ?1, ?2, {_AFTER}, '', ?3, ?4 WHERE NOT EXISTS (
        SELECT 1 FROM events WHERE ledger = ?1 AND run = ?2 AND once = ?4)
"""  # noqa: S608 - put together from constants

MOVE: Final = """
    INSERT INTO events (ledger, run, stamp, tie, line)
    VALUES (:ledger, :run, :stamp, :tie, :line)
"""

SETTLE_ANEW: Final = """
    UPDATE effects SET phase = :phase, fence = :fence, settled_at = :stamp, settled = :line,
    told = :told WHERE id = :id
"""

CLAIM_ANEW: Final = """
    UPDATE effects SET phase = :phase, fence = :fence, owner = :owner, process = :process,
    run = :run, step = :step, since = :since, claimed_at = :stamp, claimed = :line,
    settled_at = NULL, settled = NULL, told = 0, overrides = :overrides, done = :done
    WHERE id = :id
"""

_ROW: Final = """
    SELECT id, phase, fence, process, since, claimed_at, settled_at, told, overrides, done,
    claimed, settled FROM effects WHERE ledger = :ledger
"""
BY_KEY: Final = f"{_ROW.replace(':ledger', '?1')} AND key = ?2"
UNDECIDED: Final = f"{_ROW} AND phase NOT IN ('committed', 'failed') ORDER BY id"
BY_PREFIX: Final = f"{_ROW} AND key >= :key AND key < :key || char(1114111) ORDER BY id"

SAID: Final = """
    SELECT stamp FROM events WHERE ledger = ? AND run = ? AND once = ?
"""

HEADER: Final = "SELECT id, header FROM ledgers WHERE agent = :agent"
FIRST_HEADER: Final = "INSERT INTO ledgers (agent, header) VALUES (:agent, :header)"
LATER_HEADER: Final = "UPDATE ledgers SET header = :header WHERE agent = :agent"
FLOOR: Final = "SELECT floor FROM ledgers WHERE id = :ledger"
CLOSE_OFF: Final = "UPDATE ledgers SET floor = :floor WHERE id = :ledger AND floor < :floor"

OF_STEP: Final = """
    SELECT key, phase, claimed_at, settled_at FROM effects
    WHERE ledger = :ledger AND run = :run AND step = :step
"""
NAMED: Final = """
    SELECT key, phase, claimed_at, settled_at FROM effects WHERE ledger = :ledger AND key = :key
"""

_EVENTS: Final = """
    SELECT stamp, tie, line FROM events WHERE ledger = :ledger {of_run}
    UNION ALL SELECT claimed_at, key, claimed FROM effects WHERE ledger = :ledger {of_run}
    UNION ALL SELECT settled_at, key, settled FROM effects
        WHERE ledger = :ledger {of_run} AND settled IS NOT NULL AND NOT told
"""
OF_RUN: Final = _EVENTS.format(of_run="AND run = :run")
OF_ALL: Final = _EVENTS.format(of_run="")
UP_TO: Final = f"SELECT * FROM ({OF_ALL}) WHERE stamp <= :last"  # noqa: S608 - of constants

_SETTLEMENT: Final[msgspec.json.Decoder[Settlement]] = msgspec.json.Decoder(
    EffectCommitted | EffectFailed | EffectInDoubt | EffectResolved
)
_HEADER: Final = msgspec.json.Decoder(Header)
_CLAIMED: Final = msgspec.json.Decoder(EffectClaimed)
_OVERRIDES: Final = msgspec.json.Decoder(tuple[str, ...])

Values: TypeAlias = dict[str, object]
Columns: TypeAlias = tuple[
    int,
    str,
    int,
    int,
    int | None,
    int,
    int | None,
    int,
    bytes | None,
    bytes | None,
    bytes,
    bytes | None,
]


class Row(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The row of a key: its record, and what of it is on its way into `events`."""

    id: int
    process: int
    since: int
    claimed_at: int
    settled_at: int | None
    told: bool
    claimed: bytes
    settled: bytes | None
    record: Record


def row_of(columns: Columns) -> Row:
    """Raises `BackstopError` (``store-unreadable``) for what cannot be read as it was written."""
    number, phase, fence, process, since, claimed_at, settled_at, told = columns[:8]
    overrides, done, claimed, settled = columns[8:]
    since = claimed_at if since is None else since
    try:
        record = Record(
            claimed=_CLAIMED.decode(claimed),
            life=Life(phase=Phase(phase), fence=fence),
            settled=None if settled is None else _SETTLEMENT.decode(settled),
            since=seconds(since),
            moved=seconds(settled_at or claimed_at),
            overrides=() if overrides is None else _OVERRIDES.decode(overrides),
            done=None if done is None else _SETTLEMENT.decode(done),
        )
    except (msgspec.MsgspecError, ValueError) as error:
        raise _damaged(claimed, error) from error
    return Row(
        id=number,
        process=process,
        since=since,
        claimed_at=claimed_at,
        settled_at=settled_at,
        told=bool(told),
        claimed=claimed,
        settled=settled,
        record=record,
    )


def line_of(event: Event) -> bytes:
    """An event as it is stored: its time is the stamp beside it."""
    return encode(msgspec.structs.replace(event, at="") if event.at else event)


def event_of(stamp: int, line: bytes) -> Event:
    """A stored event with its time. Raises `BackstopError` (``store-unreadable``)."""
    try:
        return msgspec.structs.replace(EVENT.decode(line), at=written(stamp))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _damaged(line, error) from error


def stamped(rows: Iterator[tuple[int, str, bytes]]) -> Iterator[Stamped]:
    """Stored events on their way out."""
    for stamp, tie, line in rows:
        yield Stamped(stamp=stamp, tie=tie, line=encode(event_of(stamp, line)))


def claim_of(row: Row) -> Values:
    """The claim that a further one takes the place of, for `MOVE`."""
    claimed = row.record.claimed
    return {"run": claimed.run, "stamp": row.claimed_at, "tie": claimed.key, "line": row.claimed}


def lives_of(record: Record) -> Values:
    """What a record knows of the lives before this one."""
    return {
        "overrides": msgspec.json.encode(record.overrides) if record.overrides else None,
        "done": None if record.done is None else line_of(record.done),
    }


def header_of(line: bytes) -> Header:
    """Raises `BackstopError` (``store-unreadable``)."""
    try:
        return _HEADER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _damaged(line, error) from error


def settlement_of(row: Row) -> Values:
    """What a further settlement takes the place of, for `MOVE`."""
    claimed = row.record.claimed
    return {"run": claimed.run, "stamp": row.settled_at, "tie": claimed.key, "line": row.settled}


def _damaged(line: bytes, error: Exception) -> BackstopError:
    return BackstopError(
        f"the store's row {line[:60]!r}… cannot be read ({error}): the effect is not run again; "
        "restore the row, or use the Backstop that wrote it",
        slug="store-unreadable",
    )
