"""Replay: what a version would ask for, given the same weeks.

A run is the unit: its replay depends on nothing but its record, the candidate and the
rules, so runs go to as many processes as there are, and each process plays many.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from backstop.core.canon import CANON_VERSION, Json, NotCanonical, parse
from backstop.core.declaration import Declaration, Namespace, Scope
from backstop.core.erasure import runs_erased
from backstop.core.events import Event, Header, RequestDigests, RunOpened
from backstop.core.history import Outcome, Row
from backstop.core.intents import INTENTS_FORMAT, Intent, IntentsHeader, RunReplayed
from backstop.core.keying import Rules
from backstop.core.redaction import Redaction, RedactionKey
from backstop.core.runs import RecordedRun, Step, recorded_runs
from backstop.errors import BackstopError
from backstop.ports import Sandbox
from backstop.replay.answers import Answers, Recording
from backstop.replay.calls import known_calls
from backstop.replay.code import Code, Exercised, Reached
from backstop.replay.coverage import uncovered, unreached
from backstop.replay.driver import Driver, Played
from backstop.replay.keyed import Known, declarations, said
from backstop.replay.models import Trust
from backstop.replay.passes import RunOutcome, replay_run
from backstop.replay.window import RECENT, window_for
from backstop.replay.wire import Ready, ToolSeen

Progress = Callable[[int, int], None]
"""Told runs done and runs in all, from any thread, one at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to replay: a ledger, and the candidate in folder `candidate`.

    `declarations` are the base's, by tool; `version` is the candidate's content digest as
    rows carry it. `control` are the requests of a base version's replay, which vouch for
    rows that carry none, and `handed` those of its handover; `is_control` says that this is
    that replay, and `base` is what came of it. `code` are the candidate's files; they are
    compared with the base's. `walls` says that the sandbox is to hold the candidate back.
    `workers` is how many processes to use, `recent` how many session events a bounded view
    shows at least (0: all are shown, always). `redaction_key` is the one that the ledger's
    tokens were made with: without it, values that the candidate computes anew cannot be compared.
    """

    header: Header
    events: Sequence[Event]
    ledger: str
    candidate: Path
    version: str = ""
    declarations: Mapping[str, Declaration] = field(default_factory=dict)
    control: Mapping[int, RequestDigests] = field(default_factory=dict)
    handed: Mapping[int, RequestDigests] = field(default_factory=dict)
    is_control: bool = False
    base: Replay | None = None
    code: Code = field(default_factory=Code)
    walls: bool = True
    workers: int = 1
    recent: int = RECENT
    redaction_key: RedactionKey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What the candidate asked for, how far the replay can speak, and what the candidate is.

    `requests` go into the `control` of another candidate's plan, `handed` into its `handed`.
    `escapes` name what the candidate tried and was barred from; `logs` are digests of the
    runs' event logs.
    `exercised` is its code, and what the runs reached of it.
    """

    header: IntentsHeader
    intents: tuple[Intent, ...]
    runs: tuple[RunReplayed, ...]
    ready: Ready
    requests: Mapping[int, RequestDigests]
    handed: Mapping[int, RequestDigests]
    escapes: tuple[str, ...] = ()
    logs: Mapping[str, str] = field(default_factory=dict)
    exercised: Exercised = field(default_factory=Exercised)

    @property
    def schemas(self) -> dict[str, dict[str, object]]:
        """The parameters of the candidate's tools, by tool."""
        return {tool.tool: tool.schema for tool in self.ready.tools}

    @property
    def said(self) -> dict[str, Declaration]:
        """What the code of the candidate's tools declares of their effects, by tool."""
        return said(self.ready.tools)


