"""What helps where the version that runs now was not replayed: said as it is, nothing beside it."""

from __future__ import annotations

import pytest

from backstop.core.intents import RunReplayed
from backstop.core.verdict import Decision, Policy
from backstop.gate.comparing import Asked
from backstop.gate.lacking import Lacking
from tests.comparing import ask, call, out
from tests.unit.gate.test_decision_rules import asked, judged, recorded

ACME = call("pay", vendor="acme-corp", amount=10)
LEDGER = recorded([out(ACME)])
SILENT = asked(
    [ask(ACME)], runs=[RunReplayed(run="r1", steps_total=1, steps_assumed=1, drift="unknown")]
)

HELP = {
    Lacking.UNNAMED: "--base",
    Lacking.NEW: "the base does not have this agent yet",
    Lacking.OFF: "gate.control",
    Lacking.FILES: "replay with --base",
}


@pytest.mark.parametrize("lacking", Lacking, ids=lambda one: one.name)
def test_a5_an_unknown_drift_names_what_would_tell_as_things_are(lacking: Lacking) -> None:
    """A5: a base that was named and is silent is not asked for once more."""
    verdict = judged(LEDGER, SILENT, control=lacking)
    assert verdict.decision is Decision.INCONCLUSIVE
    (why,) = verdict.why
    assert "does not say what its models were asked" in why
    assert HELP[lacking] in why
    assert ("by --base" in why) is (lacking is Lacking.UNNAMED)


@pytest.mark.parametrize("lacking", Lacking, ids=lambda one: one.name)
def test_d7_changes_that_nobody_looked_for_say_so_with_the_same_help(lacking: Lacking) -> None:
    """D7: what no run reached needs another version to compare with."""
    (note,) = judged(LEDGER, SILENT, control=lacking).notes
    assert note.startswith("changes that no run reached were not looked for: ")
    assert HELP[lacking] in note


def test_a5_a_base_that_was_replayed_and_is_silent_too_is_not_asked_for() -> None:
    """A5: there is nothing left to name."""
    verdict = judged(LEDGER, SILENT, control=asked([ask(ACME)], version="v1"))
    (why,) = verdict.why
    assert why.endswith("the version that runs now does not tell either")
    assert verdict.notes == ()


def lost(*reasons: str) -> Asked:
    """A candidate of whose runs none came to its end."""
    runs = [RunReplayed(run=f"r{at}", not_replayable=why) for at, why in enumerate(reasons, 1)]
    return asked([], runs=runs)


def test_what_kept_every_run_from_being_compared_comes_first_and_no_option_is_offered() -> None:
    """An option for first ledgers helps nobody whose runs broke off."""
    ledger = recorded([out(ACME), out(ACME, run="r2")])
    (why,) = judged(ledger, lost("it raised", "it hangs")).why
    assert (
        why == "run r1 was not replayed to its end: it raised, and 1 more; so nothing was compared"
    )


def test_a_ledger_without_a_run_is_what_the_option_is_for() -> None:
    """The control: nothing broke off there."""
    empty = recorded([])
    (why,) = judged(empty, asked([])).why
    assert why == "nothing was compared; --allow-empty accepts that for a first ledger"
    allowed = judged(empty, asked([]), policies=[Policy(allow_empty=True)])
    assert allowed.decision is Decision.PASS


def test_no_option_for_first_ledgers_lets_runs_pass_that_broke_off() -> None:
    """Silent green is the worst fault."""
    verdict = judged(LEDGER, lost("it raised"), policies=[Policy(allow_empty=True)])
    assert verdict.decision is Decision.INCONCLUSIVE
