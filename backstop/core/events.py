"""The vocabulary of a ledger: one tagged union of events, and the lines around them.

A ledger file is a `Header` line, one `Event` a line, and a `Seal` line. Payloads
(arguments, results, model answers, session state) stay `msgspec.Raw` until somebody
needs them; they then go through `backstop.core.canon.parse`, the strict parser.

Digests in rows are short digests (`canon.short`): 128 bits of SHA-256, hex.
Times (`at`) are RFC 3339 text in UTC with a trailing ``Z``.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec

from backstop.core.declaration import Declaration

FORMAT: Final = 1
"""Version of the ledger file's form. A file with another one is refused."""

NOTHING: Final = msgspec.Raw(b"null")

RECORDED: Final = "recorded"
"""How a call was answered that is decided: with what is on record of it."""

WITHHELD: Final = "withheld"
"""How a call was answered whose effect the mesh lets nobody make: nothing was done."""

OBSERVED: Final = "observed_"
"""How the words begin for what a guard would have answered that only observes."""

BY_AGENT: Final = "agent"
"""Who blocked a call that the agent itself answered, or holds until a person confirms it."""

BY_PERSON: Final = "person"
"""Who blocked a call that was declined when the agent asked for a confirmation."""


class Header(msgspec.Struct, frozen=True, kw_only=True, tag_field="t", tag="ledger"):
    """First line: whose ledger it is and under which rules it was written.

    `declarations` maps a declaration's short digest to the declaration that rows name by
    it; `tools` says which of them is current for each tool, and `code` the digest of the
    tool's own code then; `versions` labels the writing versions' content digests. `source`
    is ``guard`` or ``import:<kind>``; `guarded` says that repeats of a key were absorbed
    while it was written. `redaction` tells the key that tokens were made with from any other.
    `gaps` is what the record that it was imported from could not tell, a line each: of such a
    ledger no verdict is a pass. `toolsets` is what toolsets listed last, by agent, kind and
    number: a replay can ask no server for it.
    """

    format: int
    agent: str
    canon: int
    app: str = ""
    tenant: str = ""
    source: str = "guard"
    guarded: bool = False
    tools: dict[str, str] = {}
    code: dict[str, str] = {}
    declarations: dict[str, Declaration] = {}
    versions: dict[str, str] = {}
    redaction: str | msgspec.UnsetType = msgspec.UNSET
    gaps: list[str] | msgspec.UnsetType = msgspec.UNSET
    toolsets: dict[str, list[dict[str, Any]]] | msgspec.UnsetType = msgspec.UNSET


class Seal(msgspec.Struct, frozen=True, kw_only=True, tag_field="t", tag="seal"):
    """Last line: counts, the digest of every byte before it, and each run's chain head."""

    events: int
    effects: int
    runs: int
    digest: str
    heads: dict[str, str]
    signature: str | None = None


