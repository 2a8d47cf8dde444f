"""Messages on the real Pub/Sub emulator: what is given back comes again, and two may hold one."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from backstop.adapters.pubsub import Inbox, Outbox, Place, prepare
from backstop.errors import BackstopError
from backstop.ports import Delivery, Done, Handled, Later
from tests.emulators import fresh_name, pubsub_host  # noqa: F401 - a fixture

pytestmark = pytest.mark.emulator

PATIENCE_S = 20.0


@dataclass
class Desk:
    """Notes what it is handed, and answers as it is told."""

    answer: Callable[[Delivery], Awaitable[Handled]]
    seen: list[Delivery] = field(default_factory=list)
    told: list[Handled] = field(default_factory=list)

    async def handle(self, delivery: Delivery) -> Handled:
        self.seen.append(delivery)
        return await self.answer(delivery)

    def report(self, delivery: Delivery, handled: Handled) -> None:
        self.told.append(handled)


@pytest.fixture
def place(pubsub_host: str) -> Place:  # noqa: F811 - pytest's way
    place = Place(project=fresh_name("p"), emulator=pubsub_host)
    for _ in range(2):  # the second time, all is there
        prepare(place, topic="ticks", subscription="workers", first_pause_s=0.1, deadline_s=10)
    return place


def publish(place: Place, *data: bytes) -> list[str]:
    outbox = Outbox(place, "ticks")
    ids = [outbox.publish(each, {"run": "r1"}) for each in data]
    outbox.close()
    return ids


class Losing(Inbox):
    """Gives each message back while it is still being handled, as a lease that ran out does."""

    async def _keep(self, client: Any, ticket: str) -> None:
        await self._extend(client, ticket, 0)


def serve(
    place: Place, desk: Desk, *, until: Callable[[], bool], inbox: Inbox | None = None
) -> None:
    async def served() -> None:
        serving = asyncio.create_task(
            (inbox or Inbox(place, "workers")).serve(desk.handle, report=desk.report)
        )
        deadline = time.monotonic() + PATIENCE_S
        while not until() and time.monotonic() < deadline and not serving.done():  # noqa: ASYNC110 - on others
            await asyncio.sleep(0.02)
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving

    asyncio.run(served())
    assert until()


def test_what_is_given_back_comes_again_and_what_is_acknowledged_does_not(place: Place) -> None:
    first = publish(place, b"x")

    async def third_time(delivery: Delivery) -> Handled:
        return Done(reason="") if len(desk.seen) == 3 else Later(reason="")

    desk = Desk(third_time)
    serve(place, desk, until=lambda: len(desk.told) == 3)
    assert [delivery.id for delivery in desk.seen] == first * 3
    assert desk.seen[0].attributes == {"run": "r1"}
    assert desk.seen[0].data == b"x"

    async def done(delivery: Delivery) -> Handled:
        return Done(reason="")

    other = Desk(done)
    publish(place, b"y")
    serve(place, other, until=lambda: len(other.told) == 1)
    assert [delivery.data for delivery in other.seen] == [b"y"]


def test_one_tick_published_three_times_is_three_messages(place: Place) -> None:
    ids = publish(place, b"x", b"x", b"x")

    async def done(delivery: Delivery) -> Handled:
        return Done(reason="")

    desk = Desk(done)
    serve(place, desk, until=lambda: len(desk.told) == 3)
    assert sorted(delivery.id for delivery in desk.seen) == sorted(ids)
    assert len(set(ids)) == 3


def test_a_message_whose_lease_was_lost_has_two_holders_at_once_under_one_id(place: Place) -> None:
    publish(place, b"x")

    async def until_the_other_has_it(delivery: Delivery) -> Handled:
        while len(desk.seen) == 1:  # noqa: ASYNC110 - on others
            await asyncio.sleep(0.02)
        return Done(reason="")

    desk = Desk(until_the_other_has_it)
    inbox = Losing(place, "workers", at_once=2)
    serve(place, desk, until=lambda: len(desk.told) == 2, inbox=inbox)
    assert desk.seen[0].id == desk.seen[1].id


def test_a_message_that_is_at_work_when_the_worker_is_told_to_stop_is_seen_to_its_end(
    place: Place,
) -> None:
    publish(place, b"x")

    async def slow(delivery: Delivery) -> Handled:
        await asyncio.sleep(0.5)
        return Done(reason="late")

    desk = Desk(slow)
    serve(place, desk, until=lambda: len(desk.seen) == 1)
    assert desk.told == [Done(reason="late")]


def test_a_subscription_that_is_not_there_is_one_clear_error(place: Place) -> None:
    async def serve_nothing() -> None:
        desk = Desk(lambda _: asyncio.sleep(0, Done(reason="")))
        await Inbox(place, "nobody").serve(desk.handle, report=desk.report)

    with pytest.raises(BackstopError, match="subscriptions/nobody") as failure:
        asyncio.run(serve_nothing())
    assert failure.value.slug == "pubsub"


def test_a_pubsub_that_cannot_be_reached_is_asked_again_and_then_one_clear_error() -> None:
    nowhere = Place(project="nowhere", emulator="127.0.0.1:1")

    async def serve_nothing() -> None:
        desk = Desk(lambda _: asyncio.sleep(0, Done(reason="")))
        await Inbox(nowhere, "workers", tries=2).serve(desk.handle, report=desk.report)

    with pytest.raises(BackstopError, match="subscriptions/workers") as failure:
        asyncio.run(serve_nothing())
    assert failure.value.slug == "pubsub"
