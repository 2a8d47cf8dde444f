"""``backstop mesh status|why|break|plan|apply``: the bodies. Each gives its text and exit code."""

from __future__ import annotations

import getpass
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from backstop.cli.mesh import ANCHORS
from backstop.cli.options import Format
from backstop.cli.stores import Place
from backstop.core.checkpoint import DepKind
from backstop.core.detectors import detect
from backstop.core.recovery import why as chain
from backstop.core.trust import State
from backstop.core.trustbreak import Inputs, Producer, Selector, Steps
from backstop.errors import BackstopError, UsageError
from backstop.mesh.accounts import account
from backstop.mesh.judging import Seen
from backstop.mesh.recovering import Point, Recovery
from backstop.meshports import MeshStore
from backstop.ports import Held
from backstop.reports import mesh as report
from backstop.reports.escape import plain
from backstop.wiring import mesh

DONE: Final = 0
TO_DO: Final = 1
MOST_WORDS: Final = 500
"""Characters of a reason: it is read with every claim."""
_DIGEST: Final = re.compile(r"[0-9a-f]{32}([0-9a-f]{32})?", re.ASCII)
_RANGE: Final = re.compile(r"([0-9]{1,15})\.\.([0-9]{1,15})", re.ASCII)

A = TypeVar("A")
B = TypeVar("B")

Told: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The ledger that a command is about: a file, which is only read, or else a store.

    `place` finds the store: a file needs no configuration.
    """

    anchors: Path
    place: Callable[[], Place]
    file: Path | None = None
    agent: str | None = None
    run: str | None = None
    trusted: Path | None = None
    high_water: Path | None = None

    def look(self, *, whole: bool = False) -> tuple[mesh.Looked, str]:
        """It as it stands, and the words that reach it again.

        Of a store only the run that is named is read, unless the `whole` of it is asked for.
        Raises `BackstopError`, which says all that is missing.
        """
        if self.file is not None:
            mind, remarks = mesh.mind_of(self.anchors)
            options = f" {shlex.quote(str(self.file))}{self._options()}"
            looked = mesh.look_at_file(
                self.file,
                mind,
                agent=self.agent,
                run=self.run,
                trusted=self.trusted,
                high_water=self.high_water,
            )
        elif self.trusted is not None or self.high_water is not None:
            raise UsageError("--trusted-keys and --high-water go with a ledger FILE")
        else:
            (mind, remarks), (where, store) = _both(lambda: mesh.mind_of(self.anchors), self._found)
            options = where.options + self._options()
            looked = mesh.look_at_store(store, mind, name=where.url, run=self.run, whole=whole)
        return replace(looked, remarks=(*remarks, *looked.remarks)), options

    def _found(self) -> tuple[Place, MeshStore]:
        where = self.place()
        return where, where.open()

    def _options(self) -> str:
        anchors = "" if self.anchors == ANCHORS else f" --anchors {shlex.quote(str(self.anchors))}"
        return anchors if self.run is None else f"{anchors} --run {shlex.quote(self.run)}"


def _both(one: Callable[[], A], other: Callable[[], B]) -> tuple[A, B]:
    """What both give: whoever begins here mends all that is missing before the next try."""
    try:
        first = one()
    except BackstopError as error:
        try:
            other()
        except BackstopError as more:
            told = f"{error}. And error[{more.slug}]: {more}"
            raise type(error)(told, slug=error.slug) from more
        raise
    return first, other()


def status(where: Where, form: Format) -> Told:
    """What holds for each step; 1 where something does not."""
    shown = _shown(*where.look(), is_file=where.file is not None)
    text = report.document(report.told(shown)) if form is Format.JSON else report.status(shown)
    return text, DONE if shown.clean else TO_DO


def why(where: Where, step: str, form: Format) -> Told:
    """The chain from a step to what is wrong; 1 where something is. Raises `UsageError`."""
    looked, _ = where.look()
    seen = looked.of(step, where.run)
    links, verdict = chain(seen.verdicts, step), seen.verdicts[step]
    last = links[-1].step
    breaks = [one for one in seen.verdicts.world.breaks if one.covers(seen.graph[last])]
    if form is Format.TEXT:
        text = report.why(seen.run, links, verdict, breaks)
    else:
        text = report.why_document(seen.run, links, verdict, breaks)
    return text, DONE if verdict.state is State.VERIFIED else TO_DO


def plan(where: Where, form: Format) -> Told:
    """What a recovery would do; 1 where there is something. Nothing is changed."""
    shown = _shown(*where.look(), is_file=where.file is not None)
    text = report.document(report.told(shown)) if form is Format.JSON else report.plans(shown)
    return text, DONE if shown.clean else TO_DO


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What the options of ``mesh break`` name."""

    steps: Sequence[str] = ()
    source: str | None = None
    producer: str | None = None
    seq: str | None = None
    policy: str | None = None

    def selector(self, size: int) -> Selector:
        """What is meant; `size` is the place of the latest record. Raises `UsageError`."""
        given = [bool(self.steps), *(one is not None for one in (self.source, self.policy))]
        if sum((*given, self.producer is not None)) != 1:
            raise UsageError(
                "name what is broken by one of --step, --input, --producer and --policy",
                slug="trust-break",
            )
        if self.seq is not None and self.producer is None:
            raise UsageError("--seq goes with --producer only")
        if self.steps:
            return Steps(steps=tuple(dict.fromkeys(self.steps)))
        if self.producer is not None:
            first, last = _range(self.seq, size)
            return Producer(producer=self.producer, first=first, last=last)
        if self.policy is not None:
            return Inputs(kind=DepKind.POLICY, ref=self.policy)
        return _inputs(self.source or "")


