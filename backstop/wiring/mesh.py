"""The mesh of a ledger for a person: judged, explained, broken, planned and recovered."""

from __future__ import annotations

import asyncio
import importlib
import json
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from backstop.adapters.files import chunks
from backstop.adapters.payloads import FolderPayloads
from backstop.clock import SystemClock
from backstop.config.anchors import FILE, load
from backstop.core import ledgerfile
from backstop.core.canon import canonical, digest
from backstop.core.checkpoint import DepKind
from backstop.core.declaration import Namespace
from backstop.core.detectors import PERSON
from backstop.core.effectgate import Control, Lease, Precondition, Reach, Unverified
from backstop.core.effecttrust import UNSETTLED
from backstop.core.events import EffectClaimed, Header, Seal
from backstop.core.meshlog import MeshLog
from backstop.core.trustbreak import Selector, Steps, TrustBreak
from backstop.errors import BackstopError, UsageError
from backstop.guard.claims.undoing import Undos
from backstop.guard.effect import declarations
from backstop.mesh.judging import MeshJudge, Mind, Seen, events_for, seen_in
from backstop.mesh.recovering import Coordinator, Point, Recovery, Rerunner
from backstop.mesh.standing import reach_of, to_act
from backstop.meshports import MeshStore, OutEffect
from backstop.ports import Clock, Held
from backstop.wiring.signing import check_signed

LEASE_S: Final = 60.0


class AnchoredJudge:
    """Judges effects before they are claimed, by a file of anchors as it stands at that time.

    A rule that is made stricter in it holds at once; a file that cannot be read lets nothing out.
    Raises `ConfigError` where it cannot be read from the start.
    """

    def __init__(self, store: MeshStore, anchors: Path) -> None:
        self._store = store
        self._anchors = anchors
        self._known: tuple[tuple[int, int, int], Mind] | None = None
        self._mind()

    def judge(self, intent: EffectClaimed) -> Precondition | Unverified:
        """What a claim on `intent` must come with. Raises `BackstopError` if nobody can tell."""
        return MeshJudge(self._store, self._mind(), undo_of=_undo_of).judge(intent)

    def _mind(self) -> Mind:
        version = _version(self._anchors)
        if self._known is None or version is None or self._known[0] != version:
            mind, _ = mind_of(self._anchors)
            self._known = (version or (0, 0, 0), mind)
        return self._known[1]


