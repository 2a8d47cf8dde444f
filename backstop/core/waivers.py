"""Waivers: what a person accepted for a while, and how far that reaches (semantics.md D4).

A waiver covers the findings that it names, or none: where more match than were agreed to, none
is covered, so what a waiver covers never hangs on the order of findings or on other waivers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from enum import StrEnum
from typing import Final, TypeAlias

from backstop.core.canon import Json, canonical
from backstop.core.divergence import Divergence, Kind
from backstop.core.unshown import Lack

MAX_DAYS: Final = 90
"""How many days ahead a waiver may expire, where nothing else is configured."""

_LEAST: Final = 6
"""Letters of a stored key that a pattern has to name, one after the other: strewn, as between
stars, they are in every other key."""

_LEAST_OF_A_TOOL: Final = 3
"""Letters of a tool's name, likewise, where it is a pattern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByFingerprint:
    """The findings of one fingerprint, which says agent, kind, keys and arguments."""

    fingerprint: str

    @property
    def about(self) -> str:
        """The fingerprint."""
        return self.fingerprint

    def meets(self, divergence: Divergence) -> bool:
        """Is it the finding's own?"""
        return divergence.fingerprint == self.fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class ByKey:
    """The findings on calls with this stored key, recorded or asked for; ``*`` is any text."""

    key: str

    @property
    def about(self) -> str:
        """The pattern."""
        return f"key {self.key}"

    def meets(self, divergence: Divergence) -> bool:
        """Does a call of the finding have such a key?"""
        sides = (divergence.recorded, divergence.intended)
        return any(side is not None and fits(self.key, side.key) for side in sides)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByCall:
    """The findings on calls of a tool; in each pattern ``*`` is any text.

    Of a call that is asked for its run and arguments count, else those of the recorded one.
    `args` are patterns of arguments by name; what is no text is matched as canonical JSON.
    """

    tool: str
    run: str = "*"
    args: Mapping[str, str] = field(default_factory=dict)

    @property
    def about(self) -> str:
        """Tool, names of arguments, and run."""
        where = f" in run {self.run}" if self.run != "*" else ""
        return f"{self.tool}({', '.join(sorted(self.args))}){where}"

    def meets(self, divergence: Divergence) -> bool:
        """Is the call that would go out, or else the recorded one, such a call?"""
        side = divergence.intended or divergence.recorded
        return (
            side is not None
            and fits(self.tool, side.tool)
            and fits(self.run, side.run)
            and all(
                name in side.args and fits(pattern, _text(side.args[name]))
                for name, pattern in self.args.items()
            )
        )


Names: TypeAlias = ByFingerprint | ByKey | ByCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """One acceptance. `expires` is the last day, in UTC, on which it counts.

    `count` is how many findings it was agreed for, `place` the file and line where it stands.
    `added` says that the pull request under judgement brings it itself.
    """

    names: Names
    agent: str
    reason: str
    author: str
    expires: date
    kind: Kind | Lack | None = None
    count: int = 1
    place: str = ""
    added: bool = False

    @property
    def about(self) -> str:
        """What it names, in one line: names of arguments, never their values."""
        return self.names.about

    def matches(self, divergence: Divergence) -> bool:
        """Does it name this finding? Says nothing of expiry, breadth or count."""
        return self.kind in {None, divergence.kind} and self.names.meets(divergence)

    def accepts(self, fingerprint: str) -> bool:
        """Does it name this change or gap that no replay shows? A pattern never does."""
        names = ByFingerprint(fingerprint=fingerprint)
        return self.kind in {None, Lack.UNCOVERED} and self.names == names


class Standing(StrEnum):
    """What became of a waiver in a verdict; all but the first is worth a look."""

    USED = "used"
    IDLE = "idle"
    UNUSED = "unused"
    EXCEEDED = "exceeded"
    EXPIRED = "expired"
    TOO_BROAD = "too broad"
    NOT_COUNTED = "not counted"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaiverUse:
    """A waiver with what it did: `matched` findings it names, of which `waived` are let pass.

    `unshown` is how many places of the waived no replay shows: they are no divergences. `note` says
    in one sentence why it waives nothing, or what to do about it; empty for a
    waiver that is as it should be.
    """

    waiver: Waiver
    standing: Standing
    matched: int = 0
    waived: int = 0
    unshown: int = 0
    note: str = ""


