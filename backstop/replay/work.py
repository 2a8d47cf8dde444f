"""The runs of one replay, and the processes that share them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeAlias

from backstop.core.erasure import runs_erased
from backstop.core.intents import RunReplayed
from backstop.core.runs import RecordedRun, Step
from backstop.errors import BackstopError
from backstop.ports import Sandbox
from backstop.replay.answers import Answers, Recording
from backstop.replay.code import Reached
from backstop.replay.driver import Driver, Played
from backstop.replay.live import Live
from backstop.replay.models import Trust
from backstop.replay.passes import RunOutcome
from backstop.replay.plan import Plan, Progress
from backstop.replay.recordings import open_first, recordings, rules_of
from backstop.replay.repeats import replay_repeatedly
from backstop.replay.toolsets import Listings, completed, listings
from backstop.replay.wire import Ready

Vouched: TypeAlias = Callable[[str], Trust | None]
"""On what grounds the answers of a run are trusted; may wait for it, None if that took too long."""

Told: TypeAlias = Callable[[str, RunOutcome], None]
"""Hears of each run as soon as it was played, from any thread, one at a time."""


class Work:
    """The runs of one replay, and the workers that share them.

    `ready` is the candidate with the tools that its toolsets list in it.
    """

    def __init__(
        self,
        plan: Plan,
        sandbox: Sandbox,
        ready: Ready,
        *,
        vouched: Vouched,
        told: Told | None,
        progress: Progress | None,
        is_over: Callable[[], bool],
    ) -> None:
        self._plan = plan
        self._sandbox = sandbox
        self._vouched = vouched
        self._told = told
        self._progress = progress
        self._is_over = is_over
        self._lock = threading.Lock()
        self._outcomes: dict[str, RunOutcome] = {}
        self._toolsets = listings(ready, plan)
        self.ready = completed(ready, self._toolsets, plan.header)
        self.rules = rules_of(plan, self.ready.tools)
        self.recordings = recordings(plan, self.rules, self.ready)
        self._erased = runs_erased(plan.events)
        order = reversed(open_first(self.recordings))
        self._waiting = [self.recordings[run] for run in order if run not in self._erased]
        self.escapes: list[str] = []
        self.reached = Reached()

    def done(self, drivers: Sequence[Driver]) -> Mapping[str, RunOutcome]:
        """Replay all runs, a worker on each of `drivers`, the first of which is ready."""
        with ThreadPoolExecutor(max_workers=len(drivers)) as pool:
            first, *others = drivers
            workers = [pool.submit(self._work, first)]
            workers += [pool.submit(self._work_once_ready, driver) for driver in others]
            try:
                for worker in workers:
                    worker.result()
            except BaseException:
                # Whoever interrupts us waits for the runs at hand, not for all of them.
                self._waiting.clear()
                if self._plan.live is not None:
                    self._plan.live.stop()
                raise
        left_out = {run: self._left_out(one) for run, one in self.recordings.items()}
        return {**left_out, **self._outcomes}

    def _work_once_ready(self, driver: Driver) -> None:
        try:
            driver.ready()
        except BackstopError:
            driver.close()
            self._work(None)  # a new one may fare better, and else its run says why not
        except BaseException:
            driver.close()
            raise
        else:
            self._work(driver)

    def _work(self, driver: Driver | None) -> None:
        """Take runs until none waits; after a break go on in a new process."""
        worker = _Worker(self._start, driver, self._toolsets)
        try:
            while (recording := self._next()) is not None:
                trust = self._vouched(recording.run.id)
                if trust is None:
                    break
                vouched = replace(recording, trust=trust, live=self._live(trust))
                outcome = replay_repeatedly(vouched, worker.play)
                self._finish(recording.run.id, outcome)
        finally:
            worker.leave()
            with self._lock:
                self.escapes += worker.escapes
                self.reached |= worker.reached

    def _live(self, trust: Trust) -> Live | None:
        broker = self._plan.live
        return None if broker is None else Live(broker=broker, usual=trust.usual)

    def _left_out(self, recording: Recording) -> RunOutcome:
        run = recording.run
        why = "left out, since the time for this replay was over"
        if run.id in self._erased:
            why = f"{self._erased[run.id]} of its rows were erased: nobody can say what they told"
        return RunOutcome(
            intents=(),
            replayed=RunReplayed(run=run.id, steps_total=len(run.steps), not_replayable=why),
        )

    def _start(self) -> Driver:
        driver = Driver(self._sandbox.start(self._plan.candidate))
        try:
            driver.ready()
        except BaseException:
            driver.close()
            raise
        return driver

    def _next(self) -> Recording | None:
        with self._lock:
            return self._waiting.pop() if self._waiting and not self._is_over() else None

    def _finish(self, run: str, outcome: RunOutcome) -> None:
        with self._lock:
            self._outcomes[run] = outcome
            if self._told is not None:
                self._told(run, outcome)
            if self._progress is not None:
                self._progress(len(self._outcomes), len(self.recordings))


class _Worker:
    """One process after another, for as long as there are runs.

    `escapes` are what was tried before the first run, `reached` what was reached in all.
    """

    def __init__(
        self, start: Callable[[], Driver], driver: Driver | None, toolsets: Listings
    ) -> None:
        self._start = start
        self._driver = driver
        self._toolsets = toolsets
        self.escapes: list[str] = []
        self.reached = Reached()

    def play(self, run: RecordedRun, steps: Sequence[Step], answers: Answers) -> Played:
        """Play on the process at hand, or on a new one after a break."""
        try:
            driver = self._driver = self._driver or self._start()
        except BackstopError as error:
            answers.fail(f"{error} [{error.slug}]", step=steps[0])
            return Played()
        played = driver.play(run, steps, answers, toolsets=self._toolsets)
        if played.broken:
            self._note(driver)
            driver.close()
            self._driver = None
        return played

    def leave(self) -> None:
        """Let the process go."""
        if self._driver is not None:
            self._note(self._driver)
            self._driver.quit()

    def _note(self, driver: Driver) -> None:
        self.escapes += driver.escapes
        self.reached |= driver.reached
