"""Recovers a run in which trust broke: the break first, for good; then a plan; then only that.

One worker holds the recovery of a run. Whatever it does is on record before the next thing
begins, and what is done is read from the ledger each time: whoever takes over, after a crash at
whatever point, goes on where it ended. The points at which that may be are `Point`'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Final, Protocol, TypeVar

import msgspec

from backstop.core.compensation import Fate
from backstop.core.declaration import Namespace
from backstop.core.detectors import detect
from backstop.core.effectgate import Lease, Reach
from backstop.core.events import Recovered
from backstop.core.meshlog import Ended, Note, Rerun
from backstop.core.recovery import Receipt, RecoveryPlan, is_ready, plan
from backstop.core.trust import Badness, State
from backstop.core.trustbreak import TrustBreak
from backstop.errors import BackstopError
from backstop.mesh.accounts import account, given_to
from backstop.mesh.books import RECOVERING
from backstop.mesh.compensating import Settled, compensate
from backstop.mesh.judging import Mind, Seen, look
from backstop.mesh.standing import TO_TAKE_BACK, cut_off, reach_of, to_act, to_thaw
from backstop.meshports import MeshStore, Undoer
from backstop.ports import Held

R = TypeVar("R")

ROUNDS: Final = 3
"""How often a recovery begins again because trust broke while it went on."""


class Point(StrEnum):
    """Where a recovery is: what it names is done, and on record."""

    BROKEN = "broken"
    LEASED = "leased"
    PLANNED = "planned"
    BEGUN = "begun"
    RERUN = "rerun"
    THAWED = "thawed"
    REAFFIRMED = "reaffirmed"
    ACTED = "acted"
    COMPENSATED = "compensated"
    NOTED = "noted"
    RELEASED = "released"


class Rerunner(Protocol):
    """Runs steps of an agent again. What it does is recorded as any other attempt is."""

    async def rerun(self, run: str, step: str, given: Mapping[str, str]) -> None:
        """Run the step again on its inputs' outputs as they stand, `given` by digest.

        Its new attempt, and whatever else was run with it, is on record once this returns.
        """
        ...

    async def act(self, run: str, step: str) -> bool:
        """Ask for the action of the step again, through the effect gate; False if unwanted now.

        Its new attempt is on record once this returns True.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What became of a run. `stopped` says why something is left to do; empty if nothing is."""

    run: str
    epoch: int
    plan: RecoveryPlan
    receipt: Receipt
    executed: tuple[str, ...] = ()
    settled: tuple[Settled, ...] = ()
    stopped: str = ""


def _unwatched(_: Point, __: str) -> None:
    """Nobody looks on."""


class _BrokeAgainError(Exception):
    """Trust broke while a recovery went on: what it planned is out of date."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinator:
    """Recovers runs of one ledger, as `holder`.

    Without a `rerunner` nothing is run again, and without an `undoer` nothing is taken back:
    what that leaves is said. `bound` is how often one step may be run again on the same inputs,
    whoever recovers; `lease_s` for how many seconds nobody misses this worker. `watch` is told
    of each point, and of the step that it concerns.
    """

    store: MeshStore
    mind: Mind
    namespace: Namespace
    holder: str
    rerunner: Rerunner | None = None
    undoer: Undoer | None = None
    lease_s: float = 60.0
    bound: int = 3
    watch: Callable[[Point, str], None] = field(default=_unwatched)

    async def recover(self, run: str) -> Recovery | Held:
        """Recover a run as far as can be; `Held` if another worker is at it.

        Raises `BackstopError`: ``stale-lease`` if another took over, and what the store raises.
        """
        await self.break_trust(run)
        lease = await self.ask(lambda: self.store.lease(run, self.holder, lease_s=self.lease_s))
        if isinstance(lease, Held):
            return lease
        self.watch(Point.LEASED, "")
        work = _Work(self, run, lease)
        for _ in range(ROUNDS):
            try:
                done = await work.round()
            except _BrokeAgainError:
                await self.break_trust(run)
                continue
            break
        else:
            done = await work.ended(f"trust broke {ROUNDS} times while it was recovered from")
        await self.ask(lambda: self.store.release(lease))
        self.watch(Point.RELEASED, "")
        return done

    async def break_trust(self, run: str) -> None:
        """Put on record whatever the detectors find in a run, and freeze what that reaches."""
        seen = await self.look(run)
        for finding in detect(seen.verdicts):
            await self._break(seen, finding.broken(run))

    async def _break(self, seen: Seen, found: TrustBreak) -> None:
        reach = reach_of(seen, found)
        await self.ask(lambda: self.store.break_trust(found, run=seen.run, reach=[reach]))
        self.watch(Point.BROKEN, found.detector)

    async def look(self, run: str) -> Seen:
        """Judge a run as it stands."""
        return await self.ask(lambda: look(self.store, self.mind, run, every_break=True))

    async def ask(self, ask: Callable[[], R]) -> R:
        """Ask the store; off the event loop where it waits for a network."""
        return await asyncio.to_thread(ask) if self.store.blocking else ask()


