# ruff: noqa: ANN401 - the library has no types
"""Messages from a Pub/Sub subscription, and to a topic.

The subscription has to give back what is not acknowledged for as long as it takes (weeks, where
a person has to decide), more slowly each time: `prepare` makes one that does. "Exactly-once
delivery" is of no use here, since a message that is published twice is two messages.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeAlias

from backstop.errors import BackstopError, MissingExtra
from backstop.ports import Delivery, Done, Handled

Handler: TypeAlias = Callable[[Delivery], Awaitable[Handled]]
Reporter: TypeAlias = Callable[[Delivery, Handled], None]

ACK_DEADLINE_S: Final = 60
"""Seconds after which a message of a worker that is gone comes again. A live one extends it."""

_LONGEST_PAUSE: Final = timedelta(minutes=10)
_SHUTS_DOWN_WITHIN_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A project on Pub/Sub, or on the emulator at `emulator` (``address:port``)."""

    project: str
    emulator: str | None = None


class Inbox:
    """A subscription, as one process of a worker sees it.

    `at_once` is how many messages it takes at a time.
    """

    def __init__(self, place: Place, subscription: str, *, at_once: int = 1) -> None:
        self._client = _subscriber(place)
        self._path = self._client.subscription_path(place.project, subscription)
        self._at_once = at_once

    async def serve(self, handle: Handler, *, report: Reporter) -> None:
        """Hand every message to `handle` and do what it says, until this is cancelled.

        A message at which `handle` is when that happens is seen to its end. `report` hears
        each answer before Pub/Sub does. Raises `BackstopError` (``pubsub``) when the
        subscription is lost for good.
        """
        from google.cloud.pubsub_v1.types import FlowControl  # type: ignore[import-untyped]

        loop = asyncio.get_running_loop()

        async def answered(message: Any) -> None:
            delivery = Delivery(
                id=message.message_id, attributes=dict(message.attributes), data=message.data
            )
            answer = await handle(delivery)
            report(delivery, answer)
            if isinstance(answer, Done):
                message.ack()
            else:
                message.nack()

        def arrived(message: Any) -> None:
            """On a thread of the client's; what fails here is given back by the deadline."""
            asyncio.run_coroutine_threadsafe(answered(message), loop).result()

        streaming = self._client.subscribe(
            self._path,
            callback=arrived,
            flow_control=FlowControl(max_messages=self._at_once),
            await_callbacks_on_shutdown=True,
        )
        try:
            await asyncio.wrap_future(streaming)
        except Exception as error:
            raise BackstopError(f"{self._path}: {error}", slug="pubsub") from error
        finally:
            streaming.cancel()
            await asyncio.to_thread(_ended, streaming)
            self._client.close()


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


def prepare(place: Place, *, topic: str, subscription: str, first_pause_s: float = 10) -> None:
    """Make a topic and a subscription that fits a worker, where they are not there yet.

    What is given back comes again after `first_pause_s` seconds, and each time later, up to
    ten minutes. Raises `BackstopError` (``pubsub``).
    """
    from google.api_core.exceptions import AlreadyExists, GoogleAPICallError

    publishing, subscribing = _publisher(place), _subscriber(place)
    into = publishing.topic_path(place.project, topic)
    name = subscribing.subscription_path(place.project, subscription)
    wanted = {
        "name": name,
        "topic": into,
        "ack_deadline_seconds": ACK_DEADLINE_S,
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
        from google.cloud import pubsub_v1  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingExtra(
            "a worker on Pub/Sub needs `pip install 'backstop-gate[pubsub]'`"
        ) from error
    return pubsub_v1


def _ended(streaming: Any) -> None:
    with contextlib.suppress(Exception):  # how it ended is known, or of no interest any more
        streaming.result(timeout=_SHUTS_DOWN_WITHIN_S)
