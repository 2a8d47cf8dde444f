"""Rules G1-G9 and K2, K3 of semantics.md, each with the case that forced it."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from backstop.core.declaration import Declaration, Scope
from backstop.core.divergence import Kind, Reason
from backstop.core.history import Outcome
from backstop.core.intents import Answered, RunReplayed
from tests.comparing import DECLARED, PAY, ask, call, compared, found, out, rules

ACME = call("pay", vendor="acme-corp", amount=10)
RENAMED = ACME.but(vendor="ACME Corp")


def test_g1_equal_calls_match_whatever_the_order_of_asking() -> None:
    """G1: multisets, not sequences."""
    calls = [call("pay", vendor=name) for name in ("a", "b", "c")]
    rows = [out(one) for one in calls]
    for order in itertools.permutations(calls):
        assert found(compared(rows, [ask(one) for one in order])) == ["matched 3"]


def test_g1_the_same_step_matches_before_another() -> None:
    """G1: key and fingerprint in the same step come first."""
    mail = call("mail", to="x")
    step = {**DECLARED, "mail": Declaration(tool="mail", scope=Scope.RUN)}
    rows = [out(mail, step="s0", declared=step), out(mail, step="s2", declared=step)]
    asked = [ask(mail, step="s2", declared=step)]
    result = compared(rows, asked, rules(declared=step))
    assert found(result) == ["MISSING dropped", "matched 1"]
    assert result.divergences[0].step == "s0"


def test_g1_a_failed_try_is_no_work_dropped() -> None:
    """G1: H `update{R,A}` failed, `update{R,B}` done; N asks only B: nothing missing."""
    a, b = call("update", record="R", to="A"), call("update", record="R", to="B")
    rows = [out(a, outcome=Outcome.FAILED), out(b)]
    assert found(compared(rows, [ask(b, by=1)])) == ["matched 1"]


def test_g1_a_failed_row_uses_up_only_an_intent_that_it_answered() -> None:
    """G1: an intent equal to a failed row, answered by something else, is not used up by it."""
    a = call("update", record="R", to="A")
    rows = [out(a, outcome=Outcome.FAILED)]
    assert found(compared(rows, [ask(a, by=0)])) == ["failed 1"]
    assert found(compared(rows, [ask(a)])) == ["EXTRA new"]


def test_g1_a_retry_of_a_failed_call_is_the_recorded_success() -> None:
    """G1, W19: the failed one is not done, so its retry is no duplicate."""
    pay = call("pay", vendor="acme", amount=1)
    rows = [out(pay, outcome=Outcome.FAILED), out(pay)]
    assert found(compared(rows, [ask(pay, by=0), ask(pay, by=1)])) == ["matched 1", "failed 1"]


def test_g1_a_version_that_gives_up_after_the_failure_drops_the_work() -> None:
    """G1: H failed, then succeeded; N asks once and meets the failure: it never pays."""
    pay = call("pay", vendor="acme", amount=1)
    rows = [out(pay, outcome=Outcome.FAILED), out(pay)]
    assert found(compared(rows, [ask(pay, by=0)])) == ["MISSING dropped", "failed 1"]


def test_g1_more_asks_than_one_failure_would_do_something_never_done() -> None:
    """G1: a failed row uses up one intent; a version that tries again is told so."""
    pay = call("pay", vendor="acme", amount=1)
    rows = [out(pay, outcome=Outcome.FAILED)]
    assert found(compared(rows, [ask(pay, by=0), ask(pay, by=0)])) == ["EXTRA new", "failed 1"]


def test_g1_two_ledgers_are_compared_on_what_was_committed() -> None:
    """G1: `diff` of two ledgers uses committed rows only."""
    pay = call("pay", vendor="acme", amount=1)
    rows = [out(pay, outcome=Outcome.FAILED)]
    assert found(compared(rows, [ask(pay)], rules(replayed=False))) == ["EXTRA new"]


def test_g1_blocked_rows_use_up_the_intent_that_they_answered() -> None:
    """G1: a call that a policy refused was asked for and is no effect."""
    rows = [out(ACME, outcome=Outcome.BLOCKED)]
    assert found(compared(rows, [ask(ACME, by=0)])) == ["failed 1"]
    assert found(compared(rows, [])) == []


@pytest.mark.parametrize("outcome", [Outcome.IN_DOUBT, Outcome.OPEN])
def test_g2_what_may_be_out_matches_and_pairs_like_committed(outcome: Outcome) -> None:
    """G2: H `pay{acme}` in doubt, N `pay{ACME}`: DUPLICATE, not EXTRA."""
    rows = [out(ACME, outcome=outcome)]
    assert found(compared(rows, [ask(ACME)])) == ["matched 1"]
    result = compared(rows, [ask(RENAMED)])
    assert found(result) == ["DUPLICATE relabelled"]
    assert result.divergences[0].in_doubt
    assert result.in_doubt == 1


def test_g2_what_may_be_out_and_is_not_asked_for_is_not_missing() -> None:
    """G2: it may be out or not; nobody can say that it is dropped."""
    result = compared([out(ACME, outcome=Outcome.IN_DOUBT)], [])
    assert found(result) == []
    assert result.in_doubt == 1


def test_g3_a_relabelled_call_pairs_in_whatever_step() -> None:
    """G3: identity equal after folding, everything one step later."""
    result = compared([out(ACME, step="s1")], [ask(RENAMED, step="s2")])
    assert found(result) == ["DUPLICATE relabelled"]
    assert result.divergences[0].difference == ("case", "punctuation")
    assert result.divergences[0].paths == ("/vendor",)


def test_g3_of_candidates_the_fewest_differing_paths_pair() -> None:
    """G3: two orders for one relabelled vendor; each finds its own amount."""
    small, large = call("update", record="acme", n=1), call("update", record="acme", n=2)
    rows = [out(small), out(large)]
    asked = [ask(large.but(record="ACME")), ask(small.but(record="ACME"))]
    for order in (asked, asked[::-1]):
        result = compared(rows, order)
        assert found(result) == ["DUPLICATE relabelled"] * 2
        assert {one.paths for one in result.divergences} == {("/record",)}


def test_g3_the_pair_that_was_served_is_the_pair_that_is_reported() -> None:
    """G3: the driver's substitution stands, unless its row was asked for by its own key."""
    first, second = call("pay", vendor="acme", n=1), call("pay", vendor="acme!", n=2)
    rows = [out(first), out(second)]
    served = ask(call("pay", vendor="ACME", n=1), by=1, how=Answered.SUBSTITUTED)
    result = compared(rows, [served])
    assert result.divergences[0].recorded is not None
    assert result.divergences[0].recorded.args["vendor"] == "acme!"
    released = compared(rows, [served, ask(second, by=1)])
    duplicate = next(one for one in released.divergences if one.kind is Kind.DUPLICATE)
    assert duplicate.recorded is not None
    assert duplicate.recorded.args["vendor"] == "acme"


