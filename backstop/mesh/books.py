"""Where a recorder writes: checkpoints into the ledger, what steps left beside it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from backstop.core.events import Checkpointed
from backstop.errors import BackstopError
from backstop.mesh.recording import Recording
from backstop.ports import Clock, LedgerStore

_log: Final = logging.getLogger("backstop")

RECOVERING: Final[ContextVar[Callable[[Checkpointed], object] | None]] = ContextVar(
    "backstop_recovering", default=None
)
"""How checkpoints are put on record by whatever runs because a run is recovered."""


class Payloads(Protocol):
    """Keeps what steps left, by its digest."""

    def put(self, digest: str, payload: bytes) -> None:
        """Keep it. What is too large to be kept is not: its step is not verified then."""
        ...

    def get(self, digest: str) -> bytes | None:
        """What was kept under a digest, checked against it; None if it is not there."""
        ...

    def sync(self) -> None:
        """See to it that what was kept until now outlives a power failure, if it can."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """Where a recorder writes, and as whom.

    `producer` is the id under which it vouches, `version` the short digest of the agent's content.
    """

    store: LedgerStore
    payloads: Payloads
    clock: Clock
    producer: str
    version: str = ""

    async def write(self, recording: Recording) -> None:
        """Put what was made on record, in its order; what cannot be is tried again later.

        After it, whatever was made before the call is on record, unless the store failed.
        """
        if not recording.made:
            return
        try:
            if self.store.blocking:
                await asyncio.to_thread(self._put, recording)
            else:
                self._put(recording)
        except BackstopError as error:
            _log.warning("backstop could not record %s steps: %s", len(recording.made), error)

    def keep(self) -> asyncio.Future[None]:
        """Begin to see to it that what steps left until now outlives a power failure.

        A thread waits for the disk; nobody has to wait for that.
        """
        return asyncio.get_running_loop().run_in_executor(None, self._kept)

    def _kept(self) -> None:
        try:
            self.payloads.sync()
        except BackstopError as error:
            _log.warning("backstop could not make what steps left last: %s", error)

    def _put(self, recording: Recording) -> None:
        with recording.writing:
            while recording.made:
                made = recording.made[0]
                checkpoint = made.checkpoint
                self.payloads.put(checkpoint.output, made.payload)
                (RECOVERING.get() or self.store.append)(
                    Checkpointed(
                        run=checkpoint.run,
                        at="",
                        v=self.version,
                        step=checkpoint.step,
                        body=msgspec.Raw(msgspec.json.encode(checkpoint)),
                    )
                )
                del recording.made[0]
