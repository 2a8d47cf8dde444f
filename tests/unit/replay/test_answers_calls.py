"""What a call of the candidate is answered (semantics.md A1-A3, S1, S3, S4, G1, G9)."""

from __future__ import annotations

from backstop.core.intents import Answered
from backstop.guard.results import told
from backstop.ports import InDoubt
from tests.unit.replay.asking import Asking

TOOLS = """
tool check reads
tool pay identity vendor
tool mail identity to
"""


def test_a1_a_read_asked_again_gets_its_answers_in_the_order_of_the_record() -> None:
    """A1: `check{po}` says pending, pending, approved: in this order, then the last again."""
    asking = Asking(
        TOOLS
        + """
        run r1
        step s1
        read check{po: 7} -> pending
        advance
        step s2
        read check{po: 7} -> pending
        read check{po: 7} -> approved
        advance
        """
    )
    asking.step("s1")
    assert asking.call("check", po=7) == "pending"
    asking.step("s2")
    assert [asking.call("check", po=7) for _ in range(3)] == ["pending", "approved", "approved"]


def test_a1_a_read_asked_twice_in_a_step_that_asked_once_is_served_the_latest_earlier_one() -> None:
    """A1: exhausted answers are served again, never a later step's."""
    asking = Asking(
        TOOLS
        + """
        run r1
        step s1
        read check{po: 7} -> pending
        advance
        step s2
        read check{po: 7} -> approved
        advance
        """
    )
    asking.step("s1")
    assert [asking.call("check", po=7) for _ in range(2)] == ["pending", "pending"]
    asking.step("s2")
    assert asking.call("check", po=7) == "approved"
    assert asking.answers.assumed_from is None


def test_a1_a_call_more_shifts_no_other_calls_answer() -> None:
    """A1: answers go by identity, never by mere position (W09)."""
    asking = Asking(
        TOOLS
        + """
        run r1
        step s1
        commit pay{vendor: acme, amount: 1} -> first
        commit pay{vendor: bolt, amount: 2} -> second
        advance
        """
    ).step("s1")
    asking.call("mail", to="new")
    assert asking.call("pay", vendor="bolt", amount=2) == "second"
    assert asking.call("pay", vendor="acme", amount=1) == "first"


def test_a1_an_effect_asked_again_is_told_what_it_was_told_and_says_by_which_row() -> None:
    """A1: effects are served again too; each intent names the claim that answered it."""
    asking = Asking(
        TOOLS
        + """
        run r1
        step s1
        commit pay{vendor: acme} -> ok
        advance
        """
    ).step("s1")
    assert [asking.call("pay", vendor="acme") for _ in range(2)] == ["ok", "ok"]
    first, second = asking.intents
    assert first.answered is second.answered is Answered.RECORDED
    assert first.answered_by == second.answered_by == 3


def test_g1_a_failure_answers_only_the_call_that_met_it() -> None:
    """G1: H: `pay{R,1}` failed, `pay{R,2}` done; N asks only the second: it is done."""
    text = (
        TOOLS
        + """
        run r1
        step s1
        fail pay{vendor: acme, amount: 1}
        commit pay{vendor: acme, amount: 2} -> ok
        advance
        """
    )
    asking = Asking(text).step("s1")
    assert asking.call("pay", vendor="acme", amount=2) == "ok"
    asking = Asking(text).step("s1")
    assert asking.call("pay", vendor="acme", amount=1) == "Broken"
    assert asking.call("pay", vendor="acme", amount=2) == "ok"


def test_a2_a_relabelled_call_gets_the_result_of_its_counterpart() -> None:
    """A2: an unknown key is answered by its pair, marked, with the recorded call beside it."""
    asking = Asking(
        TOOLS
        + """
        run r1
        step s1
        commit pay{vendor: acme-corp, amount: 5} -> ok
        advance
        """
    ).step("s1")
    reply = asking.reply("pay", vendor="ACME Corp", amount=5)
    assert reply.counterpart is not None
    assert reply.counterpart["name"] == "pay"
    (intent,) = asking.intents
    assert intent.answered is Answered.SUBSTITUTED
    assert intent.answered_by == 3
    assert not intent.assumed


