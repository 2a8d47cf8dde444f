"""A ledger's first line as it grows: each process that writes to a store adds what it knows."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from backstop.core.events import Header
from backstop.errors import LedgerError

Listings: TypeAlias = dict[str, list[dict[str, Any]]]
"""What toolsets listed, by key."""


def merged(known: Header, registered: Header) -> Header:
    """`known` with what another process registers: the newest word on each tool stands.

    Declarations and versions are kept for ever: rows name them. Raises `LedgerError`
    (``store-foreign-agent``, ``store-canon``, ``store-redaction-key``) where one store would
    hold two ledgers, or keys that were made by different rules.
    """
    owners = [(one.agent, one.app, one.tenant) for one in (known, registered)]
    if owners[0] != owners[1]:
        theirs, ours = (", ".join(map(repr, owner)) for owner in owners)
        raise LedgerError(
            f"the store holds the ledger of agent, app and tenant {theirs}, not of {ours}; "
            "name another store",
            slug="store-foreign-agent",
        )
    if (known.canon, known.format) != (registered.canon, registered.format):
        raise LedgerError(
            f"the store was written in format {known.format} under canonical form {known.canon}, "
            f"this Backstop writes format {registered.format} under {registered.canon}: neither "
            "would find the other's effects; run one version of Backstop on a store",
            slug="store-canon",
        )
    return msgspec.structs.replace(
        registered,
        redaction=_redaction(known, registered),
        guarded=known.guarded and registered.guarded,
        tools=known.tools | registered.tools,
        code=known.code | registered.code,
        declarations=known.declarations | registered.declarations,
        versions=known.versions | registered.versions,
        toolsets=_toolsets(known, registered),
    )


def _toolsets(known: Header, registered: Header) -> Listings | msgspec.UnsetType:
    ours, theirs = registered.toolsets, known.toolsets
    if not isinstance(ours, dict) or not isinstance(theirs, dict):
        return theirs if ours is msgspec.UNSET else ours
    return theirs | ours


def _redaction(known: Header, registered: Header) -> str | msgspec.UnsetType:
    ours, theirs = registered.redaction, known.redaction
    if msgspec.UNSET in {ours, theirs}:  # who hides nothing makes no tokens
        return theirs if ours is msgspec.UNSET else ours
    if ours != theirs:
        raise LedgerError(
            "the store's tokens were made with another redaction key than this process has: it "
            "would find nothing that was done, and do it again; give every process the key that "
            "the store was begun with, or name another store",
            slug="store-redaction-key",
        )
    return ours
