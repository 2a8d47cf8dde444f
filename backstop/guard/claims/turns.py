"""Equal calls of one attempt take turns: the second gets what the first one got.

A model may ask twice in one breath. Without turns the second call would hear that its own
attempt is at it, and a cursor would wait for nobody.
"""

from __future__ import annotations

import asyncio
from typing import Final, TypeAlias

from backstop.guard.calls import Call

_Name: TypeAlias = tuple[object, ...]


class Turns:
    """Who is at which call, and who waits; nothing is left of a call that nobody makes."""

    def __init__(self) -> None:
        self._turns: dict[_Name, _Turn] = {}

    def turn(self, call: Call) -> _Turn:
        """Equal calls of one attempt, one after the other; all others at once."""
        if call.within:  # in a body that may itself have the turn: it would wait for itself
            return _Turn({}, ())
        attempt = call.attempt
        # A loop of its own, in a thread that the framework runs tools in, cannot wait for ours.
        loop = id(asyncio.get_running_loop())
        name = (loop, attempt.run, attempt.step, attempt.number, call.named.key)
        return self._turns.get(name) or _Turn(self._turns, name)


class _Turn:
    """The turn at one call: a class, as it is on the path of every call."""

    __slots__ = ("_lock", "_name", "_turns", "_users")

    def __init__(self, turns: dict[_Name, _Turn], name: _Name) -> None:
        self._turns: Final = turns
        self._name: Final = name
        self._lock: Final = asyncio.Lock()
        self._users = 0

    async def __aenter__(self) -> None:
        self._turns[self._name] = self
        self._users += 1
        try:
            await self._lock.acquire()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()
        self._leave()

    def _leave(self) -> None:
        self._users -= 1
        if self._users == 0:
            self._turns.pop(self._name, None)
