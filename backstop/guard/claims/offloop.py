"""Asking a store from an event loop: one that waits for a network must not hold the others up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, TypeVar

from backstop.core.events import Event
from backstop.errors import BackstopError
from backstop.ports import LedgerStore

R = TypeVar("R")

_log: Final = logging.getLogger("backstop")


async def asked(store: LedgerStore, ask: Callable[[], R]) -> R:
    """What `ask` gives, which asks `store`; off the event loop where that waits for a network."""
    if not store.blocking:
        return ask()
    return await asyncio.to_thread(ask)


async def written(store: LedgerStore, row: Event) -> None:
    """Put a fact on record that nobody's right to act depends on.

    A store that is out of reach loses it: models and reads go on without one, and the ledger's
    hole shows in the coverage of a replay.
    """
    try:
        await asked(store, lambda: store.append(row))
    except BackstopError as error:
        _log.warning("backstop could not record a row of run %s: %s", row.run, error)


async def waited(store: LedgerStore, ask: Callable[[], R]) -> R:
    """`asked`, for what is written: a cancellation goes on once the answer is known."""
    answer, cut = await uncut(store, ask)
    if cut is not None:
        raise cut
    return answer


async def uncut(
    store: LedgerStore, ask: Callable[[], R]
) -> tuple[R, asyncio.CancelledError | None]:
    """`ask`, off the event loop where the store waits for a network; and the cancellation.

    What a store was asked to write is waited for: nobody may go on without knowing it.
    """
    if not store.blocking:
        return ask(), None
    asking = asyncio.ensure_future(asyncio.to_thread(ask))
    cut: asyncio.CancelledError | None = None
    while not asking.done():
        try:
            await asyncio.wait([asking])
        except asyncio.CancelledError as error:
            cut = error
    try:
        return asking.result(), cut
    except Exception as error:
        if cut is not None:
            raise cut from error
        raise