def test_a2_the_pair_is_released_when_its_own_key_is_asked_later() -> None:
    """A2: N asks `ACME` and then `acme`: the row answers its own key, the pair is no more."""
    asking = Asking(
        TOOLS
        + """
        run r1
        step s1
        commit pay{vendor: acme} -> ok
        advance
        """
    ).step("s1")
    asking.call("pay", vendor="ACME")
    asking.call("pay", vendor="acme")
    relabelled, own = asking.intents
    assert relabelled.answered is Answered.SUBSTITUTED
    assert relabelled.answered_by is None
    assert own.answered_by == 3


def test_a2_a_closer_call_takes_the_pair_over_so_the_order_of_asking_decides_little() -> None:
    """G3: among candidates the closest, never the one that asked first."""
    text = (
        TOOLS
        + """
        run r1
        step s1
        commit pay{vendor: acme} -> ok
        advance
        """
    )
    for order in (("other", "ACME"), ("ACME", "other")):
        asking = Asking(text).step("s1")
        for vendor in order:
            asking.call("pay", vendor=vendor)
        pairs = {bytes(intent.args): intent.answered_by for intent in asking.intents}
        assert pairs[b'{"vendor":"ACME"}'] == 3
        assert pairs[b'{"vendor":"other"}'] is None


def test_a2_the_closest_of_several_rows_answers_ties_by_ledger_order() -> None:
    """A2, G3: a relabelled retry meets the failure first, as its counterpart did."""
    asking = Asking(
        TOOLS
        + """
        run r1
        step s1
        fail pay{vendor: acme, amount: 1}
        commit pay{vendor: acme, amount: 1} -> ok
        commit pay{vendor: acme, amount: 2} -> two
        advance
        """
    ).step("s1")
    assert asking.call("pay", vendor="ACME", amount=2) == "two"
    assert asking.call("pay", vendor="ACME", amount=1) == "Broken"
    assert asking.call("pay", vendor="ACME", amount=1) == "ok"


def test_a2_covers_reads_and_serves_a_repeat_the_same_again() -> None:
    """A2: reads are substituted like effects."""
    asking = Asking(
        TOOLS
        + """
        run r1
        step s1
        read check{po: PO-7} -> free
        advance
        """
    ).step("s1")
    assert [asking.call("check", po="po 7") for _ in range(2)] == ["free", "free"]
    assert not asking.answers.stand_ins_were_used
    assert asking.intents == []


def test_a3_what_has_no_pair_gets_a_stand_in_that_depends_on_the_pass() -> None:
    """A3: deterministic within a pass, different between passes, found again in arguments."""
    text = (
        TOOLS
        + """
        run r1
        step s1
        commit pay{vendor: acme} -> ok
        advance
        """
    )
    values = []
    for seed in (1, 1, 2):
        asking = Asking(text, seed=seed).step("s1")
        value = asking.call("mail", to="bo")
        asking.call("pay", vendor="acme", note=value["result"])
        values.append(value)
        mail, pay = asking.intents
        assert mail.answered is Answered.STAND_IN
        assert pay.holes == ("/note",)
        assert asking.answers.stand_ins_were_used
        assert asking.answers.assumed_from is None
    assert values[0] == values[1] != values[2]


def test_g5_an_answer_recorded_in_a_later_step_makes_what_follows_assumed() -> None:
    """G5: H requests in s1 and pays in s2; N pays in s1: its result is assumed."""
    asking = Asking(
        TOOLS
        + """
        run r1
        step s1
        commit mail{to: boss}
        advance
        step s2
        commit pay{vendor: acme} -> ok
        advance
        """
    ).step("s1")
    assert asking.call("pay", vendor="acme") == "ok"
    asking.call("mail", to="boss")
    assert [intent.assumed for intent in asking.intents] == [False, True]
    assert asking.answers.assumed_from == 0


