"""What every store promises of doubts: what is known of them, and who may see what."""

from __future__ import annotations

import msgspec
import pytest

from backstop.core.events import EffectInDoubt
from backstop.core.lifecycle import Phase
from backstop.ports import Held, InDoubt, Liveness, Recorded, Standing
from tests.contract.bench import Bench
from tests.contract.deeds import committed, done, doubted, failed, granted, pay, resolved


def in_doubt(bench: Bench, override: str | None = None) -> InDoubt:
    answer = bench.store.claim(pay("bob", override=override))
    assert isinstance(answer, InDoubt)
    return answer


def test_a_doubt_tells_what_its_claim_could_do_about_it(bench: Bench) -> None:
    keyed = pay(capability="keyed", retention_s=86400, override='{"again":true}')
    claim = granted(bench.store, keyed)
    bench.store.settle(doubted(claim), claim=claim)
    said = in_doubt(bench, override='{"again":true}')
    assert (said.reason, said.fence, said.capability) == ("timeout", 1, "keyed")
    assert (said.retention_s, said.settle_s, said.override) == (86400, 0, '{"again":true}')
    assert said.repeats is False


def test_a_doubt_grows_old_by_the_stores_time(bench: Bench) -> None:
    claim = granted(bench.store, pay(capability="probe", settle_s=300))
    bench.wait(100)
    bench.store.settle(doubted(claim), claim=claim)
    bench.wait(50)
    said = in_doubt(bench)
    assert said.settle_s == 300
    assert 50 <= said.age_s < 90
    assert 150 <= said.claim_age_s < 200


def test_a_claim_that_was_taken_again_is_as_old_as_its_first(bench: Bench) -> None:
    first = granted(bench.store, pay(capability="keyed", retention_s=60))
    bench.wait(100)
    bench.store.settle(failed(first, final=False), claim=first)
    again = granted(bench.store, pay(capability="keyed", retention_s=60))
    bench.store.settle(doubted(again), claim=again)
    assert in_doubt(bench).claim_age_s >= 100


def test_an_owner_that_settled_its_own_doubt_has_given_up(bench: Bench) -> None:
    claim = granted(bench.store, pay())
    bench.store.settle(doubted(claim), claim=claim)
    assert in_doubt(bench).gone


def test_a_cancelled_owner_is_not_gone_while_it_lives(bench: Bench) -> None:
    claim = granted(bench.store, pay("alice"))
    bench.store.settle(doubted(claim, running=True), claim=claim)
    assert not in_doubt(bench).gone
    bench.kill("alice")
    assert in_doubt(bench).gone


def test_what_a_cancelled_owner_left_behind_has_time_to_show_from_when_it_is_gone(
    bench: Bench,
) -> None:
    """Until then its body may have acted, so an age from the cancellation would be too old."""
    claim = granted(bench.store, pay("alice", capability="probe", settle_s=300))
    bench.store.settle(doubted(claim, running=True), claim=claim)
    bench.wait(1000)
    alive = in_doubt(bench)
    assert not alive.gone
    assert alive.age_s >= 1000
    bench.kill("alice")
    assert in_doubt(bench).age_s < 300
    bench.wait(400)
    left = in_doubt(bench)
    assert left.gone
    assert 400 <= left.age_s < 700


def test_where_an_owner_cannot_be_seen_its_lease_decides(bench: Bench) -> None:
    granted(bench.store, pay("alice", lease_s=60))
    bench.hide("alice")
    assert bench.store.claim(pay("bob")) == Held(owner="alice")
    bench.wait(61)
    said = in_doubt(bench)
    assert not said.gone
    assert "alice" in said.reason
    doubt = list(bench.store.read("r1"))[-1]
    assert isinstance(doubt, EffectInDoubt)
    assert doubt.running


def test_an_owner_that_is_seen_needs_no_lease(bench: Bench) -> None:
    granted(bench.store, pay("alice", lease_s=60))
    bench.wait(3600)
    assert bench.store.claim(pay("bob")) == Held(owner="alice")


def test_a_resolution_from_another_run_is_told_there(bench: Bench) -> None:
    claim = granted(bench.store, pay())
    bench.store.settle(doubted(claim), claim=claim)
    bench.store.settle(resolved("committed", run="r2"))
    assert bench.store.claim(pay("bob")) == Recorded(result=msgspec.Raw(b'"seen"'))
    assert [type(event).__name__ for event in bench.store.read("r1")] == [
        "EffectClaimed",
        "EffectInDoubt",
    ]
    assert [type(event).__name__ for event in bench.store.read("r2")] == ["EffectResolved"]
    assert len(list(bench.store.read())) == 3


def test_what_is_committed_never_expires(bench: Bench) -> None:
    """K25: agents sleep for weeks; a provider's key may be long forgotten."""
    done(bench.store, pay(capability="keyed", retention_s=86400))
    bench.wait(400 * 86400)
    assert isinstance(bench.store.claim(pay("bob")), Recorded)


def standings(bench: Bench, key: str | None = None) -> list[Standing]:
    return list(bench.reopen(None).standings(key))


def test_what_is_not_decided_is_listed_oldest_first(bench: Bench) -> None:
    keys = ["b", "a", "d", "c", "e", "f"]
    claims = [granted(bench.store, pay(f"owner-{key}", key=key)) for key in keys]
    bench.store.settle(committed(claims[1]), claim=claims[1])
    bench.store.settle(failed(claims[2], final=True), claim=claims[2])
    bench.store.settle(failed(claims[3], final=False), claim=claims[3])
    bench.store.settle(doubted(claims[4]), claim=claims[4])
    bench.kill("owner-f")
    shown = standings(bench)
    assert [(one.claimed.key, one.phase, one.owner) for one in shown] == [
        ("b", Phase.EXECUTING, Liveness.ALIVE),
        ("c", Phase.RETRYABLE, Liveness.ALIVE),
        ("e", Phase.IN_DOUBT, Liveness.ALIVE),
        ("f", Phase.EXECUTING, Liveness.GONE),
    ]
    assert shown[0].settled is None
    assert isinstance(shown[2].settled, EffectInDoubt)


def test_a_standing_tells_since_when_and_that_nobody_can_look(bench: Bench) -> None:
    granted(bench.store, pay("alice"))
    bench.hide("alice")
    bench.wait(120)
    (shown,) = standings(bench)
    assert shown.owner is Liveness.UNKNOWN
    assert 120 <= shown.since_s < 180
    assert (shown.fence, shown.claimed.owner, shown.claimed.run) == (1, "alice", "r1")


@pytest.mark.parametrize("given", ["abc1", "abc"])
def test_an_effect_is_found_by_its_key_or_the_beginning_of_it(bench: Bench, given: str) -> None:
    done(bench.store, pay(key="abc1"))
    granted(bench.store, pay(key="abd1"))
    assert [one.claimed.key for one in standings(bench, given)] == ["abc1"]


def test_a_beginning_may_fit_several_keys_and_a_wrong_one_none(bench: Bench) -> None:
    for key in ("abc1", "abc2", "abd1"):
        granted(bench.store, pay(key=key))
    assert [one.claimed.key for one in standings(bench, "abc")] == ["abc1", "abc2"]
    assert standings(bench, "x") == []
