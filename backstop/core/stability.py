"""What several replays of one version agree on; the rest is chance, and says nothing of it.

The replays differ in what a version may not depend on: the clock by a constant, the seed of
chance, the order of sets and folders. An argument that comes out otherwise is *unstable*, a
call that comes and goes makes its run unstable. Neither can be held against a record.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from backstop.core.canon import Json
from backstop.core.divergence import Divergence, Half, Reason
from backstop.core.fields import pointers, without
from backstop.core.identity import GENERATED, suggest
from backstop.core.keying import IntentCall
from backstop.core.pairing import pair

Spot: TypeAlias = tuple[str, str, str, str, str]
"""Run, step, tool, key and fingerprint of a call, as a divergence names it."""

_OF_ARGUMENTS: Final = frozenset(
    {
        Reason.RELABELLED,
        Reason.RETARGETED,
        Reason.IDENTITY_UNKNOWN,
        Reason.CHANGED,
        Reason.CONFLICT,
    }
)
"""Why a call is found that has another value than the record; the others have another cause."""
_OF_ALL: Final = frozenset({Reason.IDENTITY_UNKNOWN, Reason.CHANGED, Reason.CONFLICT})
"""Those that any argument may cause, and not only one that names the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnstableField:
    """An argument of `tool` that came out otherwise in another replay of the same version.

    `path` is a JSON Pointer into the arguments, `run` and `step` say where it was met first and
    `times` in how many calls. `names_target` says that the key is made of it, `is_order` that
    only the order of its items differs. `in_base` says that the base version's replays differ
    there too; None where it was not replayed again.
    """

    tool: str
    path: str
    run: str
    step: str
    times: int = 1
    names_target: bool = False
    is_order: bool = False
    in_base: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """What one version's replays in other worlds say of its first.

    `fields` are its unstable arguments, by tool and pointer; `loose` the pointers of each call
    of the first replay that has some, None for a call that another replay did not make.
    `elsewhere` are run and key of what only other replays asked for, `runs` why runs are unstable.
    """

    fields: tuple[UnstableField, ...] = ()
    loose: Mapping[Spot, frozenset[str] | None] = field(default_factory=dict)
    elsewhere: frozenset[tuple[str, str]] = frozenset()
    runs: Mapping[str, str] = field(default_factory=dict)

    def explains(self, divergence: Divergence, identity: Sequence[str] | None) -> bool:
        """Does the finding rest on nothing but what differs between the replays?

        `identity` are the declared names of its tool's target.
        """
        intended = divergence.intended
        if intended is None:
            recorded = divergence.recorded
            return recorded is not None and (recorded.run, recorded.key) in self.elsewhere
        paths = self.loose.get(_spot_of(intended), frozenset())
        if paths is None:
            return True
        if divergence.reason not in _OF_ARGUMENTS:
            return False
        by = divergence.paths
        if identity is not None and divergence.reason not in _OF_ALL:
            by = tuple(path for path in by if _name_of(path) in identity)
        return bool(by) and all(any(_is_in(path, loose) for loose in paths) for path in by)


def stability(first: Sequence[IntentCall], others: Iterable[Sequence[IntentCall]]) -> Stability:
    """Compare the calls of a version's first replay with those of its `others`.

    Calls of one step and tool are held against each other, in whatever order they were made.
    """
    found = _Found()
    for other in others:
        found.compare(first, other)
    return Stability(
        fields=tuple(one for _, one in sorted(found.fields.items())),
        loose=found.loose,
        elsewhere=frozenset(found.elsewhere),
        runs=dict(sorted(found.runs.items())),
    )


