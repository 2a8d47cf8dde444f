"""Which recorded answer a model request gets, and whether it answers that very request.

The rules are semantics.md A4 and A5: by request digests within the step, then by ordinal
of the agent in the step's last attempt, then none. An answer for another request is still
served, so that the code is exercised, but it is *drifted*, or *unknown* where the record
does not say what was asked. Where it does not say who asked either, whoever asks is answered
in turn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from backstop.core.audit import calls_of
from backstop.core.drift import PARTS
from backstop.core.events import ModelAnswered, RequestDigests
from backstop.core.runs import Step
from backstop.replay.attempts import began_anew


class Drift(StrEnum):
    """How the request that is asked relates to the recorded one."""

    SAME = "same"
    DRIFTED = "drifted"
    UNKNOWN = "unknown"
    LIVE = "live"
    """It has no answer on record that is proven, and a live model has answered it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A recorded answer, its place in the ledger, and how far it is one to this request.

    `proven` says that it is known to answer just this request, and not taken on trust.
    """

    index: int
    answer: ModelAnswered
    more: tuple[ModelAnswered, ...] = ()
    drift: Drift = Drift.SAME
    parts: tuple[str, ...] = ()
    proven: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """On what grounds an answer counts as one to the request that is asked (A5).

    `version` is the candidate's content digest: rows that it wrote itself and that hold no
    digests need no proof. `control` are the digests with which a control run asked, by place
    of the answer: they stand beside the recorded ones, which another framework version may
    have made; `handed` are those of its handover, where the rebuilt session may not show all
    that the recorded one did. `unknown` accepts rows without digests: for the control run.
    `usual` are the models that the base's agents ask.
    """

    version: str = ""
    control: Mapping[int, RequestDigests] = field(default_factory=dict)
    handed: Mapping[int, RequestDigests] = field(default_factory=dict)
    unknown: bool = False
    usual: frozenset[str] = frozenset()


@dataclass(slots=True, kw_only=True)
class _StepModels:
    """The answers of one step: `followed` by agent in the order that the replay asks in.

    `more` are further answers to one request, by the place of the first.
    """

    every: list[tuple[int, ModelAnswered]]
    followed: Mapping[str, list[tuple[int, ModelAnswered]]]
    more: Mapping[int, tuple[ModelAnswered, ...]]
    served: set[int] = field(default_factory=set)

    def of(self, agent: str) -> Sequence[tuple[int, ModelAnswered]]:
        """The answers for `agent`: those that say so, or else those that name nobody."""
        return self.followed.get(agent) or self.followed.get("") or ()

    @property
    def is_spent(self) -> bool:
        """Was the last answer of every agent served?"""
        return all(index in self.served for row in self.followed.values() for index, _ in row)


class ModelRecord:
    """What the record of one run answers to models. Serving an answer uses it up."""

    def __init__(self, steps: Iterable[Step], trust: Trust, *, handover: bool = False) -> None:
        self._handover = handover
        self._steps = {step.id: _models_of(step) for step in steps}
        self._trust = trust

    def serve(self, step: str, agent: str, ordinal: int, request: RequestDigests) -> Served | None:
        """The recorded answer to `agent`'s request number `ordinal` in `step`, None if none."""
        models = self._steps[step]
        found = self._by_digest(models, agent, request) or _by_ordinal(models, agent, ordinal)
        if found is None:
            return None
        models.served.add(found[0])
        judged = self._judged(*found, request)
        return replace(judged, more=models.more.get(found[0], ()))

    def is_spent(self, step: str) -> bool:
        """Were all answers of `step` served that the replay should meet?"""
        return self._steps[step].is_spent

    def knows(self, step: str, agent: str) -> bool:
        """Did `agent` ask its model in `step`, for all that is recorded?"""
        return bool(self._steps[step].of(agent))

    def others(self, agent: str) -> tuple[str, ...]:
        """Who asked in this run, by name, if `agent` never did and somebody is named."""
        named = {one for models in self._steps.values() for one in models.followed}
        return () if agent in named or "" in named else tuple(sorted(named))

    def has_finished(self, step: str, agent: str) -> bool:
        """Were the last words of `agent` in `step` words only, with nothing left to be answered?"""
        models = self._steps[step]
        answers = models.of(agent)
        if not answers:
            return False
        index, last = answers[-1]
        return not any(any(calls_of(one.response)) for one in (last, *models.more.get(index, ())))

    def _by_digest(
        self, models: _StepModels, agent: str, request: RequestDigests
    ) -> tuple[int, ModelAnswered] | None:
        """The answer to this very request; the agent's own first, of the attempt followed."""
        alike = [
            (index, row)
            for index, row in models.every
            if index not in models.served and request in self._proofs(index, row)
        ]
        return next((found for found in alike if found[1].agent == agent), None) or next(
            iter(alike), None
        )

    def _proofs(self, index: int, row: ModelAnswered) -> list[RequestDigests]:
        """The requests that this answer is known to answer."""
        known = [row.request, self._trust.control.get(index)]
        if self._handover:
            known.append(self._trust.handed.get(index))
        return [request for request in known if request is not None]

    def _judged(self, index: int, row: ModelAnswered, request: RequestDigests) -> Served:
        proofs = self._proofs(index, row)
        if request in proofs:
            return Served(index=index, answer=row, proven=True)
        if not proofs:
            # A version's own rows are its own answers; where they hold digests these decide,
            # for what lies outside its folder (framework, shared code) may have changed.
            known = self._trust.unknown or (bool(row.v) and row.v == self._trust.version)
            drift = Drift.SAME if known else Drift.UNKNOWN
            return Served(index=index, answer=row, drift=drift)
        if self._handover and row.v and row.v == self._trust.version:
            # It is handed its own session in production; what differs is how we rebuilt it.
            return Served(index=index, answer=row)
        parts = tuple(part for part in PARTS if getattr(proofs[-1], part) != getattr(request, part))
        return Served(index=index, answer=row, drift=Drift.DRIFTED, parts=parts)


