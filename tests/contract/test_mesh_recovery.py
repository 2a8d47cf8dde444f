"""Recovery of a run on every store: what is rerun, sent and taken back; one worker at a time."""

from __future__ import annotations

import asyncio

import pytest

from backstop.clock import SystemClock
from backstop.core.effecttrust import Trust
from backstop.core.events import TrustBroken
from backstop.core.trustbreak import Steps, TrustBreak
from backstop.mesh.judging import look
from backstop.mesh.recovering import Recovery
from backstop.mesh.standing import reach_of
from backstop.ports import Held
from tests.contract.bench import Bench
from tests.contract.meshed import trusts
from tests.e2e.mesh.fleet import RUN, Fleet


@pytest.fixture
def fleet(bench: Bench) -> Fleet:
    made = Fleet(store=bench.store, clock=SystemClock(), ttl=None)
    made.begins()
    return made


def breaks(fleet: Fleet, step: str = "s0/history") -> None:
    found = TrustBreak(
        id=f"break of {step}",
        seq=0,
        epoch=0,
        detector="person:ada",
        reason="poisoned",
        selector=Steps(steps=(step,)),
    )
    seen = look(fleet.store, fleet.mind, RUN)
    fleet.store.break_trust(found, run=RUN, reach=[reach_of(seen, found)])


def test_what_a_break_reaches_is_made_again_and_the_action_taken_back(fleet: Fleet) -> None:
    breaks(fleet)
    assert not fleet.acts()
    assert len(fleet.sent) == 1
    fleet.history = "h2"
    done = asyncio.run(fleet.recovers())
    assert done.stopped == ""
    assert (done.receipt.spent.calls, done.receipt.avoided.calls) == (3, 1)
    assert fleet.taken_back == fleet.sent[:1]
    assert set(fleet.states().values()) == {"V"}
    assert trusts(fleet.store)


def test_what_comes_out_as_it_was_is_stood_by(fleet: Fleet) -> None:
    breaks(fleet)
    assert asyncio.run(fleet.recovers()).stopped == ""
    assert fleet.ran == ["history"]
    assert set(trusts(fleet.store).values()) == {Trust.REAFFIRMED}
    assert (len(fleet.sent), fleet.taken_back) == (1, [])


def test_a_second_recovery_has_nothing_to_do(fleet: Fleet) -> None:
    breaks(fleet)
    fleet.history = "h2"
    asyncio.run(fleet.recovers())
    before = list(fleet.store.read())
    done = asyncio.run(fleet.recovers(holder="worker-2"))
    assert (done.stopped, done.executed) == ("", ())
    assert list(fleet.store.read()) == before


def test_two_workers_at_once_recover_a_run_once(fleet: Fleet) -> None:
    breaks(fleet, "s0/scout#0")
    fleet.says = {"scout": "another"}

    async def both() -> list[Recovery | Held]:
        workers = [fleet.coordinator(f"worker-{number}") for number in range(2)]
        return list(await asyncio.gather(*(one.recover(RUN) for one in workers)))

    done = asyncio.run(both())
    assert {type(one) for one in done} <= {Recovery, Held}
    assert sum(isinstance(one, Recovery) and not one.stopped for one in done) >= 1
    assert fleet.ran.count("scout") == 1
    assert fleet.taken_back == fleet.sent[:1]
    assert sum(isinstance(event, TrustBroken) for event in fleet.store.read(RUN)) == 1
