"""What a step comes to: a verdict, nothing to judge, or one line that says why not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from backstop.core.divergence import Kind
from backstop.core.verdict import Verdict
from backstop.errors import BackstopError
from backstop.gate.request import Judgement
from backstop.reports.document import digest_of

ERROR: Final = "ERROR"
"""The output `decision` of a step that could judge nothing; it is no verdict."""

_COUNTED: Final = {
    Kind.DUPLICATE: "duplicates",
    Kind.MISSING: "missing",
    Kind.MUTATED: "mutated",
    Kind.EXTRA: "extra",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The gate has answered, on all agents but those that the change leaves alone (G09)."""

    judgement: Judgement

    @property
    def verdict(self) -> Verdict:
        """The answer on what was judged; what was carried forward says nothing anew.

        Beside agents that are new, and do not count, it is what the answer rests on (D5).
        """
        whole, carried = self.judgement.verdict, self.judgement.carried
        judged = tuple(agent for agent in whole.agents if agent.agent not in carried)
        return whole if all(agent.neutral for agent in judged) else Verdict(agents=judged)

    @property
    def exit_code(self) -> int:
        """The verdict's."""
        return self.judgement.verdict.exit_code


@dataclass(frozen=True, slots=True, kw_only=True)
class NotApplicable:
    """The change touches no agent: the check passes at once instead of waiting for ever (G20)."""

    judgement: Judgement

    @property
    def exit_code(self) -> int:
        """That of the verdicts that go on to hold."""
        return self.judgement.verdict.exit_code


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """Nothing could be judged; `message` is one line."""

    slug: str
    message: str
    exit_code: int = 2

    @staticmethod
    def by(error: BackstopError) -> Failed:
        """The outcome that `error` stands for; an error is never green."""
        return Failed(slug=error.slug, message=str(error), exit_code=error.exit_code or 2)


Outcome: TypeAlias = Judged | NotApplicable | Failed


def outcome_of(judgement: Judgement) -> Judged | NotApplicable:
    """What a judgement comes to."""
    if judgement.is_applicable:
        return Judged(judgement=judgement)
    return NotApplicable(judgement=judgement)


def outputs_of(outcome: Outcome, *, report_path: str) -> dict[str, str]:
    """The values that later steps get, by the names that ``action.yml`` publishes.

    Counts are those of the kinds, whether or not they block. `report_path` is empty where no
    report was written.
    """
    told = {"exit-code": str(outcome.exit_code), "report-path": report_path}
    match outcome:
        case Failed():
            nothing = dict.fromkeys((*_COUNTED.values(), "coverage", "verdict-digest"), "")
            return {"decision": ERROR, **told, **nothing}
        case NotApplicable():
            return _told(outcome.judgement.verdict, told)
        case Judged():
            return _told(outcome.verdict, told)


def _told(verdict: Verdict, told: dict[str, str]) -> dict[str, str]:
    compared, total = compared_of(verdict)
    counts = {
        name: str(sum(agent.counts.get(kind.lower(), 0) for agent in verdict.agents))
        for kind, name in _COUNTED.items()
    }
    return {
        "decision": verdict.decision.value,
        **told,
        **counts,
        "coverage": f"{compared}/{total}",
        "verdict-digest": digest_of(verdict),
    }


def compared_of(verdict: Verdict) -> tuple[int, int]:
    """How many runs were compared, and how many there are."""
    return (
        sum(agent.coverage.runs_compared for agent in verdict.agents),
        sum(agent.coverage.runs_total for agent in verdict.agents),
    )
