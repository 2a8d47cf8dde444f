"""The daemon's frames, however they are cut."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from backstop.adapters.docker.attached import STDERR, STDOUT, Frames


def frame(payload: bytes, stream: int = STDOUT) -> bytes:
    return struct.pack(">BxxxI", stream, len(payload)) + payload


@given(st.lists(st.binary(max_size=50)), st.lists(st.integers(1, 20), min_size=1))
def test_what_was_framed_comes_out_wherever_it_is_cut(
    payloads: list[bytes], cuts: list[int]
) -> None:
    sent, frames, found, turn = b"".join(map(frame, payloads)), Frames(STDOUT), b"", 0
    while sent:
        size = cuts[turn % len(cuts)]
        found += frames.feed(sent[:size])
        sent, turn = sent[size:], turn + 1
    assert found == b"".join(payloads)


def test_a_frame_is_handed_on_before_it_is_whole() -> None:
    frames = Frames(STDOUT)
    assert frames.feed(struct.pack(">BxxxI", 1, 1 << 31) + b"begin") == b"begin"
    assert frames.feed(b"more") == b"more"


def test_another_stream_never_gets_into_this_one() -> None:
    sent = frame(b"out") + frame(b"err", STDERR) + frame(b"", STDERR) + frame(b"put")
    assert Frames(STDOUT).feed(sent) == b"output"
    assert Frames(STDERR).feed(sent) == b"err"