def apply(
    waivers: Sequence[Waiver],
    standing: Sequence[Divergence],
    *,
    known: Collection[int],
    tempered: Sequence[Divergence],
    unshown: Mapping[str, int],
    today: date,
    max_days: int = MAX_DAYS,
) -> tuple[dict[int, Waiver], tuple[WaiverUse, ...]]:
    """Which of the `standing` findings are waived, by place, and what became of each waiver.

    Those at the places `known` need no waiver, and count for what a waiver was agreed for all
    the same: nothing that is accepted elsewhere makes a waiver reach further. `tempered`
    findings do not count at all, and only keep a waiver that names them from being unused.
    `unshown` are fingerprints of what no replay shows, with how many places each stands for: a use
    that is `USED` accepts those that its waiver names.
    """
    covered: dict[int, Waiver] = {}
    uses: list[WaiverUse] = []
    for waiver in waivers:
        places = [at for at, one in enumerate(standing) if waiver.matches(one)]
        needed = [at for at in places if at not in known]
        others = sum(waiver.matches(one) for one in tempered)
        past = [count for name, count in unshown.items() if waiver.accepts(name)]
        why = _withheld(waiver, len(places), today=today, max_days=max_days)
        standing_now, note = why or _standing(bool(needed or past), bool(places or others))
        is_used = standing_now is Standing.USED
        if is_used:
            covered.update((place, waiver) for place in needed if place not in covered)
        uses.append(
            WaiverUse(
                waiver=waiver,
                standing=standing_now,
                matched=len(places) + others + len(past),
                waived=len(needed) + len(past) if is_used else 0,
                unshown=sum(past) if is_used else 0,
                note=note,
            )
        )
    return covered, tuple(uses)


def _withheld(
    waiver: Waiver, found: int, *, today: date, max_days: int
) -> tuple[Standing, str] | None:
    """Why a waiver waives nothing, whatever it names; None if it may."""
    if today > waiver.expires:
        note = f"expired on {waiver.expires}: it waives nothing; remove it, or agree anew"
        return Standing.EXPIRED, note
    if (broad := breadth(waiver, today=today, max_days=max_days)) is not None:
        return Standing.TOO_BROAD, f"{broad}: it waives nothing"
    if found > waiver.count:
        note = f"agreed for {waiver.count}, and {found} match: it waives none of them"
        return Standing.EXCEEDED, note
    return None


def _standing(needed: bool, met: bool) -> tuple[Standing, str]:  # noqa: FBT001  # two questions
    if needed:
        return Standing.USED, ""
    if met:
        return Standing.IDLE, "not needed: what it names does not count anyway"
    return Standing.UNUSED, "names nothing that was found: remove it"


def breadth(waiver: Waiver, *, today: date, max_days: int) -> str | None:
    """Why a waiver reaches further than anybody can have meant; None if it does not."""
    if waiver.expires > today + timedelta(days=max_days):
        return f"expires later than {max_days} days from now"
    match waiver.names:
        case ByFingerprint():
            return None
        case ByKey() | ByCall() if waiver.kind is None:
            return "is a pattern and names no kind"
        case ByKey(key=key) if _named(key) < _LEAST:
            return f"names fewer than {_LEAST} letters of a key"
        case ByCall(tool=tool) if "*" in tool and _named(tool) < _LEAST_OF_A_TOOL:
            return f"names no tool: {_LEAST_OF_A_TOOL} letters of it have to stand together"
        case _:
            return None


def _named(pattern: str) -> int:
    """The most letters that a pattern names one after the other."""
    return max(map(len, pattern.split("*")))


def merged(uses: Sequence[WaiverUse], *elsewhere: Sequence[WaiverUse]) -> tuple[WaiverUse, ...]:
    """The same uses, where what was found only under other rules (D1) is not called unused.

    `elsewhere` are the uses of the same waivers, in the same order.
    """
    told: list[WaiverUse] = []
    for use, *others in zip(uses, *elsewhere, strict=True):
        if use.standing is Standing.UNUSED and any(other.matched for other in others):
            note = "not needed here: what it names is found under other rules only"
            told.append(replace(use, standing=Standing.IDLE, note=note))
        else:
            told.append(use)
    return tuple(told)


def fits(pattern: str, text: str) -> bool:
    """Is `text` what `pattern` says, where each ``*`` stands for any text? In linear time."""
    first, *rest = pattern.split("*")
    if not rest:
        return text == pattern
    if not text.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(text) - at >= len(rest[-1]) and text.endswith(rest[-1])


def _text(value: Json) -> str:
    return value if isinstance(value, str) else canonical(value)