def test_g3_failed_calls_pair_with_their_failed_rows() -> None:
    """G3: a relabelled call that had failed is answered by its failure and is no duplicate."""
    rows = [out(ACME, outcome=Outcome.FAILED)]
    asked = [ask(RENAMED, by=0, how=Answered.SUBSTITUTED)]
    assert found(compared(rows, asked)) == ["failed 1"]


def test_a3_an_argument_that_holds_a_stand_in_pairs_with_that_field_ignored() -> None:
    """A3: the field that nobody knows does not decide."""
    declared = {"pay": Declaration(tool="pay", identity=("vendor", "ref"))}
    row = out(call("pay", vendor="acme", ref="PO-1"), declared=declared, step="s0")
    asked = ask(
        call("pay", vendor="ACME", ref="stand-in"), declared=declared, step="s3", holes=("/ref",)
    )
    result = compared([row], [asked], rules(declared=declared))
    assert found(result) == ["DUPLICATE relabelled"]


@pytest.mark.parametrize(
    ("intended", "difference"),
    [
        ("ACME-CORP", ("case",)),
        ("acme_corp", ("punctuation",)),
        ("acme -corp", ("whitespace",)),
        ("acme\uff0dcorp", ("unicode",)),
    ],
)
def test_g4_a_relabelled_call_says_what_kind_of_difference(
    intended: str, difference: tuple[str, ...]
) -> None:
    """G4: case, punctuation, whitespace, Unicode form."""
    result = compared([out(ACME)], [ask(ACME.but(vendor=intended))])
    assert found(result) == ["DUPLICATE relabelled"]
    assert set(result.divergences[0].difference) & set(difference)


def test_g4_a_number_format_is_a_relabelling() -> None:
    """G4: `"1,000"` for `1000`."""
    result = compared([out(call("pay", vendor=1000))], [ask(call("pay", vendor="1,000"))])
    assert result.divergences[0].difference == ("number format",)


def test_g4_no_identity_field_kept_is_a_retarget() -> None:
    """G4: the same step asks the same tool for another target."""
    assert found(compared([out(ACME)], [ask(ACME.but(vendor="globex"))])) == [
        "DUPLICATE retargeted"
    ]


