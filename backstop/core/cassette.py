"""Answers of a live model in bytes: a header line, an answer a line, and a seal line.

An answer is found by the digest of its request and by nothing else, so that one to another
request is never taken for it. Equal answers give equal bytes, in whatever order they came.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

import msgspec

from backstop.core.canon import NotCanonical, parse
from backstop.core.events import NOTHING
from backstop.core.spending import Spend
from backstop.errors import BackstopError

FORMAT: Final = 1

Place: TypeAlias = tuple[str, str, int, str, int]
"""Agent, run, repeat, digest of the request, and how often it was asked before."""


class CassetteFault(BackstopError):
    """A cassette cannot be read or trusted."""

    slug = "cassette-format"


class Answer(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="t", tag="answer", omit_defaults=True
):
    """What a model answered to one request, or `why` there is no answer that counts.

    `request` is the digest of all that was asked, `nth` how often the same was asked before in
    this `repeat` of the run, which are counted from 1. `response` is in the framework's form.
    `calls` and the tokens are what it cost, whether it was of use or not, with all that failures
    in its place cost before it.
    """

    agent: str
    run: str
    repeat: int
    request: str
    nth: int
    model: str
    response: msgspec.Raw = NOTHING
    why: str = ""
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def place(self) -> Place:
        """What it is found by."""
        return self.agent, self.run, self.repeat, self.request, self.nth

    @property
    def spend(self) -> Spend:
        """What it cost."""
        return Spend(calls=self.calls, tokens_in=self.tokens_in, tokens_out=self.tokens_out)


class _Header(msgspec.Struct, frozen=True, kw_only=True, tag_field="t", tag="cassette"):
    """Which ledgers the answers were given for, by agent."""

    format: int
    ledgers: dict[str, str]


class _Seal(msgspec.Struct, frozen=True, kw_only=True, tag_field="t", tag="cassette_seal"):
    """Last line: how many answers there are, and the digest of every byte before it."""

    answers: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A cassette: its answers, and the digests of the ledgers that they were given for."""

    ledgers: Mapping[str, str]
    answers: list[Answer]


_Kind = TypeVar("_Kind", bound=msgspec.Struct)
_ENCODER: Final = msgspec.json.Encoder()


def write(ledgers: Mapping[str, str], answers: Iterable[Answer]) -> bytes:
    """A sealed cassette, its answers in order of their places."""
    lines = _lines(answers)
    body = _line(_Header(format=FORMAT, ledgers=dict(sorted(ledgers.items())))) + b"".join(lines)
    return body + _line(_Seal(answers=len(lines), digest=hashlib.sha256(body).hexdigest()))


def digest_of(answers: Iterable[Answer]) -> str:
    """``sha256:`` digest of answers, whatever else is on their cassette."""
    return f"sha256:{hashlib.sha256(b''.join(_lines(answers))).hexdigest()}"


def _lines(answers: Iterable[Answer]) -> list[bytes]:
    return [_line(answer) for answer in sorted(answers, key=lambda answer: answer.place)]


def _line(value: msgspec.Struct) -> bytes:
    line = _ENCODER.encode(value)
    # In JSON a line break can only stand between tokens.
    return line.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


def read(data: bytes, *, name: str) -> Recorded:
    """Read a sealed cassette; `name` stands in messages.

    Raises `CassetteFault`: ``cassette-format`` for what is none, ``cassette-truncated`` for one
    without its end, ``cassette-tampered`` for one that is not as it was sealed.
    """
    first = data.find(b"\n") + 1
    last = data.rfind(b"\n", 0, -1) + 1
    header = _decoded(data[:first], _Header)
    if header is None or header.format != FORMAT:
        raise CassetteFault(
            f"{name}: no cassette that this Backstop can read; name another file, one that is not "
            "there yet is made anew"
        )
    seal = _decoded(data[last:], _Seal)
    if seal is None:
        raise CassetteFault(
            f"{name}: the end of the cassette is missing, so it was cut off; restore it, or name "
            "another file and ask anew",
            slug="cassette-truncated",
        )
    answers = _answers(data[first:last])
    # The seal has one spelling, so that a change to the seal itself shows as well.
    if answers is None or _line(seal) != data[last:] or not _is_sealed(seal, data[:last], answers):
        raise CassetteFault(
            f"{name}: not as it was sealed: answers were changed, lost or added; restore it, or "
            "name another file and ask anew",
            slug="cassette-tampered",
        )
    return Recorded(ledgers=header.ledgers, answers=answers)


def _is_sealed(seal: _Seal, body: bytes, answers: list[Answer]) -> bool:
    places = {answer.place for answer in answers}
    return seal.digest == hashlib.sha256(body).hexdigest() and seal.answers == len(answers) == len(
        places
    )


def _counts(answer: Answer) -> tuple[int, ...]:
    # What is below 0 would give a budget back.
    return answer.nth, answer.calls, answer.tokens_in, answer.tokens_out


def _answers(lines: bytes) -> list[Answer] | None:
    found: list[Answer] = []
    for line in lines.splitlines():
        answer = _decoded(line, Answer)
        if answer is None or min(_counts(answer)) < 0 or answer.repeat < 1:
            return None
        found.append(answer)
    return found


def _decoded(line: bytes, kind: type[_Kind]) -> _Kind | None:
    """The value of one line; None for anything but strict JSON of its form."""
    try:
        parse(line)
        return msgspec.json.decode(line, type=kind)
    except (NotCanonical, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
