# ruff: noqa: ANN401 - the framework's values are of any type
"""What a model was asked and what it answered, on record."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from backstop.adk.arming import arm_model
from backstop.adk.requests import RequestDigester
from backstop.core.audit import calls_of
from backstop.core.events import ModelAnswered, RequestDigests
from backstop.guard.calls import within
from backstop.guard.claims.offloop import written
from backstop.guard.journal import Attempt, Journal, as_sent
from backstop.guard.plugin.redacting import RedactedCalls
from backstop.guard.plugin.spans import ids

_log: Final = logging.getLogger("backstop")


class _Asking(NamedTuple):
    """Who is about to ask a model, where, and for whose record."""

    agent: str = ""
    branch: str = ""
    session: str = ""
    attempt: Attempt | None = None
    journal: Journal | None = None


_ASKING: Final[ContextVar[_Asking]] = ContextVar("backstop_asking", default=_Asking())  # noqa: B039 - it is immutable


class ModelRecorder:
    """Arms models, and puts their answers on record with digests of the requests."""

    def __init__(self) -> None:
        self._digester = RequestDigester()

    def arm(self, asking: Any, attempt: Attempt | None, journal: Journal | None) -> None:
        """Arm the model that is about to be asked by the agent of the framework's `asking`."""
        agent = asking.agent
        # An agent that sees its own turn only is the same wherever it stands.
        branch = "" if agent.include_contents == "none" else asking.branch or ""
        _ASKING.set(_Asking(agent.name, branch, asking.session.id, attempt, journal))
        arm_model(agent.canonical_model, self._ask)

    async def _ask(
        self,
        model: Any,  # noqa: ARG002 - the shape of a generator that is armed
        request: Any,
        stream: bool,  # noqa: FBT001 - the framework's signature
        original: Callable[..., AsyncIterator[Any]],
    ) -> AsyncIterator[Any]:
        asking = _ASKING.get()
        # Good for one request: whoever else asks this model is none of ours.
        _ASKING.set(_Asking())
        attempt, journal = asking.attempt, asking.journal
        if attempt is None or journal is None:
            async for response in original(request, stream=stream):
                yield response
            return
        # Both before the model is asked: parallel agents must not trade places afterwards.
        asked = self._digester.digest(request, RedactedCalls(journal.redaction))
        digests = RequestDigests(**asked._asdict())
        ordinal = attempt.ordinal(asking.agent)
        async for response in original(request, stream=stream):
            if not response.partial:
                row = _answered(attempt, journal, asking, ordinal, digests, response)
                _expect(row, attempt, journal)
                # Before it is handed on: the framework edits responses in place.
                await written(journal.store, row)
            yield response


def _answered(
    attempt: Attempt,
    journal: Journal,
    asking: _Asking,
    ordinal: int,
    digests: RequestDigests,
    response: Any,
) -> ModelAnswered:
    return ModelAnswered(
        run=attempt.run,
        at="",
        v=journal.version,
        step=attempt.step,
        agent=asking.agent,
        ordinal=ordinal,
        attempt=attempt.number,
        request=digests,
        response=as_sent(
            journal.redaction.answer(response.model_dump(mode="json", exclude_none=True))
        ),
        within=within(),
        apart=asking.session not in {"", attempt.session},
        branch=asking.branch,
        **ids(),
    )


def _expect(row: ModelAnswered, attempt: Attempt, journal: Journal) -> None:
    """The cursor waits for each declared effect that the model asks for."""
    for tool in calls_of(row.response):
        declared = journal.declarations.get(tool)
        if declared is not None and declared.effect:
            attempt.due[tool] += 1
