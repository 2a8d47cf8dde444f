"""The wire between the trusted driver and the untrusted harness: JSON lines, strictly parsed.

Every message is one line of at most `MAX_LINE` bytes. What the harness asks carries an
`id` that the answer repeats; answers may come in any order. `Escape` and `Fault` are
told, not asked, and have none. The driver never trusts a word of it: it numbers, answers,
classifies and digests by itself.

    harness                         driver
    Ready                     ->    BeginRun | Quit
    RunReady | StepDone       ->    BeginStep | EndRun
    RunDone                   ->    BeginRun | Quit
    ModelAsked, ModelGiven    ->    ModelReply
    IntentAsked               ->    IntentReply
    Escape, Fault             ->    -
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

PROTOCOL: Final = 1
MAX_LINE: Final = 16 * 1024 * 1024


class _Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="t", omit_defaults=True):
    """A message; `t` says which."""


class AgentSeen(msgspec.Struct, frozen=True, kw_only=True):
    """An agent of the candidate: its name, its class's name, and its model's name, if any.

    `setup` is a digest of what it is made with, empty for an agent without a model (D7).
    """

    name: str
    kind: str
    model: str = ""
    setup: str = ""


class CodeSays(msgspec.Struct, frozen=True, kw_only=True):
    """What the decoration of a tool's function says: as ``backstop.yaml`` would, where it does.

    `param` takes the key for a provider; empty if none does.
    """

    identity: tuple[str, ...] | None = None
    scope: Literal["run", "step", "agent"] | None = None
    key: tuple[str, ...] = ()
    param: str = ""


class ToolSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of the candidate: JSON schema of its parameters with defaults, and what guards it.

    `guarded` says that the guard's wrapper sits on it in production. `code` is a digest of
    the tool's own code, empty where there is none to read, and `body` where that stands, from the
    candidate's folder, as ``file:qualified name`` (D7); empty for what is installed. `says` is
    what an `@effect` declares.
    """

    agent: str
    tool: str
    kind: str = "FunctionTool"
    schema: dict[str, object] = {}
    guarded: bool = False
    long_running: bool = False
    code: str = ""
    body: str = ""
    says: CodeSays | None = None


class EscapeSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A way by which an effect of the candidate can pass interception, found before it ran.

    `kind` is a `Way`; `at` is where it lies in the candidate's code, as ``file:line`` from its
    folder, and `block` the number of the block that holds it, where that is in the folder. Code
    in the `body` of a tool runs in no replay; of `quiet` code nothing was seen to reach outside.
    """

    kind: str
    where: str
    detail: str = ""
    at: str = ""
    block: int = -1
    body: bool = False
    quiet: bool = False


class ToolsetSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A toolset of the candidate. `key` is its name in a ledger, `setup` a digest of its making.

    `alone` says that it needed nobody to list its tools, which are then among those of `Ready`.
    `selects` are the names that it lists at most, empty where it does not say; `resources` that
    it hands the model more than tools. `prefix` stands before its tools' names.
    """

    key: str
    agent: str
    kind: str
    prefix: str = ""
    alone: bool = False
    guarded: bool = False
    selects: tuple[str, ...] = ()
    resources: bool = False
    setup: str = ""


class Ready(_Message, frozen=True, tag="ready"):
    """The candidate is imported.

    `isolation` lists what holds it back: ``seccomp``, ``landlock``, ``audit``. `beside` are
    digests of its modules that lie outside of its folder, by their paths from there. `history`
    lists places of its code that may look at the events of the session. `reached` are the blocks
    of its code that ran on import, by file and number, `opened` its files that were read.
    """

    id: int
    protocol: int
    adk: str
    python: str
    app: str
    agents: list[AgentSeen]
    tools: list[ToolSeen]
    toolsets: list[ToolsetSeen] = []
    isolation: list[str] = []
    escapes: list[EscapeSeen] = []
    history: list[str] = []
    beside: dict[str, str] = {}
    reached: dict[str, list[int]] = {}
    opened: list[str] = []


class BeginRun(_Message, frozen=True, tag="run"):
    """Begin a run with this session state; `history` is the session before its first step.

    `window` bounds how many recent events the runner sees; None is all of them. `toolsets` are
    what toolsets listed whose servers cannot be asked, by key.
    """

    id: int
    run: str
    app: str
    user: str
    at: str
    state: dict[str, object] = {}
    history: list[object] = []
    window: int | None = None
    toolsets: dict[str, list[dict[str, object]]] = {}