def _version(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _undo_of(tool: str) -> str:
    return next((one.undo_name for one in declarations() if one.tool == tool), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A ledger's mesh as it stands. `remarks` say what nobody looked at.

    `due` are the actions, by run, that may be asked for and are not out.
    """

    name: str
    control: Control
    runs: Mapping[str, Seen]
    leases: Mapping[str, Lease] = field(default_factory=dict)
    distrusted: Sequence[OutEffect] = ()
    due: Mapping[str, Sequence[str]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def of(self, step: str, run: str | None) -> Seen:
        """The run that a step is of. Raises `UsageError` where it is in none, or in several."""
        found = [seen for seen in self.runs.values() if step in seen.graph]
        if len(found) == 1:
            return found[0]
        where = "" if run is None else f" in run {run}"
        raise UsageError(
            f"{step} is a step of {len(found)} runs: name one with --run"
            if found
            else f"{self.name} has no step {step}{where}; `backstop mesh status` lists them"
        )


def mind_of(anchors: Path, *, clock: Clock | None = None) -> tuple[Mind, tuple[str, ...]]:
    """What runs are judged by, as a file says; and what it says not to look at."""
    anchored = load(anchors)
    folder = anchored.payloads
    mind = Mind(
        anchors=anchored.anchors,
        clock=clock or SystemClock(),
        payloads=None if folder is None else FolderPayloads(folder),
    )
    return mind, () if folder else ("outputs are not looked at: the anchors name no payloads",)


def look_at_file(
    file: Path,
    mind: Mind,
    *,
    agent: str | None,
    run: str | None,
    trusted: Path | None,
    high_water: Path | None,
) -> Looked:
    """The mesh of a ledger file, which must hold, and be signed where `trusted` keys are given.

    Raises `BackstopError`.
    """
    remarks = ["a ledger alone: leases, and effects in which trust broke, are the store's"]
    if trusted is None:
        if high_water is not None:
            raise UsageError("--high-water: needs --trusted-keys, or anybody could raise the mark")
        ledgerfile.verify(chunks(file, kind="ledger"), name=str(file), expect_agent=agent)
        remarks.append("who wrote it is not checked: no --trusted-keys")
    else:
        check_signed(file, agent=agent, trusted=trusted, high_water=high_water)
    whole = MeshLog()
    for batch in ledgerfile.read_batches(chunks(file, kind="ledger"), name=str(file)):
        if not isinstance(batch, Header | Seal):
            for event in batch:
                whole.take(event)
    control = whole.control()
    runs = _judged(whole, mind, control, run, name=str(file))
    return Looked(
        name=str(file),
        control=control,
        runs=runs,
        due=_due(runs, mind),
        remarks=tuple(remarks),
    )


def look_at_store(
    store: MeshStore, mind: Mind, *, name: str, run: str | None, whole: bool = True
) -> Looked:
    """The mesh of a store. Raises `BackstopError`.

    Without the `whole` of it only the `run` that is named is read, and the breaks that concern it:
    places are then places in what was read.
    """
    control = store.control()
    read = store.read() if whole or run is None else events_for(store, control, run)
    told = MeshLog.of(read)
    runs = _judged(told, mind, control, run, name=name)
    leases = {one: lease for one in runs if (lease := store.recovering(one)) is not None}
    distrusted = [one for one in store.out(run) if one.trust in UNSETTLED] if control.breaks else []
    return Looked(
        name=name,
        control=control,
        runs=runs,
        leases=leases,
        distrusted=distrusted,
        due=_due(runs, mind),
    )


def _due(runs: Mapping[str, Seen], mind: Mind) -> Mapping[str, Sequence[str]]:
    return {run: to_act(seen, mind.payloads) for run, seen in runs.items()}


def _judged(
    whole: MeshLog, mind: Mind, control: Control, run: str | None, *, name: str
) -> Mapping[str, Seen]:
    found = {one: log for one, log in whole.runs.items() if log.records and run in {None, one}}
    if run is not None and not found:
        raise UsageError(f"--run: {name} has no checkpoints of run {run!r}", slug="run-unknown")
    return {one: seen_in(whole, mind, one, control) for one in found}


def break_trust(
    store: MeshStore,
    looked: Looked,
    selector: Selector,
    *,
    run: str | None,
    reason: str,
    by: str,
) -> tuple[TrustBreak, Sequence[Reach]]:
    """Put a person's break on record, and freeze what it reaches; the break and its reach.

    Raises `BackstopError` (``trust-break``) for one that names nothing of what is on record.
    """
    if isinstance(selector, Steps):
        for step in selector.steps:
            looked.of(step, run)  # a step bears its name in every run
    told = canonical([run or "", reason, by, looked.control.epoch, repr(selector)])
    found = TrustBreak(
        id=f"{PERSON}:{digest(told)[:16]}",
        seq=0,
        epoch=0,
        detector=f"{PERSON}:{by}",
        reason=reason,
        selector=selector,
    )
    reach = [one for seen in looked.runs.values() if (one := reach_of(seen, found)).steps]
    if not reach:
        raise BackstopError(
            f"nothing on record in {looked.name} is what that names: nothing was broken; "
            "`backstop mesh status` lists the steps",
            slug="trust-break",
        )
    where = reach[0].run if isinstance(selector, Steps) else (run or "")
    control = store.break_trust(found, run=where, reach=reach)
    known = control.known(found.id)
    return found if known is None else known.broken, reach


def apply(
    store: MeshStore,
    mind: Mind,
    run: str,
    *,
    agent: str,
    rerunner: Rerunner | None,
    bound: int,
    watch: Callable[[Point, str], None],
) -> Recovery | Held:
    """Recover a run of a store as far as can be. Raises `BackstopError`."""
    coordinator = Coordinator(
        store=store,
        mind=mind,
        namespace=Namespace(agent=agent),
        holder=f"mesh-apply-{secrets.token_hex(4)}",
        rerunner=rerunner,
        undoer=Undos(store),
        lease_s=LEASE_S,
        bound=bound,
        watch=watch,
    )
    return asyncio.run(coordinator.recover(run))


def rerunner_of(named: str) -> Rerunner:
    """The rerunner that ``module:name`` is, or makes when it is called. Raises `UsageError`."""
    module, colon, name = named.partition(":")
    if not colon or not module or not name:
        raise UsageError(f"--with: {named!r} is no MODULE:NAME")
    if "" not in sys.path:
        sys.path.insert(0, "")  # the folder it is called in, as for any module that is named
    try:
        found: Any = getattr(importlib.import_module(module), name)
        made: Any = found() if callable(found) and not hasattr(found, "rerun") else found
    except Exception as error:
        raise UsageError(
            f"--with: {named} cannot be had ({type(error).__name__}: {error})"
        ) from error
    if isinstance(made, type):
        made = made()
    if not (hasattr(made, "rerun") and hasattr(made, "act")):
        raise UsageError(f"--with: {named} has no `rerun` and `act`; see docs/mesh.md")
    return made  # type: ignore[no-any-return]


def anchors_text(
    pins: Mapping[tuple[DepKind, str], str],
    *,
    producers: Sequence[str],
    payloads: str | None,
    rules: Mapping[str, str] | None = None,
) -> str:
    """The text of a ``backstop-mesh.yaml`` with these pins, as of `definitions_of(root)`.

    `rules` are the digests of policy rules, by name.
    """
    named: dict[str, dict[str, str]] = {}
    for (kind, ref), pinned in sorted(pins.items()):
        named.setdefault(kind.value, {})[ref] = pinned
    told: dict[str, object] = {
        "version": 1,
        "payloads": payloads,
        "producers": list(producers),
        "pins": named,
        "rules": {name: {"digest": rule} for name, rule in sorted((rules or {}).items())},
    }
    return f"# {FILE}: JSON, which is YAML, too.\n{json.dumps(told, indent=2)}\n"