def _by_ordinal(models: _StepModels, agent: str, ordinal: int) -> tuple[int, ModelAnswered] | None:
    """The agent's answer of that number; the first one left if a digest match took it."""
    answers = models.of(agent)
    if ordinal < len(answers) and answers[ordinal][0] not in models.served:
        return answers[ordinal]
    return next((found for found in answers if found[0] not in models.served), None)


def _models_of(step: Step) -> _StepModels:
    """Per agent the answers from the last start on, or else of the last attempt that has any.

    An attempt that crashed after asking may be followed by one that asked nothing.
    """
    start = began_anew(step)
    firsts, more = _by_request(step)
    by_agent: dict[str, list[tuple[int, ModelAnswered]]] = defaultdict(list)
    for found in firsts:
        by_agent[found[1].agent].append(found)
    followed: dict[str, list[tuple[int, ModelAnswered]]] = {}
    for agent, answers in by_agent.items():
        last = max(row.attempt for _, row in answers)
        since = min(start, last)
        followed[agent] = [found for found in answers if found[1].attempt >= since]
    kept = {index for answers in followed.values() for index, _ in answers}
    every = sorted(firsts, key=lambda found: (found[0] not in kept, found[0]))
    return _StepModels(every=every, followed=followed, more=more)


def _by_request(
    step: Step,
) -> tuple[list[tuple[int, ModelAnswered]], dict[int, tuple[ModelAnswered, ...]]]:
    """The first answer to each request, and those that followed it, by its place.

    What a tool's body asked is left out: a replay runs no body.
    """
    firsts: list[tuple[int, ModelAnswered]] = []
    more: dict[int, tuple[ModelAnswered, ...]] = {}
    by_request: dict[object, int] = {}
    for index, row in step.models:
        if row.within:
            continue
        first = index
        if row.request is not None:
            asked = row.agent, row.attempt, row.ordinal, row.request
            first = by_request.setdefault(asked, index)
        if first == index:
            firsts.append((index, row))
        else:
            more[first] = (*more.get(first, ()), row)
    return firsts, more
