"""A ledger told as history: one row for each effect, as it stood at the end of the record."""

from __future__ import annotations

import msgspec
import pytest

from backstop.core.events import BY_AGENT, CallBlocked, EffectCommitted, SessionKept
from backstop.core.history import History, Outcome, effect_rows
from backstop.core.runs import recorded_runs
from backstop.errors import LedgerError
from tests.dsl import scenario

PLACE = "run r1\nstep s1\n"


def told(text: str) -> History:
    """The effects of a text in the language of `tests.dsl`."""
    return effect_rows([scenario(text).events])


def outcomes(text: str) -> list[Outcome]:
    return [row.outcome for row in told(text).rows]


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("commit pay{to: a}", Outcome.COMMITTED),
        ("fail pay{to: a}", Outcome.FAILED),
        ("flop pay{to: a}", Outcome.FAILED),
        ("claim pay{to: a}", Outcome.OPEN),
        ("doubt pay{to: a}", Outcome.IN_DOUBT),
        ("doubt pay{to: a}\nresolve committed pay{to: a}", Outcome.COMMITTED),
        ("doubt pay{to: a}\nresolve failed pay{to: a}", Outcome.FAILED),
        ("doubt pay{to: a}\nsettle pay{to: a}", Outcome.COMMITTED),
        ("block pay{to: a}", Outcome.BLOCKED),
    ],
)
def test_an_effect_stands_as_it_was_settled_last(text: str, outcome: Outcome) -> None:
    assert outcomes(PLACE + text) == [outcome]


def test_a_claim_that_was_taken_over_is_no_row_of_its_own() -> None:
    rows = told(PLACE + "claim pay{to: a}\nattempt\nclaim pay{to: a}\nsettle pay{to: a}").rows
    assert [(row.outcome, row.fence, row.attempt) for row in rows] == [(Outcome.COMMITTED, 2, 2)]


def test_a_doubt_that_a_person_reopened_may_be_out_all_the_same() -> None:
    """G2: what may be out matches like what is out, also after it was allowed to run again."""
    made = scenario(PLACE + "doubt pay{to: a}")
    (row,) = effect_rows([made.events]).rows
    reopened = scenario(PLACE + "doubt pay{to: a}\nresolve reopened pay{to: a}").events
    # The resolution names the fence that the person saw.
    last = type(reopened[-1])(run="r1", at="t", key=row.key, to="reopened", by="ada", fence=1)  # type: ignore[call-arg]
    (row,) = effect_rows([[*made.events, last]]).rows
    assert row.outcome is Outcome.IN_DOUBT


def test_what_was_reopened_and_done_then_is_a_doubt_and_an_effect() -> None:
    """G2: to reopen raises the fence, so the resolution names another one than its claim."""
    text = "doubt pay{to: a}\nresolve reopened pay{to: a}\ncommit pay{to: a}"
    assert outcomes(PLACE + text) == [Outcome.IN_DOUBT, Outcome.COMMITTED]


def test_two_copies_without_a_guard_are_settled_in_their_order() -> None:
    text = (
        "agent desk unguarded\n" + PLACE + "claim pay{to: a}\nclaim pay{to: a}\nsettle pay{to: a}"
    )
    assert outcomes(text) == [Outcome.COMMITTED, Outcome.OPEN]


def test_a_settlement_needs_a_claim_of_its_fence() -> None:
    events = scenario(PLACE + "claim pay{to: a}").events
    (row,) = effect_rows([events]).rows
    for key, fence in ((row.key, 2), ("f" * 64, 1)):
        stray = EffectCommitted(run="r1", at="t", key=key, fence=fence)
        with pytest.raises(LedgerError, match="settled but was never claimed") as caught:
            effect_rows([[*events, stray]])
        assert caught.value.slug == "ledger-lifecycle"


def test_asks_that_the_guard_answered_are_kept() -> None:
    history = told(PLACE + "commit pay{to: a}\nrecorded pay{to: a}")
    assert [ask.how for ask in history.answered] == ["recorded"]
    assert (history.committed, history.runs, history.open) == (1, ["r1"], {"r1"})


def test_batches_of_any_size_tell_the_same() -> None:
    events = scenario(PLACE + "commit pay{to: a}\nfail pay{to: b}\nclose complete").events
    whole = effect_rows([events])
    single = effect_rows([[event] for event in events])
    assert [row.index for row in single.rows] == [row.index for row in whole.rows]
    assert single.events == whole.events == len(events)


@pytest.mark.parametrize(
    ("text", "missing", "said"),
    [
        ("run r1\nstep s1\nclose complete", 0, "run r1 was never opened"),
        ("run r1\nstep s1\nread look{a: 1}", 1, "step s1 of run r1 was never started"),
    ],
)
def test_a_row_of_no_run_or_no_step_is_refused(text: str, missing: int, said: str) -> None:
    events = scenario("agent desk\ntool look reads\n" + text).events
    del events[missing]
    with pytest.raises(LedgerError, match=said):
        recorded_runs(events)


def test_what_the_agent_itself_kept_from_its_tool_is_no_row() -> None:
    """Another version need not keep it back, so nothing stands for it."""
    events = [
        msgspec.structs.replace(event, by=BY_AGENT) if isinstance(event, CallBlocked) else event
        for event in scenario(PLACE + "block pay{to: a}").events
    ]
    assert effect_rows([events]).rows == []
    runs, _ = recorded_runs(events)
    assert runs["r1"].steps[0].calls == []


def test_a_step_is_told_with_all_that_its_attempts_got() -> None:
    """S1: a crash, its takeover, an answer of the guard and the end are one step."""
    text = PLACE + (
        "model pay\nclaim pay{to: a}\nattempt\nmodel pay\nclaim pay{to: a}\nsettle pay{to: a}\n"
        "recorded pay{to: a}\nadvance\nclose complete"
    )
    events = scenario(text).events
    kept = SessionKept(run="r1", at="t", step="s1", events=msgspec.Raw(b"[1]"))
    runs, history = recorded_runs([*events[:3], kept, *events[3:]])
    (step,) = runs["r1"].steps
    assert (step.attempts, step.ended, runs["r1"].status) == (2, "done", "complete")
    assert step.calls == history.rows
    assert (len(step.models), len(step.answered)) == (2, 1)
    assert step.kept is kept.events


@pytest.mark.parametrize(
    ("text", "cut_off"),
    [
        ("attempt\nend done", False),
        ("end held", False),
        ("", True),
        ("end done\nattempt", True),
        ("end error", True),
        ("end error\nattempt\nend done", False),
    ],
)
def test_a_step_is_cut_off_whose_last_attempt_was_killed_or_raised(
    text: str, cut_off: bool
) -> None:
    runs, _ = recorded_runs(scenario(f"run r1\nstep s1\n{text}\n").events)
    assert [step.cut_off for step in runs["r1"].steps] == [cut_off]
