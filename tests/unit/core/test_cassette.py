"""A cassette is what it was sealed as, or it is refused."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest

from backstop.core.cassette import Answer, CassetteFault, digest_of, read, write

FIRST = Answer(
    agent="clerk",
    run="r1",
    repeat=1,
    request="ab" * 32,
    nth=0,
    model="m",
    response=msgspec.Raw(b'{"content":{"parts":[{"text":"Paid."}]}}'),
    calls=1,
    tokens_in=10,
    tokens_out=5,
)
SECOND = msgspec.structs.replace(FIRST, nth=1, response=msgspec.Raw(b"null"), why="it is busy")
LEDGERS = {"clerk": "cd" * 32}
WHOLE = write(LEDGERS, [FIRST, SECOND])


def test_what_is_written_is_read_again() -> None:
    recorded = read(WHOLE, name="c")
    assert recorded.ledgers == LEDGERS
    assert recorded.answers == [FIRST, SECOND]
    assert recorded.answers[0].spend.tokens == 15


def test_the_order_of_answers_makes_no_difference() -> None:
    assert write(LEDGERS, [SECOND, FIRST]) == WHOLE
    assert digest_of([SECOND, FIRST]) == digest_of([FIRST, SECOND])
    assert digest_of([FIRST]) != digest_of([SECOND])


def test_an_empty_cassette_is_one() -> None:
    assert read(write({}, []), name="c").answers == []


def test_a_line_break_in_an_answer_stays_on_its_line() -> None:
    broken = msgspec.structs.replace(FIRST, response=msgspec.Raw(b'{"a":\r\n1}'))
    (found,) = read(write(LEDGERS, [broken]), name="c").answers
    assert msgspec.json.decode(found.response) == {"a": 1}


@pytest.mark.parametrize("name", ["calls", "tokens_in", "tokens_out", "nth", "repeat"])
def test_an_answer_that_gives_a_budget_back_is_refused(name: str) -> None:
    forged = msgspec.structs.replace(FIRST, **{name: -1})
    with pytest.raises(CassetteFault) as refused:
        read(write(LEDGERS, [forged]), name="c")
    assert refused.value.slug == "cassette-tampered"


def lines(change: Callable[[list[bytes]], list[bytes]]) -> bytes:
    return b"".join(change(WHOLE.splitlines(keepends=True)))


@pytest.mark.parametrize(
    ("data", "slug"),
    [
        (b"", "cassette-format"),
        (b"hello\n", "cassette-format"),
        (b'{"t":"header","format":1}\n', "cassette-format"),
        (WHOLE.replace(b'"format":1', b'"format":2'), "cassette-format"),
        (WHOLE[:-1], "cassette-tampered"),
        (WHOLE[:-20], "cassette-truncated"),
        (lines(lambda all_: all_[:-1]), "cassette-truncated"),
        (lines(lambda all_: all_[:1]), "cassette-truncated"),
        (lines(lambda all_: [*all_[:1], *all_[2:]]), "cassette-tampered"),
        (lines(lambda all_: [all_[0], all_[2], all_[1], all_[3]]), "cassette-tampered"),
        (WHOLE.replace(b"Paid.", b"Done."), "cassette-tampered"),
        (WHOLE.replace(b'"answers":2', b'"answers": 2'), "cassette-tampered"),
        (WHOLE.replace(b'"tokens_out":5', b'"tokens_out":NaN'), "cassette-tampered"),
    ],
    ids=[
        "empty",
        "text",
        "a ledger",
        "another format",
        "last line break lost",
        "last line cut",
        "seal lost",
        "header alone",
        "answer lost",
        "answers moved",
        "answer changed",
        "seal spelled anew",
        "no strict JSON",
    ],
)
def test_anything_else_is_refused(data: bytes, slug: str) -> None:
    with pytest.raises(CassetteFault) as caught:
        read(data, name="answers.jsonl")
    assert caught.value.slug == slug
    assert str(caught.value).startswith("answers.jsonl: ")


def test_two_answers_to_one_request_are_refused() -> None:
    """Sealed again by somebody: which of the two would count would be left to chance."""
    twice = write(LEDGERS, [FIRST, FIRST])
    with pytest.raises(CassetteFault, match="not as it was sealed"):
        read(twice, name="c")


def test_a_seal_that_counts_otherwise_is_refused() -> None:
    _, *rest = WHOLE.splitlines(keepends=True)
    seal = json.loads(rest[-1])
    wrong = WHOLE.replace(b'"answers":%d' % seal["answers"], b'"answers":3')
    with pytest.raises(CassetteFault, match="not as it was sealed"):
        read(wrong, name="c")
