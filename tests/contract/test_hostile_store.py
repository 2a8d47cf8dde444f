"""No store is believed: whatever stands in one, no step is VERIFIED that was not."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec
import pytest

from backstop.adapters.firestore import FirestoreStore, Options
from backstop.adapters.firestore.messages import Range, Write
from backstop.adapters.memory import MemoryStore
from backstop.adapters.sqlite.store import SqliteStore
from backstop.core.checkpoint import Checkpoint
from backstop.core.events import Checkpointed
from backstop.core.meshlog import MeshLog
from backstop.core.trust import Reason, State
from backstop.core.trustverdicts import Verdicts
from backstop.errors import BackstopError
from backstop.meshports import MeshStore
from tests.contract.bench import Bench, SteppingClock, header
from tests.property.mesh.fleet import Fleet, read, record, world

RUN: Final = "r"
FLEET: Final = Fleet(
    reads=((), (), (0,), (0, 1), (2, 3), (4,)), moduli=(5, 5, 7, 7, 11, 3), inputs={0: 1, 1: 2}
)
ANSWERS: Final = FLEET.restart(FLEET.inputs)
HONEST: Final = [record(FLEET, step, ANSWERS, gen=1) for step in range(len(FLEET))]
OLD: Final = [record(FLEET, s, ANSWERS, gen=0, answer=("old", s)) for s in range(len(FLEET))]
SIGNED: Final = {one.id for one in (*HONEST, *OLD)}
LIE: Final = msgspec.structs.replace(HONEST[3], output=read("forged"), gen=2)
ACTS: Final = {
    "drop": [*HONEST[:3], *HONEST[4:]],
    "repeat": [*HONEST, HONEST[3]],
    "swap": [*HONEST[:2], HONEST[4], HONEST[3], HONEST[2], HONEST[5]],
    "forge": [*HONEST, LIE],
    "forge in its place": [*HONEST[:3], LIE, *HONEST[4:]],
    "cut its inputs": [*HONEST[:4], msgspec.structs.replace(HONEST[4], deps=()), HONEST[5]],
    "replay": [*HONEST, OLD[3]],
    "replay in its place": [*HONEST[:3], OLD[3], *HONEST[4:]],
    "truncate": HONEST[:4],
    "nothing at all": [],
}


def put(bench: Bench, records: Sequence[Checkpoint], folder: Path) -> MeshStore:
    """Make a store say this, whatever it said."""
    match bench.store:
        case MemoryStore():
            bench.store._events.clear()  # noqa: SLF001 - there is no other way behind its back
        case SqliteStore():
            with closing(sqlite3.connect(folder / "ledger.db")) as db, db:
                db.execute("DELETE FROM events")
        case _:
            wipe(bench.store)
    for one in records:
        body = msgspec.Raw(msgspec.json.encode(one))
        bench.store.append(Checkpointed(run=RUN, at="", step=one.step, body=body))
    return bench.store


def wipe(store: MeshStore) -> None:
    """Remove every event from a shared store."""
    assert isinstance(store, FirestoreStore)
    database, events = store._db, store._keeper.events  # noqa: SLF001 - behind its back
    for document in list(database.query(Range(collection=events))):
        gone = Write(path=document.path, fields={}, gone=True)
        database.commit([gone], database.patience())


def trusted(store: MeshStore) -> set[tuple[str, str]]:
    """The steps that are VERIFIED of what a store says, with what they answered."""
    log = MeshLog.of(store.read())
    if RUN not in log.runs:
        return set()
    graph = log.runs[RUN].graph()
    seen = world(provenance=lambda one: None if one.id in SIGNED else Reason.BAD_SIGNATURE)
    return {
        (step, graph[step].output)
        for step, verdict in Verdicts(graph, seen).items()
        # An old record may be all that is left: that is a rollback, which the mark finds.
        if verdict.state == State.VERIFIED and graph[step].gen >= 1
    }


@pytest.mark.parametrize("act", ACTS)
def test_whatever_stands_in_a_store_nothing_more_is_verified(
    bench: Bench, act: str, tmp_path: Path
) -> None:
    honest = {(one.step, one.output) for one in HONEST}
    assert trusted(put(bench, HONEST, tmp_path)) == honest, "the control: all of it is"
    told = trusted(put(bench, ACTS[act], tmp_path))
    assert told <= honest
    assert (told == honest) is (act in {"repeat", "swap", "replay"}), "what is lost is not trusted"


def test_a_record_that_cannot_be_read_takes_trust_away(bench: Bench, tmp_path: Path) -> None:
    store = put(bench, HONEST, tmp_path)
    store.append(Checkpointed(run=RUN, at="", step="s0", body=msgspec.Raw(b'{"torn":1}')))
    assert trusted(store) < {(one.step, one.output) for one in HONEST}
    assert not any(step == "s0" for step, _ in trusted(store))


def test_a_store_that_is_gone_verifies_nothing(tmp_path: Path) -> None:
    path = tmp_path / "gone.db"
    store = SqliteStore(path, agent="clerk", header=header(), clock=SteppingClock())
    path.rename(tmp_path / "elsewhere.db")
    with closing(store), pytest.raises(BackstopError) as caught:
        trusted(store)
    assert caught.value.slug.startswith("store-")


@pytest.mark.emulator
def test_a_shared_store_that_does_not_answer_verifies_nothing() -> None:
    with pytest.raises(BackstopError) as caught:
        trusted(
            FirestoreStore(
                project="p",
                database="(default)",
                collection="c",
                agent="clerk",
                header=None,
                clock=SteppingClock(),
                emulator="127.0.0.1:9",
                options=Options(patience_s=0.3),
            )
        )
    assert caught.value.slug == "store-down"
