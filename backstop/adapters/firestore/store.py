"""The ledger in Firestore: a store that processes on many machines share.

Theory of operation: a key's document is created to claim it, and changed on condition of its
last version to settle it; there are no transactions. Every such write carries a token that no
other write has, so that after an answer that was lost the same write can be repeated, and its
success be recognised in the document. Nobody's clock decides anything: how old a claim is, is
told by the server.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import ClassVar, Final

from backstop.adapters.firestore.documents import (
    LAST_RUN,
    RUN,
    STATE,
    STEP,
    Effect,
    effect_of,
    lines_of,
)
from backstop.adapters.firestore.erasing import rewrite
from backstop.adapters.firestore.headers import Headers
from backstop.adapters.firestore.keeper import Keeper
from backstop.adapters.firestore.mesh import Mesh
from backstop.adapters.firestore.messages import Range
from backstop.adapters.firestore.snapshot import Snapshot
from backstop.adapters.firestore.wire import Database, Patience
from backstop.adapters.memory import SEEN
from backstop.adapters.owners import liveness_of
from backstop.adapters.records import (
    Doubtful,
    Granted,
    check_owner,
    concerns,
    ruling,
    settling,
    standing,
    undecided,
)
from backstop.core.effectgate import Control, Lease, Precondition, Reach
from backstop.core.effecttrust import Ruled
from backstop.core.events import (
    Checkpointed,
    CursorAdvanced,
    EffectClaimed,
    Event,
    Header,
)
from backstop.core.lifecycle import Phase, decided, move_of
from backstop.core.sealing import EVENT
from backstop.core.trustbreak import TrustBreak
from backstop.errors import BackstopError, StaleClaim
from backstop.meshports import OutEffect
from backstop.ports import (
    Answer,
    Claim,
    Clock,
    Held,
    Liveness,
    Rewriting,
    Settlement,
    Stamped,
    Standing,
)

_SECOND: Final = 1_000_000
_UNDECIDED: Final = tuple(phase.value for phase in Phase if not decided(phase))
_REMEMBERED: Final = 10_000
_SHORTEST_KEEP: Final = timedelta(days=14)


def _token() -> str:
    return secrets.token_hex(16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a store may be told beyond its place.

    `is_alive` says of the owner of a claim whether it runs, None if nobody can see; by default
    its process is looked up. `expire_after` lets Firestore remove what is decided after so
    long: its key can then be claimed again, so it is two weeks at least, and never by default.
    An operation gives up after `patience_s`. `token` makes a word that nobody else has, and
    `reached` is the class through which the database is.
    """

    is_alive: Callable[[str], bool | None] | None = None
    expire_after: timedelta | None = None
    patience_s: float = 3.0
    token: Callable[[], str] = _token
    reached: type[Database] = Database


_DEFAULTS: Final = Options()


class _Familiar:
    """The keys that were asked for last."""

    def __init__(self) -> None:
        self._keys: dict[str, None] = {}

    def seen(self, key: str) -> bool:
        """Whether `key` was asked for before, not long ago; it is from now on."""
        if key in self._keys:
            return True
        if len(self._keys) >= _REMEMBERED:
            self._keys.clear()
        self._keys[key] = None
        return False


