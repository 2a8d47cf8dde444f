"""A ledger, and what a new version asks for, as a few lines of text.

    agent desk unguarded                  # else: agent desk, guarded
    tool pay identity vendor,ref scope run fields vendor=slug+trim
    tool check reads
    run r1                                # opened the first time, gone back to later
    step s1                               # started with attempt 1 the first time
    model pay check                       # a model's answer that calls these tools
    read check{ref: 7} -> {free: true}
    commit pay{vendor: acme, ref: 7} -> {ok: true}
    advance                               # attempt done, cursor past the step
    close complete
    intent s1 pay{vendor: ACME, ref: 7}   # what the new version asks for in this run and step

Values are YAML; what follows `->` is the result. `commit`, `fail` (for good), `flop` (may be
tried again) and `doubt` claim first; `claim` only claims; `settle` commits, `break` fails for
good, and `lose` leaves in doubt what is claimed. `resolve committed|failed|reopened CALL` is a
person's word. `recorded`, `held`, `conflict` and `in_doubt` are the guard's answers, `block` a
policy's. `attempt` begins the next try, `end done|held|error` ends it (a crash leaves no end).
`advance` vouches for all that was claimed or answered in the step, `advance over CALL` for that
call alone. Blank lines and what follows ``#`` are skipped. Times are a second apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final

import msgspec
import yaml

from backstop.core.canon import CANON_VERSION, canonical
from backstop.core.declaration import Declaration, Namespace, Scope
from backstop.core.events import (
    FORMAT,
    AttemptEnded,
    AttemptStarted,
    CallAnswered,
    CallBlocked,
    CursorAdvanced,
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectInDoubt,
    EffectResolved,
    Event,
    Failure,
    Header,
    ModelAnswered,
    RunClosed,
    RunOpened,
    StepStarted,
    ToolRead,
)
from backstop.core.identity import Identified, identify, identify_read
from backstop.core.intents import INTENTS_FORMAT, Intent, IntentsHeader, RunReplayed
from backstop.core.sealing import seal_lines

EPOCH: Final = datetime(2026, 1, 5, 8, 0, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What a text says: a ledger, and the intents of a new version with one row a run."""

    header: Header
    events: list[Event]
    intents_header: IntentsHeader
    intents: list[Intent]
    runs: list[RunReplayed]

    def sealed(self) -> bytes:
        """The ledger as a file."""
        return b"".join(seal_lines(self.header, self.events))


def scenario(text: str) -> Scenario:
    """Read a text of the language above. Raises `ValueError` with the line for anything else."""
    reader = _Reader()
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split(" #")[0].strip()
        if words and not words.startswith("#"):
            try:
                reader.line(words)
            except (KeyError, ValueError, IndexError, TypeError) as exc:
                raise ValueError(f"line {number}: {words!r}: {exc!r}") from exc
    return reader.scenario()


def sealed(text: str) -> bytes:
    """The ledger of a text as a file."""
    return scenario(text).sealed()


@dataclass(slots=True)
class _Step:
    name: str
    cursor: int
    attempt: int = 1
    running: bool = True
    ordinal: int = 0
    keys: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Run:
    name: str
    steps: dict[str, _Step] = field(default_factory=dict)
    step: _Step | None = None


@dataclass(frozen=True, slots=True)
class _Call:
    tool: str
    args: msgspec.Raw
    result: msgspec.Raw
    named: Identified
    decl: str


def raw(value: object) -> msgspec.Raw:
    """A value as canonical JSON text."""
    return msgspec.Raw(canonical(value).encode())