class _Work:
    """One recovery, under its lease."""

    def __init__(self, by: Coordinator, run: str, lease: Lease) -> None:
        self._by = by
        self._run = run
        self._lease = lease
        self._epoch = 0
        self._executed: list[str] = []
        self._dropped: set[str] = set()
        self._thawed: tuple[Reach, ...] = ()
        self._settled: tuple[Settled, ...] = ()

    async def round(self) -> Recovery:
        """Recover as planned now. Raises `_BrokeAgainError`."""
        seen = await self._look()
        self._epoch = seen.control.epoch
        self._by.watch(Point.PLANNED, "")
        while True:
            planned = plan(seen.verdicts)
            stopped = await self._reruns(planned)
            seen = await self._current()
            await self._thaw(seen)
            await self._reaffirm(seen)
            stopped = stopped or _left(planned, seen) or await self._acts(seen)
            seen = await self._current()
            # What comes after an action is planned once that has gone out.
            if stopped or not plan(seen.verdicts).rerun:
                break
        await self._thaw(seen)
        return await self.ended(stopped or await self._compensate(seen))

    async def _thaw(self, seen: Seen) -> None:
        """Let go of what holds again. Raises `_BrokeAgainError`."""
        thaw, by = to_thaw(seen), self._by
        if not thaw:
            return
        if not await by.ask(lambda: by.store.thaw(thaw, lease=self._lease, epoch=self._epoch)):
            raise _BrokeAgainError
        self._thawed += thaw
        by.watch(Point.THAWED, "")

    async def ended(self, stopped: str) -> Recovery:
        """Put on record how it ended."""
        seen = await self._look()
        told = account(seen)
        note = Ended(
            epoch=self._epoch,
            holder=self._by.holder,
            thawed=self._thawed,
            rerun=tuple(self._executed),
            spent=told.receipt.spent,
            avoided=told.receipt.avoided,
            stopped=stopped,
        )
        if told.begun or self._thawed or self._settled:
            await self._note(note)
            self._by.watch(Point.NOTED, "")
        return Recovery(
            run=self._run,
            epoch=self._epoch,
            plan=told.plan,
            receipt=told.receipt,
            executed=tuple(self._executed),
            settled=self._settled,
            stopped=stopped,
        )

    async def _reruns(self, planned: RecoveryPlan) -> str:
        """Run what is planned again, each step once its inputs hold; why that ended early."""
        rerunner = self._by.rerunner
        for step in planned.rerun:
            seen = await self._current()
            if step not in seen.graph or not is_ready(seen.verdicts, step):
                continue
            if rerunner is None:
                return f"{step} is to be run again, and nobody here can"
            given = {dep.ref: seen.graph[dep.ref].output for dep in seen.graph[step].upstream}
            told = await self._again(seen, step, partial(rerunner.rerun, self._run, step, given))
            if isinstance(told, str):
                return told
            self._by.watch(Point.RERUN, step)
        return ""

    async def _again(
        self, seen: Seen, step: str, work: Callable[[], Awaitable[bool | None]]
    ) -> str | bool:
        """Do a step again, bounded and logged; whether it is wanted, or why it was not done."""
        given = given_to(seen, step)
        if seen.log.tries(step, given) >= self._by.bound:
            return (
                f"{step} was run again {self._by.bound} times on the same inputs and does not "
                "hold: nobody tries until it passes, so a person decides"
            )
        note = Rerun(step=step, given=given, epoch=self._epoch, holder=self._by.holder)
        await self._note(note)
        self._by.watch(Point.BEGUN, step)
        try:
            wanted = await self._held_while(work)
        except BackstopError as error:
            if error.slug == "stale-lease":
                raise
            return f"running {step} again failed: {error}"
        except Exception as error:  # noqa: BLE001 - the agent's code may raise anything
            return f"running {step} again failed: {type(error).__name__}"
        if wanted is False:
            return False
        after = await self._look()
        if after.graph[step].gen <= seen.graph[step].gen:
            return f"running {step} again gave no later attempt at it"
        self._executed.append(step)
        return True

    async def _reaffirm(self, seen: Seen) -> None:
        """Stand by effects that are out and whose inputs came out as they were."""
        out = await self._ask(lambda: list(self._by.store.out(self._run)))
        ruled = cut_off(seen, out)
        if ruled:
            await self._ask(lambda: self._by.store.rule(ruled, lease=self._lease))
            self._by.watch(Point.REAFFIRMED, "")

    async def _acts(self, seen: Seen) -> str:
        """Ask again for the actions that were blocked; why one could not be."""
        for step in to_act(seen, self._by.mind.payloads):
            rerunner = self._by.rerunner
            if rerunner is None:
                return f"{step} may go out again, and nobody here can ask for it"
            current = await self._current()
            told = await self._again(current, step, partial(rerunner.act, self._run, step))
            if isinstance(told, str):
                return told
            if told is False:
                self._dropped.add(step)
            self._by.watch(Point.ACTED, step)
        return ""

    async def _compensate(self, seen: Seen) -> str:
        """Take back what nobody asked for again; what is left to do after that."""
        bad = (
            step
            for step, verdict in seen.verdicts.items()
            if verdict.badness > Badness.UNKNOWN and step not in self._dropped
        )
        if (left := next(bad, None)) is not None:
            verdict = seen.verdicts[left]
            return f"{left} is {verdict.state}: {verdict.reason}"
        undoer = self._by.undoer
        if undoer is None:
            out = await self._ask(lambda: list(self._by.store.out(self._run)))
            suspect = sum(one.trust in TO_TAKE_BACK for one in out)
            told = "1 effect is" if suspect == 1 else f"{suspect} effects are"
            return f"{told} to be taken back, and nobody here can" if suspect else ""
        self._settled = await compensate(
            self._by.store,
            undoer,
            seen.graph,
            lease=self._lease,
            namespace=self._by.namespace,
        )
        self._by.watch(Point.COMPENSATED, "")
        kept = [one for one in self._settled if one.fate is not Fate.UNDO]
        return f"{kept[0].tool} {kept[0].key[:12]}: {kept[0].note}" if kept else ""

    async def _current(self) -> Seen:
        """The run as it stands, while this worker still holds it. Raises `_BrokeAgainError`."""
        await self._extend()
        seen = await self._look()
        if seen.control.epoch != self._epoch:
            raise _BrokeAgainError
        return seen

    async def _extend(self) -> None:
        by = self._by
        held = await self._ask(
            lambda: by.store.lease(self._run, by.holder, lease_s=by.lease_s, held=self._lease)
        )
        if isinstance(held, Held):
            raise BackstopError(
                f"the recovery of run {self._run} was taken over by {held.owner}: nothing more "
                "was done here; leave the run to whoever holds it",
                slug="stale-lease",
            )

    async def _held_while(self, work: Callable[[], Awaitable[R]]) -> R:
        """Do the work, and see to it that nobody misses this worker meanwhile.

        What it makes is put on record only for as long as nobody took over.
        """

        async def beat() -> None:
            while True:
                await asyncio.sleep(self._by.lease_s / 3)
                await self._extend()

        beating = asyncio.ensure_future(beat())
        token = RECOVERING.set(partial(self._by.store.record, lease=self._lease))
        try:
            return await work()
        finally:
            RECOVERING.reset(token)
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)

    async def _note(self, note: Note) -> None:
        event = Recovered(run=self._run, at="", body=msgspec.Raw(msgspec.json.encode(note)))
        await self._ask(lambda: self._by.store.append(event))

    async def _look(self) -> Seen:
        return await self._by.look(self._run)

    async def _ask(self, ask: Callable[[], R]) -> R:
        return await self._by.ask(ask)


def _left(planned: RecoveryPlan, seen: Seen) -> str:
    """Which planned step does not hold; empty if all do."""
    for step in planned.rerun:
        verdict = seen.verdicts[step]
        if verdict.state is not State.VERIFIED:
            return f"{step} is {verdict.state}: {verdict.reason}"
    return ""
