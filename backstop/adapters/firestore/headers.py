"""Whose ledger lies in a collection: the document that stands above its effects and events."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from backstop.adapters.firestore.messages import Document, Write
from backstop.adapters.firestore.wire import Database, Lost
from backstop.core.events import Header
from backstop.core.header import merged
from backstop.core.sealing import encode, open_header
from backstop.errors import BackstopError

LAYOUT: Final = 1
"""Version of how documents hold a ledger. Another one is refused."""

_HEADER: Final = "header"
_LAYOUT: Final = "layout"


class Headers:
    """The header of `agent`'s ledger at `collection`, which is a collection's path."""

    def __init__(self, database: Database, *, collection: str, agent: str) -> None:
        self._database = database
        self._agent = agent
        self.path = f"{collection.strip('/')}/{_id_of(agent)}"

    def read(self) -> Header:
        """What is registered. Raises `BackstopError` (``store-missing``)."""
        return self._header(self.document())

    def document(self) -> Document:
        """The document itself, whose times are the server's. Raises as `read` does."""
        found = self._found()
        if found is None:
            raise BackstopError(
                f"{self.path}: there is no ledger of {self._agent!r}; name the collection that it "
                "was written to, and the agent as it was then",
                slug="store-missing",
            )
        return found

    def registered(self, header: Header) -> Header:
        """Add what a process that is going to write knows; all that is known then.

        Raises `LedgerError` (``store-foreign-agent``, ``store-canon``).
        """
        patience = self._database.patience()
        while True:
            found = self._found()
            known = None if found is None else self._header(found)
            whole = header if known is None else merged(known, header)
            if known == whole:
                return whole
            write = Write(
                path=self.path,
                fields={_HEADER: encode(whole).decode(), _LAYOUT: LAYOUT},
                version=None if found is None else found.version,
            )
            if not isinstance(self._database.commit([write], patience), Lost):
                return whole
            # Another process registered meanwhile, or our own answer was lost: look anew.

    def _found(self) -> Document | None:
        (found,) = self._database.get([self.path], self._database.patience())
        return found

    def _header(self, found: Document) -> Header:
        layout = found.number(_LAYOUT)
        if layout != LAYOUT:
            raise BackstopError(
                f"{self.path}: laid out as version {layout}; this Backstop knows version {LAYOUT}: "
                "use the Backstop that wrote it, or a newer one",
                slug="store-schema",
            )
        return open_header(found.text(_HEADER).encode(), name=self.path, expect_agent=self._agent)


def _id_of(agent: str) -> str:
    """A document's id for any name: what an id may not hold is escaped."""
    name = quote(agent, safe="")
    return f"%{ord(name[0]):02X}{name[1:]}" if name.startswith((".", "__")) else name
