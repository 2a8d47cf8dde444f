# ruff: noqa: ANN401 - the library has no types
"""Messages from a Pub/Sub subscription, and to a topic.

The subscription has to give back what is not acknowledged for as long as it takes (weeks, where
a person has to decide), more slowly each time: `prepare` makes one that does. "Exactly-once
delivery" is of no use here, since a message that is published twice is two messages.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeAlias, TypeVar

from backstop.errors import BackstopError, MissingExtra
from backstop.ports import Delivery, Done, Handled

R = TypeVar("R")

Handler: TypeAlias = Callable[[Delivery], Awaitable[Handled]]
Reporter: TypeAlias = Callable[[Delivery, Handled], None]

ACK_DEADLINE_S: Final = 60
"""Seconds after which a message of a worker that is gone comes again. A live one extends it."""

_LONGEST_PAUSE: Final = timedelta(minutes=10)
_FIRST_EXTENSION_S: Final = 4.0
"""A subscription may give as little as ten seconds."""
_ASKS_FOR_S: Final = 5.0
"""A worker that is told to stop waits so long: a question that is broken off may be answered."""
_ANSWERS_S: Final = 10.0
_PAUSE_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A project on Pub/Sub, or on the emulator at `emulator` (``address:port``)."""

    project: str
    emulator: str | None = None


class Inbox:
    """A subscription, as one process of a worker sees it.

    It takes `at_once` messages at a time, each when there is somebody to handle it: a message
    that waits in a buffer here would be kept from other workers. Where Pub/Sub cannot be
    reached it asks again, so many `tries` in a row, about a second apart.
    """

    def __init__(
        self, place: Place, subscription: str, *, at_once: int = 1, tries: int = 60
    ) -> None:
        self._place = place
        self._name = f"projects/{place.project}/subscriptions/{subscription}"
        self._at_once = at_once
        self._tries = tries
        self._unreached = 0

    async def serve(self, handle: Handler, *, report: Reporter) -> None:
        """Hand every message to `handle` and do what it says, until this is cancelled.

        What `handle` is at by then is seen to its end. `report` hears each answer before
        Pub/Sub does. Raises `BackstopError` (``pubsub``) if the subscription cannot be read.
        """
        client = _reader(self._place)
        takers = [
            asyncio.create_task(self._take(client, handle, report)) for _ in range(self._at_once)
        ]
        try:
            await asyncio.gather(*takers)
        finally:
            for taker in takers:
                taker.cancel()
            await asyncio.gather(*takers, return_exceptions=True)
            await client.transport.close()

    async def _take(self, client: Any, handle: Handler, report: Reporter) -> None:
        while True:
            pulled, told_to_stop = await _seen_to_its_end(self._pull(client))
            for received in pulled:
                if told_to_stop:  # this one came too late: let another worker have it at once
                    await self._extend(client, received.ack_id, 0)
                    continue
                answering = self._answer(client, received, handle, report)
                _, told_to_stop = await _seen_to_its_end(answering)
            if told_to_stop:
                raise asyncio.CancelledError

    async def _pull(self, client: Any) -> Sequence[Any]:
        from google.api_core import exceptions as said

        try:
            pulled = await client.pull(
                request={"subscription": self._name, "max_messages": 1},
                timeout=_ASKS_FOR_S,
                retry=None,  # told to stop, a worker would wait for it
            )
        except said.DeadlineExceeded:
            return ()  # there was nothing
        except (said.ServiceUnavailable, said.Aborted, said.InternalServerError) as error:
            self._unreached += 1
            if self._unreached >= self._tries:
                raise BackstopError(f"{self._name}: {error}", slug="pubsub") from error
            await asyncio.sleep(_PAUSE_S)
            return ()
        except said.GoogleAPIError as error:
            raise BackstopError(f"{self._name}: {error}", slug="pubsub") from error
        self._unreached = 0
        return tuple(pulled.received_messages)

    async def _answer(self, client: Any, received: Any, handle: Handler, report: Reporter) -> None:
        from google.api_core.exceptions import GoogleAPIError

        message, ticket = received.message, received.ack_id
        delivery = Delivery(
            id=message.message_id, attributes=dict(message.attributes), data=message.data
        )
        keeping = asyncio.create_task(self._keep(client, ticket))
        try:
            answer = await handle(delivery)
        finally:
            keeping.cancel()
        report(delivery, answer)
        # An answer that is lost costs a redelivery, which finds the step as it stands (S07).
        with contextlib.suppress(GoogleAPIError):
            if isinstance(answer, Done):
                await client.acknowledge(
                    request={"subscription": self._name, "ack_ids": [ticket]}, timeout=_ANSWERS_S
                )
            else:
                await self._extend(client, ticket, 0)

    async def _keep(self, client: Any, ticket: str) -> None:
        """Keep a message from coming again while its handler is at it (S06)."""
        from google.api_core.exceptions import GoogleAPIError

        await asyncio.sleep(_FIRST_EXTENSION_S)
        while True:
            with contextlib.suppress(GoogleAPIError):
                await self._extend(client, ticket, ACK_DEADLINE_S)
            await asyncio.sleep(ACK_DEADLINE_S / 3)

    async def _extend(self, client: Any, ticket: str, seconds: int) -> None:
        await client.modify_ack_deadline(
            request={
                "subscription": self._name,
                "ack_ids": [ticket],
                "ack_deadline_seconds": seconds,
            },
            timeout=_ANSWERS_S,
        )