class FirestoreStore:
    """The ledger of `agent` at `collection`; `header` None opens it for a person who looks.

    `emulator` is the ``address:port`` of an emulator, None for the service. Raises
    `BackstopError` (``store-...``).
    """

    blocking: ClassVar[bool] = True

    def __init__(
        self,
        *,
        project: str,
        database: str,
        collection: str,
        agent: str,
        header: Header | None,
        clock: Clock,
        emulator: str | None = None,
        options: Options = _DEFAULTS,
    ) -> None:
        if options.expire_after is not None and options.expire_after < _SHORTEST_KEEP:
            raise BackstopError(
                f"expire_after is {options.expire_after}: what has expired may run again, so keep "
                f"it for {_SHORTEST_KEEP.days} days at least",
                slug="store-refused",
            )
        self._db = options.reached(
            project=project, name=database, emulator=emulator, patience_s=options.patience_s
        )
        headers = Headers(self._db, collection=collection, agent=agent)
        self.header = headers.read() if header is None else headers.registered(header)
        self._keeper = Keeper(
            self._db,
            ledger=headers.path,
            clock=clock,
            token=options.token,
            expire_after=options.expire_after,
        )
        self._snapshot = Snapshot(
            self._db,
            headers=headers,
            collections=(self._keeper.effects, self._keeper.events),
            chunks=self._keeper.chunks,
            whole=emulator is not None,  # an emulator looks at every document for each part
        )
        self._is_alive = options.is_alive
        self._familiar = _Familiar()
        self._granted: dict[str, Effect] = {}
        self._mesh = Mesh(
            self._keeper,
            ledger=headers.path,
            token=options.token,
            owner=self._owner,
            own=self._taken,
        )
        self._owed: dict[str, tuple[Settlement, Claim]] = {}

    def close(self) -> None:
        """Let go of the connection; another is made when it is needed."""
        self._db.close()

    def append(self, event: Event) -> bool:
        """Add a fact that is not about an effect's record, once."""
        if move_of(event) is not None:
            raise BackstopError(
                f"{type(event).__name__} cannot be appended: claim or settle the effect",
                slug="illegal-move",
            )
        patience = self._db.patience()
        if isinstance(event, CursorAdvanced):
            # What is decided stays so: nothing can come between this look and the write.
            self._check_cursor(event, patience)
        return self._keeper.added(event, patience)

    def claim(
        self, intent: EffectClaimed, precondition: Precondition | None = None
    ) -> Claim | Answer:
        """Take the right to run `intent`, or say why not."""
        self._pay(intent.key)
        if precondition is not None:
            return self._mesh.claim(
                intent, precondition, likely=intent.attempt > 1 or self._familiar.seen(intent.key)
            )
        patience = self._db.patience()
        # Looking first decides nothing, but is quicker where the key is likely to be there.
        likely = intent.attempt > 1 or self._familiar.seen(intent.key)
        effect = self._keeper.look(intent.key, patience) if likely else None
        while True:
            ruled = ruling(
                None if effect is None else effect.record,
                intent,
                owner=partial(self._owner, effect),
                now=partial(self._now, effect),
            )
            match ruled:
                case Granted(event=event, record=after):
                    mine = self._keeper.claimed(effect, event, after, patience)
                    if mine is not None:
                        return self._taken(mine)
                case Doubtful(event=doubt, record=after) if effect is not None:
                    self._keeper.settled(effect, doubt, after, patience)
                case Held() if effect is not None and self._keeper.unstarted(effect):
                    mine = self._keeper.taken_up(effect, patience)
                    if mine is not None:
                        return self._taken(mine)
                case Doubtful():
                    raise AssertionError("what is not there is in no doubt")
                case answer:
                    return answer
            effect = self._keeper.look(intent.key, patience)

    def settle(self, settlement: Settlement, *, claim: Claim | None = None) -> None:
        """Say what became of an effect."""
        key, patience = settlement.key, self._db.patience()
        effect = self._granted.pop(key, None)
        try:
            if effect is None or claim is None or effect.record.life.fence != claim.fence:
                effect = self._keeper.look(key, patience)
            while True:
                record = None if effect is None else effect.record
                check_owner(record, settlement, claim)
                after = settling(record, settlement)
                if effect and self._keeper.settled(effect, settlement, after, patience):
                    return
                effect = self._keeper.look(key, patience)
        except BackstopError as error:
            if error.slug.startswith("store-") and claim is not None:
                self._owed[key] = (settlement, claim)
            raise

    def read(self, run: str | None = None) -> Iterator[Event]:
        """The events of one run, or of all, in the order in which they happened."""
        for key in list(self._owed):
            with suppress(BackstopError):  # it stays owed; what is on record is told all the same
                self._pay(key)
        effects, events = self._keeper.effects, self._keeper.events
        ranges = [Range(collection=effects), Range(collection=events)]
        if run is not None:
            ranges = [
                Range(collection=effects, where={RUN: run}),
                Range(collection=effects, where={LAST_RUN: run}),
                Range(collection=events, where={RUN: run}),
            ]
        documents = {document.path: document for document in self._db.query(*ranges)}
        lines = [found for document in documents.values() for found in lines_of(document)]
        lines.sort(key=lambda found: (found.slot.stamp, found.tie))
        if lines:
            self._keeper.saw(lines[-1].slot.stamp)
        said = (EVENT.decode(self._keeper.chunks.line(found.slot.held)) for found in lines)
        return (event for event in said if run is None or event.run == run)

    def standings(self, key: str | None = None) -> Iterator[Standing]:
        """Every effect that is not decided, oldest first; or that of `key`, decided or not."""
        collection = self._keeper.effects
        if key:
            beyond = key[:-1] + chr(ord(key[-1]) + 1)
            asked = Range(collection=collection, first=key, end=beyond)
        else:
            asked = Range(collection=collection, where={STATE: _UNDECIDED})
        effects = [effect_of(document, self._keeper.chunks) for document in self._db.query(asked)]
        effects.sort(key=lambda effect: effect.record.since)
        return (
            standing(effect.record, owner=self._owner(effect), now=self._now(effect))
            for effect in effects
            if concerns(effect.record, key)
        )

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
        return self._mesh.leases.take(run, holder, lease_s=lease_s, held=held)

    def recovering(self, run: str) -> Lease | None:
        """The lease on a run that is in force."""
        return self._mesh.leases.recovering(run)

    def rule(self, ruled: Sequence[Ruled], *, lease: Lease | None) -> None:
        """Say what becomes of effects in which trust broke."""
        self._mesh.rule(ruled, lease=lease)

    def thaw(self, reach: Sequence[Reach], *, lease: Lease, epoch: int) -> bool:
        """Let go of what was frozen up to `epoch`, unless trust broke since."""
        return self._mesh.thaw(reach, lease=lease, epoch=epoch)

    def record(self, made: Checkpointed, *, lease: Lease) -> None:
        """Add a checkpoint that was made under a lease, if that is in force."""
        self._mesh.record(made, lease=lease)

    def release(self, lease: Lease) -> None:
        """Give the right to recover a run back."""
        self._mesh.leases.release(lease)

    def parts(self, at: datetime) -> Sequence[str]:  # noqa: ARG002 - the same at any time
        """Names of the parts of the ledger: ranges of keys."""
        return self._snapshot.parts()

    def pull(self, part: str, *, at: datetime) -> Iterator[Stamped]:
        """The events of one part up to `at`, in no order; the same ones at each call."""
        return self._snapshot.pull(part, at=at)

    def rewrite(self, rewriting: Rewriting) -> None:
        """Change every line that `rewriting` changes; one that was cut off is done again."""
        keeper = self._keeper
        rewrite(self._db, (keeper.effects, keeper.events), keeper.chunks, rewriting)

    def _taken(self, mine: Effect) -> Claim:
        claimed = mine.record.claimed
        self._granted[claimed.key] = mine
        return Claim(run=claimed.run, key=claimed.key, owner=claimed.owner, fence=claimed.fence)

    def _pay(self, key: str) -> None:
        """Bring along an outcome that the store did not take when it was down."""
        if (owed := self._owed.pop(key, None)) is None:
            return
        settlement, claim = owed
        try:
            self._keeper.finish(key)
            self.settle(settlement, claim=claim)
        except BackstopError as error:
            if error.slug not in {"illegal-move", StaleClaim.slug}:
                self._owed[key] = owed
                raise
            # It arrived after all, or was decided otherwise meanwhile: the record says so.

    def _owner(self, effect: Effect | None) -> Liveness:
        if effect is None:
            return Liveness.UNKNOWN
        if self._is_alive is not None:
            return SEEN[self._is_alive(effect.record.claimed.owner)]
        return liveness_of(effect.process)

    def _now(self, effect: Effect | None) -> float:
        """When the record was read, by the server: it alone tells how long ago anything was."""
        return 0.0 if effect is None else effect.read / _SECOND

    def _check_cursor(self, event: CursorAdvanced, patience: Patience) -> None:
        of_step = [
            (document.id, Phase(document.text(STATE)))
            for document in self._db.query(
                Range(collection=self._keeper.effects, where={RUN: event.run, STEP: event.step})
            )
        ]
        named: list[tuple[str, Phase]] = []
        if event.effects:
            paths = [f"{self._keeper.effects}/{key}" for key in event.effects]
            there = self._db.get(paths, patience, only=(STATE,))
            named = [
                (key, Phase.ABSENT if found is None else Phase(found.text(STATE)))
                for key, found in zip(event.effects, there, strict=True)
            ]
        undecided(event, of_step, named)
