"""What no replay can show: changes of a version, and gaps of a ledger (semantics.md D7).

Each has a name made of what was there before and what is there now, so that whoever accepts it
accepts this very change and no later one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from backstop.core.canon import canonical, digest, short


class Lack(StrEnum):
    """The kind that a waiver of such a change or gap names."""

    UNCOVERED = "UNCOVERED"


class Sort(StrEnum):
    """What changed, or what is missing."""

    BODY = "body"
    CODE = "code"
    AGENT = "agent"
    DATA = "data"
    BESIDE = "beside"
    MORE = "more"
    GAP = "gap"


class Unshown(msgspec.Struct, frozen=True, kw_only=True):
    """A change or gap: `told` in words, of which nothing is made but what a person reads.

    `before` and `after` are digests of what is there in the one version and the other, empty
    where nothing is. `places` is how many it stands for: more than one where a list was cut.
    """

    sort: Sort
    subject: str
    told: str
    before: str = ""
    after: str = ""
    places: int = 1

    def fingerprint(self, agent: str) -> str:
        """What names it: agent, sort, subject, and both digests."""
        return short(
            canonical(
                ["uncovered", agent, self.sort.value, self.subject, self.before, self.after],
                size=1 << 30,
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnshownFinding:
    """Such a change or gap as a verdict has it; `waiver` says why it was accepted, if it was."""

    fingerprint: str
    told: str
    places: int = 1
    waiver: str | None = None

    @property
    def why(self) -> str:
        """The line of a verdict that it causes where nobody accepted it."""
        return not_covered(self.told)


def not_covered(told: str) -> str:
    """Why a pass would not be honest: a line of what is not covered."""
    return f"not covered: {told}"


def gap(text: str) -> Unshown:
    """What the record that a ledger was imported from could not tell."""
    return Unshown(sort=Sort.GAP, subject=text, told=f"the ledger is incomplete: {text}")


def rest(left: Sequence[Unshown]) -> Unshown:
    """All that a list has no room for, as one: another change among it is another finding."""
    named = sorted(one.fingerprint("") for one in left)
    return Unshown(
        sort=Sort.MORE,
        subject="",
        told=f"{len(left)} more places changed and no run reached them",
        after=digest(canonical(named, size=1 << 30)),
        places=len(left),
    )


def found(agent: str, unshown: Sequence[Unshown]) -> tuple[UnshownFinding, ...]:
    """These changes and gaps as findings on `agent`."""
    return tuple(
        UnshownFinding(fingerprint=one.fingerprint(agent), told=one.told, places=one.places)
        for one in unshown
    )
