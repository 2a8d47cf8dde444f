"""What a version asked for in replay: the lines of an intents file.

The file is an `IntentsHeader`, one `Intent` a line in the order of asking, one
`RunReplayed` for each run of the ledger, and an `IntentsSeal`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from backstop.core.declaration import Declaration
from backstop.core.events import NOTHING
from backstop.core.spending import LiveUse
from backstop.core.unshown import Unshown

INTENTS_FORMAT: Final = 1


class Answered(StrEnum):
    """How the driver answered an intent (semantics.md A1-A3)."""

    RECORDED = "recorded"
    SUBSTITUTED = "substituted"
    STAND_IN = "stand_in"
    NOTHING = "nothing"
    """No answer was given: the candidate is a ledger, or the record had ended."""


class Pass(StrEnum):
    """Which replay an intent comes from (semantics.md S2)."""

    FULL = "full"
    HANDOVER = "handover"


class Escaped(msgspec.Struct, frozen=True, kw_only=True):
    """A way past interception that a version has, in words; `way` is what a policy accepts it by.

    What `counts` is not covered by the replay; the rest is said all the same.
    """

    way: str
    told: str
    counts: bool = True


class IntentsHeader(msgspec.Struct, frozen=True, kw_only=True, tag_field="t", tag="intents"):
    """First line: which candidate was replayed against which ledger, under which declarations.

    `declarations` are those that the keys were made under, by tool; `tools` are those that
    the candidate has, `guarded` those on which its harness reported the guard; `ledger` is
    the digest of the ledger replayed. `uncovered` names what the replay cannot speak for,
    `unshown` those of it that a person may accept, `escapes` what passes interception in that
    version. `live` tells of a model that could be asked, where one could.
    """

    format: int
    agent: str
    canon: int
    candidate: str = ""
    ledger: str = ""
    declarations: dict[str, Declaration] = {}
    tools: tuple[str, ...] = ()
    guarded: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()
    unshown: tuple[Unshown, ...] = ()
    escapes: tuple[Escaped, ...] = ()
    live: LiveUse | msgspec.UnsetType = msgspec.UNSET


class Intent(msgspec.Struct, frozen=True, kw_only=True, tag_field="t", tag="intent", gc=False):
    """One call that the version asked for. `cursor` is its step's place in the run.

    `answered_by` is the index in the ledger of the claim that answered it (G1), where one
    did. `assumed` marks what came after an answer that the record cannot vouch for (D2).
    `holes` are JSON Pointers into `args` that hold a stand-in (A3). `repeat` numbers the replays
    of a run that a live model took part in, from 1, where there are several.
    """

    run: str
    step: str
    cursor: int
    tool: str
    key: str
    fingerprint: str
    args: msgspec.Raw = NOTHING
    agent: str = ""
    answered: Answered = Answered.NOTHING
    answered_by: int | None = None
    assumed: bool = False
    holes: tuple[str, ...] = ()
    override: str | None = None
    replay: Pass = Pass.FULL
    repeat: int | msgspec.UnsetType = msgspec.UNSET


class FromLedger(Intent, frozen=True, kw_only=True, tag="from_ledger", gc=False):
    """A committed effect of a ledger that counts as asked for; never a line of a file.

    `decl` names the declaration that the row was written under: its key was made by it.
    """

    decl: str = ""


class RunReplayed(msgspec.Struct, frozen=True, kw_only=True, tag_field="t", tag="run_replayed"):
    """How far the replay can speak for one run.

    `drift` is ``none``, ``drifted``, ``unknown`` or ``live``; `drifted` names the parts of the
    request by agent. Steps from cursor `assumed_from` on are assumed (D2); `handed_over` are the
    cursors of steps that are assumed when replayed alone (S2). `not_replayable` says why the
    run could not be replayed to its end. `live` counts the answers of a live model, in
    `repeats` replays.
    """

    run: str
    steps_total: int = 0
    steps_assumed: int = 0
    drift: str = "none"
    drifted: dict[str, tuple[str, ...]] = {}
    assumed_from: int | None = None
    handed_over: tuple[int, ...] = ()
    not_replayable: str | None = None
    live: int | msgspec.UnsetType = msgspec.UNSET
    repeats: int | msgspec.UnsetType = msgspec.UNSET


class IntentsSeal(msgspec.Struct, frozen=True, kw_only=True, tag_field="t", tag="intents_seal"):
    """Last line: counts and the digest of every byte before it."""

    intents: int
    runs: int
    digest: str


IntentLine: TypeAlias = IntentsHeader | Intent | RunReplayed | IntentsSeal
