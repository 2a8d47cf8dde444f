"""The harness's end of the wire: every caller gets its own answer, in whatever order they come."""

from __future__ import annotations

import asyncio
import json
import os
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest

from backstop.replay.harness.channel import Channel, Message, Raw, decode, encode


class Peer:
    """Stands for the driver: collects `batch` calls, then answers them shuffled."""

    def __init__(self, batch: int = 1) -> None:
        self.answers_from, self._answers_to = os.pipe()
        self._calls_from, self.calls_to = os.pipe()
        self._batch = batch
        self.heard: list[Message] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        chance = random.Random(3)
        held: list[Message] = []
        with os.fdopen(self._calls_from, "rb") as calls:
            for line in calls:
                message = json.loads(line)
                self.heard.append(message)
                if "id" not in message:
                    continue
                held.append(message)
                if len(held) == self._batch:
                    chance.shuffle(held)
                    answers = [{"id": one["id"], "echo": one["n"]} for one in held]
                    held.clear()
                    text = b'{"id":999}\nnot json\n' + b"".join(map(encode, answers))
                    for start in range(0, len(text), 7):
                        os.write(self._answers_to, text[start : start + 7])

    def close(self) -> None:
        os.close(self.calls_to)
        self._thread.join()
        os.close(self._answers_to)
        os.close(self.answers_from)


@pytest.fixture
def peer(request: pytest.FixtureRequest) -> Iterator[Peer]:
    made = Peer(getattr(request, "param", 1))
    yield made
    made.close()


def channel(peer: Peer) -> Channel:
    return Channel(read=peer.answers_from, write=peer.calls_to)


def test_a_blocking_call_is_answered_without_a_loop(peer: Peer) -> None:
    made = channel(peer)
    made.tell({"t": "escape"})
    assert made.ask_blocking({"n": 1})["echo"] == 1
    assert made.next_id == 2
    assert peer.heard == [{"t": "escape"}, {"n": 1, "id": 1}]


@pytest.mark.parametrize("peer", [6], indirect=True)
def test_parallel_tasks_get_their_own_answers_in_any_order(peer: Peer) -> None:
    async def story() -> list[Any]:
        made = channel(peer)
        made.attach(asyncio.get_running_loop())
        answers = await asyncio.gather(*(made.ask({"n": n}) for n in range(6)))
        made.detach()
        return [answer["echo"] for answer in answers]

    assert asyncio.run(story()) == list(range(6))


def test_the_loop_and_blocked_callers_share_one_wire(peer: Peer) -> None:
    async def story() -> list[Any]:
        made = channel(peer)
        made.attach(asyncio.get_running_loop())

        async def task(n: int) -> Any:
            if n % 3 == 0:
                return made.ask_blocking({"n": n})["echo"]
            if n % 3 == 1:
                return (await asyncio.to_thread(made.ask_blocking, {"n": n}))["echo"]
            return (await made.ask({"n": n}))["echo"]

        found = await asyncio.gather(*(task(n) for n in range(30)))
        with ThreadPoolExecutor(1) as pool:
            # The loop's thread waits for a thread that waits for the wire.
            found.append(pool.submit(made.ask_blocking, {"n": 30}).result()["echo"])
        made.detach()
        return found

    assert asyncio.run(asyncio.wait_for(story(), 30)) == list(range(31))


def test_numbering_goes_on_where_it_is_told_to(peer: Peer) -> None:
    made = channel(peer)
    made.continue_after(41)
    assert made.ask_blocking({"n": 0})["id"] == 41


def test_raw_json_is_spliced_in_as_it_is() -> None:
    line = encode({"t": "intent", "args": Raw('{"a":1.10}'), "text": "é\n"})
    assert line == '{"t":"intent","args":{"a":1.10},"text":"é\\n"}\n'.encode()


def test_numbers_come_back_as_floats_unless_that_would_lose_digits() -> None:
    message = decode(b'{"a":12.50,"b":0.1234567890123456789,"c":7}')
    assert message == {"a": 12.5, "b": Decimal("0.1234567890123456789"), "c": 7}
    assert [type(value) for value in message.values()] == [float, Decimal, int]


@pytest.mark.parametrize("line", [b"[]", b"7", b"{", b"\xff"])
def test_what_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises((TypeError, ValueError)):
        decode(line)
