"""What the Firestore store keeps in its documents, and what it says where it cannot go on."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from backstop.adapters.firestore import FirestoreStore, Options
from backstop.adapters.firestore.chunks import CHUNK
from backstop.adapters.firestore.messages import Document, Range, Write
from backstop.adapters.firestore.wire import Database
from backstop.adapters.owners import this_process
from backstop.adapters.stamps import micros
from backstop.clock import SystemClock
from backstop.core.canon import CANON_VERSION
from backstop.core.events import (
    FORMAT,
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectInDoubt,
    Failure,
    Header,
    RunOpened,
)
from backstop.core.lifecycle import Lives
from backstop.core.sealing import EVENT
from backstop.errors import BackstopError
from backstop.ports import Claim, Held, InDoubt, Liveness, Recorded
from tests.emulators import firestore, fresh_name

pytestmark = pytest.mark.emulator

AT_LAST = datetime(2100, 1, 1, tzinfo=UTC)


@dataclass
class Place:
    """A ledger of its own in the emulator, and a look at its documents."""

    collection: str = field(default_factory=fresh_name)
    opened: list[FirestoreStore] = field(default_factory=list)

    def store(
        self, header: Header | None = None, *, agent: str = "clerk", **options: object
    ) -> FirestoreStore:
        return self.find(
            header or Header(format=FORMAT, agent=agent, canon=CANON_VERSION),
            agent=agent,
            **options,
        )

    def find(
        self, header: Header | None = None, *, agent: str = "clerk", **options: object
    ) -> FirestoreStore:
        store = FirestoreStore(
            project="p",
            database="(default)",
            collection=self.collection,
            agent=agent,
            header=header,
            clock=SystemClock(),
            emulator=firestore(),
            options=Options(**{"patience_s": 30, **options}),  # type: ignore[arg-type]
        )
        self.opened.append(store)
        return store

    def database(self) -> Database:
        return Database(project="p", name="(default)", emulator=firestore(), patience_s=30)

    def document(self, path: str) -> Document:
        database = self.database()
        (found,) = database.get([f"{self.collection}/{path}"], database.patience())
        database.close()
        assert found is not None
        return found

    def change(self, path: str, **fields: str | int) -> None:
        database = self.database()
        version = self.document(path).version
        write = Write(path=f"{self.collection}/{path}", fields=fields, version=version)
        database.commit([write], database.patience())
        database.close()

    def names(self, path: str) -> list[str]:
        database = self.database()
        asked = Range(collection=f"{self.collection}/{path}")
        found = [document.id for document in database.query(asked)]
        database.close()
        return found


@pytest.fixture
def place() -> Iterator[Place]:
    made = Place()
    yield made
    for store in made.opened:
        store.close()


def pay(key: str = "k1", *, memo: str = "", attempt: int = 1) -> EffectClaimed:
    return EffectClaimed(
        run="r1",
        at="",
        step="s0",
        tool="pay",
        key=key,
        fingerprint="f1",
        attempt=attempt,
        owner="alice",
        args=msgspec.Raw(msgspec.json.encode({"memo": memo})),
    )


def granted(store: FirestoreStore, intent: EffectClaimed) -> Claim:
    claim = store.claim(intent)
    assert isinstance(claim, Claim)
    return claim


def committed(claim: Claim, result: str = "paid") -> EffectCommitted:
    return EffectCommitted(
        run="r1",
        at="",
        key=claim.key,
        fence=claim.fence,
        result=msgspec.Raw(msgspec.json.encode(result)),
    )


def failed(claim: Claim) -> EffectFailed:
    error = Failure(type="Refused")
    return EffectFailed(run="r1", at="", key=claim.key, fence=claim.fence, error=error, final=False)


def test_a_claim_and_its_outcome_are_one_document_and_each_write_has_a_token(place: Place) -> None:
    store = place.store()
    claim = granted(store, pay())
    first = place.document("clerk/effects/k1")
    assert first.text("state") == "executing"
    assert first.text("process") == this_process()
    store.settle(committed(claim), claim=claim)
    then = place.document("clerk/effects/k1")
    assert then.text("state") == "committed"
    assert first.text("token") != then.text("token")
    assert then.text("claim") == first.text("claim")
    assert '"result":"paid"' in then.text("last")
    assert place.names("clerk/events") == []


def test_a_line_that_is_replaced_moves_and_keeps_when_it_was_written(place: Place) -> None:
    store = place.store()
    first = granted(store, pay())
    store.settle(failed(first), claim=first)
    began = place.document("clerk/effects/k1")
    second = granted(store, pay(attempt=2))
    store.settle(committed(second), claim=second)
    (claim, last) = place.names("clerk/events")
    assert claim.startswith("k1-claim-")
    assert last.startswith("k1-last-")
    assert place.document(f"clerk/events/{claim}").number("claim_written") == began.created
    assert place.document(f"clerk/events/{last}").number("claim_written") == began.updated
    assert place.document("clerk/effects/k1").number("claim_written") not in {None, 0}
    assert [type(event).__name__ for event in store.read()] == [
        "EffectClaimed",
        "EffectFailed",
        "EffectClaimed",
        "EffectCommitted",
    ]


def test_a_snapshot_leaves_out_what_the_server_took_in_later_whatever_the_writers_clock(
    place: Place,
) -> None:
    class Slow:
        """A clock that is an hour behind."""

        def now(self) -> datetime:
            return SystemClock().now() - timedelta(hours=1)

    store = place.store()
    store.append(RunOpened(run="r1", at=""))
    at = SystemClock().now()
    before = list(store.pull("all", at=at))
    assert len(before) == 1
    late = FirestoreStore(
        project="p",
        database="(default)",
        collection=place.collection,
        agent="clerk",
        header=store.header,
        clock=Slow(),
        emulator=firestore(),
    )
    late.append(RunOpened(run="r2", at=""))
    late.close()
    assert list(store.pull("all", at=at)) == before
    assert len(list(store.pull("all", at=SystemClock().now()))) == 2


def test_pulls_for_one_instant_are_equal_and_lawful_while_others_write(place: Place) -> None:
    store, writers = place.store(), [place.store() for _ in range(3)]
    ends = threading.Event()

    def write(mine: FirestoreStore, name: str) -> None:
        for number in itertools.count():
            if ends.is_set():
                return
            claim = granted(mine, pay(f"{number % 7}{name}{number}"))
            if number % 3 == 0:
                mine.settle(failed(claim), claim=claim)
                claim = granted(mine, pay(claim.key, attempt=2))
            if number % 2 == 0:
                doubt = EffectInDoubt(
                    run="r1", at="", key=claim.key, fence=claim.fence, reason="timeout"
                )
                mine.settle(doubt, claim=claim)
            mine.settle(committed(claim), claim=claim)

    threads = [
        threading.Thread(target=write, args=(mine, name))
        for mine, name in zip(writers, "abc", strict=True)
    ]
    for thread in threads:
        thread.start()
    try:
        while len(list(store.read())) < 20:
            time.sleep(0.05)
        at = SystemClock().now()
        pulls = [sorted(store.pull("all", at=at)) for _ in range(4)]
    finally:
        ends.set()
        for thread in threads:
            thread.join()
    pulls.append(sorted(row for part in "0123456789abcdef" for row in store.pull(part, at=at)))
    assert len(pulls[0]) > 10
    assert all(pull == pulls[0] for pull in pulls)
    lives = Lives(guarded=True)
    assert {lives.follow(EVENT.decode(row.line)) for row in pulls[0]} == {None}


def test_the_parts_of_a_shared_ledger_hold_every_name_once(place: Place) -> None:
    store = place.store()
    for key in ("0a", "1", "5b", "9f", "a0", "ff", "zz", "-"):
        claim = granted(store, pay(key))
        store.settle(committed(claim), claim=claim)
    parts = tuple("0123456789abcdef")
    whole = sorted(store.pull("all", at=AT_LAST))
    assert len(whole) == 16
    assert sorted(row for part in parts for row in store.pull(part, at=AT_LAST)) == whole


def test_the_owner_is_this_process_and_a_dead_one_leaves_a_doubt(place: Place) -> None:
    store = place.store()
    granted(store, pay())
    assert store.claim(pay()) == Held(owner="alice")
    place.change("clerk/effects/k1", process=f"{this_process()}1")
    (shown,) = store.standings()
    assert shown.owner is Liveness.GONE
    assert isinstance(store.claim(pay()), InDoubt)


def test_a_lease_counts_where_nobody_can_look_and_by_the_servers_time(place: Place) -> None:
    store = place.store()
    leased = msgspec.structs.replace(pay(), lease_s=0.3)
    granted(store, leased)
    place.change("clerk/effects/k1", process="elsewhere/b/n/1/2")
    assert store.claim(leased) == Held(owner="alice")
    stale = place.document("clerk/effects/k1").updated + 300_000
    while micros(SystemClock().now()) <= stale:
        time.sleep(0.02)
    assert isinstance(store.claim(leased), InDoubt)


def test_a_large_result_is_cut_and_a_missing_piece_of_it_is_an_error_and_no_second_run(
    place: Place,
) -> None:
    """S09: a result that cannot be read is an error, not a reason to run again."""
    store = place.store()
    claim = granted(store, pay(memo="m" * 500_000))
    big = "x" * (CHUNK + 1)
    store.settle(committed(claim, big), claim=claim)
    assert store.claim(pay()) == Recorded(result=msgspec.Raw(msgspec.json.encode(big)))
    assert len(place.names("clerk/chunks")) == 3
    place.change("clerk/effects/k1", last_chunks=f"{'0' * 64}/2")
    with pytest.raises(BackstopError) as caught:
        store.claim(pay())
    assert caught.value.slug == "store-unreadable"


@pytest.mark.parametrize(
    ("name", "value"),
    [("last", '{"t":"effect_committed"'), ("state", "eaten"), ("claim", '{"t":"seal"}')],
)
def test_a_record_that_cannot_be_read_is_an_error_and_no_second_run(
    place: Place, name: str, value: str
) -> None:
    """S09: a result that cannot be read is an error, not a reason to run again."""
    store = place.store()
    claim = granted(store, pay())
    store.settle(committed(claim), claim=claim)
    place.change("clerk/effects/k1", **{name: value})
    with pytest.raises(BackstopError) as caught:
        store.claim(pay())
    assert caught.value.slug == "store-unreadable"


def test_nothing_expires_unless_asked_for_and_then_only_what_is_decided(place: Place) -> None:
    """K25: a key that is forgotten would run again."""
    plain, sweeping = place.store(), place.store(expire_after=timedelta(days=30))
    claim = granted(plain, pay())
    plain.settle(committed(claim), claim=claim)
    assert "expire_at" not in place.document("clerk/effects/k1").fields
    claim = granted(sweeping, pay("k2"))
    assert "expire_at" not in place.document("clerk/effects/k2").fields
    sweeping.settle(failed(claim), claim=claim)
    assert "expire_at" not in place.document("clerk/effects/k2").fields
    claim = granted(sweeping, pay("k2"))
    sweeping.settle(committed(claim), claim=claim)
    assert "expire_at" in place.document("clerk/effects/k2").fields
    again = msgspec.structs.replace(pay("k2"), override='{"again":1}')
    granted(sweeping, again)
    assert "expire_at" not in place.document("clerk/effects/k2").fields


def test_a_time_to_live_that_a_redelivery_may_outlive_is_refused(place: Place) -> None:
    with pytest.raises(BackstopError) as caught:
        place.store(expire_after=timedelta(days=13))
    assert caught.value.slug == "store-refused"


def test_where_nothing_was_written_there_is_nothing_to_look_at(place: Place) -> None:
    with pytest.raises(BackstopError) as caught:
        place.find()
    assert caught.value.slug == "store-missing"


def test_a_ledger_that_is_laid_out_otherwise_is_refused(place: Place) -> None:
    place.store()
    place.change("clerk", layout=2)
    with pytest.raises(BackstopError) as caught:
        place.find()
    assert caught.value.slug == "store-schema"


@pytest.mark.parametrize("agent", ["a/b", "..", "__x__", "Åsa's agent"])
def test_an_agent_may_have_any_name(place: Place, agent: str) -> None:
    place.store(agent=agent).append(RunOpened(run="r1", at=""))
    assert [event.run for event in place.find(agent=agent).read()] == ["r1"]


def test_two_agents_of_one_collection_do_not_see_each_other(place: Place) -> None:
    granted(place.store(agent="one"), pay())
    granted(place.store(agent="two"), pay())


def test_an_argument_that_firestore_could_not_hold_as_a_value_is_kept_as_text(
    place: Place,
) -> None:
    args = b'{"":[[1,[2]]],"__x__":123456789012345678901234567890,"text":"\\u0000 \xc3\x9f"}'
    store = place.store()
    granted(store, msgspec.structs.replace(pay(), args=msgspec.Raw(args)))
    (event,) = place.find().read()
    assert isinstance(event, EffectClaimed)
    assert bytes(event.args) == args


OPENING = """
import sys
from backstop.core.canon import CANON_VERSION
from backstop.core.events import FORMAT, Header
from backstop.errors import BackstopError
from backstop.wiring.stores import find_store, open_store
try:
    open_store(sys.argv[1], header=Header(format=FORMAT, agent="clerk", canon=CANON_VERSION))
    print(find_store(sys.argv[1], agent="clerk").header.agent)
except BackstopError as error:
    print(error.slug)
"""


def opened_by_url(url: str, *, before: str = "", **environment: str) -> str:
    environ = {name: text for name, text in os.environ.items() if "EMULATOR" not in name}
    done = subprocess.run(
        [sys.executable, "-c", before + OPENING, url],
        env={**environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_a_url_opens_the_emulator_that_the_environment_names() -> None:
    url = f"firestore://p/(default)/{fresh_name()}"
    assert opened_by_url(url, FIRESTORE_EMULATOR_HOST=firestore()) == "clerk"


def test_without_an_account_the_service_is_denied_at_once(tmp_path: Path) -> None:
    missing = str(tmp_path / "account.json")
    url = "firestore://p/(default)/c"
    assert opened_by_url(url, GOOGLE_APPLICATION_CREDENTIALS=missing) == "store-denied"


def test_without_the_extra_the_url_says_what_to_install() -> None:
    blocked = "import sys\nsys.modules['google.cloud.firestore_v1'] = None\n"
    assert opened_by_url("firestore://p/(default)/c", before=blocked) == "missing-extra"
