"""Time passes when everybody waits: sleeping moves the frozen clock instead of taking time.

The main thread, which runs the event loop, moves time. It does so only when nothing else
is left to do: no callback is ready, no answer of the driver's is under way, and every other
thread sleeps or waits. Then it moves to the earliest instant that somebody waits for. A
thread that computes is given real time instead, as it would be without all this.
"""

from __future__ import annotations

import asyncio
import selectors
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import thread as pools
from typing import Any, Final, TypeVar

from .channel import Channel
from .frozen import Frozen

T = TypeVar("T")

_SECOND: Final = 1_000_000_000
_LOOK_S: Final = 0.01
_CALM, _CALM_BEFORE_START = 2, 20
"""Looks at other threads, all found waiting, before time moves on; more where work was
handed to a pool and no thread is seen at it yet."""

_FOR_GOOD: Final = 366 * 24 * 3600 * _SECOND
"""Whoever waits for so long without asking for anything waits for ever, and may not burn a
processor meanwhile: from here on waiting takes its time, and the driver ends it."""

_real_sleep = time.sleep


class Waiting:
    """Who waits until when in this process. One for a process; a forked run goes on with it."""

    def __init__(self, *, frozen: Frozen, channel: Channel) -> None:
        self._frozen = frozen
        self._channel = channel
        self._turn = threading.Condition()
        self._asleep: dict[int, int] = {}
        self._loop: PatientLoop | None = None
        self._handed = 0
        self._asked, self._since = 0, 0

    def install(self) -> None:
        """Take the place of `time.sleep`, whatever the candidate imports it as."""
        vars(time)["sleep"] = self.sleep

    def loop(self) -> PatientLoop:
        """The event loop of the main thread."""
        self._loop = PatientLoop(self)
        return self._loop

    def now(self) -> int:
        """Nanoseconds that were waited for so far."""
        return self._frozen.waited

    def sleep(self, seconds: float) -> None:
        """`time.sleep`, which returns when frozen time has come to its end."""
        if not seconds > 0:
            _real_sleep(seconds)  # gives way to other threads, or says what is wrong
        elif threading.current_thread() is threading.main_thread():
            self._pass(until=self.now() + nanoseconds(seconds), look=self._listen)
        elif self._loop is None:
            _real_sleep(seconds)
        else:
            self._doze(nanoseconds(seconds))

    def idle(self, timeout: float | None, select: Callable[[float | None], Any]) -> Any:
        """What `select` reports within `timeout` seconds of frozen time, for the event loop."""
        if timeout is None and not self._asleep:
            return select(None)
        until = None if timeout is None else self.now() + nanoseconds(timeout)
        return self._pass(until=until, look=select, answers=True)

    def handed(self) -> None:
        """The event loop has handed work to a pool."""
        self._handed += 1

    def returned(self, _future: object) -> None:
        """The event loop has the result of such work."""
        self._handed -= 1

    def _pass(
        self, *, until: int | None, look: Callable[[float], Any], answers: bool = False
    ) -> Any:
        """Let time pass up to an instant, and to whatever threads sleep for before it.

        Ends early with what `look` sees. With `answers`, time stands while the driver has
        one to give: how long it takes is no part of a replay.
        """
        calm, given = 0, 0
        while True:
            if found := look(0):
                return found
            if answers and self._channel.is_asked:
                if found := look(_LOOK_S):
                    return found
                continue
            needed = self._looks_needed()
            calm = 0 if needed is None else calm + 1
            if needed is None or calm <= needed:
                if found := look(_LOOK_S):
                    return found
                given += nanoseconds(_LOOK_S) if needed is None else 0
                if until is None or self.now() + given < until:
                    continue
            if (later := self._earliest(until)) is None:
                return look(_LOOK_S)
            calm, given = 0, 0
            if self._waits_for_good() and (found := look((later - self.now()) / _SECOND)):
                return found
            if not self._move(later) and until is not None and later >= until:
                return look(0)

    def _waits_for_good(self) -> bool:
        if self._asked != self._channel.next_id:
            self._asked, self._since = self._channel.next_id, self.now()
        return self.now() - self._since > _FOR_GOOD

    def _looks_needed(self) -> int | None:
        """How often other threads must be found waiting; None while one of them runs."""
        frames = sys._current_frames()  # noqa: SLF001 - the interpreter's own way to see threads
        waiting = blocked = 0
        for thread in threading.enumerate():
            if thread is threading.main_thread():
                continue
            frame = frames.get(thread.ident or 0)
            file = "" if frame is None else frame.f_code.co_filename
            if thread.ident in self._asleep:
                waiting += 1
            elif file == threading.__file__:
                waiting, blocked = waiting + 1, blocked + 1
            elif file == pools.__file__:
                blocked += 1  # a pool's worker that has nothing to do, or is about to begin
            else:
                return None
        if self._handed > waiting:
            return _CALM_BEFORE_START
        return _CALM if blocked else 0

    def _earliest(self, until: int | None) -> int | None:
        with self._turn:
            waited_for = [*self._asleep.values(), *([] if until is None else [until])]
        return min(waited_for, default=None)

    def _move(self, to: int) -> bool:
        """Move time, never back, and wake whoever slept until then; whether anybody did."""
        with self._turn:
            self._frozen.wait(max(0, to - self.now()))
            woken = [thread for thread, wake in self._asleep.items() if wake <= self.now()]
            for thread in woken:
                del self._asleep[thread]
            self._turn.notify_all()
        return bool(woken)

    def _listen(self, seconds: float) -> None:
        """Wait really, while the main thread sleeps in the candidate's code."""
        with self._turn:
            if seconds:
                self._turn.wait(seconds)

    def _doze(self, length: int) -> None:
        """Sleep on another thread, until the main thread has moved time.

        Where the main thread itself waits for this one, this one moves it; and where it is
        busy for as long as the sleep would take, time has passed as well.
        """
        me, given, calm = threading.get_ident(), 0, 0
        with self._turn:
            wake = self._asleep[me] = self.now() + length
            self._turn.notify_all()
        self._nudge()
        while given < length:
            with self._turn:
                if me in self._asleep:
                    self._turn.wait(_LOOK_S)
                if me not in self._asleep:
                    return
            given += nanoseconds(_LOOK_S)
            calm = calm + 1 if self._main_is_blocked() else 0
            if calm > _CALM_BEFORE_START and self._earliest(None) == wake:
                break
        self._move(wake)

    def _main_is_blocked(self) -> bool:
        """Does the main thread wait for another one, all of which sleep or wait?"""
        frame = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001
        if frame is None or frame.f_code.co_filename != threading.__file__:
            return False
        if frame.f_back is not None and frame.f_back.f_code.co_filename == __file__:
            return False  # it is about to move time itself
        return not self._channel.is_asked and self._looks_needed() is not None

    def _nudge(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(_nothing)


class PatientLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers fire in frozen time, when there is nothing else to do."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        super().__init__(_PatientSelector(waiting))

    def time(self) -> float:
        """Seconds that were waited for so far."""
        return self._waiting.now() / _SECOND

    def run_in_executor(  # type: ignore[override] # a checker's newer spelling of the same
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Hand work to a pool, and know of it until its result is here."""
        future = super().run_in_executor(executor, func, *args)
        self._waiting.handed()
        future.add_done_callback(self._waiting.returned)
        return future


class _PatientSelector(selectors.DefaultSelector):
    def __init__(self, waiting: Waiting) -> None:
        super().__init__()
        self._waiting = waiting

    def select(self, timeout: float | None = None) -> Any:
        if timeout is not None and timeout <= 0:
            return super().select(timeout)
        return self._waiting.idle(timeout, super().select)


def nanoseconds(seconds: float) -> int:
    """Whole nanoseconds, never less than the seconds: a timer may not fire before its time."""
    whole = int(seconds * _SECOND)
    return whole if whole >= seconds * _SECOND else whole + 1


def _nothing() -> None:
    """Wake the event loop."""