class _Found:
    def __init__(self) -> None:
        self.fields: dict[tuple[str, str], UnstableField] = {}
        self.loose: dict[Spot, frozenset[str] | None] = {}
        self.elsewhere: set[tuple[str, str]] = set()
        self.runs: dict[str, str] = {}

    def compare(self, first: Sequence[IntentCall], other: Sequence[IntentCall]) -> None:
        here, there = _leftovers(first, other)
        for place in sorted(here.keys() | there.keys()):
            self._place(here.get(place, []), there.get(place, []))

    def _place(self, here: list[IntentCall], there: list[IntentCall]) -> None:
        """Calls of one step and tool that no call of the other replay equals."""
        pairs = pair([call.side for call in here], [call.side for call in there])
        for i, j in pairs:
            self._differ(here[i], there[j])
        paired = {i for i, _ in pairs}, {j for _, j in pairs}
        for i, call in enumerate(here):
            if i not in paired[0]:
                self.loose[_spot(call)] = None
                self._comes_and_goes(call)
        for j, call in enumerate(there):
            if j not in paired[1]:
                self.elsewhere.add((call.source.run, _key(call)))
                self._comes_and_goes(call)

    def _differ(self, here: IntentCall, there: IntentCall) -> None:
        if here.key != there.key:
            self.elsewhere.add((there.source.run, _key(there)))
        spot = _spot(here)
        known = self.loose.get(spot, frozenset())
        if known is None:
            return  # a third replay did not make this call at all
        paths = _paths(here, there)
        self.loose[spot] = known | {path for path, _ in paths}
        identity = here.identified.identity
        named = {path for path, _ in paths if _name_of(path) in identity}
        if here.key != there.key and not named:
            named = {path for path, _ in paths}
        for path, is_order in paths:
            if path in known:
                continue  # another replay has shown it before
            one = UnstableField(
                tool=here.tool,
                path=path,
                run=here.source.run,
                step=here.source.step,
                names_target=here.key != there.key and path in named,
                is_order=is_order,
            )
            self._add(one)

    def _add(self, one: UnstableField) -> None:
        known = self.fields.get((one.tool, one.path))
        self.fields[one.tool, one.path] = (
            one
            if known is None
            else replace(
                known,
                times=known.times + 1,
                names_target=known.names_target or one.names_target,
                is_order=known.is_order and one.is_order,
            )
        )

    def _comes_and_goes(self, call: IntentCall) -> None:
        self.runs.setdefault(
            call.source.run,
            f"{call.source.tool} is asked for in step {call.source.step} in some replays of this "
            "version and not in others",
        )


def _leftovers(
    first: Sequence[IntentCall], other: Sequence[IntentCall]
) -> tuple[dict[tuple[str, ...], list[IntentCall]], dict[tuple[str, ...], list[IntentCall]]]:
    """The calls of each replay that the other has no equal of, by run, step, tool and pass."""
    theirs: dict[Spot, list[IntentCall]] = defaultdict(list)
    for call in other:
        theirs[_equal(call)].append(call)
    here: dict[tuple[str, ...], list[IntentCall]] = defaultdict(list)
    for call in first:
        if not _taken(theirs, _equal(call)):
            here[_place(call)].append(call)
    there: dict[tuple[str, ...], list[IntentCall]] = defaultdict(list)
    for calls in theirs.values():
        for call in calls:
            there[_place(call)].append(call)
    return here, there


def _taken(calls: Mapping[Spot, list[IntentCall]], spot: Spot) -> bool:
    found = calls.get(spot)
    if not found:
        return False
    found.pop()
    return True


def _equal(call: IntentCall) -> Spot:
    source = call.source
    return source.run, source.step, f"{call.tool} {source.replay}", call.key, call.fingerprint


def _place(call: IntentCall) -> tuple[str, ...]:
    return call.source.run, call.source.step, call.tool, call.source.replay


def _key(call: IntentCall) -> str:
    return call.source.key or call.key


def _spot(call: IntentCall) -> Spot:
    source = call.source
    fingerprint = source.fingerprint or call.fingerprint
    return source.run, source.step, source.tool, _key(call), fingerprint


def _spot_of(half: Half) -> Spot:
    return half.run, half.step, half.tool, half.key, half.fingerprint


def _paths(here: IntentCall, there: IntentCall) -> list[tuple[str, bool]]:
    """Where two calls differ, and whether only in the order of items.

    What is declared generated may differ, unless it is all that does: then it names the target.
    """
    fields = here.declaration.fields
    one, other = here.identified.arguments, there.identified.arguments
    left, right = (without(side, fields, GENERATED) for side in (one, other))
    found = dict(_differing(left, right)) or dict(_differing(one, other))
    return sorted(found.items())


def _differing(one: Mapping[str, Json], other: Mapping[str, Json]) -> Iterator[tuple[str, bool]]:
    lists: dict[str, bool] = {}
    for path in pointers(dict(one), dict(other)):
        place = _disordered(dict(one), dict(other), path, lists)
        yield (path, False) if place is None else (place, True)


def _disordered(one: Json, other: Json, path: str, lists: dict[str, bool]) -> str | None:
    """The list on the way of `path` that has the same items in another order, if there is one.

    `lists` says it of each list that was looked at: a long one is met once for each of its items.
    """
    at = ""
    for token in path.split("/")[1:]:
        if isinstance(one, list):
            if at not in lists:
                lists[at] = suggest(one, other) == "set"
            if lists[at]:
                return at
        one, other = _below(one, token), _below(other, token)
        at = f"{at}/{token}"
    return None


def _below(value: Json, token: str) -> Json:
    """The member or item of that name; None where there is none."""
    if isinstance(value, list):
        return value[int(token)] if int(token) < len(value) else None
    return value.get(_named(token)) if isinstance(value, dict) else None


def _name_of(pointer: str) -> str:
    """The argument that a JSON Pointer leads into."""
    return _named(pointer.split("/", 2)[1])


def _named(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~")


def _is_in(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place}/")