class RunReady(_Message, frozen=True, tag="run_ready"):
    """The session of the run exists."""

    id: int


class BeginStep(_Message, frozen=True, tag="step"):
    """Run one step: hand `message` (a Content) to the agent at frozen time `at`.

    `seed` fixes chance and ids for the step.
    """

    id: int
    step: str
    at: str
    seed: int
    message: object


class StepDone(_Message, frozen=True, tag="step_done"):
    """A step ended. `outcome`: ``done``, ``end_of_record``, ``unanswered`` or ``fault``.

    `pending` are calls that still wait for an answer from outside: `id`, `name`, and for a
    confirmation the `original` call's name and arguments.
    """

    id: int
    step: str
    outcome: str
    events: int = 0
    error: str = ""
    pending: list[dict[str, object]] = []
    state: dict[str, object] = {}


class EndRun(_Message, frozen=True, tag="end_run"):
    """There are no more steps in this run."""

    id: int


class RunDone(_Message, frozen=True, tag="run_done"):
    """A run ended; `digest` is of its event log, so that two replays can be compared.

    `reached` and `opened` are what it reached beyond the import, as in `Ready`.
    """

    id: int
    run: str
    events: int
    digest: str
    reached: dict[str, list[int]] = {}
    opened: list[str] = []


class Quit(_Message, frozen=True, tag="quit"):
    """Leave with status 0."""

    id: int


class ModelAsked(_Message, frozen=True, tag="model"):
    """An agent asks its model: the `ordinal`-th time in this step, with these sub-digests."""

    id: int
    agent: str
    ordinal: int
    instruction: str
    tools: str
    contents: str
    settings: str


class ModelGiven(_Message, frozen=True, tag="model_given"):
    """The whole of the request that was asked as `of`: model, contents and configuration.

    `refused` says why it cannot be sent.
    """

    id: int
    of: int
    request: msgspec.Raw = msgspec.Raw(b"null")
    refused: str = ""


class ModelReply(_Message, frozen=True, tag="model_reply"):
    """The recorded response, or why there is none: ``end_of_record`` or ``none``.

    `more` are the responses that followed it, where one request had several (streaming).
    `drift` is ``same``, ``drifted``, ``unknown`` or ``live``; `now` is where frozen time moves
    to. `send` wants the whole request, in so many bytes at most, before there is an answer.
    """

    id: int
    response: object = None
    more: tuple[object, ...] = ()
    missing: str = ""
    send: int = 0
    drift: str = "same"
    now: str = ""


class IntentAsked(_Message, frozen=True, tag="intent"):
    """A tool is asked for with these final arguments. `refused` says why they have no JSON form.

    `via` is ``tool`` (a `BaseTool`) or ``effect`` (a plain `@effect` function).
    """

    id: int
    tool: str
    args: msgspec.Raw
    agent: str = ""
    call: str = ""
    via: str = "tool"
    refused: str = ""


class IntentReply(_Message, frozen=True, tag="intent_reply"):
    """What the tool is made to answer: a result, or a recorded error to raise.

    `counterpart` is the recorded call (name and arguments) that a substituted answer
    belongs to: request digests see it in place of the call (A5). `state_delta` is applied
    to the session, `actions` to the flow of the run. `missing` is ``end_of_record`` where
    nothing may be answered.
    """

    id: int
    result: object = None
    error_type: str = ""
    error_message: str = ""
    counterpart: dict[str, object] | None = None
    state_delta: dict[str, object] = {}
    actions: dict[str, object] = {}
    missing: str = ""
    now: str = ""


class Escape(_Message, frozen=True, tag="escape"):
    """The candidate tried something from which it is barred: a socket, a process, a write."""

    what: str
    detail: str = ""
    step: str = ""


class Fault(_Message, frozen=True, tag="fault"):
    """The candidate cannot be replayed: it does not load, or its run broke."""

    slug: str
    detail: str
    where: str = ""


FromHarness: TypeAlias = (
    Ready | RunReady | StepDone | RunDone | ModelAsked | ModelGiven | IntentAsked | Escape | Fault
)
FromDriver: TypeAlias = BeginRun | BeginStep | EndRun | Quit | ModelReply | IntentReply
