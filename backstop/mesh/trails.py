"""What is known of runs, kept between their invocations and read again by another process."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import Any, Final, Protocol

import msgspec

from backstop.core.checkpoint import Checkpoint
from backstop.core.events import Checkpointed
from backstop.mesh.trail import Trail, number_of
from backstop.ports import LedgerStore

_KEPT: Final = 128
"""Runs that are remembered; any other is read again."""


class Kept(Protocol):
    """Where what steps left is kept."""

    def get(self, digest: str) -> bytes | None:
        """What was kept under a digest; None if it is not there."""
        ...


class Trails:
    """The trails of the runs that one recorder has to do with."""

    def __init__(self, store: LedgerStore, payloads: Kept) -> None:
        self._store = store
        self._payloads = payloads
        self._known: OrderedDict[str, Trail] = OrderedDict()

    async def of(self, run: str) -> Trail:
        """What is known of the run. Raises what the store raises."""
        known = self._known.get(run)
        if known is not None:
            return known
        if self._store.blocking:
            return await asyncio.to_thread(self._read, run)
        return self._read(run)

    def at(self, trail: Trail, trigger: str, kept: Collection[str] = ()) -> Trail:
        """The trail as the run's step `trigger` finds it, and from now on the run's.

        What is `kept` of that step is not made anew.
        """
        found = trail.before(trigger, kept) if trail.triggers > number_of(trigger) else trail
        self._known[trail.run] = found
        self._known.move_to_end(trail.run)
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return found

    def _read(self, run: str) -> Trail:
        trail = Trail(run=run)
        for event in self._store.read(run):
            if isinstance(event, Checkpointed):
                checkpoint = msgspec.json.decode(event.body, type=Checkpoint)
                trail.take(checkpoint, self._left(checkpoint))
        return trail

    def _left(self, checkpoint: Checkpoint) -> Mapping[str, Any]:
        """What a step left; of one whose payload is gone nothing is recognised again."""
        payload = self._payloads.get(checkpoint.output)
        if payload is None:
            return {}
        try:
            left = msgspec.json.decode(payload)
        except msgspec.DecodeError:  # it had no canonical form
            return {}
        return left if isinstance(left, dict) else {}