class _Reader:
    def __init__(self) -> None:
        self._agent = "desk"
        self._guarded = True
        self._tools: dict[str, Declaration] = {}
        self._runs: dict[str, _Run] = {}
        self._run: _Run | None = None
        self._events: list[Event] = []
        self._intents: list[Intent] = []
        self._fences: dict[str, int] = defaultdict(int)
        self._calls = 0

    def line(self, text: str) -> None:
        verb, _, rest = text.partition(" ")
        handler: Callable[[str], None] | None = getattr(self, f"_on_{verb}", None)
        if handler is None:
            raise ValueError(f"no such word: {verb}")
        handler(rest.strip())

    def scenario(self) -> Scenario:
        named = {d.digest: d for d in self._tools.values()}
        return Scenario(
            header=Header(
                format=FORMAT,
                agent=self._agent,
                canon=CANON_VERSION,
                guarded=self._guarded,
                source="guard" if self._guarded else "import:text",
                tools={tool: d.digest for tool, d in self._tools.items()},
                declarations=named,
            ),
            events=self._events,
            intents_header=IntentsHeader(
                format=INTENTS_FORMAT,
                agent=self._agent,
                canon=CANON_VERSION,
                declarations=dict(self._tools),
                guarded=tuple(sorted(self._tools)) if self._guarded else (),
            ),
            intents=self._intents,
            runs=[RunReplayed(run=r.name, steps_total=len(r.steps)) for r in self._runs.values()],
        )

    # Whose ledger it is

    def _on_agent(self, rest: str) -> None:
        self._agent, *flags = rest.split()
        self._guarded = "unguarded" not in flags

    def _on_tool(self, rest: str) -> None:
        name, *words = rest.split()
        options: dict[str, Any] = {"effect": "reads" not in words}
        given = dict(pairwise(words))
        if "identity" in given:
            options["identity"] = tuple(given["identity"].split(","))
        if "scope" in given:
            options["scope"] = Scope(given["scope"])
        if "occurrence" in given:
            options["occurrence"] = given["occurrence"]
        if "fields" in given:
            pairs = (pair.split("=") for pair in given["fields"].split(","))
            options["fields"] = {arg: tuple(kinds.split("+")) for arg, kinds in pairs}
        self._tools[name] = Declaration(tool=name, **options)

    # Runs, steps and attempts

    def _on_run(self, name: str) -> None:
        if name not in self._runs:
            self._runs[name] = _Run(name)
            self._put(RunOpened(run=name, at=self._at()))
        self._run = self._runs[name]

    def _on_step(self, rest: str) -> None:
        name, *words = rest.split()
        run = self._the_run()
        if name not in run.steps:
            cursor = int(words[1]) if words[:1] == ["cursor"] else len(run.steps)
            run.steps[name] = _Step(name, cursor)
            self._put(StepStarted(**self._here(name), cursor=cursor))
            self._put(AttemptStarted(**self._here(name), attempt=1))
        run.step = run.steps[name]

    def _on_attempt(self, rest: str) -> None:
        step = self._the_step()
        step.attempt = int(rest) if rest else step.attempt + 1
        step.running, step.ordinal = True, 0
        self._put(AttemptStarted(**self._here(), attempt=step.attempt))

    def _on_end(self, outcome: str) -> None:
        step = self._the_step()
        step.running = False
        self._put(AttemptEnded(**self._here(), attempt=step.attempt, outcome=outcome))

    def _on_advance(self, rest: str) -> None:
        step = self._the_step()
        if step.running:
            self._on_end("done")
        keys = list(step.keys)
        if rest.startswith("over "):
            keys = [self._call(rest.removeprefix("over ")).named.key]
        self._put(CursorAdvanced(**self._here(), cursor=step.cursor + 1, effects=tuple(keys)))

    def _on_close(self, status: str) -> None:
        self._put(RunClosed(run=self._the_run().name, at=self._at(), status=status))

    # Models and reads

    def _on_model(self, rest: str) -> None:
        step = self._the_step()
        parts: list[object] = [{"function_call": {"name": n, "args": {}}} for n in rest.split()]
        response = raw({"content": {"role": "model", "parts": parts or [{"text": "done"}]}})
        answered = ModelAnswered(
            **self._here(),
            agent=self._agent,
            ordinal=step.ordinal,
            attempt=step.attempt,
            response=response,
        )
        step.ordinal += 1
        self._put(answered)

    def _on_read(self, rest: str) -> None:
        call = self._call(rest, reads=True)
        self._put(
            ToolRead(**self._where(call), key=call.named.key, args=call.args, result=call.result)
        )

    # Effects

    def _on_claim(self, rest: str) -> None:
        self._claim(self._call(rest))

    def _on_commit(self, rest: str) -> None:
        self._claim(self._call(rest))
        self._on_settle(rest)

    def _on_fail(self, rest: str) -> None:
        self._claim(self._call(rest))
        self._on_break(rest)

    def _on_flop(self, rest: str) -> None:
        call = self._call(rest)
        self._claim(call)
        self._put(EffectFailed(**self._settled(call), error=Failure(type="Flop"), final=False))

    def _on_doubt(self, rest: str) -> None:
        self._claim(self._call(rest))
        self._on_lose(rest)

    def _on_settle(self, rest: str) -> None:
        call = self._call(rest)
        self._put(EffectCommitted(**self._settled(call), result=call.result))

    def _on_break(self, rest: str) -> None:
        self._put(EffectFailed(**self._settled(self._call(rest)), error=Failure(type="Broken")))

    def _on_lose(self, rest: str) -> None:
        self._put(EffectInDoubt(**self._settled(self._call(rest)), reason="timeout"))

    def _on_resolve(self, rest: str) -> None:
        to, _, what = rest.partition(" ")
        call = self._call(what)
        if to == "reopened":
            self._fences[call.named.key] += 1
        self._put(EffectResolved(**self._settled(call), to=to, by="ada", result=call.result))

    # What the guard or a policy did instead

    def _on_recorded(self, rest: str) -> None:
        self._answer(rest, "recorded")

    def _on_held(self, rest: str) -> None:
        self._answer(rest, "held")

    def _on_conflict(self, rest: str) -> None:
        self._answer(rest, "conflict")

    def _on_in_doubt(self, rest: str) -> None:
        self._answer(rest, "in_doubt")

    def _on_block(self, rest: str) -> None:
        call = self._call(rest)
        blocked = CallBlocked(
            **self._where(call),
            key=call.named.key,
            by="policy",
            args=call.args,
            fingerprint=call.named.fingerprint,
        )
        self._put(blocked)

    # What the new version asks for

    def _on_intent(self, rest: str) -> None:
        name, _, what = rest.partition(" ")
        run = self._the_run()
        step = run.steps.get(name) or _Step(name, len(run.steps))
        call = self._call(what, step=name)
        self._intents.append(
            Intent(
                run=run.name,
                step=name,
                cursor=step.cursor,
                tool=call.tool,
                key=call.named.key,
                fingerprint=call.named.fingerprint,
                args=call.args,
            )
        )

    # The parts that these are made of

    def _answer(self, rest: str, how: str) -> None:
        call = self._call(rest)
        self._the_step().keys.append(call.named.key)
        where = self._where(call)
        del where["decl"]
        fingerprint = call.named.fingerprint
        self._put(CallAnswered(**where, key=call.named.key, how=how, fingerprint=fingerprint))

    def _claim(self, call: _Call) -> None:
        key = call.named.key
        self._the_step().keys.append(key)
        # Where no guard stood, nobody numbered the claims.
        self._fences[key] = self._fences[key] + 1 if self._guarded else 1
        claimed = EffectClaimed(
            **self._where(call),
            key=key,
            fingerprint=call.named.fingerprint,
            args=call.args,
            owner="worker-1" if self._guarded else "",
            fence=self._fences[key],
        )
        self._put(claimed)

    def _settled(self, call: _Call) -> dict[str, Any]:
        key = call.named.key
        run = self._the_run().name
        return {"run": run, "at": self._at(), "key": key, "fence": self._fences[key] or 1}

    def _call(self, text: str, *, reads: bool = False, step: str | None = None) -> _Call:
        tool, brace, rest = text.partition("{")
        body, _, result = rest.partition("->")
        args = yaml.safe_load(brace + body) if brace else {}
        tool = tool.strip()
        if not isinstance(args, Mapping):
            raise TypeError("arguments are written tool{name: value}")
        declared = self._tools.get(tool)
        named = (identify_read if reads else identify)(
            args,
            declared or Declaration(tool=tool),
            namespace=Namespace(agent=self._agent),
            run=self._the_run().name,
            step=step or self._the_step().name,
        )
        answer = yaml.safe_load(result) if result.strip() else None
        return _Call(tool, raw(args), raw(answer), named, declared.digest if declared else "")

    def _where(self, call: _Call) -> dict[str, Any]:
        step = self._the_step()
        self._calls += 1
        return {
            **self._here(),
            "attempt": step.attempt,
            "tool": call.tool,
            "agent": self._agent,
            "call": f"call-{self._calls}",
            "decl": call.decl,
        }

    def _here(self, step: str | None = None) -> dict[str, Any]:
        name = step or self._the_step().name
        return {"run": self._the_run().name, "at": self._at(), "step": name}

    def _at(self) -> str:
        moment = EPOCH + timedelta(seconds=len(self._events))
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _put(self, event: Event) -> None:
        self._events.append(event)

    def _the_run(self) -> _Run:
        if self._run is None:
            raise ValueError("no run yet")
        return self._run

    def _the_step(self) -> _Step:
        step = self._the_run().step
        if step is None:
            raise ValueError("no step yet")
        return step
