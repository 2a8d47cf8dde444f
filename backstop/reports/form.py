"""The form of a verdict's JSON, which is API: fields are only ever added."""

from __future__ import annotations

from typing import Any

import msgspec


class CallDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a divergence; `args` are its canonical arguments."""

    key: str
    args: dict[str, Any]


class DivergenceDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One divergence. `paths` are JSON Pointers into the arguments."""

    kind: str
    reason: str
    run: str
    step: str
    tool: str
    recorded: CallDocument | None
    intended: CallDocument | None
    paths: list[str]
    difference: list[str]
    suggestion: str | None
    fingerprint: str
    waiver: str | None
    pre_existing: bool
    assumed: bool
    in_doubt: bool
    handover: bool
    explanation: str
    known: bool
    unstable: bool


class LedgerDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Which ledger was compared."""

    events: int
    effects: int
    runs: int
    digest: str


class RunReason(msgspec.Struct, frozen=True, kw_only=True):
    """A run, and why it could not be replayed to its end."""

    run: str
    reason: str


class UnshownDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A change or gap that no replay shows; `waiver` says why it was accepted, if it was.

    `places` is how many it stands for: more than one where a list was cut.
    """

    fingerprint: str
    told: str
    places: int
    waiver: str | None


class CoverageDocument(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the ledger the verdict speaks for.

    `steps_covered` are those that the record vouches for: neither assumed nor, like
    `steps_lost`, of a run that was not replayed to its end. `changed` says of each part of
    models' requests in how many agents it changed, `drifted` of each agent which parts.
    `unshown` are those of the `uncovered` that a person may accept, `accepted` how many places
    were.
    """

    runs_compared: int
    runs_total: int
    steps_assumed: int
    drift: str
    not_replayable: list[RunReason]
    uncovered: list[str]
    steps_total: int
    drifted: dict[str, list[str]]
    doubts: list[str]
    steps_covered: int
    steps_lost: int
    changed: dict[str, int]
    unshown: list[UnshownDocument]
    accepted: int


class CountsDocument(msgspec.Struct, frozen=True, kw_only=True):
    """How many calls came out how."""

    match: int
    duplicate: int
    mutated: int
    missing: int
    extra: int
    absorbed: int
    in_doubt: int
    waived: int
    pre_existing: int
    known: int


class OtherCountsDocument(msgspec.Struct, frozen=True, kw_only=True):
    """`failed`: met a recorded failure. `assumed`: findings that the record cannot vouch for.

    `unstable`: findings in nothing but what comes out otherwise in each replay.
    """

    failed: int
    recorded_twice: int
    assumed: int
    unstable: int


class UnstableDocument(msgspec.Struct, frozen=True, kw_only=True):
    """An argument that came out otherwise in another replay of the same version.

    `path` is a JSON Pointer; `run` and `step` say where first, `times` in how many calls.
    `names_target`: the key is made of it. `is_order`: only the order of its items differs.
    `in_base`: so it is in the base version; null where that was not replayed again.
    """

    tool: str
    path: str
    run: str
    step: str
    times: int
    names_target: bool
    is_order: bool
    in_base: bool | None


class WaiverDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A waiver of the agent and what became of it; `about` is what it names, without values.

    `expires` is the last day on which it counts. `standing` is one of used, idle, unused,
    exceeded, expired, too broad, not counted; `note` says why it waives nothing.
    """

    about: str
    kind: str | None
    reason: str
    author: str
    expires: str
    count: int
    place: str
    added: bool
    standing: str
    matched: int
    waived: int
    note: str
    unshown: int


class BaselineDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What a baseline of `date` did: of its `findings`, `known` are here and `gone` are not.

    `added` is how many the change under judgement put into it; `counted` says that they count.
    """

    date: str
    by: str
    ledger: str
    findings: int
    known: int
    gone: int
    added: int
    counted: bool


class LiveDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A live model that could be asked, and what its answers have cost: calls and tokens.

    Each of the `runs` that it took part in was replayed `repeats` times, and `agreement` of them
    have to show what is to count. `unusual` are those of the `models` that the base does not ask;
    `answers` is the digest of the answers, the same where they came from a cassette.
    """

    repeats: int
    agreement: int
    calls: int
    tokens_in: int
    tokens_out: int
    models: list[str]
    unusual: list[str]
    runs: int
    answers: str


class AgentDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One agent's decision; `why` says what it turned on.

    A `neutral` agent is new: it has nothing to be judged by, and does not count. It was
    replayed `replays` times, with `unstable` coming out otherwise. `live` is there only where
    its model could be asked.
    """

    agent: str
    decision: str
    ledger: LedgerDocument
    coverage: CoverageDocument
    counts: CountsDocument
    other_counts: OtherCountsDocument
    divergences: list[DivergenceDocument]
    why: list[str]
    notes: list[str]
    neutral: bool
    waivers: list[WaiverDocument]
    baseline: BaselineDocument | None
    replays: int
    unstable: list[UnstableDocument]
    live: LiveDocument | msgspec.UnsetType = msgspec.UNSET


class TimingDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds; the one part that the digest leaves out."""

    load: float
    replay: float
    verdict: float


class VerdictDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict over all agents, in form ``backstop.verdict/1``."""

    schema: str
    decision: str
    exit_code: int
    digest: str
    agents: list[AgentDocument]
    timing_ms: TimingDocument
