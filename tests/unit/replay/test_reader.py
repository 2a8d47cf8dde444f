"""What the harness says is read strictly, or not at all."""

from __future__ import annotations

import pytest

from backstop.errors import WireError
from backstop.replay import wire
from backstop.replay.reader import read_message

GOOD = b'{"t":"intent","id":1,"tool":"pay","args":{"amount":1.10}}'


def test_a_message_keeps_its_arguments_as_they_were_written() -> None:
    message = read_message(GOOD)
    assert isinstance(message, wire.IntentAsked)
    assert bytes(message.args) == b'{"amount":1.10}'


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"garbage",
        b"[]",
        b"{}",
        b'{"t":"nothing of ours"}',
        b'{"t":"run_ready"}',
        b'{"t":"run_ready","id":"1"}',
        b'{"t":"run_ready","id":1,"id":2}',
        b'{"t":"intent","id":1,"tool":"pay","args":{"a":1,"a":2}}',
        b'{"t":"intent","id":1,"tool":"pay","args":{"a":NaN}}',
        b'{"t":"intent","id":1,"tool":"pay","args":{"a":1e999}}',
        b'{"t":"intent","id":1,"tool":"pay","args":{"a":"\\ud800"}}',
        b'{"t":"fault","slug":"\xff","detail":""}',
        b"\xef\xbb\xbf" + GOOD,
        GOOD + b"x",
        b'{"t":"intent","id":1,"tool":"pay","args":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_anything_else_is_one_clear_line(line: bytes) -> None:
    with pytest.raises(WireError) as caught:
        read_message(line)
    text = str(caught.value)
    assert text.startswith("the harness sent")
    assert len(text) < 400
    assert text.isprintable()


@pytest.mark.parametrize("cut", range(len(GOOD)))
def test_a_message_that_is_cut_off_is_refused(cut: int) -> None:
    with pytest.raises(WireError):
        read_message(GOOD[:cut])
