"""What a ledger says of the mesh, read in order, with nothing passed over."""

from __future__ import annotations

import msgspec
import pytest

from backstop.core.canon import digest
from backstop.core.checkpoint import Checkpoint, StepKind
from backstop.core.effectgate import Break, Control, Place, Reach
from backstop.core.events import Checkpointed, Event, Recovered, RunOpened, TrustBroken
from backstop.core.meshlog import TORN, Ended, MeshLog, Rerun
from backstop.core.trustbreak import Steps, TrustBreak
from backstop.errors import BackstopError

AT = "2026-03-02T06:00:01.000000Z"


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def made(step: str = "s0/a", *, run: str = "r1", gen: int = 0) -> Checkpoint:
    return Checkpoint(
        run=run,
        step=step,
        kind=StepKind.INPUT,
        output=digest(step),
        producer="p",
        observed_at=0.0,
        gen=gen,
    )


def kept(record: Checkpoint, *, run: str = "r1", step: str | None = None) -> Checkpointed:
    return Checkpointed(run=run, at=AT, step=step or record.step, body=raw(record))


def broke(name: str, *steps: str, epoch: int = 1, run: str = "r1") -> TrustBroken:
    found = TrustBreak(
        id=name, seq=0, epoch=epoch, detector="d", reason="bad", selector=Steps(steps=steps)
    )
    reach = (Reach(run=run, steps=frozenset(steps)),)
    one = Break(broken=found, run=run, reach=reach, frozen=reach)
    return TrustBroken(run=run, at=AT, body=raw(one))


def noted(note: Rerun | Ended, *, run: str = "r1") -> Recovered:
    return Recovered(run=run, at=AT, body=raw(note))


def rerun(step: str = "s0/a", given: str = "g", epoch: int = 1) -> Rerun:
    return Rerun(step=step, given=given, epoch=epoch, holder="w")


def test_records_bear_their_places_and_breaks_stand_between_them() -> None:
    events: list[Event] = [
        RunOpened(run="r1", at=AT),
        kept(made()),
        broke("b1", "s0/a"),
        kept(made(gen=1)),
    ]
    log = MeshLog.of(events)
    assert [record.seq for record in log.runs["r1"].records] == [2, 4]
    (broken,) = log.broken(log.control(), "r1")
    assert broken.seq == 3
    first, second = log.runs["r1"].records
    assert (broken.covers(first), broken.covers(second)) == (True, False)
    assert log.runs["r1"].graph()["s0/a"].gen == 1


def test_a_break_whose_event_is_elsewhere_names_all_that_is_here() -> None:
    whole = MeshLog.of([broke("b1", "s0/a", run="")])
    log = MeshLog.of([kept(made())])
    (broken,) = log.broken(whole.control(), "r1")
    assert broken.covers(log.runs["r1"].records[0])


def test_a_break_of_one_run_is_none_of_another() -> None:
    log = MeshLog.of([kept(made()), kept(made(run="r2"), run="r2"), broke("b1", "s0/a", run="r2")])
    assert log.broken(log.control(), "r1") == ()
    assert len(log.broken(log.control(), "r2")) == 1


def test_a_ledger_alone_tells_what_is_frozen_and_what_was_let_go() -> None:
    place = Place(run="r1", step="s0/a")
    told = broke("b1", "s0/a")
    log = MeshLog.of([kept(made()), told, told])
    control = log.control()
    assert (control.epoch, len(control.breaks)) == (1, 1)
    assert control.freezing(place) is not None
    thawed = (Reach(run="r1", everything=True),)
    log.take(noted(Ended(epoch=1, holder="w", thawed=thawed)))
    assert log.control().freezing(place) is None
    log.take(broke("b2", "s0/a", epoch=2))
    log.take(noted(Ended(epoch=1, holder="w", thawed=thawed)))
    assert log.control().freezing(place) is not None
    assert MeshLog().control() == Control()


def test_steps_that_were_run_again_are_counted_by_what_they_were_given() -> None:
    log = MeshLog.of([noted(rerun()), noted(rerun(epoch=2)), noted(rerun(given="other"))])
    log.take(noted(Ended(epoch=1, holder="w")))
    assert log.runs["r1"].tries("s0/a", "g") == 2
    assert log.runs["r1"].tries("s0/b", "g") == 0


@pytest.mark.parametrize(
    "event",
    [
        Checkpointed(run="r1", at=AT, step="s0/a", body=msgspec.Raw(b'{"run":"r1"')),
        Checkpointed(run="r1", at=AT, step="s0/a", body=msgspec.Raw(b"null")),
        Checkpointed(run="r1", at=AT, step="s0/a", body=msgspec.Raw(b'"\xff"')),
        kept(made("s0/b"), step="s0/a"),
        kept(made(run="r2"), step="s0/a"),
    ],
    ids=["torn", "nothing", "no text", "another step", "another run"],
)
def test_a_record_that_cannot_be_believed_takes_the_place_of_its_step(event: Checkpointed) -> None:
    log = MeshLog.of([kept(made()), event, kept(made(gen=7))])
    current = log.runs["r1"].graph()["s0/a"]
    assert (current.schema, current.output) == (TORN, "")


@pytest.mark.parametrize("event", [TrustBroken, Recovered])
def test_what_cannot_be_read_of_a_break_or_a_recovery_ends_it(
    event: type[TrustBroken | Recovered],
) -> None:
    with pytest.raises(BackstopError, match="run r1: what is on record") as caught:
        MeshLog.of([event(run="r1", at=AT, body=msgspec.Raw(b'{"type":"?"}'))])
    assert caught.value.slug == "mesh-record"


def test_the_latest_time_is_a_high_water_mark() -> None:
    assert MeshLog.of([RunOpened(run="r1", at=AT)]).high_water == 1772431201.0
    assert MeshLog().high_water == 0.0
    assert MeshLog.of([RunOpened(run="r1", at="soon")]).high_water == 0.0


def test_a_break_that_the_control_state_has_lost_counts_all_the_same() -> None:
    log = MeshLog.of([kept(made()), broke("b1", "s0/a")])
    (broken,) = log.broken(Control(), "r1")
    assert broken.covers(log.runs["r1"].records[0])
    assert log.broken(Control(), "r2") == ()
