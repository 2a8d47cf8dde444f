"""What is right about the record of a key, ruled in one place (ADR 0019)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from backstop.adapters.records import (
    Doubtful,
    Granted,
    Record,
    Ruling,
    check_owner,
    concerns,
    ruling,
    settling,
    standing,
    undecided,
)
from backstop.core.events import (
    CursorAdvanced,
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectInDoubt,
    EffectResolved,
    Failure,
)
from backstop.core.lifecycle import Life, Phase
from backstop.errors import BackstopError, StaleClaim
from backstop.ports import (
    Claim,
    Conflict,
    Held,
    InDoubt,
    Liveness,
    Recorded,
    Refused,
    Settlement,
)

KEY = "k" * 64
AGAIN, AND_AGAIN = '{"again":"lost"}', '{"again":"lost too"}'


def pay(owner: str = "alice", **about: Any) -> EffectClaimed:
    intent = EffectClaimed(
        run="r", at="", step="s0", tool="pay", key=KEY, fingerprint="f", owner=owner
    )
    return msgspec.structs.replace(intent, **about)


def ruled(
    record: Record | None,
    intent: EffectClaimed,
    *,
    owner: Liveness = Liveness.ALIVE,
    now: float | None = None,
) -> Ruling:
    """The ruling; a `now` of None must not be asked for."""

    def clock() -> float:
        assert now is not None, "the clock was looked at for nothing"
        return now

    return ruling(record, intent, owner=lambda: owner, now=clock)


def granted(record: Record | None, intent: EffectClaimed, *, at: float = 100) -> Record:
    """The record after a claim that must be granted, as a store keeps it."""
    answer = ruled(record, intent)
    assert isinstance(answer, Granted)
    return stored(answer.record, at=at)


def stored(record: Record, *, at: float) -> Record:
    record.moved = at
    record.since = record.since or at
    return record


def settled(record: Record, settlement: Settlement, *, at: float = 200) -> Record:
    return stored(settling(record, settlement), at=at)


def paid(record: Record, result: bytes = b'"paid"') -> EffectCommitted:
    return EffectCommitted(
        run="r",
        at="",
        key=KEY,
        fence=record.life.fence,
        result=msgspec.Raw(result),
        state_delta=msgspec.Raw(b'{"n":1}'),
        actions=msgspec.Raw(b'{"skip":true}'),
    )


def failed(record: Record, *, final: bool) -> EffectFailed:
    error = Failure(type="Closed", message="no")
    return EffectFailed(run="r", at="", key=KEY, fence=record.life.fence, error=error, final=final)


def doubted(record: Record, *, running: bool = False) -> EffectInDoubt:
    return EffectInDoubt(
        run="r", at="", key=KEY, fence=record.life.fence, reason="timeout", running=running
    )


def resolved(record: Record, to: str) -> EffectResolved:
    return EffectResolved(
        run="r",
        at="",
        key=KEY,
        to=to,
        by="ada",
        fence=record.life.fence + (to == "reopened"),
        reason="seen",
        result=msgspec.Raw(b'"seen"'),
    )


def test_a_first_claim_is_granted_at_fence_one() -> None:
    answer = ruled(None, pay(fence=7))
    assert isinstance(answer, Granted)
    assert answer.event == pay(fence=1)
    assert answer.record == Record(claimed=pay(fence=1), life=Life(phase=Phase.EXECUTING, fence=1))


def test_other_arguments_are_a_conflict_whatever_the_phase() -> None:
    record = granted(None, pay(args=msgspec.Raw(b'{"to":"acme"}')))
    assert ruled(record, pay(fingerprint="g", override=AGAIN)) == Conflict(
        fingerprint="f", args=msgspec.Raw(b'{"to":"acme"}')
    )


def test_f22_what_certainly_did_not_happen_may_be_tried_with_other_arguments() -> None:
    """F22, G1: `update{R,A}` failed, `update{R,B}` is no conflict with it."""
    record = settled(granted(None, pay()), failed(granted(None, pay()), final=False))
    again = granted(record, pay(fingerprint="g"))
    assert (again.claimed.fingerprint, again.life.fence) == ("g", 2)


def test_a_repeat_that_failed_for_now_does_not_free_what_was_done_before_it() -> None:
    record = granted(None, pay())
    record = granted(settled(record, paid(record)), pay(override=AGAIN))
    record = settled(record, failed(record, final=False))
    assert isinstance(ruled(record, pay(fingerprint="g")), Conflict)


def test_a_running_claim_holds_others_and_nobody_looks_at_the_clock() -> None:
    record = granted(None, pay())
    assert ruled(record, pay("bob"), owner=Liveness.ALIVE) == Held(owner="alice")


@pytest.mark.parametrize(
    ("now", "lapsed"), [(100.0, False), (109.9, False), (110.0, True), (50.0, False)]
)
def test_where_nobody_can_see_the_owner_its_lease_decides(now: float, lapsed: bool) -> None:
    record = granted(None, pay(lease_s=10), at=100)
    answer = ruled(record, pay("bob"), owner=Liveness.UNKNOWN, now=now)
    assert isinstance(answer, Doubtful if lapsed else Held)


@pytest.mark.parametrize(
    ("owner", "running", "says"),
    [(Liveness.GONE, False, "left no outcome"), (Liveness.UNKNOWN, True, "cannot be seen")],
)
def test_a_claim_without_an_owner_is_in_doubt_first(
    owner: Liveness, running: bool, says: str
) -> None:
    record = granted(None, pay())
    answer = ruled(record, pay("bob"), owner=owner, now=1000)
    assert isinstance(answer, Doubtful)
    assert (answer.event.fence, answer.event.running) == (1, running)
    assert "alice" in answer.event.reason
    assert says in answer.event.reason
    assert answer.record.life == Life(phase=Phase.IN_DOUBT, fence=1)
    assert answer.record.claimed == record.claimed


def test_what_is_committed_is_answered_from_the_record() -> None:
    record = granted(None, pay())
    answer = ruled(settled(record, paid(record)), pay("bob"))
    assert answer == Recorded(
        result=msgspec.Raw(b'"paid"'),
        state_delta=msgspec.Raw(b'{"n":1}'),
        actions=msgspec.Raw(b'{"skip":true}'),
    )


def test_what_failed_for_good_is_answered_with_its_failure() -> None:
    record = granted(None, pay())
    answer = ruled(settled(record, failed(record, final=True)), pay("bob"))
    assert answer == Refused(error=Failure(type="Closed", message="no"))


def test_what_failed_for_now_is_granted_again_at_a_higher_fence() -> None:
    record = granted(None, pay())
    again = granted(settled(record, failed(record, final=False)), pay("bob"), at=300)
    assert again.life == Life(phase=Phase.EXECUTING, fence=2)
    assert (again.since, again.moved, again.settled) == (100, 300, None)


def doubtful(*, running: bool = False, **about: Any) -> Record:
    record = granted(None, pay(**about), at=100)
    return settled(record, doubted(record, running=running), at=200)


def test_a_doubt_says_all_that_a_capability_is_judged_by() -> None:
    record = doubtful(capability="keyed", retention_s=60, settle_s=5, override=AGAIN)
    assert ruled(record, pay("bob"), now=230) == InDoubt(
        reason="timeout",
        fence=1,
        capability="keyed",
        retention_s=60,
        settle_s=5,
        age_s=30,
        claim_age_s=130,
        gone=True,
        override=AGAIN,
    )


def test_how_old_a_doubt_is_counts_only_where_a_capability_asks() -> None:
    answer = ruled(doubtful(), pay("bob"))
    assert isinstance(answer, InDoubt)
    assert (answer.age_s, answer.claim_age_s) == (0, 100)


def test_a_doubt_ages_for_a_tool_that_has_been_given_its_probe_since() -> None:
    """Else its "no" would have to wait for ever."""
    answer = ruled(doubtful(), pay("bob", capability="probe"), now=260)
    assert isinstance(answer, InDoubt)
    assert (answer.capability, answer.age_s) == ("", 60)


def test_a_clock_that_jumps_back_makes_nothing_older() -> None:
    answer = ruled(doubtful(capability="probe"), pay("bob"), now=10)
    assert isinstance(answer, InDoubt)
    assert (answer.age_s, answer.claim_age_s) == (0, 0)


@pytest.mark.parametrize(
    ("owner", "running", "gone"),
    [
        (Liveness.ALIVE, False, True),  # it said so itself: its body is over
        (Liveness.ALIVE, True, False),  # cancelled: its body may go on without it
        (Liveness.GONE, False, True),
        (Liveness.UNKNOWN, False, False),
        (Liveness.UNKNOWN, True, False),
    ],
)
def test_who_ran_it_is_gone_only_where_that_is_proven(
    owner: Liveness, running: bool, gone: bool
) -> None:
    answer = ruled(doubtful(running=running), pay("bob"), owner=owner)
    assert isinstance(answer, InDoubt)
    assert answer.gone is gone


def test_a_body_that_outlived_its_call_is_in_doubt_anew_once_its_owner_is_seen_to_be_gone() -> None:
    answer = ruled(doubtful(running=True), pay("bob"), owner=Liveness.GONE)
    assert isinstance(answer, Doubtful)
    assert (answer.event.fence, answer.event.running) == (1, False)
    assert answer.event.reason.startswith("timeout; its body may have gone on, until ")
    again = ruled(answer.record, pay("bob"), owner=Liveness.GONE)
    assert isinstance(again, InDoubt)
    assert again.gone


def test_a_person_decides_a_doubt_each_way() -> None:
    record = doubtful()
    seen = ruled(settled(record, resolved(record, "committed")), pay("bob"))
    assert seen == Recorded(result=msgspec.Raw(b'"seen"'))
    denied = ruled(settled(record, resolved(record, "failed")), pay("bob"))
    assert denied == Refused(error=Failure(type="Resolved", message="seen"))
    again = granted(settled(record, resolved(record, "reopened")), pay("bob"))
    assert again.life == Life(phase=Phase.EXECUTING, fence=3)


def test_what_was_never_claimed_cannot_be_settled() -> None:
    record = doubtful()
    with pytest.raises(BackstopError) as caught:
        settling(None, resolved(record, "committed"))
    assert caught.value.slug == "illegal-move"
    check_owner(None, paid(record), None)  # whose it is not is for `settling` to say


def test_i3_only_the_holder_of_the_claim_in_force_settles() -> None:
    """I3: by owner and by fence."""
    record = granted(None, pay())
    held = Claim(run="r", key=KEY, owner="alice", fence=1)
    check_owner(record, paid(record), held)
    for other in (
        None,
        Claim(run="r", key=KEY, owner="bob", fence=1),
        Claim(run="r", key=KEY, owner="alice", fence=2),
    ):
        with pytest.raises(StaleClaim):
            check_owner(record, paid(record), other)
        check_owner(record, resolved(record, "failed"), other)


def test_an_outcome_of_what_a_person_called_failed_is_stale() -> None:
    """The effect happened all the same: whoever says so must be heard as one who was fenced."""
    record = doubtful()
    held = Claim(run="r", key=KEY, owner="alice", fence=1)
    with pytest.raises(StaleClaim):
        check_owner(settled(record, resolved(record, "failed")), paid(record), held)
    check_owner(settled(record, resolved(record, "committed")), paid(record), held)


def test_a_standing_tells_what_settled_the_claim_in_force() -> None:
    record = doubtful()
    shown = standing(record, owner=Liveness.GONE, now=260)
    assert (shown.phase, shown.fence, shown.owner) == (Phase.IN_DOUBT, 1, Liveness.GONE)
    assert (shown.since_s, shown.settled, shown.claimed) == (60, record.settled, record.claimed)
    again = granted(settled(record, resolved(record, "reopened")), pay("bob"))
    assert standing(again, owner=Liveness.ALIVE, now=0).settled is None
    assert standing(again, owner=Liveness.ALIVE, now=0).since_s == 0


def test_a_listing_shows_what_is_not_decided_or_what_is_named() -> None:
    running = granted(None, pay())
    done = settled(running, paid(running))
    assert [concerns(record, None) for record in (running, done)] == [True, False]
    assert [concerns(done, key) for key in (KEY, KEY[:6], "", "x")] == [True, True, True, False]


def cursor(*effects: str) -> CursorAdvanced:
    return CursorAdvanced(run="r", at="", step="s0", cursor=1, effects=effects)


@pytest.mark.parametrize("phase", list(Phase))
def test_i4_a_cursor_passes_only_what_is_decided_or_free_to_be_made(phase: Phase) -> None:
    """I4: an effect of the step, and one that the cursor vouches for, whose step ever it is."""
    passes = phase in {Phase.COMMITTED, Phase.FAILED, Phase.RETRYABLE}
    for of_step, named in ([(KEY, phase)], []), ([], [(KEY, phase)]):
        if passes:
            undecided(cursor(KEY), of_step, named)
            continue
        with pytest.raises(BackstopError) as caught:
            undecided(cursor(KEY), of_step, named)
        assert caught.value.slug == "cursor-held"
