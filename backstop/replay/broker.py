"""Answers of a live model within a budget: bookkeeping alone, whoever the model is.

An answer is looked for on the cassette first, then asked for. Both are counted once: whoever
asks the same again in the same repeat of a run, as the second pass with other stand-ins does,
is answered the same. Workers ask at the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import reduce
from operator import add
from typing import Final

import msgspec

from backstop.core.cassette import Answer, Place, digest_of
from backstop.core.spending import Budget, Limits, LiveUse, Spend
from backstop.ports import ModelBroker, ModelRequest, ModelSaid, ModelSilent

_INTERRUPTED: Final = "it was interrupted"


class Broker:
    """All answers that one agent's candidate gets from a live model.

    `kept` are the answers of a cassette, `keep` hears of each new one. Without a `model` nothing
    is asked; `unasked` then says why not.
    """

    def __init__(
        self,
        agent: str,
        limits: Limits,
        model: ModelBroker | None,
        *,
        unasked: str = "",
        kept: Iterable[Answer] = (),
        keep: Callable[[Answer], None] = lambda _: None,
    ) -> None:
        self.limits = limits
        self._agent = agent
        self._model = model
        self._unasked = unasked
        self._kept = {answer.place: answer for answer in kept if answer.agent == agent}
        self._keep = keep
        # What was paid for is paid for: a verdict costs no more for being begun twice.
        before = reduce(add, (answer.spend for answer in self._kept.values()), Spend())
        self._budget = Budget(limits=limits, spent=before)
        self._used: dict[Place, Answer] = {}
        self._unusual: set[str] = set()
        self._asked = 0
        self._lock = threading.Lock()
        self._stopped = False

    def stop(self) -> None:
        """Ask no more: somebody interrupts the replay."""
        self._stopped = True

    @property
    def asked(self) -> int:
        """How many calls were made now, and not taken from a cassette."""
        return self._asked

    @property
    def used(self) -> list[Answer]:
        """The answers so far, and the failures, wherever they came from."""
        with self._lock:
            return list(self._used.values())

    @property
    def use(self) -> LiveUse:
        """How the model took part so far, and what its answers have cost."""
        used = self.used
        with self._lock:
            unusual = tuple(sorted(self._unusual))
        spent = reduce(add, (answer.spend for answer in used), Spend())
        return LiveUse(
            repeats=self.limits.repeats,
            agreement=self.limits.agreement,
            calls=spent.calls,
            tokens_in=spent.tokens_in,
            tokens_out=spent.tokens_out,
            models=tuple(sorted({answer.model for answer in used})),
            unusual=unusual,
            runs=len({answer.run for answer in used}),
            answers=digest_of(used) if used else "",
        )

    def ask(
        self,
        request: ModelRequest,
        *,
        run: str,
        repeat: int,
        digest: str,
        nth: int,
        usual: frozenset[str],
    ) -> Answer:
        """The answer to the `nth` request of this `digest` in a repeat of a run.

        `usual` are the models that the base's agents ask. Where no answer may be had or counts,
        the answer says `why`.
        """
        blank = Answer(
            agent=self._agent,
            run=run,
            repeat=repeat,
            request=digest,
            nth=nth,
            model=request.model,
        )
        with self._lock:
            if why := self._barred(request.model, usual):
                return msgspec.structs.replace(blank, why=why)
            if (known := self._known(blank.place)) is not None:
                return known
            if self._model is None or self._stopped:
                why = _INTERRUPTED if self._stopped else self._unasked
                return msgspec.structs.replace(blank, why=why)
            # A failure that was kept is asked anew; what it cost stays on the account.
            if (failed := self._kept.get(blank.place)) is not None:
                blank = _costing(blank, failed.spend)
            room = self._budget.reserve(size=len(request.body), answer=request.answer)
            if isinstance(room, str):
                return self._note(msgspec.structs.replace(blank, why=room))
            self._asked += 1
        said: ModelSaid | ModelSilent | None = None
        try:
            said = self._model.ask(request)
        finally:
            if said is None:
                said = ModelSilent(why=_INTERRUPTED)
            with self._lock:
                answer = self._settled(blank, room, said)
        return answer

    def _barred(self, model: str, usual: frozenset[str]) -> str:
        """Why this model may not be asked; empty if it may."""
        allowed = self.limits.models
        if usual and model not in usual and model in allowed:
            self._unusual.add(model)
        if model in allowed or (not allowed and model in usual):
            return ""
        if not allowed and not usual:
            return (
                f"nobody says that model {model} may be asked: name it in `model.models`, or the "
                "version that runs now by --base"
            )
        return f"model {model} may not be asked: `model.models` of the base does not name it"

    def _known(self, place: Place) -> Answer | None:
        """What was answered before: now, or on the cassette where that has more than a failure."""
        if (used := self._used.get(place)) is not None:
            return used
        kept = self._kept.get(place)
        if kept is None or (kept.why and self._model is not None):
            return None
        self._used[place] = kept
        return kept

    def _settled(self, blank: Answer, room: Spend, said: ModelSaid | ModelSilent) -> Answer:
        taken = Spend(calls=1, tokens_in=said.tokens_in, tokens_out=said.tokens_out)
        over = self._budget.settle(room, taken)
        why = said.why if isinstance(said, ModelSilent) else over or ""
        response = said.response if isinstance(said, ModelSaid) and not why else b"null"
        answer = msgspec.structs.replace(
            blank,
            response=msgspec.Raw(response),
            why=why,
        )
        return self._note(_costing(answer, blank.spend + taken))

    def _note(self, answer: Answer) -> Answer:
        self._used[answer.place] = answer
        self._keep(answer)
        return answer


def _costing(answer: Answer, spent: Spend) -> Answer:
    return msgspec.structs.replace(
        answer, calls=spent.calls, tokens_in=spent.tokens_in, tokens_out=spent.tokens_out
    )
