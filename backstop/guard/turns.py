"""Equal calls of one attempt take turns: the second gets what the first one got.

A model may ask twice in one breath. Without turns the second call would hear that its own
attempt is at it, and a cursor would wait for nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from backstop.guard.calls import Call


class Turns:
    """Who is at which call, and who waits; nothing is left of a call that nobody makes."""

    def __init__(self) -> None:
        self._turns: dict[tuple[object, ...], tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def turn(self, call: Call) -> AsyncIterator[None]:
        """Equal calls of one attempt, one after the other; all others at once."""
        if call.within:  # in a body that may itself have the turn: it would wait for itself
            yield
            return
        attempt = call.attempt
        # A loop of its own, in a thread that the framework runs tools in, cannot wait for ours.
        loop = id(asyncio.get_running_loop())
        name = (loop, attempt.run, attempt.step, attempt.number, call.named.key)
        turn, waiting = self._turns.get(name, (asyncio.Lock(), 0))
        self._turns[name] = turn, waiting + 1
        try:
            async with turn:
                yield
        finally:
            turn, waiting = self._turns.pop(name)
            if waiting > 1:
                self._turns[name] = turn, waiting - 1
