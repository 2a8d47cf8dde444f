"""Keeps the records of effects: reads them, and writes them if nobody else did meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from threading import Lock
from typing import Final, TypeAlias

import msgspec

from backstop.adapters.firestore.chunks import Chunks, Spelled, spelled
from backstop.adapters.firestore.documents import (
    TOKEN,
    Beside,
    Effect,
    Said,
    Slot,
    adding,
    claimed,
    claiming,
    claiming_again,
    effect_of,
    setting_beside,
    settling_it,
    taking_up,
)
from backstop.adapters.firestore.messages import Write
from backstop.adapters.firestore.wire import Database, Lost, Patience, Written
from backstop.adapters.owners import this_process
from backstop.adapters.records import Record
from backstop.adapters.stamps import Stamps, seconds, written
from backstop.core.events import EffectClaimed, Event, once
from backstop.core.sealing import encode
from backstop.errors import BackstopError
from backstop.ports import Clock, Settlement

_SECOND: Final = 1_000_000

Token: TypeAlias = Callable[[], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Let:
    """What the mesh asks of a write: a transaction to be in, and what to keep beside it."""

    transaction: bytes = b""
    beside: Beside = field(default_factory=dict)


UNASKED: Final = Let()


class Keeper:
    """The documents of one agent's ledger, under the path `ledger`."""

    def __init__(
        self,
        database: Database,
        *,
        ledger: str,
        clock: Clock,
        token: Token,
        expire_after: timedelta | None,
    ) -> None:
        self.database = database
        self._stamps = Stamps(clock)
        self._stamping = Lock()
        self.effects, self.events = f"{ledger}/effects", f"{ledger}/events"
        self.chunks = Chunks(database, f"{ledger}/chunks")
        self._token = token
        self._expire_after = expire_after
        self._unsure: dict[str, tuple[str, ...]] = {}
        self._unfinished: dict[str, tuple[bytes, Spelled]] = {}

    def look(self, key: str, patience: Patience) -> Effect | None:
        """The effect of `key`; None if nobody claimed it."""
        (found,) = self.database.get([f"{self.effects}/{key}"], patience)
        if found is None:
            return None
        effect = effect_of(found, self.chunks)
        self.saw((effect.last or effect.claim).stamp)
        return effect

    def saw(self, stamp: int) -> None:
        """What was read is behind what is written next."""
        with self._stamping:
            self._stamps.seen(stamp)

    def claimed(
        self,
        effect: Effect | None,
        event: EffectClaimed,
        after: Record,
        patience: Patience,
        *,
        let: Let = UNASKED,
    ) -> Effect | None:
        """Write a claim over `effect`, or as the first; None if somebody else wrote meanwhile."""
        line, said = self._said(event)
        self.chunks.put(line, said.slot.held)  # no claim without its arguments
        process = this_process()
        if effect is None:
            path = f"{self.effects}/{event.key}"
            writes = claiming(path, said, after, process=process, beside=let.beside)
        else:
            writes = claiming_again(
                effect, said, after, process=process, events=self.events, beside=let.beside
            )
        try:
            done = self._written(event.key, writes, said.token, patience, let)
        except BackstopError:
            self._unsure[event.key] = (*self._unsure.get(event.key, ()), said.token)
            raise
        if done is None:
            return None
        self._unsure.pop(event.key, None)
        if isinstance(done, Effect):
            return done
        after.moved = done.at / _SECOND
        after.since = after.since or after.moved
        return claimed(writes[0], said, after, process=process, done=done)

    def settled(self, effect: Effect, event: Settlement, after: Record, patience: Patience) -> bool:
        """Write a settlement over `effect`; False if somebody else wrote meanwhile."""
        line, said = self._said(event)
        expires = None
        if self._expire_after is not None:
            now = datetime.fromtimestamp(seconds(said.slot.stamp), UTC)
            expires = now + self._expire_after
        writes = settling_it(effect, said, after, events=self.events, expires=expires)
        if said.slot.held.chunks:
            self._unfinished[event.key] = (line, said.slot.held)
        if self._written(event.key, writes, said.token, patience) is None:
            self._unfinished.pop(event.key, None)
            return False
        # That it happened counts more than what it gave: the state first, its chunks then.
        self.finish(event.key)
        return True

    def finish(self, key: str) -> None:
        """Write what is still missing of a settlement that was cut off, if there is any."""
        if (missing := self._unfinished.get(key)) is not None:
            self.chunks.put(*missing)
            self._unfinished.pop(key, None)

    def added(self, event: Event, patience: Patience, *, transaction: bytes = b"") -> bool:
        """Write an event that is about no effect's record; False if the run says it already.

        In a `transaction`, also if what that read has changed.
        """
        line, said = self._said(event)
        self.chunks.put(line, said.slot.held)
        name = once(event)
        place = said.token
        if name is not None:
            place = sha256(f"{event.run}\n{name}".encode()).hexdigest()
        path = f"{self.events}/{place}"
        done = self.database.commit([adding(path, said)], patience, transaction=transaction)
        if not isinstance(done, Lost):
            return True
        # It is there: by an earlier try of ours, whose answer was lost, or by somebody else.
        (there,) = self.database.get([path], patience, only=(TOKEN,))
        return there is not None and there.text(TOKEN) == said.token

    def unstarted(self, effect: Effect) -> bool:
        """Whether this is a claim of ours that we never learned of: nothing ran under it."""
        return effect.token in self._unsure.get(effect.record.claimed.key, ())

    def taken_up(self, effect: Effect, patience: Patience, *, let: Let = UNASKED) -> Effect | None:
        """Take up such a claim; None if somebody else did: a forked process knows of it, too."""
        key, token, process = effect.record.claimed.key, self._token(), this_process()
        self._unsure.pop(key, None)
        write = taking_up(effect, token, process=process, beside=let.beside)
        try:
            done = self._written(key, [write], token, patience, let)
        except BackstopError:
            self._unsure[key] = (effect.token, token)
            raise
        if not isinstance(done, Written):
            return done
        return replace(
            effect,
            token=token,
            process=process,
            updated=done.at,
            version=done.version,
            fresh=(),
        )

    def set_beside(self, effect: Effect, let: Let, patience: Patience) -> bool:
        """Write what the mesh keeps of an effect; False if somebody else wrote meanwhile."""
        token = self._token()
        write = setting_beside(effect, token, let.beside)
        key = effect.record.claimed.key
        return self._written(key, [write], token, patience, let) is not None

    def writing_beside(self, effect: Effect, beside: Beside) -> Write:
        """What the mesh keeps of an effect, to be written with that of others."""
        return setting_beside(effect, self._token(), beside)

    def broken(self, event: Event, name: str, control: Write, patience: Patience) -> bool:
        """Write a trust break, once by its name, with the control state that it makes."""
        line, said = self._said(event)
        self.chunks.put(line, said.slot.held)
        path = f"{self.events}/{sha256(f'break {name}'.encode()).hexdigest()}"
        done = self.database.commit([control, adding(path, said)], patience)
        return not isinstance(done, Lost)

    def _written(
        self, key: str, writes: list[Write], token: str, patience: Patience, let: Let = UNASKED
    ) -> Written | Effect | None:
        done = self.database.commit(writes, patience, transaction=let.transaction)
        if not isinstance(done, Lost):
            return done
        there = self.look(key, patience)
        # An earlier try of this very write was applied, and its answer was lost.
        return there if there is not None and there.token == token else None

    def _said(self, event: Event) -> tuple[bytes, Said]:
        with self._stamping:
            stamp = self._stamps.next()
        line = encode(msgspec.structs.replace(event, at=written(stamp)))
        slot = Slot(held=spelled(line), stamp=stamp)
        return line, Said(run=event.run, slot=slot, token=self._token())