class Failure(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a call raised: the exception's class name and its message."""

    type: str
    message: str = ""


class RequestDigests(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Short digests of the parts of one model request (semantics.md A4)."""

    instruction: str
    tools: str
    contents: str
    settings: str


class _Event(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="t", omit_defaults=True, gc=False
):
    """What every event says: its run, its time, who wrote it, and what came before it.

    `v` is the writing version's content digest; `trace` and `span` are OpenTelemetry's ids, in
    hex, empty where nobody traced; `prev` is the short digest of the line of the event before it
    in its run, empty for a run's first.
    """

    run: str
    at: str
    v: str = ""
    trace: str = ""
    span: str = ""
    prev: str = ""


class RunOpened(_Event, frozen=True, tag="run_opened"):
    """A workflow instance began, with this session state."""

    app: str = ""
    user: str = ""
    state: msgspec.Raw = NOTHING


class RunClosed(_Event, frozen=True, tag="run_closed"):
    """A workflow instance ended: ``complete``, ``failed`` or ``abandoned``."""

    status: str


class StepStarted(_Event, frozen=True, tag="step_started"):
    """A trigger set off a step. `cursor` is its place in the run, from 0.

    `trigger` names what set it off (``message``, ``tick``, ``approval``); `message` is the
    content that was handed to the agent; `state` is the session state at its start.
    `trigger_key` is the name that its publisher gave to what set it off, if it gave one.
    """

    step: str
    cursor: int
    trigger: str = "message"
    message: msgspec.Raw = NOTHING
    state: msgspec.Raw = NOTHING
    trigger_key: str = ""


class AttemptStarted(_Event, frozen=True, tag="attempt_started"):
    """One try at a step, from 1. `delivery` is the message id of this delivery.

    `owner` names the process that is at it, where one try at a time is made.
    """

    step: str
    attempt: int
    delivery: str = ""
    owner: str = ""


class AttemptEnded(_Event, frozen=True, tag="attempt_ended"):
    """A try ended: ``done``, ``held`` (left to a redelivery) or ``error``. A crash leaves none."""

    step: str
    attempt: int
    outcome: str
    error: Failure | None = None


class CursorAdvanced(_Event, frozen=True, tag="cursor_advanced"):
    """The run moved past `step`; `cursor` steps are done. `effects` are the keys it vouches for.

    `session` names what the step added to the framework's session, where each attempt writes
    one of its own: of several attempts, the one that moved the cursor is the one that counts.
    """

    step: str
    cursor: int
    effects: tuple[str, ...] = ()
    session: str = ""


class ModelAnswered(_Event, frozen=True, tag="model"):
    """A model's answer. `ordinal` counts the agent's requests within the attempt, from 0.

    A streamed request may have several answers, which share their ordinal. `request` is None
    where the digests are not known, `agent` empty where nobody knows who asked (imported
    rows). `within` is the key of the tool call in whose body it was asked; `apart` says that
    the agent has a session of its own, as one that is a tool has; `branch` is the framework's
    name for where in the conversation it stands.
    """

    step: str
    agent: str
    ordinal: int
    attempt: int = 1
    request: RequestDigests | None = None
    response: msgspec.Raw = NOTHING
    within: str = ""
    apart: bool = False
    branch: str = ""


class ToolRead(_Event, frozen=True, tag="read"):
    """A call that changes nothing outside, with its result or what it raised.

    `pending` marks a call whose answer had not come when the record ended. `actions` is what
    its body did to the flow of the run, `within` the key of the call in whose body it was
    made. `steering` marks a call of the framework's own tools, which only steer the agent.
    """

    step: str
    tool: str
    key: str
    attempt: int = 1
    agent: str = ""
    call: str = ""
    decl: str = ""
    args: msgspec.Raw = NOTHING
    result: msgspec.Raw = NOTHING
    error: Failure | None = None
    state_delta: msgspec.Raw = NOTHING
    pending: bool = False
    actions: msgspec.Raw = NOTHING
    within: str = ""
    steering: bool = False


class EffectClaimed(_Event, frozen=True, tag="effect_claimed"):
    """The exclusive right to run an intent was taken, before the tool ran.

    `owner` is empty where no guard stood (imported rows). `within` is the key of the call in
    whose body this one was made. `override` are the fields that say "yes, again", as canonical
    JSON. `capability` is what the tool can do about a doubt: ``keyed``, ``probe`` or nothing;
    `lease_s`, `retention_s` and `settle_s` are seconds: until a claim lapses whose owner cannot
    be seen, for which a provider remembers our key, and until a probe's "no" counts.
    """

    step: str
    tool: str
    key: str
    fingerprint: str
    attempt: int = 1
    agent: str = ""
    call: str = ""
    decl: str = ""
    args: msgspec.Raw = NOTHING
    owner: str = ""
    fence: int = 1
    lease_s: float = 0
    override: str | None = None
    within: str = ""
    capability: str = ""
    retention_s: float = 0
    settle_s: float = 0


class EffectCommitted(_Event, frozen=True, tag="effect_committed"):
    """The effect happened. `by` is ``owner``, ``probe`` or ``import``.

    `actions` is what the tool's body did to the flow of the run.
    """

    key: str
    fence: int = 1
    result: msgspec.Raw = NOTHING
    state_delta: msgspec.Raw = NOTHING
    by: str = "owner"
    actions: msgspec.Raw = NOTHING


class EffectFailed(_Event, frozen=True, tag="effect_failed"):
    """The effect certainly did not happen. A failure that is not `final` may be claimed again.

    A tool that asked for a confirmation in place of acting gave a `result` all the same, and
    `actions` say what it asked.
    """

    key: str
    error: Failure
    fence: int = 1
    final: bool = True
    result: msgspec.Raw = NOTHING
    state_delta: msgspec.Raw = NOTHING
    actions: msgspec.Raw = NOTHING


class EffectInDoubt(_Event, frozen=True, tag="effect_in_doubt"):
    """The effect may have happened; it never runs again by itself.

    `running` says that its body may still be at it: its caller was cancelled.
    """

    key: str
    reason: str
    fence: int = 1
    running: bool = False


class EffectResolved(_Event, frozen=True, tag="effect_resolved"):
    """A person or a probe decided an effect in doubt: ``committed``, ``failed``, ``reopened``."""

    key: str
    to: str
    by: str
    fence: int = 1
    reason: str = ""
    result: msgspec.Raw = NOTHING


class EffectFenced(_Event, frozen=True, tag="effect_fenced"):
    """The effect happened under a claim that had been superseded: it may be out twice.

    `fence` is that of the superseded claim. It changes nobody's record: it is what a person
    must know.
    """

    key: str
    fence: int
    result: msgspec.Raw = NOTHING


class CallAnswered(_Event, frozen=True, tag="answered"):
    """What the guard did instead of a call: ``recorded``, ``held``, ``in_doubt``, ``conflict``.

    ``withheld`` is what the mesh does not let out. A guard that only observes says
    ``observed_recorded`` and so on: what it would have done. The tool ran all the same.
    """

    step: str
    tool: str
    key: str
    how: str
    attempt: int = 1
    agent: str = ""
    call: str = ""
    fingerprint: str = ""


class CallBlocked(_Event, frozen=True, tag="blocked"):
    """A call did not reach its tool: `by` a policy, Model Armor, a person, or `BY_AGENT`."""

    step: str
    tool: str
    key: str
    by: str
    attempt: int = 1
    agent: str = ""
    call: str = ""
    decl: str = ""
    args: msgspec.Raw = NOTHING
    fingerprint: str = ""
    reason: str = ""


class SessionKept(_Event, frozen=True, tag="session_kept"):
    """What the framework's session held of an attempt that waits for a person or an input.

    `events` is the list of the session's events as the framework spells them. Only they can be
    resumed; of any other attempt the session is told from its rows.
    """

    step: str
    attempt: int = 1
    events: msgspec.Raw = NOTHING


class Checkpointed(_Event, frozen=True, tag="checkpoint"):
    """A step's trust record (see the mesh)."""

    step: str
    body: msgspec.Raw = NOTHING


class TrustBroken(_Event, frozen=True, tag="trust_break"):
    """An input turned out to be bad (see the mesh)."""

    body: msgspec.Raw = NOTHING


class Recovered(_Event, frozen=True, tag="recovery"):
    """What a recovery did (see the mesh)."""

    body: msgspec.Raw = NOTHING


Event: TypeAlias = (
    RunOpened
    | RunClosed
    | StepStarted
    | AttemptStarted
    | AttemptEnded
    | CursorAdvanced
    | ModelAnswered
    | ToolRead
    | EffectClaimed
    | EffectCommitted
    | EffectFailed
    | EffectInDoubt
    | EffectResolved
    | EffectFenced
    | CallAnswered
    | CallBlocked
    | SessionKept
    | Checkpointed
    | TrustBroken
    | Recovered
)

Line: TypeAlias = Header | Event | Seal


def once(event: Event) -> str | None:
    """What this event is within its run, if a run can have it only once; None if it may recur.

    Of two workers that say the same thing of a run, one is on record.
    """
    match event:
        case RunOpened():
            return "opened"
        case RunClosed():
            return "closed"
        case StepStarted(step=step):
            return f"step {step}"
        case AttemptStarted(step=step, attempt=attempt):
            return f"attempt {attempt} of {step}"
        case CursorAdvanced(cursor=cursor):
            return f"cursor {cursor}"
        case _:
            return None
