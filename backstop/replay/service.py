"""Replay: what a version would ask for, given the same weeks.

A run is the unit: its replay depends on nothing but its record, the candidate and the
rules, so runs go to as many processes as there are, and each process plays many.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from backstop.core.canon import CANON_VERSION
from backstop.core.events import RequestDigests, RunOpened
from backstop.core.intents import INTENTS_FORMAT, IntentsHeader
from backstop.core.keying import Rules
from backstop.core.unshown import Unshown
from backstop.ports import Sandbox
from backstop.replay.code import Exercised
from backstop.replay.coverage import uncovered, unreached
from backstop.replay.driver import Driver
from backstop.replay.escapes import attempted, escaped
from backstop.replay.models import Trust
from backstop.replay.passes import RunOutcome
from backstop.replay.plan import Plan, Progress, Replay
from backstop.replay.toolsets import told_apart
from backstop.replay.wire import Ready, ToolSeen
from backstop.replay.work import Told, Vouched, Work

__all__ = ["Plan", "Progress", "Replay", "replay", "replay_both"]


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
    trust = _trust(plan, plan)
    played = _play(plan, sandbox, vouched=lambda _: trust, progress=progress, is_over=is_over)
    return _told(plan, played)


def replay_both(
    base: Plan,
    candidate: Plan,
    sandbox: Sandbox,
    *,
    progress: Progress | None = None,
    is_over: Callable[[], bool] = lambda: False,
    in_turn: bool = False,
    base_sandbox: Sandbox | None = None,
) -> tuple[Replay, Replay]:
    """Replay a base version and a candidate at once; what comes out is the same as `in_turn`.

    A run of the candidate is begun once the base has played that run, since what the base
    asked for vouches for the answers (A5): the candidate follows a run behind. `base_sandbox` is
    the base's where that has packages of its own. Raises as `replay` does; the base's fault where
    both have one.
    """
    control = _Control()
    stopped = threading.Event()
    shown = _Sum(progress)

    def over() -> bool:
        return stopped.is_set() or is_over()

    def follow(run: str) -> Trust | None:
        said = control.of(run)
        return None if over() else _trust(candidate, said, usual=control.usual)

    walls = base_sandbox or sandbox
    lead = partial(_lead, base, walls, control, stopped, progress=shown.part(0), is_over=over)
    play = partial(_play, candidate, sandbox, vouched=follow, progress=shown.part(1), is_over=over)
    if in_turn:
        first, played = lead(), play()
        return first, _told(replace(candidate, base=first), played)
    with ThreadPoolExecutor(max_workers=1) as pool:
        leading = pool.submit(lead)
        try:
            played = play()
        except Exception:
            stopped.set()
            leading.result()  # its own fault comes first, as it would in turn
            raise
        except BaseException:
            stopped.set()
            raise
        first = leading.result()
    return first, _told(replace(candidate, base=first), played)


def _lead(
    plan: Plan,
    sandbox: Sandbox,
    control: _Control,
    stopped: threading.Event,
    *,
    progress: Progress | None,
    is_over: Callable[[], bool],
) -> Replay:
    """Replay the base, and let its runs be followed. Without a base nobody needs to."""
    trust = _trust(plan, plan)
    try:
        played = _play(
            plan,
            sandbox,
            vouched=lambda _: trust,
            known=control.know,
            told=control.say,
            progress=progress,
            is_over=is_over,
        )
    except BaseException:
        stopped.set()
        raise
    finally:
        control.end()
    return _told(plan, played)


class _Control:
    """What a control run says of each run, as soon as it has played it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._said: dict[str, RunOutcome] = {}
        self._ended = False
        self.usual: frozenset[str] = frozenset()

    def know(self, ready: Ready) -> None:
        """What the version is: it says which models it asks before it says anything of a run."""
        self.usual = frozenset(agent.model for agent in ready.agents if agent.model)

    def say(self, run: str, outcome: RunOutcome) -> None:
        """A run was played."""
        with self._changed:
            self._said[run] = outcome
            self._changed.notify_all()

    def end(self) -> None:
        """No more will be said."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def of(self, run: str) -> RunOutcome | None:
        """What is said of `run`, once it is; None where nothing will be."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or run in self._said)
            return self._said.get(run)


