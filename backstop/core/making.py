"""A ledger in the making, checked event by event while it is written.

Whoever makes events of values that were read strictly, and keys by `identity`, need not read
the file back to know that its lines are strict JSON and its keys true. What could still be
wrong is what the events say together, and what does not fit into a line.
"""

from __future__ import annotations

from typing import Final

from backstop.core.audit import Audit
from backstop.core.events import Event, Header, ModelAnswered, StepStarted
from backstop.core.ledgerverify import SilentSkip
from backstop.core.lifecycle import Lives
from backstop.core.lines import MAX_LINE
from backstop.core.order import Order
from backstop.core.sealing import Sealer, strictly, too_long
from backstop.core.spelling import MAX_DEPTH
from backstop.errors import LedgerError

_FIRST: Final = 2  # the header is line 1
_UNHEARD: Final = frozenset({ModelAnswered, StepStarted})
"""What no effect's life hangs on, where no guard stood."""


class Making:
    """Links events of an unguarded ledger, and holds them to what `verify` demands of events.

    `name` is for errors.

    The header may name more declarations in the end than `header` does.
    """

    def __init__(self, header: Header, *, name: str) -> None:
        if header.guarded:
            raise ValueError("where a guard stood, what a model asked for counts as well")
        self._name = name
        self._number = _FIRST
        self._order = Order()
        self._lives = Lives(guarded=header.guarded)
        self._audit = Audit(header, self._lives)
        self.sealer = Sealer(header)

    def add(self, event: Event) -> bytes:
        """The event's line.

        Raises `LedgerError`: ledger-order, ledger-lifecycle, ledger-line-too-long, and
        ledger-format for what is nested too deep.
        """
        line = self.sealer.add(event)
        if len(line) > MAX_LINE:
            raise too_long(self._name, self._number)
        if line.count(b"[") + line.count(b"{") > MAX_DEPTH:
            strictly(line[:-1], name=self._name, number=self._number)
        if wrong := self._order.check(event):
            raise self._refused(wrong, "ledger-order")
        if type(event) not in _UNHEARD:
            if illegal := self._lives.follow(event):
                raise self._refused(illegal.reason, "ledger-lifecycle")
            self._audit.feed(event, line=self._number)
        self._number += 1
        return line

    def close(self) -> None:
        """There are no more events. Raises `SilentSkip`."""
        if findings := self._audit.findings():
            raise SilentSkip(self._name, findings)

    def _refused(self, what: str, slug: str) -> LedgerError:
        return LedgerError(
            f"{self._name}, line {self._number}: {what}. Whatever wrote this ledger is at fault: "
            "pull, record or import it again.",
            slug=slug,
        )
