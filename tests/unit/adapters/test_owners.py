"""Processes by name: what can be seen of them from here, and what cannot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from backstop.adapters.owners import OwnerLocks, liveness_of, this_process
from backstop.ports import Liveness

NAME_ITSELF = (
    "import sys; from backstop.adapters.owners import this_process;"
    "print(this_process(), flush=True); sys.stdin.read()"
)


@contextmanager
def another() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another process, and what it says its name is."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", NAME_ITSELF], stdin=pipe, stdout=pipe, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def with_part(name: str, place: int, text: str) -> str:
    parts = name.split("/")
    parts[place] = text
    return "/".join(parts)


def test_a_process_has_one_name_of_five_parts() -> None:
    assert this_process() == this_process()
    assert len(this_process().split("/")) == 5
    assert all(this_process().split("/"))
    assert liveness_of(this_process()) is Liveness.ALIVE


def test_another_process_is_alive_until_it_is_killed() -> None:
    with another() as (process, name):
        assert liveness_of(name) is Liveness.ALIVE
        process.kill()
        process.wait()
        assert liveness_of(name) is Liveness.GONE


def test_a_stopped_process_is_alive() -> None:
    with another() as (process, name):
        process.send_signal(signal.SIGSTOP)
        assert liveness_of(name) is Liveness.ALIVE


def test_a_dead_process_that_nobody_waited_for_is_gone() -> None:
    with another() as (process, name):
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert liveness_of(name) is Liveness.GONE


def test_a_later_process_with_the_same_number_is_not_taken_for_it() -> None:
    with another() as (_, name):
        assert liveness_of(with_part(name, 4, "1")) is Liveness.GONE


def test_a_process_of_another_user_is_seen() -> None:
    started = Path("/proc/1/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    first = with_part(with_part(this_process(), 3, "1"), 4, started)
    assert liveness_of(first) is Liveness.ALIVE


@pytest.mark.parametrize("place", [0, 1, 2], ids=["host", "boot", "namespace"])
def test_nothing_is_known_of_a_process_elsewhere(place: int) -> None:
    with another() as (process, name):
        process.kill()
        process.wait()
        assert liveness_of(with_part(name, place, "elsewhere")) is Liveness.UNKNOWN


@pytest.mark.parametrize("name", ["", "worker-1", "a/b/c/d", "////"])
def test_nothing_is_known_of_what_is_no_process(name: str) -> None:
    assert liveness_of(name) is Liveness.UNKNOWN


@pytest.mark.parametrize("pid", ["", "x", "-1"])
def test_nothing_is_known_of_what_is_no_number(pid: str) -> None:
    assert liveness_of(with_part(this_process(), 3, pid)) is Liveness.UNKNOWN


def test_a_number_beyond_all_processes_is_gone() -> None:
    assert liveness_of(with_part(this_process(), 3, "9" * 30)) is Liveness.GONE


def test_a_forked_child_has_a_name_of_its_own() -> None:
    read, write = os.pipe()
    mine = this_process()
    if (child := os.fork()) == 0:
        os.write(write, this_process().encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(read, 1000).decode()
    os.close(read)
    os.close(write)
    assert theirs.split("/")[:3] == mine.split("/")[:3]
    assert theirs != mine
    assert liveness_of(theirs) is Liveness.GONE


HOLD = (
    "import pathlib, sys; from backstop.adapters.owners import OwnerLocks;"
    "print(OwnerLocks(pathlib.Path(sys.argv[1])).hold(), flush=True); sys.stdin.read()"
)


@contextmanager
def holding(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def test_a_process_holds_its_lock_once_for_all_who_ask(tmp_path: Path) -> None:
    folder = tmp_path / "owners"
    assert OwnerLocks(folder).hold() == OwnerLocks(folder).hold() == this_process()
    (lock,) = folder.iterdir()
    assert f'"{os.getpid()}"' in lock.read_text(encoding="utf-8")
    assert OwnerLocks(folder).liveness(this_process()) is Liveness.ALIVE


def test_the_lock_of_a_dead_process_tells_that_it_is_gone_even_elsewhere(tmp_path: Path) -> None:
    """A lock is seen through namespaces that hide the process itself."""
    locks = OwnerLocks(tmp_path / "owners")
    with holding(tmp_path / "owners") as (process, name):
        assert locks.liveness(name) is Liveness.ALIVE
        process.kill()
        process.wait()
    assert locks.liveness(name) is Liveness.GONE
    assert locks.liveness(with_part(name, 2, "elsewhere")) is Liveness.UNKNOWN


def test_only_the_locks_of_the_dead_are_cleared_and_they_are_noted_first(tmp_path: Path) -> None:
    folder = tmp_path / "owners"
    (folder).mkdir()
    (folder / "strange.lock").write_text("not ours", encoding="utf-8")
    (folder / "folder.lock").mkdir()
    noted: list[str] = []
    with holding(folder) as (_, alive), holding(folder) as (process, dead):
        process.kill()
        process.wait()
        OwnerLocks(folder).clear(noted.append)
        assert noted == [dead]
        assert OwnerLocks(folder).liveness(alive) is Liveness.ALIVE
        assert len(list(folder.iterdir())) == 3


def test_a_lock_whose_death_cannot_be_noted_stays(tmp_path: Path) -> None:
    folder = tmp_path / "owners"

    def full(_: str) -> None:
        raise OSError

    with holding(folder) as (process, dead):
        process.kill()
        process.wait()
    OwnerLocks(folder).clear(full)
    assert OwnerLocks(folder).liveness(dead) is Liveness.GONE
    assert len(list(folder.iterdir())) == 1
