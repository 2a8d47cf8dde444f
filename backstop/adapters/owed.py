"""Outcomes that a store did not take at their time: it was busy, full, or out of reach.

Only the process that made the call knows them, and while it lives nobody else may decide. So
they are brought along before it asks the store again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from backstop.errors import BackstopError
from backstop.ports import Claim, Settlement


class Owed:
    """The outcomes that one process owes to one store, by key."""

    def __init__(self) -> None:
        self._owed: dict[str, tuple[Settlement, Claim]] = {}

    def note(self, settlement: Settlement, claim: Claim | None, error: BackstopError) -> None:
        """Remember an outcome which `error` kept from the record, if it was the store's fault."""
        if claim is not None and error.slug.startswith("store-"):
            self._owed[settlement.key] = (settlement, claim)

    def pay(self, settle: Callable[[Settlement, Claim], None]) -> None:
        """Bring along what is owed; `settle` notes anew what the store does not take again."""
        for key in list(self._owed):
            if (owed := self._owed.pop(key, None)) is not None:
                with suppress(BackstopError):  # noted anew, or decided otherwise meanwhile
                    settle(*owed)