def test_g9_a_key_of_scope_agent_is_answered_by_another_runs_row() -> None:
    """G9: recorded results of other runs belong to the run's replay input."""
    asking = Asking(
        """
        tool subscribe identity user scope agent
        run r1
        step s1
        commit subscribe{user: bo} -> yes
        advance
        run r2
        step s1
        recorded subscribe{user: bo}
        advance
        """,
        run="r2",
    ).step("s1")
    assert asking.call("subscribe", user="bo") is True
    (intent,) = asking.intents
    assert intent.answered_by == 3


def test_s3_time_moves_to_each_answers_recorded_time_and_never_back() -> None:
    """S3: from the step's start to the recorded events; what is served again moves nothing."""
    asking = Asking(
        TOOLS
        + """
        run r1
        step s1
        read check{po: 7} -> a
        read check{po: 8} -> b
        advance
        step s2
        read check{po: 9} -> c
        advance
        """
    ).step("s1")
    assert asking.reply("check", po=8).now == "2026-01-05T08:00:04Z"
    assert asking.reply("check", po=7).now == "2026-01-05T08:00:04Z"
    asking.step("s2")
    assert asking.reply("check", po=7).now == asking.run.steps[1].at
    assert asking.reply("check", po=9).now == "2026-01-05T08:00:09Z"


def test_s4_a_recorded_call_id_is_found_again_by_key() -> None:
    """S4: the replay's id for a recorded call, also of a relabelled one."""
    asking = Asking(
        TOOLS
        + """
        run r1
        step s1
        commit pay{vendor: acme} -> pending
        commit mail{to: bo} -> pending
        advance
        """
    ).step("s1")
    asking.reply("pay", call="x-1", vendor="ACME")
    asking.reply("mail", call="x-2", to="bo")
    assert asking.answers.replayed_id("call-1") == "x-1"
    assert asking.answers.replayed_id("call-2") == "x-2"
    assert asking.answers.replayed_id("call-9") is None


def test_a_doubt_is_told_in_the_guards_own_words() -> None:
    """The candidate hears of a recorded doubt what the guard would say in production."""
    asking = Asking(
        TOOLS
        + """
        run r1
        step s1
        doubt pay{vendor: acme}
        """
    ).step("s1")
    assert asking.call("pay", vendor="acme") == told(InDoubt(reason="timeout"))


def test_a_crash_during_a_call_is_the_end_of_the_record() -> None:
    """Nobody knows an answer to a call during which the recorded agent died."""
    asking = Asking(
        TOOLS
        + """
        run r1
        step s1
        claim pay{vendor: acme}
        """
    ).step("s1")
    assert asking.call("pay", vendor="acme") == "end_of_record"


def test_a_call_that_the_recorded_agent_went_on_without_answers_nothing() -> None:
    """A long-running tool answers nothing at first; the agent goes on."""
    asking = Asking(
        TOOLS
        + """
        run r1
        step s1
        claim pay{vendor: acme}
        end done
        step s2
        read check{po: 7} -> a
        """
    ).step("s1")
    assert asking.call("pay", vendor="acme") is None


def test_k_an_effect_without_identity_is_refused_in_the_guards_words_and_kept() -> None:
    """K: what cannot be keyed is refused, never hashed as null; the intent says it was asked."""
    asking = Asking(
        TOOLS
        + """
        run r1
        step s1
        commit pay{vendor: acme}
        advance
        """
    ).step("s1")
    assert asking.call("pay", vendor=None)["backstop"] == "refused"
    (intent,) = asking.intents
    assert (intent.key, intent.answered) == ("", Answered.NOTHING)
