"""A ledger is pulled as of one instant, whatever happens on the way."""

from __future__ import annotations

import fcntl
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from backstop.adapters.parts import PullFolder
from backstop.core import ledgerfile
from backstop.core.sealing import encode
from backstop.errors import BackstopError
from backstop.ports import Stamped
from tests.unit.wiring.shelf import NOW, SKIPPED, STORY, Shelf, pulled

ROOT = Path(__file__).parents[3]


def killed(out: Path, part: str, row: int) -> Path:
    """Pull in a process that is killed on the way; the folder that it leaves."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.unit.wiring.shelf", out, part, str(row)],
        cwd=ROOT,
        check=False,
        timeout=60,
    )
    assert ran.returncode == -signal.SIGKILL
    assert not out.exists()
    return out.with_name(f"{out.name}.part")


def refused(slug: str, shelf: Shelf, out: Path, **asked: object) -> str:
    with pytest.raises(BackstopError) as caught:
        pulled(shelf, out, **asked)  # type: ignore[arg-type]  # whatever is asked for
    assert caught.value.slug == slug
    return str(caught.value)


def test_the_parts_become_the_ledger_in_its_order(tmp_path: Path) -> None:
    out = tmp_path / "l.jsonl"
    shelf = Shelf()
    found = pulled(shelf, out)
    assert out.read_bytes() == shelf.told.sealed()
    assert (found.summary.effects, found.summary.runs, found.summary.in_doubt) == (2, 2, 1)
    assert not found.resumed
    assert list(tmp_path.iterdir()) == [out]


def test_whoever_watches_is_told_of_each_part(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    pulled(Shelf(), tmp_path / "l.jsonl", progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_without_a_time_it_is_the_last_millisecond_that_is_over(tmp_path: Path) -> None:
    shelf = Shelf()
    assert pulled(shelf, tmp_path / "l.jsonl").at == "2026-03-02T06:00:00.122000+00:00"
    assert len(shelf.instants) == 1


def test_a_compressed_ledger_holds_the_same(tmp_path: Path) -> None:
    out = tmp_path / "l.jsonl.zst"
    pulled(Shelf(), out)
    assert out.read_bytes()[:4] == b"\x28\xb5\x2f\xfd"
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize(("part", "row"), [("a", 0), ("b", 1), ("c", 2)])
def test_a_pull_that_was_killed_is_taken_up_again_and_gives_the_same_bytes(
    part: str, row: int, tmp_path: Path
) -> None:
    out = tmp_path / "l.jsonl"
    folder = killed(out, part, row)
    assert folder.is_dir()
    shelf = Shelf()
    found = pulled(shelf, out, now=NOW + timedelta(hours=1))
    assert found.resumed
    assert found.at == "2026-03-02T06:00:00.122000+00:00"
    assert shelf.pulled == list("abc")[list("abc").index(part) :]
    assert out.read_bytes() == shelf.told.sealed()
    assert list(tmp_path.iterdir()) == [out]


def test_a_pull_of_something_else_does_not_go_on_where_another_stopped(tmp_path: Path) -> None:
    out = tmp_path / "l.jsonl"
    killed(out, "b", 0)
    told = refused("pull-other", Shelf(), out, at=NOW - timedelta(days=1))
    assert "of desk from shelf: at 2026-03-02T06:00:00.122000+00:00" in told
    refused("pull-other", Shelf(), out, agent="other")
    again = NOW.replace(microsecond=122000)
    assert pulled(Shelf(), out, at=again).resumed


def test_a_folder_that_is_no_pull_is_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "l.jsonl"
    folder = tmp_path / "l.jsonl.part"
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    refused("pull-folder", Shelf(), out)
    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]
    (folder / "thesis.txt").unlink()
    pulled(Shelf(), out)
    (tmp_path / "m.jsonl.part").write_text("a file")
    refused("pull-folder", Shelf(), tmp_path / "m.jsonl")


def test_a_folder_whose_beginning_is_damaged_says_so(tmp_path: Path) -> None:
    out = tmp_path / "l.jsonl"
    folder = killed(out, "b", 0)
    (folder / "pull.json").write_text("{")
    assert "remove the folder" in refused("pull-folder", Shelf(), out)


def test_two_pulls_to_one_file_do_not_mix(tmp_path: Path) -> None:
    out = tmp_path / "l.jsonl"
    folder = tmp_path / "l.jsonl.part"
    folder.mkdir()
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused("pull-busy", Shelf(), out)
    pulled(Shelf(), out)


def test_what_is_yet_to_come_cannot_be_pulled(tmp_path: Path) -> None:
    assert "yet to come" in refused(
        "usage", Shelf(), tmp_path / "l.jsonl", at=NOW + timedelta(seconds=1)
    )
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_that_does_not_hold_is_not_written(tmp_path: Path) -> None:
    out = tmp_path / "l.jsonl"
    out.write_bytes(b"the one before")
    shelf = Shelf()
    del shelf.told.events[1:3]  # a step without its beginning
    refused("ledger-order", shelf, out)
    assert out.read_bytes() == b"the one before"
    assert list(tmp_path.iterdir()) == [out]


def test_a_ledger_with_a_silent_skip_is_written_and_refused(tmp_path: Path) -> None:
    out = tmp_path / "l.jsonl"
    told = refused("silent-skip", Shelf(SKIPPED), out)
    assert str(out) in told
    ledgerfile.read(out.read_bytes(), name="l")
    assert list(tmp_path.iterdir()) == [out]


def test_a_part_larger_than_memory_is_sorted_in_runs(tmp_path: Path) -> None:
    told = Shelf(STORY).told
    rows = [Stamped(stamp=n, tie="", line=encode(e)) for n, e in enumerate(told.events)]
    with PullFolder(tmp_path / "p", spill=400).held() as folder:
        folder.keep(0, "all", reversed(rows))
        folder.keep(1, "none", [])
        assert len(list(folder.path.glob("000000.*.rows"))) > 3
        assert [event.at for event in folder.events(2)] == [event.at for event in told.events]
        assert folder.is_whole(1, "none")
        assert not folder.is_whole(1, "other")
        assert not folder.is_whole(2, "none")
        folder.remove()


def test_the_whole_of_a_pull_must_be_a_file(tmp_path: Path) -> None:
    refused("usage", Shelf(), Path("/dev/null"))
    refused("file-unwritable", Shelf(), tmp_path)