def break_trust(where: Where, named: Named, *, reason: str, by: str | None, form: Format) -> Told:
    """Put a break on record, and freeze what it reaches. Raises `BackstopError`."""
    if where.file is not None:
        raise UsageError("a ledger file is only read: name the store with --store")
    if not reason.strip():
        raise UsageError("--reason: say what was found; it stays on record")
    if len(reason) > MOST_WORDS:
        raise UsageError(f"--reason: longer than {MOST_WORDS} characters")
    # A range of places is one in the whole ledger.
    looked, options = where.look(whole=named.producer is not None)
    size = max((seen.whole.size for seen in looked.runs.values()), default=0)
    found, reach = mesh.break_trust(
        where.place().open(),
        looked,
        named.selector(size),
        run=where.run,
        reason=reason,
        by=by or _user(),
    )
    if form is Format.JSON:
        return report.broke_document(found, reach), DONE
    return report.broke(found, reach, options=options), DONE


def apply(
    where: Where,
    *,
    named: str | None,
    bound: int,
    form: Format,
    tell: Callable[[str], None],
) -> Told:
    """Recover what is to be recovered; 1 where something is left. Raises `BackstopError`."""
    if where.file is not None:
        raise UsageError("a ledger file is only read: name the store with --store")
    looked, _ = where.look()
    place = where.place()
    rerunner = None if named is None else mesh.rerunner_of(named)
    mind, _ = mesh.mind_of(where.anchors)
    store = place.open()
    due = [run for run in looked.runs if _is_due(run, looked)]
    ended = {
        run: mesh.apply(
            store,
            mind,
            run,
            agent=place.agent,
            rerunner=rerunner,
            bound=bound,
            watch=_telling(tell),
        )
        for run in due
    }
    left = any(isinstance(done, Held) or done.stopped for done in ended.values())
    if form is Format.JSON:
        documents = [_ended_document(run, done) for run, done in ended.items()]
        text = report.document({"schema": report.SCHEMA, "recovered": documents})
    else:
        told = [_ended(run, done) for run, done in ended.items()]
        text = "\n\n".join(told) or "nothing to do"
    return text, TO_DO if left else DONE


def _is_due(run: str, looked: mesh.Looked) -> bool:
    effects = any(one.standing.claimed.run == run for one in looked.distrusted)
    return effects or not _run(looked.runs[run], looked).clean


def _ended(run: str, done: Recovery | Held) -> str:
    if isinstance(done, Held):
        return f"run {plain(run)}: {plain(done.owner)} recovers it; try again later"
    return report.recovered(run, done.receipt, settled=_settled(done), stopped=done.stopped)


def _ended_document(run: str, done: Recovery | Held) -> object:
    if isinstance(done, Held):
        return {"run": run, "held_by": done.owner}
    return report.recovered_document(
        run, done.receipt, settled=_settled(done), stopped=done.stopped
    )


def _settled(done: Recovery) -> list[tuple[str, str, str, str]]:
    return [(one.tool, one.key, one.fate.value, one.note) for one in done.settled]


def _telling(tell: Callable[[str], None]) -> Callable[[Point, str], None]:
    def told(point: Point, about: str) -> None:
        tell(f"{point.value}{f': {plain(about)}' if about else ''}")

    return told


def _shown(looked: mesh.Looked, options: str, *, is_file: bool) -> report.MeshShown:
    return report.MeshShown(
        name=looked.name,
        control=looked.control,
        runs=[_run(seen, looked) for seen in looked.runs.values()],
        distrusted=looked.distrusted,
        remarks=looked.remarks,
        options=options,
        is_file=is_file,
    )


def _run(seen: Seen, looked: mesh.Looked) -> report.RunShown:
    told = account(seen)
    frozen = {
        step
        for one in looked.control.breaks
        for reach in one.frozen
        if reach.run in {"", seen.run}
        for step in (
            *(seen.graph if reach.everything else reach.steps),
            *(f"agent {agent}" for agent in reach.agents),
        )
    }
    return report.RunShown(
        run=seen.run,
        steps=[(seen.graph[step], verdict) for step, verdict in seen.verdicts.items()],
        frozen=sorted(frozen),
        due=looked.due.get(seen.run, ()),
        lease=looked.leases.get(seen.run),
        findings=detect(seen.verdicts),
        plan=told.plan,
        receipt=told.receipt,
    )


def _inputs(text: str) -> Inputs:
    """The input in ``evidence/prices`` or ``evidence/prices/DIGEST``. Raises `UsageError`."""
    kind, slash, ref = text.partition("/")
    kinds = [one.value for one in DepKind if one is not DepKind.UPSTREAM]
    if not slash or not ref or kind not in kinds:
        raise UsageError(
            f"--input: {text!r} is no KIND/REF or KIND/REF/DIGEST; kinds are {', '.join(kinds)}"
        )
    before, _, last = ref.rpartition("/")
    if before and _DIGEST.fullmatch(last):
        return Inputs(kind=DepKind(kind), ref=before, digest=last)
    return Inputs(kind=DepKind(kind), ref=ref)


def _range(text: str | None, size: int) -> tuple[int, int]:
    if text is None:
        return 0, size
    found = _RANGE.fullmatch(text)
    if found is None:
        raise UsageError(f"--seq: {text!r} is no FIRST..LAST; `mesh status --format json` has them")
    return int(found[1]), int(found[2])


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"  # a container whose user has no name
