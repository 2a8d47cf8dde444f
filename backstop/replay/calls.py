"""Which recorded call answers a call of the candidate (semantics.md A1, A2).

By key first; an unknown key by its closest counterpart in the run. Answers go by identity,
never by mere position, so that a call more or a call less shifts no other call's answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from backstop.core.canon import canonical
from backstop.core.history import Outcome, Row
from backstop.core.identity import Identified
from backstop.core.intents import Answered
from backstop.core.keying import Rules
from backstop.core.pairing import Rank, Side, rank
from backstop.core.runs import Read, Step
from backstop.replay.attempts import began_anew
from backstop.replay.keyed import Ask, Known


@dataclass(slots=True, kw_only=True, eq=False)
class Told:
    """How a call was answered; `known` is the recorded call whose answer it got, if any.

    `early` says that the answer was recorded in a later step (G5). `holes` are pointers into
    the arguments that hold stand-ins. `released` says that the counterpart was asked for by
    its own key, or by something closer, after it had answered this call.
    """

    ask: Ask
    how: Answered
    known: Known | None = None
    early: bool = False
    holes: tuple[str, ...] = ()
    released: bool = False


class CallRecord:
    """What the record of one run answers to calls.

    `elsewhere` are calls of other runs whose keys hold over all runs (scope `agent`, G9).
    """

    def __init__(self, known: Sequence[Known], elsewhere: Sequence[Known] = ()) -> None:
        self._known = [call for call in known if not call.superseded]
        self._by_key: dict[str, list[Known]] = defaultdict(list)
        for call in self._known:
            self._by_key[call.key].append(call)
        self._elsewhere = {call.key: call for call in reversed(elsewhere)}
        self._pools: dict[str, _Pool] = {}
        self._asked: set[int] = set()
        self._asked_keys: set[str] = set()
        self._served: set[int] = set()
        self._held: dict[int, tuple[Rank, Told]] = {}
        self._stood_for: dict[str, Known] = {}

    def answer(self, ask: Ask, *, holes: tuple[str, ...] = ()) -> Told:
        """Find the answer to `ask`; a stand-in is wanted where there is nothing to pair with."""
        told = self._by_own_key(ask, holes) or self._by_counterpart(ask, holes)
        return told or Told(ask=ask, how=Answered.STAND_IN, holes=holes)

    def all_asked(self, step: Step) -> bool:
        """Were all calls of `step` asked for that a replay should come by?

        What a policy or a person blocked never reached its tool, and need not here.
        """
        start = began_anew(step)
        return all(
            call.index in self._served or (call.is_failed and call.key in self._asked_keys)
            for call in self._known
            if call.step is step and call.attempt >= start and not _is_blocked(call)
        )

    def is_of_later_steps(self, ask: Ask) -> bool:
        """Is the call on record, and in later steps only?"""
        rows = self._by_key.get(ask.key) if ask.key else None
        return bool(rows) and all(row.step.cursor > ask.step.cursor for row in rows or ())

    def _by_own_key(self, ask: Ask, holes: tuple[str, ...]) -> Told | None:
        if not ask.key:
            return None
        if rows := self._by_key.get(ask.key):
            found = self._among(rows, ask)
            self._asked.add(found.index)
            self._asked_keys.add(ask.key)
            self._release(found)
        elif (elsewhere := self._elsewhere.get(ask.key)) is not None:
            return Told(ask=ask, how=Answered.RECORDED, known=elsewhere, holes=holes)
        else:
            return None
        self._served.add(found.index)
        early = found.step.cursor > ask.step.cursor
        return Told(ask=ask, how=Answered.RECORDED, known=found, early=early, holes=holes)

    def _among(self, rows: Sequence[Known], ask: Ask) -> Known:
        """A1: of calls of one key those of the step, in turn; else the latest earlier one.

        Of those in turn, one with the very same arguments goes first: a failure that another
        value met is not this one's. A deliberate repeat has a result of its own, which its own
        reason gets again (ADR 0019).
        """
        here = [call for call in rows if call.step is ask.step]
        turn = [call for call in here if call.index not in self._asked]
        if turn:
            same = [call for call in turn if call.fingerprint == ask.fingerprint]
            return _for_one_reason(same, ask)[0] if same else turn[0]
        earlier = [call for call in rows if call.step.cursor <= ask.step.cursor]
        return _for_one_reason(earlier, ask)[-1] if earlier else rows[0]

    def _release(self, known: Known) -> None:
        held = self._held.pop(known.index, None)
        if held is not None:
            held[1].released = True

    def _by_counterpart(self, ask: Ask, holes: tuple[str, ...]) -> Told | None:
        """A2: the closest recorded call of the tool that nobody asked for by its own key."""
        if ask.identified is None:
            return None
        side = Side(
            run=ask.run,
            step=ask.step.id,
            identity=ask.identified.identity,
            arguments=ask.identified.arguments,
            holes=frozenset(argument_of(pointer) for pointer in holes),
        )
        best: tuple[Rank, int, Known] | None = None
        for call in self._pool(ask.tool).near(side):
            if call.index in self._asked or (found := rank(call.side, side)) is None:
                continue
            if call.index in self._held and self._held[call.index][0] <= found:
                continue
            if best is None or (found, call.index) < best[:2]:
                best = found, call.index, call
        if best is None:
            return self._again(ask, holes)
        self._release(best[2])
        self._stood_for[ask.key] = best[2]
        early = best[2].step.cursor > ask.step.cursor
        told = Told(ask=ask, how=Answered.SUBSTITUTED, known=best[2], early=early, holes=holes)
        self._held[best[1]] = best[0], told
        self._served.add(best[1])
        return told

    def _again(self, ask: Ask, holes: tuple[str, ...]) -> Told | None:
        """A call that repeats one that had a counterpart is told the same once more."""
        known = self._stood_for.get(ask.key)
        if known is None:
            return None
        return Told(ask=ask, how=Answered.SUBSTITUTED, known=known, holes=holes, released=True)

    def _pool(self, tool: str) -> _Pool:
        if tool not in self._pools:
            self._pools[tool] = _Pool(call for call in self._known if call.tool == tool)
        return self._pools[tool]


def _for_one_reason(calls: list[Known], ask: Ask) -> list[Known]:
    """Of several calls those that repeat for the reason that `ask` gives; all if none does."""
    if len(calls) == 1:
        return calls
    reason = _override(ask.identified)
    return [call for call in calls if _override(call.identified) == reason] or calls


def _override(named: Identified | None) -> str | None:
    return None if named is None or named.override is None else canonical(named.override)


class _Pool:
    """The recorded calls of one tool, by what may make them a counterpart."""

    def __init__(self, calls: Iterable[Known]) -> None:
        self._calls = list(calls)
        self._near: dict[object, list[Known]] = defaultdict(list)
        for call in self._calls:
            self._near[call.side.folded].append(call)
            self._near[call.run, call.step.id].append(call)

    def near(self, side: Side) -> Sequence[Known]:
        """Those that can have a rank at all: equal when folded, or of one step."""
        if side.holes:
            return self._calls
        found = {
            call.index: call
            for key in (side.folded, (side.run, side.step))
            for call in self._near[key]
        }
        return [found[index] for index in sorted(found)]


def argument_of(pointer: str) -> str:
    """The argument that a JSON Pointer points into."""
    name = pointer.removeprefix("/").split("/", 1)[0]
    return name.replace("~1", "/").replace("~0", "~")


def known_calls(run: str, steps: Iterable[Step], rules: Rules) -> list[Known]:
    """The recorded calls of a run in ledger order, tries that were made anew marked (S1).

    An effect's last attempt speaks for it. A read's does if that attempt began the step
    anew; one that resumed it asks further questions.
    """
    found: list[Known] = []
    for step in steps:
        start = began_anew(step)
        asked = [call for call in step.calls if not _is_out_of_sight(call)]
        calls = [Known(call=call, run=run, step=step, rules=rules) for call in asked]
        last: dict[str, int] = {}
        for call in calls:
            last[call.key] = max(call.attempt, last.get(call.key, 0))
        for call in calls:
            final = last[call.key]
            is_read = not isinstance(call.call, Row)
            call.superseded = call.attempt < (min(start, final) if is_read else final)
        found += calls
    return sorted(found, key=lambda call: call.index)


def nested_calls(known: Sequence[Known]) -> dict[int, list[Known]]:
    """The effects that a tool's body asked for, by the place of the call whose body it was.

    A replay runs no body, so they are asked for with that call or not at all.
    """
    found: dict[int, list[Known]] = defaultdict(list)
    inner = [call for call in known if isinstance(call.call, Row) and call.call.within]
    outer: dict[str, list[Known]] = defaultdict(list)
    for call in known if inner else ():
        outer[_stored_key(call)].append(call)
    for call in inner:
        assert isinstance(call.call, Row)  # noqa: S101 - it was chosen for that
        around = outer[call.call.within]
        # A claim stands before what its body did, a read is written down after it.
        before = [one for one in around if isinstance(one.call, Row) and one.index < call.index]
        after = [one for one in around if isinstance(one.call, Read) and one.index > call.index]
        for one in before[-1:] or after[:1]:
            found[one.index].append(call)
    return found


def _stored_key(call: Known) -> str:
    return call.call.key if isinstance(call.call, Row) else call.call.event.key


def _is_out_of_sight(call: Row | Read) -> bool:
    """A read that a replay never comes by: of the framework's own tools, or in a tool's body."""
    return isinstance(call, Read) and (call.event.steering or bool(call.event.within))


def _is_blocked(call: Known) -> bool:
    return isinstance(call.call, Row) and call.call.outcome is Outcome.BLOCKED
