"""What every store promises of its ledger as a whole: its header, and how it is pulled."""

from __future__ import annotations

from datetime import datetime
from threading import Barrier, Thread

import msgspec
import pytest

from backstop.core.declaration import Declaration
from backstop.core.events import Event, Header, RunOpened, StepStarted
from backstop.core.sealing import EVENT
from backstop.errors import BackstopError, StaleClaim
from backstop.ports import Claim, Recorded, Stamped, Store
from tests.contract.bench import Bench, header
from tests.contract.deeds import committed, done, doubted, failed, granted, pay, resolved

REFUSED = {StaleClaim.slug, "illegal-move"}


def live_through(store: Store) -> None:
    """Facts, retries, doubts, repeats: all that leaves more than one event of a key."""
    store.append(RunOpened(run="r1", at=""))
    first = granted(store, pay("alice"))
    store.settle(failed(first, final=False), claim=first)
    store.append(StepStarted(run="r1", at="", step="s0", cursor=0))
    second = granted(store, pay("alice"))
    store.settle(doubted(second), claim=second)
    store.append(RunOpened(run="r2", at=""))
    store.settle(resolved("reopened", fence=3, run="r2"))
    done(store, pay("bob", run="r2"))
    done(store, pay(override='{"again":1}'))
    granted(store, pay(key="k2"))


def pulled(store: Store, at: datetime) -> list[Stamped]:
    return sorted(one for part in store.parts(at) for one in store.pull(part, at=at))


def told(stamped: list[Stamped]) -> list[Event]:
    return [EVENT.decode(one.line) for one in stamped]


def test_what_is_pulled_is_what_is_read(bench: Bench) -> None:
    live_through(bench.store)
    at = bench.clock.now()
    assert told(pulled(bench.store, at)) == list(bench.store.read())
    assert told(pulled(bench.reopen(None), at)) == list(bench.store.read())


def test_two_pulls_for_one_instant_are_equal_whatever_is_written_since(bench: Bench) -> None:
    live_through(bench.store)
    at = bench.clock.now()
    before = pulled(bench.store, at)
    length = len(list(bench.store.read()))
    other = bench.reopen(header())
    claim = Claim(run="r1", key="k2", owner="alice", fence=1)
    other.settle(doubted(claim), claim=claim)
    other.settle(committed(claim), claim=claim)
    done(other, pay(key="k3"))
    done(other, pay(override='{"again":2}'))
    other.append(RunOpened(run="r3", at=""))
    assert pulled(bench.store, at) == before
    later = pulled(bench.store, bench.clock.now())
    assert later[:length] == before
    assert len(later) == length + 7


def test_an_effect_is_pulled_as_it_was_at_each_instant(bench: Bench) -> None:
    instants = []
    for number in range(3):
        claim = granted(bench.store, pay())
        instants.append(bench.clock.now())
        bench.store.settle(failed(claim, final=False), claim=claim)
        instants.append(bench.clock.now())
        assert len(instants) == 2 * number + 2
    assert [len(pulled(bench.store, at)) for at in instants] == [1, 2, 3, 4, 5, 6]


def test_a_store_without_events_has_an_empty_ledger(bench: Bench) -> None:
    assert pulled(bench.store, bench.clock.now()) == []
    assert list(bench.store.read()) == []


def declared(tool: str, **said: object) -> tuple[dict[str, str], dict[str, Declaration]]:
    one = Declaration(tool=tool, **said)  # type: ignore[arg-type]
    return {tool: one.digest}, {one.digest: one}


def test_each_process_adds_what_it_knows_to_the_header(bench: Bench) -> None:
    tools, known = declared("pay")
    bench.reopen(header(tools=tools, declarations=known, versions={"aa": "v1"}))
    newer, since = declared("pay", effect=False)
    bench.reopen(header(tools=newer, declarations=since, versions={"bb": "v2"}))
    seen = bench.reopen(None).header
    assert seen.tools == newer
    assert seen.declarations == known | since
    assert seen.versions == {"aa": "v1", "bb": "v2"}


@pytest.mark.parametrize(
    ("said", "slug"),
    [
        ({"tenant": "other"}, "store-foreign-agent"),
        ({"app": "other"}, "store-foreign-agent"),
        ({"canon": 99}, "store-canon"),
        ({"format": 99}, "store-canon"),
    ],
)
def test_a_header_of_another_ledger_is_refused_and_nothing_changes(
    bench: Bench, said: dict[str, object], slug: str
) -> None:
    before: Header = bench.store.header
    with pytest.raises(BackstopError) as caught:
        bench.reopen(header(**said))
    assert caught.value.slug == slug
    assert "\n" not in str(caught.value)
    assert bench.reopen(None).header == before
    done(bench.store, pay())


def test_five_megabytes_go_in_and_come_out(bench: Bench) -> None:
    args, result = (msgspec.Raw(msgspec.json.encode({name: name * 5_000_000})) for name in "ar")
    claim = granted(bench.store, pay(args=args))
    bench.store.settle(committed(claim, bytes(result)), claim=claim)
    again = bench.reopen(header()).claim(pay("bob"))
    assert isinstance(again, Recorded)
    assert bytes(again.result) == bytes(result)
    claimed, settled = bench.store.read("r1")
    assert bytes(getattr(claimed, "args")) == bytes(args)  # noqa: B009 - of the union's one kind
    assert len(getattr(settled, "result")) == len(result)  # noqa: B009
    assert len(pulled(bench.store, bench.clock.now())) == 2


def test_of_many_resolutions_and_late_owners_at_once_one_decides(bench: Bench) -> None:
    claim = granted(bench.store, pay())
    bench.store.settle(doubted(claim), claim=claim)
    views = [bench.store, bench.reopen(header())]
    gate, fates = Barrier(4), list[str]()

    def act(number: int) -> None:
        gate.wait()
        try:
            if number % 2:
                views[number // 2].settle(resolved("failed"))
            else:
                views[number // 2].settle(committed(claim), claim=claim)
        except BackstopError as error:
            fates.append("refused" if error.slug in REFUSED else error.slug)
        else:
            fates.append("done")

    threads = [Thread(target=act, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(fates) == ["done", "refused", "refused", "refused"]
    assert len(list(bench.store.read())) == 3
