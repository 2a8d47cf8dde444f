"""The broker: delivers each tick several times at once, and again where nobody acknowledged it.

It kills at random, and continues what has stopped once others have had its message.
"""

from __future__ import annotations

import heapq
import os
import random
import select
import signal
import socket
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.hammer.plan import Run
from benchmarks.hammer.worker import FATES, Chaos, Outcome, work

_AGAIN_S: Final = 0.03
"""After how long a message that was given back comes again."""
_PATIENCE_S: Final = 300.0
_TURN_S: Final = 0.02


@dataclass(slots=True, eq=False)
class Hand:
    """A worker as the broker sees it."""

    pid: int
    line: socket.socket
    fate: str
    ready: bool = False
    tick: str | None = None
    stopped: float = 0
    heard: bytes = b""


@dataclass(slots=True)
class Report:
    """What the broker saw. `acknowledged` and `doubted` are ticks."""

    acknowledged: set[str] = field(default_factory=set)
    doubted: set[str] = field(default_factory=set)
    deliveries: int = 0
    kills: int = 0
    stops: int = 0
    held: int = 0


@dataclass(slots=True)
class Broker:
    """Delivers the messages of one run to forked workers. `calm` ones do themselves no harm."""

    run: Run
    folder: Path
    progress: Callable[[Report], None]
    calm: bool = False
    report: Report = field(default_factory=Report)
    _hands: dict[int, Hand] = field(default_factory=dict)
    _waiting: deque[str] = field(default_factory=deque)
    _later: list[tuple[float, str]] = field(default_factory=list)
    _random: random.Random = field(default_factory=random.Random)
    _kill_at: float = float("inf")

    def deliver(self, ticks: list[str]) -> Report:
        """Deliver every tick until each delivery is acknowledged, or found in doubt."""
        (self.folder / "blows").touch()
        self._random.seed(f"{self.run.seed} {self.calm}")
        order = [tick for tick in ticks for _ in range(1 if self.calm else self.run.deliveries)]
        if not self.calm:
            # Deliveries of one tick stay together, so that they race; the ticks are shuffled.
            blocks = list(ticks)
            self._random.shuffle(blocks)
            order = [tick for tick in blocks for _ in range(self.run.deliveries)]
            self._kill_at = time.monotonic() + self._next_kill()
        self._waiting.extend(order)
        until = time.monotonic() + _PATIENCE_S
        try:
            for _ in range(self.run.workers):
                self._start()
            while self._busy() and time.monotonic() < until:
                self._turn()
        finally:
            self._end()
        return self.report

    def _next_kill(self) -> float:
        return self._random.expovariate(1 / self.run.kill_every_s)

    def _busy(self) -> bool:
        return bool(self._waiting or self._later) or any(
            hand.tick is not None for hand in self._hands.values()
        )

    def _turn(self) -> None:
        now = time.monotonic()
        while self._later and self._later[0][0] <= now:
            self._waiting.append(heapq.heappop(self._later)[1])
        for hand in sorted(self._hands.values(), key=lambda one: not one.fate):
            if hand.ready and hand.tick is None and not hand.stopped and self._waiting:
                self._hand_over(hand, self._waiting.popleft())
        if now >= self._kill_at:
            at_work = [one.pid for one in self._hands.values() if one.ready and not one.fate]
            if at_work:
                os.kill(self._random.choice(at_work), signal.SIGKILL)
            self._kill_at = now + self._next_kill()
        self._look_after(now)
        lines = {hand.line: hand for hand in self._hands.values()}
        for line in select.select(list(lines), [], [], _TURN_S)[0]:
            self._hear(lines[line])
        self.progress(self.report)

    def _hand_over(self, hand: Hand, tick: str) -> None:
        hand.tick = tick
        self.report.deliveries += 1
        with suppress(OSError):  # it has just died: its line tells, and the message comes again
            hand.line.sendall(f"{tick}\n".encode())

    def _look_after(self, now: float) -> None:
        """Notice who stopped, redeliver what it holds, and let it go on when all is over."""
        for hand in self._hands.values():
            if hand.stopped:
                if now - hand.stopped >= self.run.stopped_s:
                    os.kill(hand.pid, signal.SIGCONT)
                    hand.stopped = 0
                continue
            if _has_stopped(hand.pid):
                hand.stopped, hand.fate = now, ""
                self.report.stops += 1
                if hand.tick is not None:
                    self._again(hand.tick)

    def _hear(self, hand: Hand) -> None:
        try:
            said = hand.line.recv(4096)
        except OSError:
            said = b""
        if not said:
            self._died(hand)
            return
        *words, hand.heard = (hand.heard + said).split(b"\n")
        for word in words:
            self._heard(hand, word.decode())

    def _heard(self, hand: Hand, word: str) -> None:
        tick, hand.tick = hand.tick, None
        hand.ready = True
        if tick is None:
            return  # its first word
        match Outcome(word):
            case Outcome.ACK:
                self.report.acknowledged.add(tick)
            case Outcome.DOUBT:
                self.report.doubted.add(tick)
            case Outcome.HELD:
                self.report.held += 1
                self._again(tick)

    def _died(self, hand: Hand) -> None:
        self.report.kills += 1
        self._bury(hand)
        if hand.tick is not None:
            self._again(hand.tick)
        self._start()

    def _again(self, tick: str) -> None:
        heapq.heappush(self._later, (time.monotonic() + _AGAIN_S, tick))

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        fate, seed = self._next_fate(), self._random.getrandbits(60)
        pid = os.fork()
        if pid == 0:
            self._become_worker(ours, theirs, fate, seed)
        theirs.close()
        self._hands[pid] = Hand(pid, ours, fate)

    def _next_fate(self) -> str:
        """A blow that nobody has met, and nobody is sent to meet."""
        met = (self.folder / "blows").read_text(encoding="utf-8").splitlines()
        taken = {*met, *(hand.fate for hand in self._hands.values())}
        return next((fate for fate in FATES if fate not in taken), "")

    def _become_worker(
        self, ours: socket.socket, theirs: socket.socket, fate: str, seed: int
    ) -> None:
        code = 1
        try:
            ours.close()
            for hand in self._hands.values():
                hand.line.close()
            chaos = Chaos(self.run, self.folder, fate=fate, seed=seed, calm=self.calm)
            work(self.run, self.folder, theirs, chaos)
            code = 0
        finally:
            os._exit(code)  # a child must not run what its parent has yet to do

    def _bury(self, hand: Hand) -> None:
        del self._hands[hand.pid]
        hand.line.close()
        os.waitpid(hand.pid, 0)

    def _end(self) -> None:
        for hand in list(self._hands.values()):
            os.kill(hand.pid, signal.SIGKILL)
            self._bury(hand)


def _has_stopped(pid: int) -> bool:
    """Whether a worker has stopped since it was asked last. The dead are left to be buried."""
    try:
        return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG) is not None
    except ChildProcessError:
        return False  # it has died: its number must stay its own until its line was heard
