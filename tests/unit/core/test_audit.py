"""Silent skips: what is one, and what only looks like one."""

from __future__ import annotations

import msgspec
import pytest

from backstop.core import ledgerfile
from backstop.core.audit import Problem, calls_of, silent_skips
from backstop.core.events import CursorAdvanced
from backstop.core.ledgerverify import SilentSkip
from tests.dsl import raw, scenario, sealed

TOOLS = "tool pay identity to\ntool mail identity to\ntool look reads\n"


def skips(text: str) -> list[tuple[str, str, Problem]]:
    made = scenario(TOOLS + text)
    return [(f.step, f.tool, f.problem) for f in silent_skips(made.header, made.events)]


def verified(text: str) -> None:
    ledgerfile.verify((sealed(TOOLS + text),), name="L")


# The second incident


def twelve(step_seven: str) -> str:
    steps = [
        f"step s{n}\nmodel mail\n"
        + (step_seven if n == 7 else f"commit mail{{to: v{n}}}")
        + "\nadvance"
        for n in range(1, 13)
    ]
    return "\n".join(["run r1", *steps, "close complete"])


def test_twelve_of_twelve_steps_with_eleven_effects_is_refused() -> None:
    """The incident: the workflow reports 12 of 12, and one mail never went out."""
    incident = twelve(
        "claim mail{to: v7}\nattempt\nmodel mail\nheld mail{to: v7}"  # crash; blocked means advance
    )
    with pytest.raises(SilentSkip) as caught:
        verified(incident)
    (finding,) = caught.value.findings
    assert (finding.run, finding.step, finding.tool) == ("r1", "s7", "mail")
    assert finding.problem is Problem.CLAIMED
    assert caught.value.slug == "silent-skip"
    made = scenario(TOOLS + incident)
    assert isinstance(made.events[finding.line - 2], CursorAdvanced)
    assert f"line {finding.line}: run 'r1', step 's7': mail (key " in str(caught.value)
    verified(twelve("commit mail{to: v7}"))


@pytest.mark.parametrize(
    ("seven", "problem"),
    [
        ("", Problem.ASKED),  # asked, and nothing came of it
        ("attempt", Problem.ASKED),  # crashed before the effect; the redelivery did nothing
        ("attempt\nmodel mail", Problem.ASKED),
        ("claim mail{to: v7}", Problem.CLAIMED),
        ("doubt mail{to: v7}", Problem.IN_DOUBT),
        ("flop mail{to: v7}", Problem.NOT_FINAL),
        ("doubt mail{to: v7}\nresolve reopened mail{to: v7}", Problem.NOT_FINAL),
        ("held mail{to: v7}", Problem.ABSENT),
        ("recorded mail{to: v7}", Problem.ABSENT),
        ("in_doubt mail{to: v7}", Problem.ABSENT),
        ("conflict mail{to: v7}", Problem.ABSENT),
    ],
)
def test_each_way_to_skip_an_effect_is_found_once(seven: str, problem: Problem) -> None:
    assert skips(twelve(seven)) == [("s7", "mail", problem)]


@pytest.mark.parametrize(
    "seven",
    [
        "commit mail{to: v7}",
        "fail mail{to: v7}",
        "block mail{to: v7}",
        "flop mail{to: v7}\ncommit mail{to: v7}",
        "doubt mail{to: v7}\nresolve committed mail{to: v7}",
        "doubt mail{to: v7}\nresolve failed mail{to: v7}",
        "doubt mail{to: v7}\nsettle mail{to: v7}",
        "block mail{to: v7}\nattempt\nmodel mail\ncommit mail{to: v7}",
        "commit mail{to: v7}\nattempt\nmodel mail\nrecorded mail{to: v7}",  # crash and resume
        "commit mail{to: v7}\nattempt",  # crash after the effect; the redelivery asks nothing
        "attempt\ncommit mail{to: v7}",  # resumed: the call runs, the model is not asked again
        "claim mail{to: v7}\nattempt\nmodel mail\nheld mail{to: v7}\nend held\nsettle mail{to: v7}",
        "claim mail{to: v7}\nend error\nattempt\nmodel mail\ncommit mail{to: v7}",
        "fail mail{to: v7}\nattempt\nmodel mail\nrecorded mail{to: v7}",
    ],
)
def test_no_false_alarm_for_what_was_decided(seven: str) -> None:
    assert skips(twelve(seven)) == []
    verified(twelve(seven))


# What the cursor vouches for


def test_a_key_that_the_cursor_names_needs_a_row() -> None:
    assert skips("run r\nstep s\nadvance over pay{to: a}") == [("s", "", Problem.ABSENT)]
    assert skips("run r\nstep s\ncommit pay{to: a}\nadvance over pay{to: a}") == []
    assert skips("run r\nstep s\nblock pay{to: a}\nadvance over pay{to: a}") == []


def test_a_row_of_a_later_run_answers_for_a_key_of_all_runs() -> None:
    text = "tool book identity to scope agent\nrun r\nstep s\nrecorded book{to: a}\nadvance\n"
    text += "run q\nstep s\n"
    assert skips(text + "commit book{to: a}") == []
    assert skips(text + "claim book{to: a}") == [("s", "book", Problem.ABSENT)]


def test_what_was_settled_only_after_the_cursor_passed_is_a_finding() -> None:
    late = "run r\nstep s\nclaim pay{to: a}\nadvance\nsettle pay{to: a}"
    assert skips(late) == [("s", "pay", Problem.CLAIMED)]