def replay(
    plan: Plan,
    sandbox: Sandbox,
    *,
    progress: Progress | None = None,
    is_over: Callable[[], bool] = lambda: False,
) -> Replay:
    """Replay every run of the ledger on the candidate.

    Open runs go first, then the newest; once `is_over` no run is begun any more, and those
    left out say so (D6). Raises `SandboxError` or `WireError` where the candidate cannot be
    started or imported; one that breaks later makes runs not replayable, with the reason.
    """
    # All at once: importing the candidate is half of the work, and each process does it.
    drivers: list[Driver] = []
    try:
        number = max(1, min(plan.workers, _runs_in(plan)))
        drivers.extend(Driver(sandbox.start(plan.candidate)) for _ in range(number))
        ready = drivers[0].ready()
    except BaseException:
        for driver in drivers:
            driver.close()
        raise
    work = _Work(plan, sandbox, ready, progress, is_over)
    outcomes = work.done(drivers)
    in_ledger_order = [outcomes[run] for run in work.recordings]
    early = sorted(set(work.escapes))  # every process imports the same candidate
    escapes = (*early, *(e for outcome in in_ledger_order for e in outcome.escapes))
    exercised = Exercised.of(ready, plan.code, work.reached)
    missed = _not_exercised(plan, ready, exercised)
    return Replay(
        header=_header(plan, ready, work.rules, tuple(dict.fromkeys((*escapes, *missed)))),
        intents=tuple(intent for outcome in in_ledger_order for intent in outcome.intents),
        runs=tuple(outcome.replayed for outcome in in_ledger_order),
        ready=ready,
        requests={k: v for outcome in in_ledger_order for k, v in outcome.requests.items()},
        handed={k: v for outcome in in_ledger_order for k, v in outcome.handed.items()},
        escapes=tuple(dict.fromkeys(escapes)),
        logs={run: outcomes[run].digest for run in work.recordings},
        exercised=exercised,
    )


def _runs_in(plan: Plan) -> int:
    return sum(isinstance(event, RunOpened) for event in plan.events)


class _Work:
    """The runs of one replay, and the workers that share them."""

    def __init__(
        self,
        plan: Plan,
        sandbox: Sandbox,
        ready: Ready,
        progress: Progress | None,
        is_over: Callable[[], bool],
    ) -> None:
        self._plan = plan
        self._sandbox = sandbox
        self._progress = progress
        self._is_over = is_over
        self._lock = threading.Lock()
        self._outcomes: dict[str, RunOutcome] = {}
        self.rules = rules_of(plan, ready.tools)
        self.recordings = _recordings(plan, self.rules, ready)
        self._erased = runs_erased(plan.events)
        order = reversed(_open_first(self.recordings))
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
        worker = _Worker(self._start, driver)
        try:
            while (recording := self._next()) is not None:
                outcome = replay_run(recording, worker.play)
                self._finish(recording.run.id, outcome)
        finally:
            worker.leave()
            with self._lock:
                self.escapes += worker.escapes
                self.reached |= worker.reached

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
            if self._progress is not None:
                self._progress(len(self._outcomes), len(self.recordings))


class _Worker:
    """One process after another, for as long as there are runs.

    `escapes` are what was tried before the first run, `reached` what was reached in all.
    """

    def __init__(self, start: Callable[[], Driver], driver: Driver | None) -> None:
        self._start = start
        self._driver = driver
        self.escapes: list[str] = []
        self.reached = Reached()

    def play(self, run: RecordedRun, steps: Sequence[Step], answers: Answers) -> Played:
        """Play on the process at hand, or on a new one after a break."""
        try:
            driver = self._driver = self._driver or self._start()
        except BackstopError as error:
            answers.fail(f"{error} [{error.slug}]", step=steps[0])
            return Played()
        played = driver.play(run, steps, answers)
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


def rules_of(plan: Plan, tools: Sequence[ToolSeen]) -> Rules:
    """The base's declarations on the candidate's parameters, over those of the ledger."""
    header = plan.header
    declared = {
        tool: header.declarations[digest]
        for tool, digest in header.tools.items()
        if digest in header.declarations
    }
    return Rules(
        namespace=Namespace(agent=header.agent, app=header.app, tenant=header.tenant),
        recorded=header.declarations,
        declared=declared,
        candidate=declarations({**declared, **plan.declarations}, tools),
        offered=frozenset(tool.tool for tool in tools),
        replayed=True,
        canon=header.canon,
    )


