"""Makes a ledger's events of conversations, whatever form they were recorded in."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from backstop.adapters.importing.conversation import (
    Answered,
    Conversation,
    Item,
    Message,
    Spoken,
)
from backstop.adapters.told import ImportRefused
from backstop.adapters.transcript import Transcript, imported_header
from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import Event, Header
from backstop.core.redaction import RedactionKey
from backstop.errors import IdentityError

GAPS_NAMED: Final = 50
"""How many gaps a header names; of more it says the number."""


@dataclass(slots=True, kw_only=True)
class Book:
    """A ledger in the making. `declarations` are those of the configuration.

    What is declared `redact` becomes tokens made with `key`.
    """

    namespace: Namespace
    declarations: Mapping[str, Declaration]
    key: RedactionKey | None = None
    _known: dict[str, Declaration] = field(init=False)
    _gaps: list[str] = field(init=False, default_factory=list)
    _more: int = field(init=False, default=0)
    _taken: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._known = dict(self.declarations)

    def events(self, conversations: Iterable[Conversation]) -> Iterator[Event]:
        """The events of these runs; one run is held at a time.

        A run is closed as complete if it is over and each of its calls was answered. Raises
        `NoRedactionKey`, and `ImportRefused`: ``import-run-twice``, ``import-no-match`` where
        there are no conversations, ``no-identity``.
        """
        for conversation in conversations:
            self._take(conversation)
            yield from self._told(conversation)
        if not self._taken:
            raise ImportRefused(
                "there is no conversation to import; look at what the source holds, and at --where",
                slug="import-no-match",
            )

    def header(self, kind: str) -> Header:
        """The ledger's first line, known once all `events` were taken."""
        more = [f"{self._more} more of the kind"] if self._more else []
        return imported_header(kind, self.namespace, self._known, [*self._gaps, *more])

    def _take(self, conversation: Conversation) -> None:
        # Two spellings of one text would have the same keys.
        spelled = unicodedata.normalize("NFC", conversation.run)
        if spelled in self._taken:
            raise ImportRefused(
                f"{conversation.place} gives run {conversation.run!r}, as "
                f"{self._taken[spelled]} does; import one of them, or choose by --where where the "
                "form has it",
                slug="import-run-twice",
            )
        self._taken[spelled] = conversation.place

    def _told(self, conversation: Conversation) -> list[Event]:
        transcript = Transcript(
            run=conversation.run,
            namespace=self.namespace,
            known=self._known,
            at=conversation.at,
            key=self.key,
            user=conversation.user,
            state=conversation.state,
        )
        for gap in conversation.gaps:
            self._note(conversation, gap)
        at = conversation.at
        for item in conversation.items:
            at = item.at
            try:
                unknown = _tell(transcript, item)
            except (ImportRefused, IdentityError) as error:
                where = f"{conversation.place}, {item.place}"
                raise ImportRefused(f"{where}: {error}", slug=error.slug) from error
            if unknown is not None:
                self._note(conversation, unknown)
        if conversation.over:
            transcript.close(at=at)
        else:
            transcript.leave()
        return transcript.events

    def _note(self, conversation: Conversation, gap: str) -> None:
        if len(self._gaps) < GAPS_NAMED:
            self._gaps.append(f"run {conversation.run}: {gap}")
        else:
            self._more += 1


def _tell(transcript: Transcript, item: Item) -> str | None:
    """Tell one item; what the record leaves open there, None for nothing."""
    match item:
        case Message():
            transcript.message(item.content, at=item.at)
        case Spoken():
            transcript.spoke(
                item.parts, at=item.at, agent=item.agent, branch=item.branch, more=item.more
            )
        case Answered():
            joined = transcript.answered(item.result, call=item.call, tool=item.tool, at=item.at)
            if not joined and not item.again:
                named = item.tool or item.call or "a tool without a name"
                return (
                    f"{item.place} answers a call of {named} that is not in the record, or is "
                    "answered already"
                )
    return None
