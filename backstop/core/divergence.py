"""What a version would do otherwise: the pure comparison of a ledger with intents.

`compare` is set arithmetic over keyed calls: it reads no clock, asks no model, and knows
no vendor. The rules are those of semantics.md, G1-G9; each is a test that carries its
number.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from backstop.core.canon import Json, canonical, short
from backstop.core.declaration import Declaration, Scope
from backstop.core.fields import difference, fold, pointers
from backstop.core.history import History, Outcome
from backstop.core.identity import suggest
from backstop.core.intents import FromLedger, Intent, RunReplayed
from backstop.core.keying import (
    IntentCall,
    RowCall,
    Rules,
    Unkeyed,
    finds,
    key_intents,
    key_rows,
)
from backstop.core.matching import Matching, lost, match, surplus_commits
from backstop.core.pairing import same_when_folded


class Kind(StrEnum):
    """What is wrong: the words of the gate."""

    DUPLICATE = "DUPLICATE"
    MUTATED = "MUTATED"
    MISSING = "MISSING"
    EXTRA = "EXTRA"


class Reason(StrEnum):
    """Why it is wrong; docs/divergences.md has a section for each."""

    RELABELLED = "relabelled"
    RETARGETED = "retargeted"
    IDENTITY_UNKNOWN = "identity unknown"
    REPEATED = "repeated"
    REKEYED = "rekeyed"
    RENAMED = "renamed"
    MOVED = "moved"
    CHANGED = "changed"
    CONFLICT = "conflict"
    MOVED_EARLIER = "moved earlier"
    DROPPED = "dropped"
    NEW = "new"
    SWALLOWED = "swallowed"
    DELIBERATE = "deliberate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Half:
    """One side of a divergence: the call as it was recorded, or as it would be asked for."""

    tool: str
    run: str
    step: str
    key: str
    fingerprint: str
    args: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """One located difference between history and a version.

    `paths` are JSON Pointers of what differs, `difference` the kinds of difference between
    the identities (case, punctuation, ...), `suggestion` the field rule that would remove it.
    `assumed` says that it lies in a stretch that the record cannot vouch for (D2).
    `fingerprint` names the finding across replays. `in_doubt` says that the recorded effect
    may not be out, `handover` that only the replay from a recorded session shows it (S2).
    `v` is the version that wrote the recorded row.
    """

    kind: Kind
    reason: Reason
    tool: str
    run: str
    step: str
    cursor: int
    recorded: Half | None
    intended: Half | None
    fingerprint: str
    paths: tuple[str, ...] = ()
    difference: tuple[str, ...] = ()
    suggestion: str | None = None
    assumed: bool = False
    in_doubt: bool = False
    handover: bool = False
    v: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything that `compare` found.

    Counts: `matched` calls; `absorbed` repeats that the guard would stop; `failed` intents
    that met a recorded failure; `in_doubt` rows that may be out; `recorded_twice` commits
    that history itself holds twice. `regrouped` are runs whose effects changed shape (G6),
    `unkeyed` the calls that could not be compared.
    """

    divergences: tuple[Divergence, ...]
    matched: int = 0
    absorbed: int = 0
    failed: int = 0
    in_doubt: int = 0
    recorded_twice: int = 0
    effects: int = 0
    intents: int = 0
    regrouped: Mapping[str, str] = field(default_factory=dict)
    unkeyed: tuple[Unkeyed, ...] = ()

    def count(self, kind: Kind) -> int:
        """How many divergences of a kind there are, outside assumed stretches."""
        return sum(d.kind is kind and not d.assumed for d in self.divergences)


def compare(
    history: History,
    intents: Iterable[Intent],
    rules: Rules,
    *,
    keyed_under: Mapping[str, Declaration] | None = None,
    replayed: Mapping[str, RunReplayed] | None = None,
) -> Comparison:
    """Compare what went out with what would be asked for.

    `keyed_under` are the declarations that the intents' stored keys were made under; without
    it every intent is keyed anew. `replayed` says how far each run could be replayed.
    """
    intents = list(intents)
    rows, unkeyed_rows = key_rows(history, rules)
    calls, unkeyed_calls = key_intents(intents, rules, keyed_under or {})
    found = match(rows, calls, rules)
    judge = _Judge(history, rules, replayed or {})
    judge.matching(found)
    return Comparison(
        divergences=tuple(sorted(judge.divergences, key=_order)),
        matched=judge.matched,
        absorbed=judge.absorbed,
        failed=len(found.spent),
        in_doubt=sum(row.source.is_in_doubt for row in rows),
        recorded_twice=judge.recorded_twice,
        effects=sum(row.source.outcome is Outcome.COMMITTED for row in rows),
        intents=len(calls),
        regrouped=judge.regrouped,
        unkeyed=(*unkeyed_rows, *unkeyed_calls, *lost(found, replayed or {})),
    )


_KINDS = {kind: place for place, kind in enumerate(Kind)}


