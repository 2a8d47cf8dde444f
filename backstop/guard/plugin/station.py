# ruff: noqa: ANN401 - what a tool gives is of any type
"""One agent's guard in one process: it serves calls, and says what the caller gets of each.

A call whose store cannot be reached before it began is refused, and holds the cursor; one that
had begun is in doubt. Where the guard only observes, the call runs whatever the store says,
and its own result or error is what the caller gets.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Protocol

import msgspec
from msgspec.structs import replace

from backstop.adk.toolsets import Listed
from backstop.core.declaration import Declaration
from backstop.core.events import OBSERVED, EffectClaimed
from backstop.errors import BackstopError
from backstop.guard.calls import Call, apart, intent_of, undecided, unfinished
from backstop.guard.claims.capability import Keyed, Probe, downstream_key
from backstop.guard.claims.claim import perform, perform_now
from backstop.guard.claims.desk import Produced, how
from backstop.guard.claims.offloop import asked
from backstop.guard.claims.oldkeys import OldKeys
from backstop.guard.claims.safety import Safety
from backstop.guard.claims.turns import Turns
from backstop.guard.claims.watched import Watched
from backstop.guard.effect import Declared
from backstop.guard.journal import Journal
from backstop.guard.plugin.sessions import Sessions
from backstop.guard.plugin.spans import mark
from backstop.guard.results import told
from backstop.ports import Answer, InDoubt, Judge, Recorded

_log: Final = logging.getLogger("backstop")

_UNSAID: Final = Safety(lease_s=0)
_RUN: Final = object()
"""In place of what a call gave: it has yet to be made."""


class EffectRefused(BackstopError):
    """A call cannot be guarded, so it was not made."""

    slug = "effect-refused"


class _Case(msgspec.Struct, kw_only=True):
    """One call while it is served: what is claimed, and what its body did."""

    call: Call
    safety: Safety
    intent: EffectClaimed
    store: Watched
    bars: tuple[EffectClaimed, ...] = ()
    began: bool = False
    result: Any = None
    error: BaseException | None = None

    @property
    def key(self) -> str:
        """The key that a provider is handed; empty if the tool takes none."""
        if not isinstance(self.safety.capability, Keyed):
            return ""
        said = self.store.override  # it was taken back: a provider must not take it for the first
        intent = self.intent if said is None else replace(self.intent, override=said)
        return downstream_key(intent)

    def asked_of(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a lookup is asked about, whatever the body does to its arguments."""
        return apart(arguments) if isinstance(self.safety.capability, Probe) else {}

    async def body(
        self, run: Callable[[str], Awaitable[Any]], keep: Callable[[Any], Produced]
    ) -> Produced:
        """Run the call's body; what it gave is kept for who only observes."""
        self.began = True
        try:
            self.result = await run(self.key)
        except BaseException as error:
            self.error = error
            raise
        return keep(self.result)

    def body_now(self, run: Callable[[str], Any], keep: Callable[[Any], Produced]) -> Produced:
        """`body`, of a call that does not wait."""
        self.began = True
        try:
            self.result = run(self.key)
        except BaseException as error:
            self.error = error
            raise
        return keep(self.result)

    def failed(self, error: BackstopError) -> InDoubt:
        """The store failed: what had begun is in doubt, anything else was not done."""
        if error is self.error:
            raise error  # the body's own, of which the tool vouches
        if not self.began:
            raise EffectRefused(f"{self.call.tool} was not run: {error}") from error
        return InDoubt(reason=f"it ran, and that could not be put on record: {error}")