def test_g4_some_identity_kept_is_a_relabelling_of_another_kind() -> None:
    """G4: one of two identity fields is equal; the difference is `other`."""
    declared = {"pay": Declaration(tool="pay", identity=("vendor", "ref"))}
    row = out(call("pay", vendor="acme", ref="1"), declared=declared)
    asked = ask(call("pay", vendor="globex", ref="1"), declared=declared)
    result = compared([row], [asked], rules(declared=declared))
    assert found(result) == ["DUPLICATE relabelled"]
    assert result.divergences[0].difference == ("other",)


def test_g4_without_declared_identity_the_card_names_the_deciding_fields() -> None:
    """G4: nothing says which arguments name the effect."""
    result = compared(
        [out(call("mail", to="x", body="hello"))], [ask(call("mail", to="x", body="goodbye"))]
    )
    assert found(result) == ["DUPLICATE identity unknown"]
    assert result.divergences[0].paths == ("/body",)


def test_g4_a_key_that_holds_its_step_can_only_have_moved() -> None:
    """G4: scope `step`, asked for in another step."""
    declared = {"remind": Declaration(tool="remind", identity=("to",), scope=Scope.STEP)}
    remind = call("remind", to="x")
    result = compared(
        [out(remind, step="s1", declared=declared)],
        [ask(remind, step="s2", declared=declared)],
        rules(declared=declared),
    )
    assert found(result) == ["DUPLICATE moved"]


def test_g5_another_value_for_the_same_target_is_mutated() -> None:
    """G5, F17, F26: the key is the target, the rest is the fingerprint."""
    result = compared([out(ACME)], [ask(ACME.but(amount=11))])
    assert found(result) == ["MUTATED changed"]
    assert result.divergences[0].paths == ("/amount",)


def test_g5_a_match_asked_earlier_than_recorded_is_mutated() -> None:
    """G5: H requests approval in s1 and pays in s3; N pays in s1."""
    assert found(compared([out(ACME, step="s3")], [ask(ACME, step="s1", by=0)])) == [
        "MUTATED moved earlier"
    ]
    assert found(compared([out(ACME, step="s1")], [ask(ACME, step="s3", by=0)])) == ["matched 1"]


def test_g6_a_renamed_tool_is_a_duplicate() -> None:
    """G6: `create_po` -> `create_purchase_order` with equal identity values."""
    declared = {"create_po": Declaration(tool="create_po", identity=("vendor", "ref"))}
    candidate = {
        "create_purchase_order": Declaration(
            tool="create_purchase_order", identity=("vendor_id", "po_ref")
        )
    }
    row = out(call("create_po", vendor="acme", ref="1"), declared=declared)
    asked = ask(call("create_purchase_order", vendor_id="acme", po_ref="1"), declared=candidate)
    under = rules(
        declared=declared, candidate=candidate, offered=frozenset({"create_purchase_order"})
    )
    assert found(compared([row], [asked], under)) == ["DUPLICATE renamed"]


def test_g6_regrouped_effects_make_the_run_inconclusive() -> None:
    """G6: three mails become one batch."""
    declared = {"mail": Declaration(tool="mail")}
    candidate = {"mail_batch": Declaration(tool="mail_batch")}
    rows = [out(call("mail", to=name), declared=declared) for name in "abc"]
    asked = [ask(call("mail_batch", to=["a", "b", "c"]), declared=candidate)]
    under = rules(declared=declared, candidate=candidate, offered=frozenset({"mail_batch"}))
    result = compared(rows, asked, under)
    assert "r1" in result.regrouped
    assert "mail_batch" in result.regrouped["r1"]


def test_g6_a_declared_alias_makes_them_one_tool() -> None:
    """G6: an alias decides; the guard that looks old keys up stops the repeat."""
    declared = {"create_po": Declaration(tool="create_po", identity=("vendor",))}
    candidate = {"order": Declaration(tool="order", identity=("vendor",), aliases=("create_po",))}
    row = out(call("create_po", vendor="acme"), declared=declared)
    asked = ask(call("order", vendor="acme"), declared=candidate)
    finds = rules(
        declared=declared,
        candidate=candidate,
        offered=frozenset({"order"}),
        finds_old_keys=frozenset({"order"}),
    )
    assert found(compared([row], [asked], finds)) == ["matched 1"]
    blind = rules(declared=declared, candidate=candidate, offered=frozenset({"order"}))
    assert found(compared([row], [asked], blind)) == ["DUPLICATE rekeyed"]


def test_g8_what_history_holds_twice_is_not_missing() -> None:
    """G8: the same mail went out twice by two workers; every version asks once."""
    mail = call("mail", to="x")
    rows = [out(mail, guarded=False), out(mail, guarded=False)]
    assert found(compared(rows, [ask(mail)])) == ["matched 1", "recorded_twice 1"]
    assert found(compared(rows, [])) == ["MISSING dropped", "recorded_twice 1"]