def _order(divergence: Divergence) -> tuple[int, str, int, str, str]:
    return (
        _KINDS[divergence.kind],
        divergence.run,
        divergence.cursor,
        divergence.tool,
        divergence.fingerprint,
    )


class _Judge:
    """Turns a matching into divergences and counts."""

    def __init__(self, history: History, rules: Rules, replayed: Mapping[str, RunReplayed]) -> None:
        self.rules = rules
        self.replayed = replayed
        self.divergences: list[Divergence] = []
        self.matched = self.absorbed = self.recorded_twice = 0
        self.regrouped: dict[str, str] = {}
        self._asked = Counter((a.run, a.step, a.key, a.fingerprint) for a in history.answered)

    def matching(self, found: Matching) -> None:
        for row, intent in found.same:
            self._same(row, intent)
        for row, intent in found.changed:
            self._changed(row, intent)
        for row, intent in found.repeats:
            self._repeat(row, intent)
        for row, intent in found.paired:
            self._paired(row, intent)
        self._renamed(found)
        missed, twice = surplus_commits(found)
        self.recorded_twice = len(twice)
        for row in missed:
            self._missed(row)
        firsts = {(intent.group, intent.key): (row, intent) for row, intent in found.paired}
        for intent in found.intents:
            if (pair := firsts.get((intent.group, intent.key))) is not None:
                self._repeat_of(*pair, intent)
            else:
                self._add(Kind.EXTRA, _newness(intent), None, intent)

    def _same(self, row: RowCall, intent: IntentCall) -> None:
        if row.rekeyed and self._goes_out_again(row, intent):
            self._add(Kind.DUPLICATE, Reason.REKEYED, row, intent)
        elif self._moved_earlier(row, intent):
            self._add(Kind.MUTATED, Reason.MOVED_EARLIER, row, intent)
        else:
            self.matched += 1

    def _goes_out_again(self, row: RowCall, intent: IntentCall) -> bool:
        """K3: a store that holds this row under another key lets the call pass, unless it looks."""
        if isinstance(intent.source, FromLedger) and intent.source.key == row.source.key:
            return False  # both histories wrote one key, whatever it would be today
        return row.source.guarded and not finds(row, intent)

    def _moved_earlier(self, row: RowCall, intent: IntentCall) -> bool:
        # Two histories number their steps as they like; only a replay keeps the record's.
        return (
            self.rules.replayed
            and row.source.run == intent.source.run
            and intent.source.cursor < row.source.cursor
        )

    def _changed(self, row: RowCall, intent: IntentCall) -> None:
        if row.rekeyed and self._goes_out_again(row, intent):
            self._add(Kind.DUPLICATE, Reason.REKEYED, row, intent)
        else:
            self._add(Kind.MUTATED, Reason.CHANGED, row, intent)

    def _repeat(self, row: RowCall, intent: IntentCall) -> None:
        """G7, and what the guard answered in history it will answer again."""
        # The record spells fingerprints as they were made then: equal today is equal then.
        same = intent.fingerprint == row.fingerprint
        then = row.source.fingerprint if same else intent.fingerprint
        ask = (intent.source.run, intent.source.step, row.source.key, then)
        if self._asked[ask] > 0:
            self._asked[ask] -= 1
            self.absorbed += 1
        elif not row.source.may_be_out:
            self._repeat_of_none(row, intent)
        else:
            self._repeat_of(row, row, intent)

    def _repeat_of_none(self, row: RowCall, intent: IntentCall) -> None:
        """A person said that `row` shall not be: the guard says so again, and nothing goes out."""
        if self._guard_stops(row, intent) and row.fingerprint == intent.fingerprint:
            self.absorbed += 1
        else:
            self._add(Kind.EXTRA, _newness(intent), None, intent)

    def _repeat_of(self, row: RowCall, first: RowCall | IntentCall, intent: IntentCall) -> None:
        """G7: `first` is who took the key: the recorded call, or its counterpart in the replay."""
        if intent.source.override is not None:
            self._add(Kind.EXTRA, Reason.DELIBERATE, row, intent)
        elif not self._guard_stops(row, intent):
            self._add(Kind.DUPLICATE, Reason.REPEATED, row, intent)
        elif first.fingerprint != intent.fingerprint:
            self._add(Kind.MUTATED, Reason.CONFLICT, row, intent)
        elif first.at != intent.at:
            self._add(Kind.EXTRA, Reason.SWALLOWED, row, intent)
        else:
            self.absorbed += 1

    def _guard_stops(self, row: RowCall, intent: IntentCall) -> bool:
        return (
            row.source.guarded
            and intent.tool in self.rules.guarded
            and (not row.rekeyed or finds(row, intent))
        )

    def _paired(self, row: RowCall, intent: IntentCall) -> None:
        reason = _why_paired(row, intent)
        if reason is not Reason.MOVED and row.fingerprint == intent.fingerprint:
            # Equal in every argument, defaults included: only the key rule tells them apart.
            self._same_under_another_key(row, intent)
        else:
            self._add(Kind.DUPLICATE, reason, row, intent)

    def _same_under_another_key(self, row: RowCall, intent: IntentCall) -> None:
        """K3: a guard that looks under every rule finds it; no store holds an imported key."""
        if self._goes_out_again(row, intent):
            self._add(Kind.DUPLICATE, Reason.REKEYED, row, intent)
        else:
            self.matched += 1

    def _renamed(self, found: Matching) -> None:
        """G6: a tool that went and a tool that came, in one step."""
        gone: dict[tuple[str, str], list[RowCall]] = defaultdict(list)
        for row in found.rows:
            if self.rules.lost(row.tool):
                gone[row.at].append(row)
        for intent in [call for call in found.intents if self.rules.brought(call.tool)]:
            rows = gone.get(intent.at, [])
            twin = next((row for row in rows if _same_values(row, intent)), None)
            if twin is not None:
                rows.remove(twin)
                found.rows.remove(twin)
                found.intents.remove(intent)
                self._add(Kind.DUPLICATE, Reason.RENAMED, twin, intent)
        for intent in found.intents:
            if self.rules.brought(intent.tool) and gone.get(intent.at):
                row = gone[intent.at][0]
                self.regrouped[intent.source.run] = (
                    f"regrouped in step {intent.source.step}: {row.source.tool} went, "
                    f"{intent.source.tool} came; declare an alias if they are one tool"
                )

    def _missed(self, row: RowCall) -> None:
        replay = self.replayed.get(row.source.run)
        if replay is not None:
            if replay.not_replayable is not None:
                return
            if replay.assumed_from is not None and row.source.cursor >= replay.assumed_from:
                return
        elif self.rules.replayed:
            return
        self._add(Kind.MISSING, Reason.DROPPED, row, None)

    def _add(
        self, kind: Kind, reason: Reason, row: RowCall | None, intent: IntentCall | None
    ) -> None:
        located = next(call for call in (intent, row) if call is not None)
        recorded, intended = _half(row), _half(intent)
        paths: tuple[str, ...] = ()
        kinds: tuple[str, ...] = ()
        suggestion = None
        if row is not None and intent is not None:
            paths = pointers(row.identified.arguments, intent.identified.arguments)
            if kind is Kind.DUPLICATE:
                kinds = difference(row.identified.identity, intent.identified.identity)
                suggestion = suggest(row.identified.identity, intent.identified.identity)
        self.divergences.append(
            Divergence(
                kind=kind,
                reason=reason,
                tool=located.source.tool,
                run=located.source.run,
                step=located.source.step,
                cursor=located.source.cursor,
                recorded=recorded,
                intended=intended,
                fingerprint=_fingerprint(self.rules, kind, recorded, intended),
                paths=paths,
                difference=kinds,
                suggestion=suggestion,
                assumed=intent is not None and intent.source.assumed,
                in_doubt=row is not None and row.source.outcome is not Outcome.COMMITTED,
                v=row.source.v if row is not None else "",
            )
        )


