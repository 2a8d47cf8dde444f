"""What the repeats of a live model agree on counts; what they do not is no pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from backstop.core.divergence import Kind
from backstop.core.intents import Intent, RunReplayed
from backstop.core.spending import LiveUse
from backstop.core.verdict import AgentVerdict, Decision
from backstop.gate.comparing import Asked
from tests.comparing import ask, call, out
from tests.unit.gate.test_decision_rules import asked, judged, recorded

ACME = call("pay", vendor="acme-corp", amount=10)
OTHERWISE = [ACME.but(vendor=name) for name in ("ACME Corp", "Acme-Corp.", "acme corp")]


def repeats(*told: Sequence[Intent], agreement: int = 2, run: RunReplayed | None = None) -> Asked:
    """A version whose one run was replayed as often as there are lists of intents."""
    run = run or RunReplayed(run="r1", steps_total=3, live=4, repeats=len(told))
    intents = [
        msgspec.structs.replace(intent, repeat=number)
        for number, of_repeat in enumerate(told, start=1)
        for intent in of_repeat
    ]
    return replace(
        asked(intents, runs=[run]), live=LiveUse(repeats=len(told), agreement=agreement, calls=9)
    )


def verdict(candidate: Asked) -> AgentVerdict:
    return judged(recorded([out(ACME)]), candidate)


def test_repeats_that_all_do_what_went_out_pass() -> None:
    found = verdict(repeats([ask(ACME)], [ask(ACME)], [ask(ACME)]))
    assert (found.decision, found.counts["match"]) == (Decision.PASS, 1)
    assert found.live is not None
    assert found.live.calls == 9


def test_one_of_three_that_does_it_again_is_no_pass_and_no_block() -> None:
    found = verdict(repeats([ask(ACME)], [ask(OTHERWISE[0])], [ask(ACME)]))
    assert found.decision is Decision.INCONCLUSIVE
    assert [one.divergence.assumed for one in found.judged] == [True]
    (why,) = found.why
    assert why == (
        "run r1: DUPLICATE of pay in step s0 shows in 1 of 3 replays with the live model, and 2 "
        "have to agree"
    )


def test_two_of_three_that_do_it_again_under_two_names_block() -> None:
    """It is the same harm to the same order, however it is spelled."""
    found = verdict(repeats([ask(ACME)], [ask(OTHERWISE[0])], [ask(OTHERWISE[1])]))
    assert found.decision is Decision.BLOCK
    assert [one.divergence.kind for one in found.judged] == [Kind.DUPLICATE]


def test_a_repeat_that_asks_for_nothing_misses_something() -> None:
    """It has no intents by which it could be seen: the run's own row says that it was played."""
    found = verdict(repeats([ask(ACME)], [], [ask(ACME)]))
    assert found.decision is Decision.INCONCLUSIVE
    assert "MISSING of pay" in found.why[0]
    assert verdict(repeats([], [], [ask(ACME)])).counts["missing"] == 1


def test_a_run_without_a_live_answer_stands_for_itself_in_every_repeat() -> None:
    told = repeats([ask(ACME)], [ask(ACME)])
    assert told.replayed is not None
    other = call("pay", vendor="globex", amount=2)
    plain = ask(other, run="r2")
    runs = {**told.replayed, "r2": RunReplayed(run="r2", steps_total=1)}
    both = replace(told, intents=[*told.intents, plain], replayed=runs)
    found = judged(recorded([out(ACME), out(other, run="r2")]), both)
    assert (found.decision, found.counts["match"]) == (Decision.PASS, 2)


def test_a_run_that_a_repeat_broke_off_is_not_covered() -> None:
    broken = RunReplayed(
        run="r1", steps_total=3, live=4, repeats=2, not_replayable="the model is busy"
    )
    found = verdict(repeats([ask(ACME)], [ask(ACME)], run=broken))
    assert found.decision is Decision.INCONCLUSIVE
    assert "the model is busy" in " ".join(found.why)
