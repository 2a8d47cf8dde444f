"""Builds the events of one run from what was said in it: what every importer shares.

What a transcript does not tell is left out: no request digests (drift is *unknown*), no
attempts, no cursors, no owner of a claim, and where the record is silent of it, not which
agent spoke.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from backstop.adapters.told import Call, ImportRefused, Result, in_words, spelled
from backstop.core.canon import CANON_VERSION, Json
from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import (
    BY_PERSON,
    FORMAT,
    NOTHING,
    CallBlocked,
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
from backstop.core.literal import written
from backstop.core.redaction import Redaction, RedactionKey

__all__ = ["Call", "ImportRefused", "Result", "Transcript", "imported_header", "raw"]


class _Asked(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A call that waits for its answer; `turn` counts the model's answers in the run.

    `at` is when it was asked for, and `place` where a row of that moment stands among the events.
    """

    turn: int
    at: str
    place: int
    call: Call
    agent: str
    step: str
    key: str
    fingerprint: str
    declaration: Declaration


class Transcript:
    """One run, told in order: `user`, `model` and `answer`, then `close`.

    Each telling carries its time `at`. Tools that are not in `known` are added to it as
    undeclared, which makes them effects. What is declared `redact` becomes a token made with
    `key`; a call with such a value raises `NoRedactionKey` where there is none. `state` is
    that of the session when it began.
    """

    def __init__(
        self,
        *,
        run: str,
        namespace: Namespace,
        known: dict[str, Declaration],
        at: str,
        key: RedactionKey | None = None,
        user: str = "user",
        state: Mapping[str, Json] | None = None,
    ) -> None:
        self._redaction = Redaction(key=key)
        self._run = run
        self._namespace = namespace
        self._known = known
        self._steps = 0
        self._turns = 0
        self._ordinals: Counter[str] = Counter()
        self._waiting: list[_Asked] = []
        self._held: list[_Asked] = []
        # ADK's app names are identifiers; configured names may hold a dash or a dot.
        app = namespace.app or namespace.agent.replace("-", "_").replace(".", "_")
        opened = RunOpened(run=run, at=at, app=app, user=user, state=raw(dict(state or {})))
        self.events: list[Event] = [opened]

    @property
    def waits(self) -> bool:
        """Is there a call that was never answered?"""
        return bool(self._waiting)

    def user(self, text: str, *, at: str) -> None:
        """A user's message sets off a step."""
        self.message({"role": "user", "parts": [{"text": text}]}, at=at)

    def message(self, content: Json, *, at: str) -> None:
        """What was handed to the agent, as the framework spells it, sets off a step."""
        self._begin_step(trigger="message", message=content, at=at)

    def model(self, text: str, calls: Sequence[Call], *, at: str, agent: str = "") -> None:
        """The model answered with words, calls, or both. Raises `IdentityError`."""
        words: list[Json | Call] = [{"text": text}] if text else []
        self.spoke([*words, *calls], at=at, agent=agent)

    def spoke(
        self,
        parts: Sequence[Json | Call],
        *,
        at: str,
        agent: str = "",
        branch: str = "",
        more: Mapping[str, Json] | None = None,
    ) -> None:
        """The model of `agent` answered with these parts, in order. Raises `IdentityError`.

        `more` are further members of the answer, as the framework spells them, and `branch` is
        its name for where in the conversation the agent stands.
        """
        if self._steps == 0:
            # The agent spoke first: something other than a message set it off.
            self._begin_step(trigger="start", message=None, at=at)
        asked: list[_Asked] = []
        shown: list[Json] = []
        for part in parts:
            if isinstance(part, Call):
                call = self._redacted(part)
                asked.append(self._asked(call, agent, at=at))
                shown.append(spelled(call))
            else:
                shown.append(part)
        response: dict[str, Json] = {"content": {"role": "model", "parts": shown}, **(more or {})}
        self.events.append(
            ModelAnswered(
                run=self._run,
                at=at,
                step=self._step,
                agent=agent,
                ordinal=self._ordinals[agent],
                response=raw(response),
                branch=branch,
            )
        )
        self._ordinals[agent] += 1
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
        """A tool answered `result`; False if no unanswered `call` (an id) of `tool` is there."""
        return self.answered(Result(value=result, failed=failed), call=call, tool=tool, at=at)

    def answered(self, result: Result, *, call: str | None, tool: str | None, at: str) -> bool:
        """A tool gave `result`; False if no unanswered `call` (an id) of `tool` is there.

        The answer belongs to the nearest earlier such call (semantics.md I1). Calls that were
        asked for in one turn are answered in the order of asking. A call that waits for a
        person's word is answered a second time once that is given.
        """
        if (asked := _fitting(self._waiting, call, tool)) is not None:
            self._waiting.remove(asked)
            if result.declined:  # its claim is on record: what was declined did not happen
                result = replace(result, declined=False, failed=True)
        elif call and (asked := _fitting(self._held, call, tool)) is not None:
            self._held.remove(asked)
            asked = self._asked(asked.call, asked.agent, at=at)  # of another step now
            if asked.declaration.effect and not result.declined:
                self._claim(asked, at=at)
        else:
            return False
        if result.asks_first:
            self._held.append(asked)
        self._settle(asked, result, at=at)
        return True

    def close(self, *, at: str) -> None:
        """There is no more: the run is complete, unless a call was never answered."""
        self.leave()
        if not self._waiting:
            self.events.append(RunClosed(run=self._run, at=at, status="complete"))

    def leave(self) -> None:
        """There is no more, and the run is not complete: it goes on, or was broken off.

        A read that was never answered stands where it was asked for: what stands behind it shows
        that the agent went on without.
        """
        for asked in reversed(self._waiting):
            if not asked.declaration.effect:
                self.events.insert(asked.place, self._read(asked, None, at=asked.at))

    @property
    def _step(self) -> str:
        return f"s{self._steps - 1}"

    def _begin_step(self, *, trigger: str, message: Json, at: str) -> None:
        self._steps += 1
        self._ordinals.clear()
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
        if arguments is call.arguments:
            return call
        return replace(call, arguments=dict(arguments))

    def _declaration(self, call: Call) -> Declaration:
        if call.steering:
            return Declaration(tool=call.tool, effect=False)
        return self._known.setdefault(call.tool, Declaration(tool=call.tool))

    def _asked(self, call: Call, agent: str, *, at: str) -> _Asked:
        declaration = self._declaration(call)
        identified = (identify if declaration.effect else identify_read)(
            call.arguments, declaration, namespace=self._namespace, run=self._run, step=self._step
        )
        return _Asked(
            turn=self._turns,
            at=at,
            place=len(self.events) + 1,  # behind the model's answer, which comes next
            call=call,
            agent=agent,
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
                agent=asked.agent,
                tool=asked.call.tool,
                key=asked.key,
                fingerprint=asked.fingerprint,
                call=asked.call.id,
                decl=asked.declaration.digest,
                args=raw(asked.call.arguments),
            )
        )

    def _settle(self, asked: _Asked, result: Result, *, at: str) -> None:
        if not asked.declaration.effect:
            self.events.append(self._read(asked, result, at=at))
        elif result.declined:
            self._blocked(asked, at=at)
        elif result.failed or result.asks_first:
            self.events.append(
                EffectFailed(
                    run=self._run,
                    at=at,
                    key=asked.key,
                    error=Failure(type="", message=in_words(result)),
                    final=not result.asks_first,
                    # A failure that is told in words has no result beside them.
                    result=NOTHING if isinstance(result.value, str) else raw(result.value),
                    state_delta=_members(result.state_delta),
                    actions=_members(result.actions),
                )
            )
        else:
            self.events.append(
                EffectCommitted(
                    run=self._run,
                    at=at,
                    key=asked.key,
                    result=raw(result.value),
                    state_delta=_members(result.state_delta),
                    by="import",
                    actions=_members(result.actions),
                )
            )

    def _blocked(self, asked: _Asked, *, at: str) -> None:
        self.events.append(
            CallBlocked(
                run=self._run,
                at=at,
                step=asked.step,
                agent=asked.agent,
                tool=asked.call.tool,
                key=asked.key,
                by=BY_PERSON,
                call=asked.call.id,
                decl=asked.declaration.digest,
                args=raw(asked.call.arguments),
                fingerprint=asked.fingerprint,
            )
        )

    def _read(self, asked: _Asked, result: Result | None, *, at: str) -> ToolRead:
        """A read's row; without a `result` its answer had not come."""
        failed = result is not None and result.failed and isinstance(result.value, str)
        # A failure that a tool tells of in its answer was not raised: its type stays empty.
        error = Failure(type="", message=in_words(result)) if result and failed else None
        return ToolRead(
            run=self._run,
            at=at,
            step=asked.step,
            agent=asked.agent,
            tool=asked.call.tool,
            key=asked.key,
            call=asked.call.id,
            decl="" if asked.call.steering else asked.declaration.digest,
            args=raw(asked.call.arguments),
            result=NOTHING if result is None else raw(result.value),
            error=error,
            state_delta=NOTHING if result is None else _members(result.state_delta),
            actions=NOTHING if result is None else _members(result.actions),
            pending=result is None,
            steering=asked.call.steering,
        )


