"""How much of the record a verdict speaks for, in words that every report shares."""

from __future__ import annotations

from backstop.core.verdict import Coverage
from backstop.reports.explain import count_of


def covered(coverage: Coverage) -> str:
    """``37 of 40 steps (92 %), 3 assumed``; the number is never rounded up."""
    done, total = coverage.steps_covered, coverage.steps_total
    said = f"{done:,} of {count_of(total, 'step')} ({100 * done // max(total, 1)} %)"
    if coverage.steps_assumed:
        said += f", {coverage.steps_assumed:,} assumed"
    if coverage.steps_lost:
        said += f", {coverage.steps_lost:,} not replayed"
    return said


def drift(coverage: Coverage) -> str:
    """What became of the requests of the record: which parts changed, and in how many agents."""
    if coverage.changed:
        return coverage.changed
    if coverage.drift == "unknown":
        return "the ledger does not say what its models were asked"
    return coverage.drift