async def _seen_to_its_end(work: Coroutine[Any, Any, R]) -> tuple[R, bool]:
    """What `work` gives, and whether its caller was told to stop meanwhile."""
    task, told_to_stop = asyncio.ensure_future(work), False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            told_to_stop = True
    return task.result(), told_to_stop


class Outbox:
    """A topic, as a scheduler sees it."""

    def __init__(self, place: Place, topic: str) -> None:
        self._client = _publisher(place)
        self._path = self._client.topic_path(place.project, topic)

    def publish(self, data: bytes, attributes: Mapping[str, str]) -> str:
        """Publish a message; its id. Raises `BackstopError` (``pubsub``)."""
        try:
            return str(self._client.publish(self._path, data, **attributes).result())
        except Exception as error:
            raise BackstopError(f"{self._path}: {error}", slug="pubsub") from error

    def close(self) -> None:
        """Send what is under way, and hang up."""
        self._client.stop()


def prepare(
    place: Place,
    *,
    topic: str,
    subscription: str,
    first_pause_s: float = 10,
    deadline_s: int = ACK_DEADLINE_S,
) -> None:
    """Make a topic and a subscription that fits a worker, where they are not there yet.

    What is given back comes again after `first_pause_s` seconds, and each time later, up to
    ten minutes; what a worker that is gone was at, after `deadline_s`.
    Raises `BackstopError` (``pubsub``).
    """
    from google.api_core.exceptions import AlreadyExists, GoogleAPICallError

    publishing, subscribing = _publisher(place), _subscriber(place)
    into = publishing.topic_path(place.project, topic)
    name = subscribing.subscription_path(place.project, subscription)
    wanted = {
        "name": name,
        "topic": into,
        "ack_deadline_seconds": deadline_s,
        "retry_policy": {
            "minimum_backoff": timedelta(seconds=first_pause_s),
            "maximum_backoff": _LONGEST_PAUSE,
        },
    }
    try:
        with subscribing, contextlib.suppress(AlreadyExists):
            with contextlib.suppress(AlreadyExists):
                publishing.create_topic(request={"name": into})
            subscribing.create_subscription(request=wanted)
    except GoogleAPICallError as error:
        raise BackstopError(f"{name}: {error}", slug="pubsub") from error
    finally:
        publishing.stop()


def _publisher(place: Place) -> Any:
    pubsub = _library()
    if place.emulator is None:
        return pubsub.PublisherClient()
    transport = pubsub.PublisherClient.get_transport_class("grpc")
    return pubsub.PublisherClient(transport=transport(channel=_channel(place.emulator)))


def _reader(place: Place) -> Any:
    _library()
    from google.pubsub_v1 import SubscriberAsyncClient

    if place.emulator is None:
        return SubscriberAsyncClient()
    from grpc.aio import insecure_channel  # type: ignore[import-untyped]

    transport = SubscriberAsyncClient.get_transport_class("grpc_asyncio")
    return SubscriberAsyncClient(transport=transport(channel=insecure_channel(place.emulator)))


def _subscriber(place: Place) -> Any:
    pubsub = _library()
    if place.emulator is None:
        return pubsub.SubscriberClient()
    transport = pubsub.SubscriberClient.get_transport_class("grpc")
    return pubsub.SubscriberClient(transport=transport(channel=_channel(place.emulator)))


def _channel(address: str) -> Any:
    import grpc  # type: ignore[import-untyped]

    return grpc.insecure_channel(address)


def _library() -> Any:
    try:
        from google.cloud import pubsub_v1  # type: ignore[attr-defined]
    except ImportError as error:
        raise MissingExtra(
            "a worker on Pub/Sub needs `pip install 'backstop-gate[pubsub]'`"
        ) from error
    return pubsub_v1
