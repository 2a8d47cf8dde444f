"""G7: a repeat where a guard stands, and where none does; what it answered before."""

from __future__ import annotations

import msgspec
import pytest

from backstop.core.events import CallAnswered
from backstop.core.history import Outcome, Row
from backstop.core.keying import Rules
from tests.comparing import DECLARED, ask, call, compared, found, out, rules
from tests.unit.core.test_matching_rules import ACME, RENAMED

GUARDED = rules(guarded=frozenset({"pay", "remind"}))


def test_g7_a_repeat_that_the_guard_stops_is_absorbed() -> None:
    """G7: guard in history, guard in the candidate, same rule, fingerprint and step."""
    assert found(compared([out(ACME)], [ask(ACME), ask(ACME)], GUARDED)) == [
        "matched 1",
        "absorbed 1",
    ]


@pytest.mark.parametrize(
    ("row", "under"),
    [
        (out(ACME, guarded=False), GUARDED),
        (out(ACME), rules()),
    ],
    ids=["history unguarded", "candidate unguarded"],
)
def test_g7_a_repeat_that_no_guard_stops_is_a_duplicate(row: Row, under: Rules) -> None:
    """G7, W14: not guarded and out at least once."""
    result = compared([row], [ask(ACME), ask(ACME)], under)
    assert found(result) == ["DUPLICATE repeated", "matched 1"]


def test_g7_a_repeat_with_another_value_is_a_conflict() -> None:
    """G7: the guard would refuse it and it would never go out."""
    asked = [ask(ACME), ask(ACME.but(amount=99))]
    assert found(compared([out(ACME)], asked, GUARDED)) == ["MUTATED conflict", "matched 1"]


def test_g7_a_repeat_in_another_step_is_swallowed() -> None:
    """G7: the new weekly reminder that the guard would eat."""
    remind = call("remind", to="x")
    asked = [ask(remind, step="s0"), ask(remind, step="s1")]
    assert found(compared([out(remind)], asked, GUARDED)) == ["EXTRA swallowed", "matched 1"]


def test_g7_a_relabelled_call_asked_twice_is_one_finding_where_a_guard_sits() -> None:
    """G7: the second ask of the new key meets the first; without a guard it goes out again."""
    asked = [ask(RENAMED), ask(RENAMED)]
    assert found(compared([out(ACME)], asked, GUARDED)) == ["DUPLICATE relabelled", "absorbed 1"]
    assert found(compared([out(ACME)], asked)) == ["DUPLICATE relabelled", "DUPLICATE repeated"]


def test_g7_what_the_guard_answered_in_history_it_answers_again() -> None:
    """G7: the version that wrote the record asks twice too; that is no finding."""
    remind = call("remind", to="x")
    asked = [ask(remind, step="s0"), ask(remind, step="s1")]
    row = out(remind)
    answered = CallAnswered(
        run="r1",
        at="",
        step="s1",
        tool="remind",
        key=row.key,
        fingerprint=row.fingerprint,
        how="recorded",
    )
    assert found(compared([row], asked, GUARDED, answered=[answered])) == [
        "matched 1",
        "absorbed 1",
    ]


def test_g7_what_a_person_declined_stays_declined_where_a_guard_sits() -> None:
    """G7: its key is taken for good; without a guard the repeat goes out for the first time."""
    row = out(ACME, outcome=Outcome.FAILED)
    row.decided = True
    asked = [ask(ACME, by=0), ask(ACME, step="s1", by=0)]
    assert found(compared([row], asked, GUARDED)) == ["absorbed 1", "failed 1"]
    assert found(compared([row], asked)) == ["EXTRA new", "failed 1"]
    other = [ask(ACME.but(amount=99))]
    assert found(compared([row], other, GUARDED)) == ["EXTRA new"]


def test_g7_what_was_answered_is_known_also_where_a_new_default_spells_it_otherwise() -> None:
    """G7, K2: N adds `tone="plain"`; what the guard answered before, it answers again."""
    schema = {"properties": {"to": {"type": "string"}, "tone": {"type": "string", "default": "x"}}}
    new = {"remind": msgspec.structs.replace(DECLARED["remind"], schema=schema)}
    remind = call("remind", to="x")
    row = out(remind)
    asked = [ask(remind, step=step, declared=new) for step in ("s0", "s1")]
    assert asked[0].fingerprint != row.fingerprint
    answered = CallAnswered(
        run="r1",
        at="",
        step="s1",
        tool="remind",
        key=row.key,
        fingerprint=row.fingerprint,
        how="recorded",
    )
    under = rules(candidate=new)
    assert found(compared([row], asked, under, answered=[answered])) == ["matched 1", "absorbed 1"]
    assert found(compared([row], asked, under)) == ["DUPLICATE repeated", "matched 1"]


def test_f33_a_deliberate_repeat_is_told_as_one() -> None:
    """F33, K: an override marks the repeat; it would do something never done."""
    asked = [ask(ACME), ask(ACME, override="customer asked again")]
    assert found(compared([out(ACME)], asked, GUARDED)) == ["EXTRA deliberate", "matched 1"]