def _fitting(waiting: Sequence[_Asked], call: str | None, tool: str | None) -> _Asked | None:
    """The nearest earlier call of that id and tool; the first of those of one turn."""
    fitting = [
        asked
        for asked in waiting
        if (call is None or asked.call.id == call) and (tool is None or asked.call.tool == tool)
    ]
    if not fitting or (call is None and tool is None):
        return None
    latest = max(asked.turn for asked in fitting)
    return next(asked for asked in fitting if asked.turn == latest)


def _members(given: Mapping[str, Json] | None) -> msgspec.Raw:
    return raw(dict(given)) if given else NOTHING


def imported_header(
    kind: str,
    namespace: Namespace,
    known: Mapping[str, Declaration],
    gaps: Sequence[str] = (),
) -> Header:
    """The header of an imported ledger: source ``import:<kind>``, never guarded.

    `gaps` is what the record cannot tell, a line each: no verdict on it is a pass.
    """
    return Header(
        format=FORMAT,
        agent=namespace.agent,
        canon=CANON_VERSION,
        app=namespace.app,
        tenant=namespace.tenant,
        source=f"import:{kind}",
        guarded=False,
        gaps=list(gaps) if gaps else msgspec.UNSET,
        tools={tool: known[tool].digest for tool in sorted(known)},
        declarations={known[tool].digest: known[tool] for tool in sorted(known)},
    )


def raw(value: Json) -> msgspec.Raw:
    """JSON of exactly this value, on one line."""
    return msgspec.Raw(written(value))
