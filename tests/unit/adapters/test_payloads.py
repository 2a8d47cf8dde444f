"""What steps left is found by its digest, and whatever is not what it should be is not found."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstop.adapters.payloads import MOST, FolderPayloads, MemoryPayloads
from backstop.core.canon import digest
from backstop.errors import BackstopError

SAID = b'{"said":true}'
NAME = digest(SAID)


def kinds(tmp_path: Path) -> list[MemoryPayloads | FolderPayloads]:
    return [MemoryPayloads(), FolderPayloads(tmp_path / "payloads")]


def test_what_was_kept_is_found_and_nothing_else(tmp_path: Path) -> None:
    for kept in kinds(tmp_path):
        assert kept.get(NAME) is None
        kept.put(NAME, SAID)
        kept.put(NAME, SAID)
        assert kept.get(NAME) == SAID
        assert kept.get(digest("other")) is None


def test_an_output_of_50_mb_is_not_kept_and_so_never_found(tmp_path: Path) -> None:
    large = b"x" * (50 * 1024 * 1024)
    for kept in kinds(tmp_path):
        kept.put(digest(large), large)
        assert kept.get(digest(large)) is None
    assert len(large) > MOST


def test_a_memory_that_is_full_lets_the_longest_unused_go() -> None:
    kept = MemoryPayloads(limit=30)
    named = {digest(text): text for text in (b"a" * 10, b"b" * 10, b"c" * 10, b"d" * 10)}
    for name, text in list(named.items())[:3]:
        kept.put(name, text)
    first = next(iter(named))
    assert kept.get(first) == named[first]
    kept.put(*list(named.items())[3])
    assert [kept.get(name) is not None for name in named] == [True, False, True, True]
    kept.put(digest(b"e" * 31), b"e" * 31)
    assert kept.get(digest(b"e" * 31)) is None
    assert kept.get(first) is not None


def test_a_file_that_somebody_changed_is_not_what_was_kept(tmp_path: Path) -> None:
    kept = FolderPayloads(tmp_path)
    kept.put(NAME, SAID)
    (tmp_path / NAME[:2] / NAME).write_bytes(b'{"said":false}')
    assert kept.get(NAME) is None
    (tmp_path / NAME[:2] / NAME).write_bytes(b"x" * (MOST + 1))
    assert kept.get(NAME) is None


def test_a_name_that_leads_elsewhere_is_none(tmp_path: Path) -> None:
    kept = FolderPayloads(tmp_path / "payloads")
    (tmp_path / "secret").write_bytes(SAID)
    kept.put("../secret", b"overwritten")
    assert kept.get("../secret") is None
    assert (tmp_path / "secret").read_bytes() == SAID


def test_a_folder_that_cannot_be_made_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(BackstopError, match="cannot be written") as caught:
        FolderPayloads(tmp_path / "file").put(NAME, SAID)
    assert caught.value.slug == "file-unwritable"


@pytest.mark.parametrize("found", [b"", SAID[:5], b"\0" * len(SAID), SAID + b"more"])
def test_what_a_power_failure_left_of_a_file_is_made_whole_when_it_is_kept_again(
    tmp_path: Path, found: bytes
) -> None:
    kept = FolderPayloads(tmp_path)
    kept.put(NAME, SAID)
    (tmp_path / NAME[:2] / NAME).write_bytes(found)
    assert kept.get(NAME) is None
    kept.put(NAME, SAID)
    assert kept.get(NAME) == SAID


def test_what_is_gone_before_it_is_synced_is_no_error(tmp_path: Path) -> None:
    kept = FolderPayloads(tmp_path)
    kept.sync()
    kept.put(NAME, SAID)
    (tmp_path / NAME[:2] / NAME).unlink()
    kept.sync()
    (tmp_path / NAME[:2]).rmdir()
    kept.put(NAME, SAID)
    (tmp_path / NAME[:2] / NAME).unlink()
    (tmp_path / NAME[:2]).rmdir()
    kept.sync()
    assert kept.get(NAME) is None