def _recordings(plan: Plan, rules: Rules, ready: Ready) -> dict[str, Recording]:
    """What each run is replayed from, in ledger order."""
    runs, history = recorded_runs(plan.events)
    trust = Trust(
        version=plan.version,
        control=plan.control,
        handed=plan.handed,
        unknown=plan.is_control,
    )
    erased = runs_erased(plan.events)
    whole = [run for run in runs.values() if run.id not in erased]
    everywhere = _of_every_run(whole, rules)
    shapes = _shapes(whole)
    redaction = Redaction(declarations=rules.candidate, key=plan.redaction_key)
    return {
        name: Recording(
            run=runs[name],
            rules=rules,
            trust=trust,
            elsewhere=[call for call in everywhere if call.run != name],
            shapes=shapes,
            window=window_for(runs[name], ready, recent=plan.recent),
            redaction=redaction,
        )
        for name in dict.fromkeys(history.runs)
    }


def _of_every_run(runs: Iterable[RecordedRun], rules: Rules) -> list[Known]:
    """G9: the recorded calls whose keys hold over all runs."""
    shared = {
        declaration.tool
        for declaration in rules.candidate.values()
        if declaration.scope is Scope.AGENT
    }
    if not shared:
        return []
    return [
        call
        for run in runs
        for call in known_calls(run.id, run.steps, rules)
        if call.tool in shared
    ]


def _shapes(runs: Iterable[RecordedRun]) -> dict[str, Json]:
    """The first result of each tool in the ledger: what a stand-in of it looks like."""
    shapes: dict[str, Json] = {}
    for run in runs:
        for step in run.steps:
            for call in step.calls:
                if isinstance(call, Row):
                    tool, result = call.tool, call.result
                    answered = call.outcome is Outcome.COMMITTED
                else:
                    tool, result = call.event.tool, call.event.result
                    answered = call.event.error is None
                if answered and tool not in shapes:
                    shapes[tool] = _shape(bytes(result))
    return {tool: shape for tool, shape in shapes.items() if shape is not None}


def _shape(result: bytes) -> Json:
    try:
        return parse(result)
    except NotCanonical:
        return None


def _open_first(recordings: Mapping[str, Recording]) -> list[str]:
    """D6: open runs first, then the newest."""
    return sorted(
        recordings,
        key=lambda name: (recordings[name].run.status is None, recordings[name].run.at),
        reverse=True,
    )


def _header(plan: Plan, ready: Ready, rules: Rules, missed: tuple[str, ...]) -> IntentsHeader:
    return IntentsHeader(
        format=INTENTS_FORMAT,
        agent=plan.header.agent,
        canon=CANON_VERSION,
        candidate=plan.version,
        ledger=plan.ledger,
        declarations=dict(sorted(rules.candidate.items())),
        guarded=guarded_tools(ready.tools),
        tools=tuple(sorted({tool.tool for tool in ready.tools})),
        uncovered=missed,
    )


def _not_exercised(plan: Plan, ready: Ready, exercised: Exercised) -> tuple[str, ...]:
    """What this replay cannot speak for, whatever it asked (D7)."""
    base = plan.base
    found = uncovered(ready, base=None if base is None else base.ready, recorded=plan.header.code)
    if base is not None and plan.events:  # an empty ledger says by itself that nothing was run
        found += unreached(base.exercised, exercised)
    if plan.walls and "seccomp" not in ready.isolation:
        return (*found, "the candidate was not isolated: this system has no seccomp")
    return found


def guarded_tools(tools: Iterable[ToolSeen]) -> tuple[str, ...]:
    """The tools on which the guard sits wherever the candidate offers them."""
    everywhere: dict[str, bool] = {}
    for tool in tools:
        everywhere[tool.tool] = everywhere.get(tool.tool, True) and tool.guarded
    return tuple(sorted(tool for tool, guarded in everywhere.items() if guarded))
