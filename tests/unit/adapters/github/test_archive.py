"""The base commit: what is fetched, from where, and what an archive cannot do to us."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from backstop.adapters.github.archive import Archive, Checkout
from backstop.adapters.github.client import Denied, GitHub
from backstop.adapters.github.event import Kind
from backstop.adapters.github.unpacking import Bounds, unpack
from backstop.errors import BackstopError
from tests.github.fake import TOKEN, FakeGitHub, Fault
from tests.github.shapes import JOBS
from tests.github.talking import EVENT, talking_to
from tests.github.tarballs import Member, file, folder, link, packed, special

LEDGER = "ledgers/desk.jsonl"


@pytest.fixture
def archive(github: GitHub) -> Archive:
    return Archive(github, repo="octo/repo")


def tree(root: Path) -> dict[str, str]:
    """Every file's bytes and every link's target."""
    return {
        str(path.relative_to(root)): str(path.readlink()) if path.is_symlink() else path.read_text()
        for path in sorted(root.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def test_a_commit_is_fetched_file_by_file(
    fake: FakeGitHub, archive: Archive, tmp_path: Path
) -> None:
    sha = fake.commit({"agent.py": b"x = 1\n", LEDGER: b"{}\n"}, links={"here": "ledgers"})
    root = tmp_path / "base"
    assert archive.fetch_checkout(sha, root) == Checkout(sha=sha, root=root, left_out=())
    assert tree(root) == {"agent.py": "x = 1\n", LEDGER: "{}\n", "here": "ledgers"}


def test_the_host_of_the_archives_gets_no_token(
    fake: FakeGitHub, archive: Archive, tmp_path: Path
) -> None:
    archive.fetch_checkout(fake.commit({}), tmp_path / "base")
    assert [asked.token for asked in fake.asked] == [TOKEN]
    assert [asked.token for asked in fake.asked_for_archives] == [None]


@pytest.mark.parametrize("fault", [Fault.FAILS, Fault.CUTS, Fault.BREAKS])
def test_an_archive_that_breaks_off_is_fetched_anew(
    fake: FakeGitHub, archive: Archive, tmp_path: Path, fault: Fault
) -> None:
    sha = fake.commit({"a": os.urandom(100_000)})
    fake.plan(fault, fault, on="legacy")
    assert isinstance(archive.fetch_checkout(sha, tmp_path / "base"), Checkout)
    assert len(fake.asked_for_archives) == 3


def test_a_commit_that_is_gone_is_an_answer(archive: Archive, tmp_path: Path) -> None:
    answer = archive.fetch_checkout("d" * 40, tmp_path / "base")
    assert isinstance(answer, Denied)
    assert answer.status == 404


def test_another_commit_than_was_asked_for_is_refused(
    fake: FakeGitHub, archive: Archive, tmp_path: Path
) -> None:
    sha = fake.commit({})
    fake.tarball = packed([folder("x")], comment="e" * 40)
    with pytest.raises(BackstopError, match="another commit came"):
        archive.fetch_checkout(sha, tmp_path / "base")


def test_an_archive_beyond_its_bounds_is_refused(
    fake: FakeGitHub, github: GitHub, tmp_path: Path
) -> None:
    sha = fake.commit({"a": os.urandom(5000)})
    small = Archive(github, repo="octo/repo", bounds=Bounds(packed=1000))
    with pytest.raises(BackstopError, match="is longer than 1000 bytes"):
        small.fetch_checkout(sha, tmp_path / "base")


def test_a_folder_that_holds_something_is_not_written_into(
    fake: FakeGitHub, archive: Archive, tmp_path: Path
) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(BackstopError, match="something is there already"):
        archive.fetch_checkout(fake.commit({}), tmp_path)
    with pytest.raises(BackstopError, match="cannot be written to"):
        archive.fetch_checkout(fake.commit({}), tmp_path / "mine" / "below")
    assert fake.asked == []


HOSTILE = {
    "absolute": [file("/etc/x", b"")],
    "up": [file("x/../../y", b"")],
    "up alone": [file("../y", b"")],
    "two tops": [file("x/a", b""), file("y/a", b"")],
    "dot": [file("x/./a", b"")],
    "hard link": [file("x/a", b""), special("x/b", tarfile.LNKTYPE, "x/a")],
    "device": [special("x/null", tarfile.CHRTYPE)],
    "block device": [special("x/disk", tarfile.BLKTYPE)],
    "pipe": [special("x/pipe", tarfile.FIFOTYPE)],
    "file twice": [file("x/a", b"1"), file("x/a", b"2")],
    "link and file": [link("x/a", "b"), file("x/a", b"2")],
    "through a link": [link("x/a", ".."), file("x/a/b", b"2")],
    "file as folder": [file("x/a", b"1"), file("x/a/b", b"2")],
    "top as file": [file("x", b"1")],
}


@pytest.mark.parametrize("members", HOSTILE.values(), ids=HOSTILE)
def test_nothing_leaves_the_folder(members: list[Member], tmp_path: Path) -> None:
    root = tmp_path / "in" / "base"
    root.mkdir(parents=True)
    with pytest.raises(BackstopError) as failed:
        unpack(io.BytesIO(packed(members)), root, bounds=Bounds())
    assert failed.value.slug == "archive"
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["base"]


def test_links_that_lead_out_are_left_out_however_they_go(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    root = tmp_path / "base"
    root.mkdir()
    members = [
        folder("x/sub"),
        file("x/a", b"1"),
        link("x/absolute", "/etc/passwd"),
        link("x/up", "../secret"),
        link("x/sub/inside", "../a"),
        link("x/sub/back", ".."),
        link("x/sneaky", "sub/back/../secret"),  # inside by its letters, outside by its way
        link("x/chain", "up"),
        link("x/dangling", "nowhere"),
        link("x/loop", "loop"),
    ]
    told = unpack(io.BytesIO(packed(members)), root, bounds=Bounds())
    assert told.left_out == ("absolute", "chain", "sneaky", "up")
    assert tree(root) == {
        "a": "1",
        "sub/back": "..",
        "sub/inside": "../a",
        "dangling": "nowhere",
        "loop": "loop",
    }


def test_of_modes_only_what_runs_is_kept(tmp_path: Path) -> None:
    members = [file("x/run", b"", mode=0o4755), file("x/read", b"", mode=0o666)]
    unpack(io.BytesIO(packed(members)), tmp_path, bounds=Bounds())
    modes = [(tmp_path / name).stat().st_mode & 0o7777 for name in ("run", "read")]
    assert [mode & 0o7100 for mode in modes] == [0o100, 0]


def broken(data: bytes, tmp_path: Path, bounds: Bounds | None = None) -> str:
    with pytest.raises(BackstopError) as failed:
        unpack(io.BytesIO(data), tmp_path, bounds=bounds or Bounds())
    assert failed.value.slug == "archive"
    return str(failed.value)


def test_what_is_no_archive_is_one_line(tmp_path: Path) -> None:
    whole = packed([folder("x"), file("x/a", os.urandom(50_000))], comment="e" * 40)
    for data in (b"", b"<html>", gzip.compress(b"no tar" * 999), whole[:20_000]):
        root = tmp_path / str(len(data))
        root.mkdir()
        assert "is broken" in broken(data, root)


def test_a_file_that_ends_early_is_told(tmp_path: Path) -> None:
    plain = gzip.decompress(packed([file("x/a", b"y" * 5000)]))
    assert "is broken" in broken(gzip.compress(plain[:2048]), tmp_path)


def test_a_bomb_is_stopped_by_its_bytes_and_by_its_names(tmp_path: Path) -> None:
    big = packed([file("x/a", b"\0" * 3_000_000)])
    assert len(big) < 10_000
    assert "unpacks to more than 1000000" in broken(big, tmp_path, Bounds(unpacked=1_000_000))
    many = packed([folder(f"x/{n}") for n in range(11)])
    assert "more than 10 names" in broken(many, tmp_path, Bounds(names=10))


def test_a_header_as_long_as_memory_is_not_read(tmp_path: Path) -> None:
    data = packed([file("x/a", b"")], comment="e" * 3_000_000)
    assert "header longer than any" in broken(data, tmp_path)


def test_the_base_of_a_merge_is_what_it_was_merged_into(fake: FakeGitHub, archive: Archive) -> None:
    old = fake.commit({"a": b"1"})
    moved = fake.commit({"a": b"2"}, old)
    head = fake.commit({"a": b"1", "b": b""}, old)
    merged = fake.commit({"a": b"2", "b": b""}, moved, head)
    event = replace(EVENT, base_sha=old, head_sha=head, merged_sha=merged)
    assert archive.base_of(event) == moved
    assert archive.base_of(replace(event, head_sha=old)) == old  # no merge of this head
    assert archive.base_of(replace(event, merged_sha=head)) == old  # the head is checked out


def test_where_no_merge_is_seen_the_payload_counts(archive: Archive, fake: FakeGitHub) -> None:
    assert archive.base_of(EVENT) == EVENT.base_sha
    assert len(fake.asked) == 1
    assert archive.base_of(replace(EVENT, kind=Kind.PUSH, base_sha=None)) is None
    assert len(fake.asked) == 1


def test_g07_the_nearest_ancestor_with_a_ledger_is_found(
    fake: FakeGitHub, archive: Archive
) -> None:
    """G07: a base commit without a ledger: the nearest ancestor that has one."""
    first = fake.commit({"a": b"1"})
    with_it = fake.commit({"a": b"1", LEDGER: b"{}"}, first)
    later = fake.commit({"a": b"2", LEDGER: b"{}"}, with_it)
    without = fake.commit({"a": b"2"}, later)
    tip = fake.commit({"a": b"3"}, without)
    assert archive.last_with(LEDGER, tip) == later
    assert archive.last_with(LEDGER, later) == with_it
    assert archive.last_with("never/there.jsonl", tip) is None


def test_a_history_that_is_asked_for_in_vain_ends(fake: FakeGitHub, archive: Archive) -> None:
    tip = fake.commit({LEDGER: b"0"})
    for n in range(1, 150):
        tip = fake.commit({LEDGER: str(n).encode()}, tip)
    fake.lost = frozenset({LEDGER})
    assert archive.last_with(LEDGER, tip) is None
    assert len(fake.asked) < 70


def test_a_history_that_may_not_be_read_is_told(archive: Archive) -> None:
    with pytest.raises(BackstopError, match="contents: read") as failed:
        archive.last_with(LEDGER, "d" * 40)
    assert failed.value.slug == "archive"


def test_a_file_too_large_to_show_is_there(fake: FakeGitHub, archive: Archive) -> None:
    tip = fake.commit({LEDGER: b"{}"})
    fake.largest = 1
    assert archive.last_with(LEDGER, tip) == tip


def test_a_file_that_may_not_be_seen_is_told(fake: FakeGitHub) -> None:
    tip = fake.commit({LEDGER: b"{}"})

    def revoke(_: object) -> None:
        if fake.asked:
            fake.accounts.clear()

    fake.before = revoke
    with talking_to(fake) as github, pytest.raises(BackstopError, match="Bad credentials"):
        Archive(github, repo="octo/repo").last_with(LEDGER, tip)
    assert JOBS not in fake.accounts.values()
