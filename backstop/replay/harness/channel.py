"""The harness's end of the wire: calls with ids, answers in any order, callers of every kind.

Coroutines await their answer on the event loop; plain functions block for theirs, on the
loop's own thread or on another. Whoever blocks becomes the reader if nobody reads, and
hands out what is not its own; the loop reads when nobody blocks.

When an answer arrives depends on the machine, and coroutines that run side by side would
go on in another order each time. So each gets its answer only once nothing else is left to
do on the loop, one at a time and in the order of asking.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import threading
from decimal import Decimal
from typing import Any, Final, TypeAlias

Message: TypeAlias = dict[str, Any]

_CHUNK: Final = 1 << 18
_DRIVER_IS_GONE: Final = 70
_PATIENCE: Final = 1_000
"""Turns of a busy loop after which an answer is handed out all the same: it may wait for it."""


class Answer:
    """The answer to one call, which a blocked caller waits for."""

    __slots__ = ("message",)

    def __init__(self) -> None:
        self.message: Message | None = None


class Channel:
    """Speaks JSON lines over two descriptors that nothing else in this process holds."""

    def __init__(self, *, read: int, write: int, first_id: int = 1) -> None:
        self._read = read
        self._write = write
        self._next_id = first_id
        self._buffer = bytearray()
        self._waiting: dict[int, Answer | asyncio.Future[Message]] = {}
        self._arrived: dict[int, Message] = {}
        self._handing_out = False
        self._turns = 0
        self._turn = threading.Condition()
        self._writing = threading.Lock()
        self._somebody_reads = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread = 0
        os.set_blocking(read, False)

    @property
    def next_id(self) -> int:
        """The id that the next call will carry."""
        return self._next_id

    @property
    def is_asked(self) -> bool:
        """Does anybody wait for an answer of the driver's?"""
        return bool(self._waiting)

    def continue_after(self, next_id: int) -> None:
        """Go on numbering from `next_id`; what arrived for others before is dropped."""
        self._next_id = next_id
        self._buffer.clear()
        self._waiting.clear()
        self._arrived.clear()
        self._handing_out = False

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read on this loop, which must be the calling thread's, whenever nobody blocks."""
        self._loop = loop
        self._loop_thread = threading.get_ident()
        loop.add_reader(self._read, self._on_readable)

    def detach(self) -> None:
        """Stop reading on the loop."""
        if self._loop is not None:
            self._loop.remove_reader(self._read)
            self._loop = None

    def tell(self, message: Message) -> None:
        """Send a message that has no answer."""
        self._send(message)

    async def ask(self, message: Message) -> Message:
        """Send a call and await its answer."""
        waiting: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._send_call(message, waiting)
        return await waiting

    def ask_blocking(self, message: Message) -> Message:
        """Send a call and block until its answer is here, reading for everybody meanwhile."""
        answer = Answer()
        self._send_call(message, answer)
        while answer.message is None:
            with self._turn:
                if answer.message is not None:
                    break
                if self._somebody_reads:
                    self._turn.wait()
                    continue
                self._somebody_reads = True
            try:
                self._wait_readable()
                self._take()
            finally:
                with self._turn:
                    self._somebody_reads = False
                    self._turn.notify_all()
        return answer.message

    def _send_call(self, message: Message, waiting: Answer | asyncio.Future[Message]) -> None:
        with self._turn:
            number = self._next_id
            self._next_id += 1
            self._waiting[number] = waiting
        self._send({**message, "id": number})

    def _send(self, message: Message) -> None:
        line = memoryview(encode(message))
        with self._writing:
            while line:
                try:
                    line = line[os.write(self._write, line) :]
                except BlockingIOError:
                    select.select([], [self._write], [])
                except OSError:
                    os._exit(_DRIVER_IS_GONE)

    def _wait_readable(self) -> None:
        poll = select.poll()
        poll.register(self._read, select.POLLIN)
        poll.poll()

    def _on_readable(self) -> None:
        with self._turn:
            if self._somebody_reads:
                return  # a blocked thread is at it and will hand out what is the loop's
            self._somebody_reads = True
        try:
            self._take()
        finally:
            with self._turn:
                self._somebody_reads = False
                self._turn.notify_all()

    def _take(self) -> None:
        """Read what is there and hand it out; only the one reader comes here."""
        try:
            chunk = os.read(self._read, _CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            os._exit(_DRIVER_IS_GONE)  # nobody is left to answer
        self._buffer += chunk
        if b"\n" not in chunk:
            return
        *lines, rest = bytes(self._buffer).split(b"\n")
        self._buffer[:] = rest
        for line in lines:
            self._hand_out(line)

    def _hand_out(self, line: bytes) -> None:
        try:
            message = decode(line)
            waiting = self._waiting.get(message["id"])
        except (ValueError, KeyError, TypeError):
            return  # the tail of what a run that died had begun to read
        if isinstance(waiting, Answer):
            with self._turn:
                self._waiting.pop(message["id"], None)
                waiting.message = message
        elif waiting is not None:
            with self._turn:
                self._arrived[message["id"]] = message
                known, self._handing_out = self._handing_out, True
            if not known:
                self._hand_out_when_idle(waiting.get_loop())

    def _hand_out_when_idle(self, loop: asyncio.AbstractEventLoop) -> None:
        # One at a time: two of them would each take the other for work that is left to do.
        if threading.get_ident() == self._loop_thread:
            loop.call_soon(self._hand_out_next, loop)
        else:
            loop.call_soon_threadsafe(self._hand_out_next, loop)

    def _hand_out_next(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give the first coroutine that waits its answer, if it is here and all others rest."""
        self._turns += 1
        if getattr(loop, "_ready", None) and self._turns < _PATIENCE:
            loop.call_soon(self._hand_out_next, loop)
            return
        self._turns = 0
        with self._turn:
            first = next((n for n, one in self._waiting.items() if one.__class__ is not Answer), 0)
            message = self._arrived.pop(first, None)
            waiting = self._waiting.pop(first) if message is not None else None
            self._handing_out = bool(self._arrived) and message is not None
            if self._handing_out:
                loop.call_soon(self._hand_out_next, loop)
        if isinstance(waiting, asyncio.Future) and message is not None and not waiting.done():
            waiting.set_result(message)


class Raw(str):
    """JSON text that goes into a message as it is."""

    __slots__ = ()


def encode(message: Message) -> bytes:
    """The line of a message; `Raw` values at its top level are spliced in verbatim."""
    parts = [
        f"{json.dumps(name)}:{value if isinstance(value, Raw) else _dump(value)}"
        for name, value in message.items()
    ]
    return ("{" + ",".join(parts) + "}\n").encode("utf-8", "backslashreplace")


def _dump(value: object) -> str:
    return _ENCODER.encode(value)


def decode(line: bytes) -> Message:
    """A message of the driver, numbers as a candidate expects them: floats that lose nothing."""
    message = _DECODER.decode(line.decode())
    if not isinstance(message, dict):
        raise TypeError("a message is an object")
    return message


def _number(literal: str) -> float | Decimal:
    near = float(literal)
    exact = Decimal(literal)
    # An amount with more digits than a double holds must come back as it was recorded.
    return near if Decimal(repr(near)) == exact else exact


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_DECODER: Final = json.JSONDecoder(parse_float=_number)