def test_an_effect_that_was_done_only_after_the_cursor_passed_is_a_finding() -> None:
    text = "run r\nstep s\nrecorded pay{to: a}\nadvance\nstep t\ncommit pay{to: a}\nadvance"
    assert skips(text) == [("s", "pay", Problem.ABSENT)]


def test_a_cursor_vouches_for_all_steps_that_it_passed() -> None:
    text = "run r\nstep s\nclaim pay{to: a}\nend done\nstep t\nadvance"
    assert skips(text) == [("s", "pay", Problem.CLAIMED)]


def test_a_run_without_cursors_vouches_when_it_is_closed() -> None:
    start = "agent desk unguarded\nrun r\nstep s\n"
    assert skips(start + "claim pay{to: a}\nclose complete") == [("s", "pay", Problem.CLAIMED)]
    assert skips(start + "commit pay{to: a}\nclose complete") == []


@pytest.mark.parametrize("end", ["", "close failed", "close abandoned"])
def test_a_run_that_does_not_claim_to_be_complete_vouches_for_nothing(end: str) -> None:
    assert (
        skips(f"run r\nstep s\nmodel pay mail\nclaim pay{{to: a}}\ndoubt mail{{to: b}}\n{end}")
        == []
    )


# What the models asked for


def test_the_second_of_two_equal_calls_in_one_answer_counts() -> None:
    two = "run r\nstep s\nmodel pay pay\ncommit pay{to: a}\n"
    assert skips(two + "advance") == [("s", "pay", Problem.ASKED)]
    assert skips(two + "recorded pay{to: a}\nadvance") == []
    assert skips(two + "commit pay{to: b}\nadvance") == []


def test_rows_of_an_earlier_attempt_do_not_answer_for_a_later_one() -> None:
    text = """
    run r
    step s
    model pay pay
    commit pay{to: a}
    commit pay{to: b}
    attempt
    model pay pay pay
    recorded pay{to: a}
    recorded pay{to: b}
    advance
    """
    assert skips(text) == [("s", "pay", Problem.ASKED)]


def test_reads_undeclared_tools_and_unguarded_ledgers_are_not_counted() -> None:
    assert skips("run r\nstep s\nmodel look\nadvance") == []
    assert skips("run r\nstep s\nmodel transfer_to_agent\nadvance") == []
    assert skips("agent desk unguarded\nrun r\nstep s\nmodel pay\nadvance") == []


def test_an_effect_that_was_recorded_as_a_read_was_answered() -> None:
    assert skips("run r\nstep s\nmodel pay\nread pay{to: a} -> {ok: true}\nadvance") == []
    assert skips("run r\nstep s\nread look{to: a} -> {ok: true}\nadvance") == []


@pytest.mark.parametrize(
    ("response", "calls"),
    [
        ({"content": {"parts": [{"function_call": {"name": "a"}}, {"text": "x"}]}}, ["a"]),
        ({"content": {"parts": [{"functionCall": {"name": "a", "args": {}}}]}}, ["a"]),
        ({"content": {"parts": [{"function_call": {"name": "a"}}]}, "partial": True}, []),
        ({"content": {"parts": None}}, []),
        ({"content": None, "error_code": "429"}, []),
        ({"content": {"parts": [{"function_call": 7}]}}, []),
        ([], []),
        (None, []),
    ],
)
def test_calls_are_read_from_a_models_answer(response: object, calls: list[str]) -> None:
    assert list(calls_of(raw(response))) == calls


def test_an_approval_that_takes_days_is_no_skip() -> None:
    text = """
    run r
    step ask
    model mail
    commit mail{to: boss}
    advance
    run q
    step s
    commit pay{to: other}
    run r
    step approved
    model pay
    block pay{to: a}
    attempt
    model pay
    commit pay{to: a}
    advance
    close complete
    """
    assert skips(text) == []
    verified(text)


def test_several_findings_are_all_listed_in_the_order_of_the_file() -> None:
    first = "run r\nstep s\nclaim pay{to: a}\ndoubt mail{to: b}\nadvance\n"
    text = first + "step t\nclaim pay{to: c}\nadvance"
    with pytest.raises(SilentSkip, match=r"\(and 2 more\)") as caught:
        verified(text)
    assert [f.step for f in caught.value.findings] == ["s", "s", "t"]
    assert len({f.key for f in caught.value.findings}) == 3


def test_what_was_held_in_an_attempt_that_decided_nothing_is_not_vouched_for() -> None:
    text = """
    run r
    step s
    held pay{to: a}
    end held
    attempt
    commit mail{to: b}
    advance over mail{to: b}
    """
    assert skips(text) == []


def test_a_step_is_audited_once_though_the_run_is_closed_later() -> None:
    text = "run r\nstep s\nclaim pay{to: a}\nadvance\nclose complete"
    assert skips(text) == [("s", "pay", Problem.CLAIMED)]


def test_events_without_their_run_are_audited_as_well() -> None:
    made = scenario(TOOLS + "run r\nstep s\nclaim pay{to: a}\nadvance\nclose complete")
    assert len(silent_skips(made.header, made.events[3:])) == 1
    assert silent_skips(made.header, made.events[-1:]) == []
    unnamed = [
        msgspec.structs.replace(e, effects=()) if isinstance(e, CursorAdvanced) else e
        for e in made.events
    ]
    assert len(silent_skips(made.header, unnamed)) == 1
