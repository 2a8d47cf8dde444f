"""A cassette on disk is a valid one at every moment, and no other ledger's."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from backstop.adapters.cassette import Cassette
from backstop.core.cassette import Answer, CassetteFault, read
from backstop.errors import BackstopError

LEDGER = "ab" * 32


def answer(nth: int) -> Answer:
    return Answer(
        agent="clerk",
        run="r1",
        repeat=1,
        request="cd" * 32,
        nth=nth,
        model="m",
        response=msgspec.Raw(b'{"content":null}'),
        calls=1,
    )


def test_answers_are_there_again(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    cassette = Cassette.at(path)
    assert cassette.of("clerk", LEDGER) == []
    cassette.keep(answer(0))
    cassette.save()
    assert Cassette.at(path).of("clerk", LEDGER) == [answer(0)]
    assert Cassette.at(path).of("another", LEDGER) == []


def test_the_file_is_whole_after_each_answer_and_holds_nearly_all(tmp_path: Path) -> None:
    """Whoever is killed loses the last few answers, never the file."""
    path = tmp_path / "answers.jsonl"
    cassette = Cassette.at(path)
    cassette.of("clerk", LEDGER)
    for nth in range(200):
        cassette.keep(answer(nth))
        kept = len(read(path.read_bytes(), name="c").answers)
        assert kept >= (nth + 1) * 15 // 16
    cassette.save()
    assert len(read(path.read_bytes(), name="c").answers) == 200


def test_nothing_new_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    Cassette.at(path).save()
    assert not path.exists()


def test_without_a_file_answers_are_kept_in_memory() -> None:
    cassette = Cassette.at(None)
    cassette.of("clerk", LEDGER)
    cassette.keep(answer(0))
    cassette.save()
    assert cassette.of("clerk", LEDGER) == [answer(0)]


def test_answers_to_another_ledger_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    cassette = Cassette.at(path)
    cassette.of("clerk", LEDGER)
    cassette.keep(answer(0))
    with pytest.raises(CassetteFault) as caught:
        Cassette.at(path).of("clerk", "ef" * 32)
    assert caught.value.slug == "cassette-foreign"


def test_what_cannot_be_written_is_known_before_anybody_is_asked(tmp_path: Path) -> None:
    with pytest.raises(BackstopError) as caught:
        Cassette.at(tmp_path / "nowhere" / "answers.jsonl")
    assert caught.value.slug == "file-unwritable"