class Learner(Protocol):
    """Takes in tools that nobody knew of when the guard was set up."""

    def knows(self, tool: Any) -> bool:
        """Is what is declared of the tool registered with the store?"""
        ...

    def learn(self, tool: Any) -> None:
        """Register it. Raises what the store raises."""
        ...

    def knows_function(self, said: Declared) -> bool:
        """Is what is declared of the function registered with the store?"""
        ...

    def learn_function(self, said: Declared) -> None:
        """Register it. Raises what the store raises."""
        ...

    def knows_listing(self, key: str, listing: list[Listed]) -> bool:
        """Is this what the toolset of that key is registered to list?"""
        ...

    def learn_listing(self, key: str, listing: list[Listed]) -> None:
        """Register it. Raises what the store raises."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """Where one agent's calls are served.

    `safety` says what is known of tools, `unsaid` what holds for all others. `observing` says
    that nothing is refused: what would have been is written down. `learner` takes in tools that
    become known when they are called; None if all are known. `judge` knows the verdicts of the
    mesh that the agent works in, if there is one: without VERIFIED no effect goes out.
    """

    journal: Journal
    safety: Mapping[str, Safety] = field(default_factory=lambda: MappingProxyType({}))
    unsaid: Safety = _UNSAID
    observing: bool = False
    turns: Turns = field(default_factory=Turns)
    learner: Learner | None = None
    judge: Judge | None = None
    sessions: Sessions = field(init=False)
    _old: OldKeys = field(init=False)

    def __post_init__(self) -> None:
        journal = self.journal
        keys = OldKeys(namespace=journal.namespace, redaction_key=journal.redaction_key)
        object.__setattr__(self, "_old", keys)
        object.__setattr__(self, "sessions", Sessions(journal))

    def safety_of(self, tool: str) -> Safety:
        """What is known of a tool."""
        return self.safety.get(tool, self.unsaid)

    def declaration_of(self, tool: str) -> Declaration:
        """What is declared of a tool; all its arguments name what it does if nothing is."""
        return self.journal.declarations.get(tool) or Declaration(tool=tool)

    async def serve(
        self,
        call: Call,
        run: Callable[[str], Awaitable[Any]],
        keep: Callable[[Any], Produced],
        *,
        arguments: Mapping[str, Any],
        recall: Callable[[Recorded], None],
    ) -> Any:
        """What the caller gets of an effect that waits.

        `run` makes the call, with the key for a provider; `keep` serialises its result;
        `recall` does what else a recorded call did. Raises `EffectRefused`, and what the tool
        vouches for.
        """
        case = self._case(call)
        outcome: Answer | BackstopError
        async with self.turns.turn(call):
            try:
                if self._had_other_keys(call):
                    await asked(case.store, partial(self._look_up, case, arguments))
                outcome = await perform(
                    case.store,
                    case.intent,
                    lambda: case.body(run, keep),
                    no_effect_on=case.safety.no_effect_on,
                    capability=case.safety.capability,
                    arguments=case.asked_of(arguments),
                    bars=case.bars,
                )
            except BackstopError as error:
                outcome = error
        given = self._given(case, outcome, recall)
        return await run(case.key) if given is _RUN else given

    def serve_now(
        self,
        call: Call,
        run: Callable[[str], Any],
        keep: Callable[[Any], Produced],
        *,
        arguments: Mapping[str, Any],
    ) -> Any:
        """`serve` for a call that does not wait."""
        case = self._case(call)
        outcome: Answer | BackstopError
        try:
            if self._had_other_keys(call):
                self._look_up(case, arguments)
            outcome = perform_now(
                case.store,
                case.intent,
                lambda: case.body_now(run, keep),
                no_effect_on=case.safety.no_effect_on,
                capability=case.safety.capability,
                arguments=case.asked_of(arguments),
                bars=case.bars,
            )
        except BackstopError as error:
            outcome = error
        given = self._given(case, outcome, _nothing_else)
        return run(case.key) if given is _RUN else given

    def _case(self, call: Call) -> _Case:
        # Undecided until told otherwise: an error on the way must hold the cursor.
        call.attempt.effects[call.named.key] = undecided(call)
        safety = self.safety_of(call.tool)
        if safety.broken and not self.observing:
            raise EffectRefused(f"{call.tool} was not run: {safety.broken}")
        return _Case(
            call=call,
            safety=safety,
            intent=intent_of(call, self.journal, safety),
            store=Watched(
                self.journal.store,
                observing=self.observing,
                judge=self.judge,
                key=call.named.key,
            ),
        )

    def _had_other_keys(self, call: Call) -> bool:
        return bool(self._old.others(call.declaration, self.journal.store.header))

    def _look_up(self, case: _Case, arguments: Mapping[str, Any]) -> None:
        """Go on with the call as the store knows it, should it stand there under another rule."""
        store, call = self.journal.store, case.call
        known = self._old.known_as(call, arguments, store, store.header)
        if known.call is not call:
            effects = call.attempt.effects
            effects.pop(call.named.key, None)
            effects[known.call.named.key] = undecided(known.call)
            case.call = known.call
            case.intent = intent_of(known.call, self.journal, case.safety)
            case.store.key = case.intent.key
        case.bars = tuple(intent_of(bar, self.journal, case.safety) for bar in known.bars)

    def _given(
        self, case: _Case, outcome: Answer | BackstopError, recall: Callable[[Recorded], None]
    ) -> Any:
        """What the caller gets; `_RUN` if the call has yet to be made."""
        if self.observing:
            return self._observed(case, outcome)
        answer = case.failed(outcome) if isinstance(outcome, BackstopError) else outcome
        call = case.call
        call.attempt.effects[call.named.key] = unfinished(answer, call)
        mark(call, _word(case, answer), fence=case.store.fence)
        try:
            given = told(answer)
            if isinstance(answer, Recorded):
                recall(answer)
        except msgspec.DecodeError as error:
            raise EffectRefused(
                f"{call.tool} was done before, and was not run again; its recorded result cannot "
                f"be read: {error}"
            ) from error
        return given

    def _observed(self, case: _Case, outcome: Answer | BackstopError) -> Any:
        if case.error is not None:
            raise case.error
        call = case.call
        if isinstance(outcome, BackstopError):
            word, why = "refused", str(outcome)
        else:
            word = _word(case, outcome)
            why = "as before" if isinstance(outcome, Recorded) else str(told(outcome))
            call.attempt.effects[call.named.key] = unfinished(outcome, call)
        if case.began:
            mark(call, word, fence=case.store.fence)
            return case.result
        mark(call, f"{OBSERVED}{word}", fence=0)
        self.would_refuse(call.tool, f"{word}: {why}")
        return _RUN

    def would_refuse(self, tool: str, why: str) -> None:
        """Report what a guard that only observes lets through."""
        _log.warning("backstop only observes: %s runs, and would not have run: %s", tool, why)


def _word(case: _Case, answer: Answer) -> str:
    return "executed" if isinstance(answer, Recorded) and case.began else how(answer)


def _nothing_else(_: Recorded) -> None:
    """A function does nothing beside what it gives."""