class _Sum:
    """One account of how far two replays of equal length are."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._lock = threading.Lock()
        self._done = [0, 0]

    def part(self, which: int) -> Progress | None:
        """What the one or the other tells of itself."""
        progress = self._progress
        if progress is None:
            return None

        def tell(done: int, total: int) -> None:
            with self._lock:
                self._done[which] = done
                progress(sum(self._done), total * len(self._done))

        return tell


def _trust(
    plan: Plan, said: Plan | RunOutcome | None, *, usual: frozenset[str] = frozenset()
) -> Trust:
    """On what grounds the answers to the plan's version are trusted."""
    return Trust(
        version=plan.version,
        control=_requests(said),
        handed={} if said is None else said.handed,
        unknown=plan.is_control,
        usual=usual,
    )


def _requests(said: Plan | RunOutcome | None) -> Mapping[int, RequestDigests]:
    match said:
        case Plan():
            return said.control
        case RunOutcome():
            return said.requests
        case None:
            return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Played:
    """A replay whose runs are all played."""

    ready: Ready
    work: Work
    outcomes: Mapping[str, RunOutcome]


def _play(
    plan: Plan,
    sandbox: Sandbox,
    *,
    vouched: Vouched,
    known: Callable[[Ready], None] = lambda _: None,
    told: Told | None = None,
    progress: Progress | None,
    is_over: Callable[[], bool],
) -> _Played:
    # All at once: importing the candidate is half of the work, and each process does it.
    drivers: list[Driver] = []
    try:
        number = max(1, min(plan.workers, _runs_in(plan)))
        drivers.extend(
            Driver(sandbox.start(plan.candidate), is_base=plan.is_control) for _ in range(number)
        )
        ready = drivers[0].ready()
        known(ready)
    except BaseException:
        for driver in drivers:
            driver.close()
        raise
    work = Work(
        plan, sandbox, ready, vouched=vouched, told=told, progress=progress, is_over=is_over
    )
    return _Played(ready=work.ready, work=work, outcomes=work.done(drivers))


def _told(plan: Plan, played: _Played) -> Replay:
    """What came of a replay, compared with the plan's base."""
    work, ready = played.work, told_apart(played.ready, plan)
    in_ledger_order = [played.outcomes[run] for run in work.recordings]
    early = sorted(set(work.escapes))  # every process imports the same candidate
    later = tuple(e for outcome in in_ledger_order for e in outcome.escapes)
    exercised = Exercised.of(ready, plan.code, work.reached)
    unshown = _unshown(plan, ready, exercised)
    missed = (*(one.told for one in unshown), *_unspoken(plan, ready))
    base = None if plan.base is None else plan.base.ready
    return Replay(
        header=msgspec.structs.replace(
            _header(plan, ready, work.rules, (*dict.fromkeys(later), *missed)),
            unshown=unshown,
            escapes=(
                *attempted(early, before=() if plan.base is None else plan.base.escapes),
                *escaped(ready, base=base, exercised=exercised),
            ),
        ),
        intents=tuple(intent for outcome in in_ledger_order for intent in outcome.intents),
        runs=tuple(outcome.replayed for outcome in in_ledger_order),
        ready=ready,
        requests={k: v for outcome in in_ledger_order for k, v in outcome.requests.items()},
        handed={k: v for outcome in in_ledger_order for k, v in outcome.handed.items()},
        escapes=tuple(dict.fromkeys((*early, *later))),
        logs={run: played.outcomes[run].digest for run in work.recordings},
        exercised=exercised,
    )


def _runs_in(plan: Plan) -> int:
    return sum(isinstance(event, RunOpened) for event in plan.events)


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
        live=msgspec.UNSET if plan.live is None else plan.live.use,
    )


def _unshown(plan: Plan, ready: Ready, exercised: Exercised) -> tuple[Unshown, ...]:
    """What no replay of this ledger can show, whatever it asked (D7)."""
    base = plan.base
    found = uncovered(ready, base=None if base is None else base.ready, recorded=plan.header.code)
    if base is not None and plan.events:  # an empty ledger says by itself that nothing was run
        found += unreached(base.exercised, exercised)
    return found


def _unspoken(plan: Plan, ready: Ready) -> tuple[str, ...]:
    """What another replay could show, with other packages or other walls: nobody accepts that."""
    if plan.walls and "seccomp" not in ready.isolation:
        return (*plan.unseen, "the candidate was not isolated: this system has no seccomp")
    return plan.unseen


def guarded_tools(tools: Iterable[ToolSeen]) -> tuple[str, ...]:
    """The tools on which the guard sits wherever the candidate offers them."""
    everywhere: dict[str, bool] = {}
    for tool in tools:
        everywhere[tool.tool] = everywhere.get(tool.tool, True) and tool.guarded
    return tuple(sorted(tool for tool, guarded in everywhere.items() if guarded))