def test_g9_scope_agent_is_compared_over_all_runs() -> None:
    """G9: one key in every run."""
    declared = {"announce": Declaration(tool="announce", identity=("what",), scope=Scope.AGENT)}
    say = call("announce", what="launch")
    row = out(say, run="r1", declared=declared)
    asked = [ask(say, run="r2", declared=declared)]
    assert found(compared([row], asked, rules(declared=declared))) == ["matched 1"]
    other = ask(say.but(what="LAUNCH"), run="r2", declared=declared)
    assert found(compared([row], [other], rules(declared=declared))) == ["DUPLICATE relabelled"]


def test_w02_w04_completion_order_and_numbering_do_not_matter() -> None:
    """W02, W04: effects are matched by identity, not by position."""
    calls = [call("mail", to=name) for name in ("a", "b", "c")]
    rows = [out(one) for one in calls]
    assert found(compared(rows, [ask(one) for one in reversed(calls)])) == ["matched 3"]


def test_w09_an_inserted_call_does_not_shift_the_others() -> None:
    """W09: N inserts `mail{}` before `pay{}`."""
    result = compared([out(ACME)], [ask(call("mail", to="log")), ask(ACME)])
    assert found(result) == ["EXTRA new", "matched 1"]


def test_w10_w15_a_finding_shows_both_sides_and_the_smallest_path() -> None:
    """W10, W15: what was recorded, what is asked for, and exactly where they part."""
    one = compared([out(ACME)], [ask(ACME.but(amount=11))]).divergences[0]
    assert one.recorded is not None
    assert one.intended is not None
    assert (one.recorded.args["amount"], one.intended.args["amount"]) == (10, 11)
    assert (one.tool, one.run, one.step, one.paths) == ("pay", "r1", "s0", ("/amount",))


def test_w03_a_generated_id_may_differ_only_where_it_is_declared() -> None:
    """W03: an id declared generated is no finding; otherwise MUTATED names the field."""
    made = call("pay", vendor="acme", ref="uuid-1")
    other = made.but(ref="uuid-2")
    assert found(compared([out(made)], [ask(other)])) == ["MUTATED changed"]
    generated = {
        "pay": Declaration(tool="pay", identity=("vendor",), fields={"ref": ("generated",)})
    }
    result = compared(
        [out(made, declared=generated)],
        [ask(other, declared=generated)],
        rules(declared=generated),
    )
    assert found(result) == ["matched 1"]


def test_w21_a_step_inserted_in_the_middle_moves_nothing() -> None:
    """W21: N has [a, x, b, c]; b and c are found by what they are."""
    calls = {name: call("mail", to=name) for name in "abxc"}
    rows = [out(calls[name], step=f"s{i}") for i, name in enumerate("abc")]
    asked = [ask(calls[name], step=f"s{i}") for i, name in enumerate("axbc")]
    assert found(compared(rows, asked)) == ["EXTRA new", "matched 3"]


def test_d2_nothing_is_missing_from_an_assumed_stretch() -> None:
    """D2: what lies behind the last sure answer is not called dropped."""
    rows = [out(call("mail", to=str(i)), step=f"s{i}") for i in range(4)]
    replayed = {"r1": RunReplayed(run="r1", assumed_from=2)}
    result = compared(rows, [ask(call("mail", to="0"))], replayed=replayed)
    assert [one.step for one in result.divergences] == ["s1"]


def test_a_call_without_identity_is_not_compared_and_says_so() -> None:
    """Identity that is all null is refused, never hashed as null (K05)."""
    row = out(ACME)
    nameless = ask(ACME)
    nameless = type(nameless)(
        **{
            **{name: getattr(nameless, name) for name in nameless.__struct_fields__},
            "args": b'{"vendor":null}',
            "key": "",
        }
    )
    result = compared([row], [nameless])
    assert len(result.unkeyed) == 1
    assert result.unkeyed[0].tool == "pay"


def test_reasons_are_all_reachable() -> None:
    """No reason is a dead word: the rules above name each of them."""
    told = {reason.value for reason in Reason}
    files = sorted(Path(__file__).parent.glob("test_matching_*.py"))
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    assert [reason for reason in told if reason not in text] == []


def test_pay_is_declared_by_its_vendor() -> None:
    """The control of these tests: the key is the vendor and nothing else."""
    assert PAY.identity == ("vendor",)
    assert ask(ACME).key == ask(ACME.but(amount=3)).key
    assert ask(ACME).key != ask(RENAMED).key
