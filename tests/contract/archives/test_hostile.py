"""No archive is believed: whatever it returns, nothing more is VERIFIED than was archived.

Two walls. What is not as it was archived is refused as a whole; and of what it returns, taken
unchecked, no step is trusted that was not, since trust comes from records and a world outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Final

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backstop.auditports import Archive
from backstop.core.auditlog import Entry, hash_of
from backstop.core.auditwalk import ArchiveMark
from backstop.core.checkpoint import Checkpoint
from backstop.core.events import Checkpointed, Event, Header
from backstop.core.meshlog import MeshLog
from backstop.core.sealing import EVENT, Sealer
from backstop.core.trust import Reason, State
from backstop.core.trustverdicts import Verdicts
from backstop.errors import BackstopError
from backstop.wiring.auditing import audit_archive
from tests.contract.archives.bench import ArchiveBench, archived, held
from tests.contract.bench import header
from tests.property.mesh.fleet import Fleet, read, record, world

RUN: Final = "r"
FLEET: Final = Fleet(
    reads=((), (), (0,), (0, 1), (2, 3), (4,)),
    moduli=(5, 5, 7, 7, 11, 3),
    inputs={0: 1, 1: 2},
)
ANSWERS: Final = FLEET.restart(FLEET.inputs)
HONEST: Final = [record(FLEET, step, ANSWERS, gen=1) for step in range(len(FLEET))]
OLD: Final = [record(FLEET, s, ANSWERS, gen=0, answer=("old", s)) for s in range(len(FLEET))]
SIGNED: Final = {one.id for one in (*HONEST, *OLD)}

Act = tuple[str, int, int]
ACTS: Final = ("drop", "repeat", "swap", "forge", "rehash", "rechain", "column", "replay", "cut")


def ledger(records: Sequence[Checkpoint]) -> list[Entry]:
    """The archive of a mesh's ledger with these records."""
    sealer = Sealer(header())
    said: list[Header | Event] = [header()]
    for one in records:
        line = sealer.add(Checkpointed(run=RUN, at="", step=one.step, body=_body(one)))
        said.append(EVENT.decode(line))
    return archived(said)


def trusted(entries: Sequence[Entry]) -> set[tuple[str, str]]:
    """What is VERIFIED of what these entries say, whoever wrote them; at least, nothing is."""
    try:
        events = [EVENT.decode(entry.line) for entry in entries if entry.is_event]
        graph = MeshLog.of(events).runs[RUN].graph()
    except (BackstopError, msgspec.MsgspecError, KeyError):
        return set()
    seen = world(provenance=lambda one: None if one.id in SIGNED else Reason.BAD_SIGNATURE)
    verdicts = Verdicts(graph, seen)
    return {
        (step, graph[step].output)
        for step, verdict in verdicts.items()
        # An old record may be all that is left: that is a rollback, which the mark finds.
        if verdict.state == State.VERIFIED and graph[step].gen >= 1
    }


def tampered(entries: Sequence[Entry], acts: Sequence[Act]) -> list[Entry]:
    """What a store may come to return in place of `entries`."""
    told = list(entries)
    for act, first, second in acts:
        if told:
            told = _tampered(told, act, first % len(told), second % len(told))
    return told


def _tampered(told: list[Entry], act: str, at: int, other: int) -> list[Entry]:
    one = told[at]
    match act:
        case "drop":
            return told[:at] + told[at + 1 :]
        case "repeat":
            return [*told[: at + 1], *told[at:]]
        case "swap":
            told[at], told[other] = told[other], told[at]
            return told
        case "forge":
            told[at] = msgspec.structs.replace(one, line=_forged(one.line))
            return told
        case "rehash":
            forged = msgspec.structs.replace(one, line=_forged(one.line))
            told[at] = msgspec.structs.replace(forged, hash=hash_of(forged))
            return told
        case "rechain":
            return told[:at] + _rechained(told[at:], _forged(one.line))
        case "column":
            told[at] = msgspec.structs.replace(one, kind="effect_committed", tool="pay")
            return told
        case "replay":
            old = OLD[other % len(OLD)]
            line = msgspec.json.encode(Checkpointed(run=RUN, at="", step=old.step, body=_body(old)))
            return [*told[: at + 1], *_rechained([told[at], *told[at + 1 :]], line)]
        case _:
            return told[:at]


