"""Who recovers a run, in Firestore: a document for each run, whose age the server tells."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Final

from backstop.adapters.firestore.messages import Document, Write
from backstop.adapters.firestore.wire import Database, Lost
from backstop.adapters.gating import Leased, in_force, leasing, released
from backstop.core.effectgate import Lease
from backstop.ports import Held

FENCE: Final = "fence"
_HOLDER: Final = "holder"
_LASTS: Final = "lease_ms"
_TOKEN: Final = "token"  # noqa: S105 - the name of a field

_SECOND: Final = 1_000_000


def fence_of(found: Document | None) -> int:
    """The fence in force; 0 where nobody ever recovered the run."""
    return 0 if found is None else found.number(FENCE) or 0


class Leases:
    """The recoveries of one ledger, below the path `ledger`."""

    def __init__(self, database: Database, ledger: str, token: Callable[[], str]) -> None:
        self._database = database
        self._ledger = ledger
        self._token = token

    def path(self, run: str) -> str:
        """Where the recovery of a run is written down."""
        return f"{self._ledger}/mesh/lease-{sha256(run.encode()).hexdigest()}"

    def take(self, run: str, holder: str, *, lease_s: float, held: Lease | None) -> Lease | Held:
        """Take the right to recover a run, or go on with the one `held`."""
        patience = self._database.patience()
        while True:
            (found,) = self._database.get([self.path(run)], patience)
            now = 0.0 if found is None else found.read / _SECOND
            after = leasing(_leased(found), holder, lease_s=lease_s, held=held, now=now)
            if isinstance(after, Held):
                return after
            if self._wrote(run, found, after, lease_s):
                return Lease(run=run, holder=holder, fence=after.fence)

    def recovering(self, run: str) -> Lease | None:
        """The lease on a run that is in force."""
        (found,) = self._database.get([self.path(run)], self._database.patience())
        return None if found is None else in_force(_leased(found), run, now=found.read / _SECOND)

    def release(self, lease: Lease) -> None:
        """Give the right back; one that was taken over is not ours to give."""
        while True:
            (found,) = self._database.get([self.path(lease.run)], self._database.patience())
            after = released(_leased(found), lease)
            if after is None or self._wrote(lease.run, found, after, 0):
                return

    def _wrote(self, run: str, found: Document | None, after: Leased, lease_s: float) -> bool:
        token, patience = self._token(), self._database.patience()
        write = Write(
            path=self.path(run),
            fields={
                _HOLDER: after.holder,
                FENCE: after.fence,
                _LASTS: int(lease_s * 1000),
                _TOKEN: token,  # an identical write would not make it younger
            },
            version=None if found is None else found.version,
        )
        if not isinstance(self._database.commit([write], patience), Lost):
            return True
        # It may be there by an earlier try of ours, whose answer was lost.
        (there,) = self._database.get([write.path], patience)
        return there is not None and there.text(_TOKEN) == token


def _leased(found: Document | None) -> Leased:
    if found is None:
        return Leased()
    lasts = (found.number(_LASTS) or 0) / 1000
    return Leased(
        holder=found.text(_HOLDER), fence=fence_of(found), until_s=found.updated / _SECOND + lasts
    )
