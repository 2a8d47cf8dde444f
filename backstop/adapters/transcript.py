"""Builds the events of one run from what was said in it: what every importer shares.

What a transcript does not tell is left out: no request digests (drift is *unknown*), no
attempts, no cursors, no owner of a claim, and not which agent spoke.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from backstop.core.canon import CANON_VERSION, Json
from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import (
    FORMAT,
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    Event,
    Failure,
    Header,
    ModelAnswered,
    RunClosed,
    RunOpened,
    StepStarted,
    ToolRead,
)
from backstop.core.identity import identify, identify_read
from backstop.core.literal import literal
from backstop.core.redaction import Redaction, RedactionKey
from backstop.errors import BackstopError


class ImportRefused(BackstopError):
    """A record made elsewhere cannot be imported; the message names the place in the file."""

    slug = "import-shape"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call that a model asked for; `id` is empty where there was none."""

    id: str
    tool: str
    arguments: dict[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Asked:
    """A call that waits for its answer; `turn` counts the model's answers in the run."""

    turn: int
    call: Call
    step: str
    key: str
    fingerprint: str
    declaration: Declaration


class Transcript:
    """One run, told in order: `user`, `model` and `answer`, then `close`.

    Each telling carries its time `at`. Tools that are not in `known` are added to it as
    undeclared, which makes them effects. What is declared `redact` becomes a token made with
    `key`; a call with such a value raises `NoRedactionKey` where there is none.
    """

    def __init__(
        self,
        *,
        run: str,
        namespace: Namespace,
        known: dict[str, Declaration],
        at: str,
        key: RedactionKey | None = None,
    ) -> None:
        self._redaction = Redaction(key=key)
        self._run = run
        self._namespace = namespace
        self._known = known
        self._steps = 0
        self._turns = 0
        self._ordinal = 0
        self._waiting: list[_Asked] = []
        # ADK's app names are identifiers; configured names may hold a dash or a dot.
        app = namespace.app or namespace.agent.replace("-", "_").replace(".", "_")
        self.events: list[Event] = [RunOpened(run=run, at=at, app=app, user="user", state=raw({}))]

    def user(self, text: str, *, at: str) -> None:
        """A user's message sets off a step."""
        content: Json = {"role": "user", "parts": [{"text": text}]}
        self._begin_step(trigger="message", message=content, at=at)

    def model(self, text: str, calls: Sequence[Call], *, at: str) -> None:
        """The model answered with words, calls, or both. Raises `IdentityError`."""
        if self._steps == 0:
            # The agent spoke first: something other than a message set it off.
            self._begin_step(trigger="start", message=None, at=at)
        calls = [self._redacted(call) for call in calls]
        asked = [self._asked(call) for call in calls]
        parts: list[Json] = [{"text": text}] if text else []
        for call in calls:
            named: dict[str, Json] = {"id": call.id} if call.id else {}
            parts.append({"function_call": {**named, "name": call.tool, "args": call.arguments}})
        self.events.append(
            ModelAnswered(
                run=self._run,
                at=at,
                step=self._step,
                agent="",
                ordinal=self._ordinal,
                response=raw({"content": {"role": "model", "parts": parts}}),
            )
        )
        self._ordinal += 1
        self._turns += 1
        for waiting in asked:
            self._waiting.append(waiting)
            if waiting.declaration.effect:
                self._claim(waiting, at=at)

    def answer(
        self,
        result: str,
        *,
        call: str | None,
        tool: str | None,
        failed: bool,
        at: str,
    ) -> bool:
        """A tool answered `result`; False if no unanswered `call` (an id) of `tool` is there.

        The answer belongs to the nearest earlier such call (semantics.md I1). Calls that were
        asked for in one turn are answered in the order of asking.
        """
        fitting = [
            asked
            for asked in self._waiting
            if (call is None or asked.call.id == call) and (tool is None or asked.call.tool == tool)
        ]
        if not fitting or (call is None and tool is None):
            return False
        latest = max(asked.turn for asked in fitting)
        asked = next(asked for asked in fitting if asked.turn == latest)
        self._waiting.remove(asked)
        self._settle(asked, result, failed=failed, at=at)
        return True

    def close(self, *, at: str) -> None:
        """There is no more: the run is complete, unless a call was never answered."""
        for asked in self._waiting:
            if not asked.declaration.effect:
                self._read(asked, at=at, pending=True)
        if not self._waiting:
            self.events.append(RunClosed(run=self._run, at=at, status="complete"))

    @property
    def _step(self) -> str:
        return f"s{self._steps - 1}"

    def _begin_step(self, *, trigger: str, message: Json, at: str) -> None:
        self._steps += 1
        self._ordinal = 0
        self.events.append(
            StepStarted(
                run=self._run,
                at=at,
                step=self._step,
                cursor=self._steps - 1,
                trigger=trigger,
                message=raw(message),
            )
        )

    def _redacted(self, call: Call) -> Call:
        arguments = self._redaction.arguments(call.arguments, self._declaration(call))
        return replace(call, arguments=dict(arguments))

    def _declaration(self, call: Call) -> Declaration:
        return self._known.setdefault(call.tool, Declaration(tool=call.tool))

    def _asked(self, call: Call) -> _Asked:
        declaration = self._declaration(call)
        identified = (identify if declaration.effect else identify_read)(
            call.arguments, declaration, namespace=self._namespace, run=self._run, step=self._step
        )
        return _Asked(
            turn=self._turns,
            call=call,
            step=self._step,
            key=identified.key,
            fingerprint=identified.fingerprint,
            declaration=declaration,
        )

    def _claim(self, asked: _Asked, *, at: str) -> None:
        self.events.append(
            EffectClaimed(
                run=self._run,
                at=at,
                step=asked.step,
                tool=asked.call.tool,
                key=asked.key,
                fingerprint=asked.fingerprint,
                call=asked.call.id,
                decl=asked.declaration.digest,
                args=raw(asked.call.arguments),
            )
        )

    def _settle(self, asked: _Asked, result: str, *, failed: bool, at: str) -> None:
        # A failure that a tool tells of in its answer was not raised: its type stays empty.
        error = Failure(type="", message=result) if failed else None
        if not asked.declaration.effect:
            self._read(asked, at=at, result=result, error=error)
        elif error is not None:
            self.events.append(EffectFailed(run=self._run, at=at, key=asked.key, error=error))
        else:
            self.events.append(
                EffectCommitted(
                    run=self._run, at=at, key=asked.key, result=raw(result), by="import"
                )
            )

    def _read(
        self,
        asked: _Asked,
        *,
        at: str,
        result: str | None = None,
        error: Failure | None = None,
        pending: bool = False,
    ) -> None:
        self.events.append(
            ToolRead(
                run=self._run,
                at=at,
                step=asked.step,
                tool=asked.call.tool,
                key=asked.key,
                call=asked.call.id,
                decl=asked.declaration.digest,
                args=raw(asked.call.arguments),
                result=raw(result),
                error=error,
                pending=pending,
            )
        )


def imported_header(kind: str, namespace: Namespace, known: Mapping[str, Declaration]) -> Header:
    """The header of an imported ledger: source ``import:<kind>``, never guarded."""
    return Header(
        format=FORMAT,
        agent=namespace.agent,
        canon=CANON_VERSION,
        app=namespace.app,
        tenant=namespace.tenant,
        source=f"import:{kind}",
        guarded=False,
        tools={tool: known[tool].digest for tool in sorted(known)},
        declarations={known[tool].digest: known[tool] for tool in sorted(known)},
    )


def raw(value: Json) -> msgspec.Raw:
    """JSON of exactly this value, on one line."""
    return msgspec.Raw(literal(value).encode())