def _newness(intent: IntentCall) -> Reason:
    return Reason.NEW if intent.source.override is None else Reason.DELIBERATE


def _why_paired(row: RowCall, intent: IntentCall) -> Reason:
    """G4: the reason of a pair."""
    if same_when_folded(row.side, intent.side):
        same = canonical(dict(row.side.identity)) == canonical(dict(intent.side.identity))
        moved = same and intent.declaration.scope is Scope.STEP
        return Reason.MOVED if moved else Reason.RELABELLED
    if intent.declaration.identity is None:
        return Reason.IDENTITY_UNKNOWN
    recorded, intended = row.side.identity, intent.side.identity
    kept = any(
        canonical(fold(recorded[name])) == canonical(fold(intended[name]))
        for name in recorded.keys() & intended.keys()
    )
    return Reason.RELABELLED if kept else Reason.RETARGETED


def _same_values(row: RowCall, intent: IntentCall) -> bool:
    """Do two calls of differently named tools name the same target (G6)?"""
    recorded = Counter(canonical(value) for value in row.identified.identity.values())
    intended = Counter(canonical(value) for value in intent.identified.identity.values())
    if intent.declaration.identity is None:
        return bool(recorded) and recorded <= intended
    return bool(recorded) and recorded == intended


def _half(call: RowCall | IntentCall | None) -> Half | None:
    if call is None:
        return None
    return Half(
        tool=call.source.tool,
        run=call.source.run,
        step=call.source.step,
        key=call.source.key or call.key,
        fingerprint=call.source.fingerprint or call.fingerprint,
        args=call.identified.arguments,
    )


def _fingerprint(rules: Rules, kind: Kind, recorded: Half | None, intended: Half | None) -> str:
    """What the finding is, whatever rules judge it, in whatever order: waivers live by it.

    Made of keys as they stand in ledger and intents. Where nothing was stored, as of an import,
    each call has the key that the rules give it.
    """
    return short(
        canonical(
            [
                rules.namespace.agent,
                kind.value,
                None if recorded is None else recorded.key,
                None if intended is None else intended.key,
                None if intended is None else intended.fingerprint,
            ]
        )
    )
