"""Rewrites the lines of a ledger in Firestore, document by document."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from backstop.adapters.firestore.chunks import Chunks, Spelled, spelled
from backstop.adapters.firestore.documents import held_in, rewriting_it
from backstop.adapters.firestore.messages import Document, Range
from backstop.adapters.firestore.wire import Database, Lost
from backstop.ports import Rewriting


def rewrite(
    database: Database, collections: Sequence[str], chunks: Chunks, rewriting: Rewriting
) -> None:
    """Show every line of a ledger, and put others in the place of those that change.

    What is cut off in the middle is finished by doing it again: a document changes as a whole.
    """
    ranges = [Range(collection=name) for name in collections]
    for document in database.query(*ranges):
        for held in held_in(document).values():
            rewriting.look(chunks.line(held))
    gone: set[Spelled] = set()
    for document in database.query(*ranges):
        gone |= _rewritten(database, document, chunks, rewriting)
    # A line may stand in two documents: its chunks go when neither holds it any more.
    for held in gone:
        chunks.remove(held)


def _rewritten(
    database: Database, found: Document | None, chunks: Chunks, rewriting: Rewriting
) -> set[Spelled]:
    """Change one document, as often as others write to it meanwhile; what it held before."""
    while found is not None:
        held = held_in(found)
        lines: dict[str, Spelled] = {}
        for place, before in held.items():
            members = rewriting.erased(chunks.line(before))
            if members is not None:
                line = msgspec.json.encode(members)
                lines[place] = spelled(line)
                chunks.put(line, lines[place])
        if not lines or lines == {place: held[place] for place in lines}:
            return set()
        done = database.commit([rewriting_it(found, lines)], database.patience())
        if not isinstance(done, Lost):
            return {held[place] for place in lines if held[place] != lines[place]}
        (found,) = database.get([found.path], database.patience())
    return set()