def _rechained(rest: Sequence[Entry], line: bytes) -> list[Entry]:
    """The rest of an archive with another first line, every hash made to fit: no link is broken."""
    chain: list[Entry] = []
    for number, entry in enumerate(rest):
        before = chain[-1] if chain else None
        prev = entry.prev if before is None else before.hash
        seq = entry.seq if before is None else before.seq + 1
        said = msgspec.structs.replace(
            entry, seq=seq, prev=prev, line=entry.line if number else line
        )
        chain.append(msgspec.structs.replace(said, hash=hash_of(said)))
    return chain


def _forged(line: bytes) -> bytes:
    """The line with another output in its record, of a later generation; or with a blank more."""
    for one in HONEST:
        if bytes(_body(one)) in line:
            lie = msgspec.structs.replace(one, output=read("forged"), gen=one.gen + 1)
            return line.replace(bytes(_body(one)), bytes(_body(lie)))
    return line + b" "


def _body(one: Checkpoint) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(one))


def nothing_more_is_verified(place: ArchiveBench, acts: Sequence[Act]) -> None:
    honest = ledger(HONEST)
    mark = ArchiveMark(agent=header().agent, seq=len(honest), hash=honest[-1].hash)
    told = tampered(honest, acts)
    place.put(told)
    archive = place.reopen()
    try:
        seen = list(archive.read())
    except BackstopError:
        seen = []  # what cannot be read is nothing at all
    assert trusted(seen) <= trusted(honest)
    for believed in (_held, _asked):
        try:
            found = believed(archive, mark)
        except BackstopError:
            continue
        assert found == len(honest) - 2, "an archive that is believed is the one that was archived"
        assert seen[: len(honest)] == honest
    archive.close()


def _held(archive: Archive, mark: ArchiveMark) -> int:
    return sum(entry.is_event for entry in held(archive, mark=mark))


def _asked(archive: Archive, mark: ArchiveMark) -> int:
    return audit_archive(archive, name="it", mark=mark).total.events


def _local() -> Iterator[object]:
    for kind in ("memory", "parquet", "sqlite"):
        yield pytest.param(import_module(f"tests.contract.archives.benches.{kind}").bench, id=kind)


@pytest.fixture(params=_local())
def near(request: pytest.FixtureRequest) -> Iterator[ArchiveBench]:
    with request.param(request) as made:
        yield made


def test_the_untouched_archive_is_believed_and_every_step_verified(place: ArchiveBench) -> None:
    honest = ledger(HONEST)
    mark = ArchiveMark(agent=header().agent, seq=len(honest), hash=honest[-1].hash)
    place.put(honest)
    assert held(place.reopen(), mark=mark) == honest
    assert _asked(place.reopen(), mark) == len(HONEST)
    assert trusted(honest) == {(one.step, one.output) for one in HONEST}


@pytest.mark.parametrize(("act", "at"), [("drop", 3), ("rechain", 3), ("cut", 6)])
def test_a_loss_a_forgery_and_a_cut_are_not_believed_anywhere(
    place: ArchiveBench, act: str, at: int
) -> None:
    one_act_is_seen(place, act, at)


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("at", [0, 6])
def test_one_act_behind_its_back_adds_no_trust_and_is_not_believed(
    near: ArchiveBench, act: str, at: int
) -> None:
    one_act_is_seen(near, act, at)


def one_act_is_seen(place: ArchiveBench, act: str, at: int) -> None:
    honest = ledger(HONEST)
    nothing_more_is_verified(place, [(act, at, 4)])
    told = tampered(honest, [(act, at, 4)])
    if told == honest or {one.seq: one for one in told} == {one.seq: one for one in honest}:
        return  # places that hold one entry a number undo it by themselves
    place.put(told)
    mark = ArchiveMark(agent=header().agent, seq=len(honest), hash=honest[-1].hash)
    archive = place.reopen()
    for believed in (_held, _asked):
        with pytest.raises(BackstopError):
            believed(archive, mark)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    acts=st.lists(
        st.tuples(st.sampled_from(ACTS), st.integers(0, 99), st.integers(0, 99)), max_size=5
    )
)
def test_whatever_is_done_behind_its_back_nothing_more_is_verified(
    near: ArchiveBench, acts: list[Act]
) -> None:
    nothing_more_is_verified(near, acts)
