"""What every store promises of checkpoints that are made again while a run is recovered."""

from __future__ import annotations

import msgspec
import pytest

from backstop.core.events import Checkpointed
from backstop.errors import BackstopError
from tests.contract.bench import Bench
from tests.contract.meshed import leased


def made(step: str) -> Checkpointed:
    return Checkpointed(run="r1", at="", step=step, body=msgspec.Raw(b'{"of":"r1"}'))


def steps(bench: Bench) -> list[str]:
    return [event.step for event in bench.store.read() if isinstance(event, Checkpointed)]


def test_whoever_holds_the_recovery_records_what_is_made_again(bench: Bench) -> None:
    lease = leased(bench.store, "worker-1")
    bench.store.record(made("s0/a"), lease=lease)
    bench.store.record(made("s0/a"), lease=lease)
    assert steps(bench) == ["s0/a", "s0/a"]
    assert all(event.at for event in bench.store.read())


def test_whoever_slept_past_its_lease_records_no_attempt(bench: Bench) -> None:
    slept = leased(bench.store, "worker-1")
    bench.wait(60)
    current = leased(bench.store, "worker-2")
    with pytest.raises(BackstopError, match="was taken over") as caught:
        bench.store.record(made("s0/late"), lease=slept)
    assert caught.value.slug == "stale-lease"
    bench.store.record(made("s0/new"), lease=current)
    assert steps(bench) == ["s0/new"]


def test_whoever_slept_and_was_not_missed_still_records(bench: Bench) -> None:
    slept = leased(bench.store, "worker-1")
    bench.wait(60)
    bench.store.record(made("s0/late"), lease=slept)
    assert steps(bench) == ["s0/late"]
