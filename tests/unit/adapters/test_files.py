"""Files on disk: whole or in chunks, compressed or not, and never half-written."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from backstop.adapters import files
from backstop.core import ledgerfile
from backstop.errors import BackstopError
from tests.dsl import sealed

LEDGER = sealed("run r\nstep s\ncommit pay{to: a} -> {ok: true}\nadvance\nclose complete")


def slug_of(action: object) -> tuple[str, str]:
    with pytest.raises(BackstopError) as caught:
        action()  # type: ignore[operator]  # each caller hands over a lambda
    return str(caught.value.slug), str(caught.value)


@pytest.mark.parametrize("name", ["L.jsonl", "L.jsonl.zst"])
def test_what_was_written_is_read_whole_and_in_chunks(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    files.write_atomic(path, LEDGER)
    assert files.read_bytes(path) == LEDGER
    assert b"".join(files.chunks(path)) == LEDGER
    assert (path.read_bytes() == LEDGER) is (path.suffix != ".zst")
    assert ledgerfile.verify(files.chunks(path), name=name).events == 8


def test_chunks_are_small_and_frames_are_read_on(tmp_path: Path) -> None:
    data = os.urandom(3 << 20) + b"z" * (3 << 20)
    plain, packed = tmp_path / "a", tmp_path / "a.zst"
    plain.write_bytes(data)
    pack = zstandard.ZstdCompressor().compress
    packed.write_bytes(pack(data[:1000]) + pack(data[1000:]))
    for path in (plain, packed):
        pieces = list(files.chunks(path))
        assert b"".join(pieces) == data
        assert max(map(len, pieces)) <= files.CHUNK


def test_what_is_not_there_is_missing_by_its_kind(tmp_path: Path) -> None:
    nothing = tmp_path / "no" / "L.jsonl"
    assert slug_of(lambda: files.read_bytes(nothing, kind="ledger"))[0] == "ledger-missing"
    assert slug_of(lambda: files.read_bytes(nothing, kind="intents"))[0] == "intents-missing"
    assert slug_of(lambda: list(files.chunks(nothing)))[0] == "file-missing"
    under_a_file = tmp_path / "plain" / "L"
    (tmp_path / "plain").write_bytes(b"")
    assert slug_of(lambda: files.read_bytes(under_a_file))[0] == "file-missing"


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    slug, message = slug_of(lambda: files.read_bytes(tmp_path, kind="ledger"))
    assert slug == "file-unusable"
    assert "a directory" in message


def test_a_name_that_no_file_can_have_is_said_to_be_unusable(tmp_path: Path) -> None:
    assert slug_of(lambda: files.read_bytes(tmp_path / ("x" * 5000)))[0] == "file-unusable"


@pytest.mark.parametrize("verb", ["read", "write"])
def test_without_permission_nothing_happens(tmp_path: Path, verb: str) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    (folder / "L").write_bytes(b"x")
    code = (
        "import os, sys; from pathlib import Path\n"
        "from backstop.adapters import files; from backstop.errors import BackstopError\n"
        "os.geteuid() == 0 and os.setuid(65534)  # root may do anything\n"
        "path = Path(sys.argv[1])\n"
        "try:\n"
        "    files.read_bytes(path) if sys.argv[2] == 'read' else files.write_atomic(path, b'y')\n"
        "except BackstopError as exc:\n"
        "    print(exc.slug, exc)\n"
    )
    tmp_path.chmod(0o755)
    (folder / "L").chmod(0o000)
    folder.chmod(0o555)
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, "locked/L", verb],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        )
    finally:
        folder.chmod(0o755)
        (folder / "L").chmod(0o644)
    expected = {"read": "file-unusable", "write": "file-unwritable"}[verb]
    assert done.stdout.startswith(expected)
    assert (folder / "L").read_bytes() == b"x"
    assert [entry.name for entry in folder.iterdir()] == ["L"]


def test_a_file_beyond_the_cap_is_not_taken_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "big"
    path.write_bytes(b"x" * 100)
    assert files.read_bytes(path, cap=100) == b"x" * 100
    slug, message = slug_of(lambda: files.read_bytes(path, cap=99))
    assert slug == "file-too-large"
    assert "99 bytes" in message


def test_a_pipe_is_read_up_to_the_cap(tmp_path: Path) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    feeder = "import sys; f = open(sys.argv[1], 'wb'); f.write(b'x' * 5000)"
    for cap, fits in ((5000, True), (4999, False)):
        with subprocess.Popen([sys.executable, "-c", feeder, str(fifo)]):
            if fits:
                assert len(files.read_bytes(fifo, cap=cap)) == 5000
            else:
                assert slug_of(lambda: files.read_bytes(fifo, cap=4999))[0] == "file-too-large"


def test_a_decompression_bomb_is_stopped_at_the_cap(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.zst"
    bomb.write_bytes(zstandard.ZstdCompressor(level=19).compress(bytes(256 << 20)))
    assert bomb.stat().st_size < 100_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert slug_of(lambda: files.read_bytes(bomb, cap=32 << 20))[0] == "file-too-large"

    def swallow() -> None:
        for _ in files.chunks(bomb, cap=200 << 20):
            pass

    assert slug_of(swallow)[0] == "file-too-large"
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 128 * 1024  # kilobytes


def test_what_is_not_compressed_or_damaged_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "L.jsonl.zst"
    path.write_bytes(LEDGER)
    assert slug_of(lambda: files.read_bytes(path))[0] == "file-damaged"
    packed = bytearray(zstandard.ZstdCompressor().compress(LEDGER))
    packed[len(packed) // 2] ^= 0xFF
    path.write_bytes(packed)
    assert slug_of(lambda: ledgerfile.read(files.read_bytes(path), name="L"))[0] in {
        "file-damaged",
        "ledger-tampered",
        "ledger-not-text",
    }


def test_a_compressed_ledger_that_was_cut_off_is_truncated(tmp_path: Path) -> None:
    path = tmp_path / "L.jsonl.zst"
    packed = zstandard.ZstdCompressor().compress(LEDGER)
    path.write_bytes(packed[: len(packed) // 2])
    slug, _ = slug_of(lambda: ledgerfile.verify(files.chunks(path), name="L"))
    assert slug in {"ledger-truncated", "ledger-empty", "file-damaged"}


def test_a_ledger_with_a_line_of_ten_gigabytes_is_refused_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "huge.jsonl"
    with path.open("wb") as file:
        file.write(LEDGER.splitlines(keepends=True)[0] + b'{"t":"run_opened","run":"')
        file.truncate(10 << 30)  # sparse: it takes no room on the disk
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    slug, message = slug_of(lambda: ledgerfile.verify(files.chunks(path), name=str(path)))
    assert slug == "ledger-line-too-long"
    assert "line 2" in message
    assert slug_of(lambda: files.read_bytes(path, kind="ledger"))[0] == "file-too-large"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 96 * 1024  # kilobytes


# Writing


def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "L"
    path.write_bytes(b"old")

    def breaks() -> Iterator[bytes]:
        yield b"half"
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            files.write_atomic(path, breaks())
        assert path.read_bytes() == b"old"
        assert [entry.name for entry in tmp_path.iterdir()] == ["L"]


def test_an_existing_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path: Path) -> None:
    real, alias = tmp_path / "real", tmp_path / "alias"
    real.write_bytes(b"old")
    real.chmod(0o640)
    alias.symlink_to(real)
    files.write_atomic(alias, [b"ne", b"w"])
    assert alias.is_symlink()
    assert real.read_bytes() == b"new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_new_file_is_as_readable_as_any_other(tmp_path: Path) -> None:
    files.write_atomic(tmp_path / "a", b"x")
    (tmp_path / "b").write_bytes(b"x")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_a_place_that_cannot_be_written_is_said_to_be(tmp_path: Path) -> None:
    slug, message = slug_of(lambda: files.write_atomic(tmp_path / "no" / "L", b"x"))
    assert slug == "file-unwritable"
    assert "Nothing was changed" in message
    assert slug_of(lambda: files.write_atomic(tmp_path, b"x"))[0] == "file-unwritable"


def test_compressed_files_say_which_extra_they_need(tmp_path: Path) -> None:
    (tmp_path / "L.zst").write_bytes(b"x")
    code = (
        "import sys; sys.modules['zstandard'] = None; from pathlib import Path\n"
        "from backstop.adapters import files; from backstop.errors import MissingExtra\n"
        "path = Path(sys.argv[1])\n"
        "for action in (lambda: files.read_bytes(path), lambda: files.write_atomic(path, b'x')):\n"
        "    try:\n"
        "        action()\n"
        "    except MissingExtra as exc:\n"
        "        print(exc)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "L.zst")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("backstop-gate[zst]") == 2


def test_a_pipe_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    """A report to `/dev/null` must not put a file in the place of the device."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        files.write_atomic(pipe, [b"all of it, ", b"at once"])
        assert os.read(reader, 100) == b"all of it, at once"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_pipe_that_nobody_reads_is_an_error_not_a_wait(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(BackstopError) as caught:
        files.write_atomic(pipe, b"x")
    assert caught.value.slug == "file-unwritable"


def test_nothing_reaches_a_pipe_if_a_piece_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    def pieces() -> Iterator[bytes]:
        yield b"half"
        raise ValueError("refused")

    try:
        with pytest.raises(ValueError, match="refused"):
            files.write_atomic(pipe, pieces())
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)


def test_a_file_whose_folder_is_not_there_says_to_make_the_folder(tmp_path: Path) -> None:
    """`No such file` of a file that is about to be written sends people looking for the file."""
    with pytest.raises(BackstopError) as caught:
        files.write_atomic(tmp_path / "ledgers" / "desk.jsonl", b"x")
    assert caught.value.slug == "file-unwritable"
    assert f"there is no folder {tmp_path / 'ledgers'}" in str(caught.value)
    assert "make the folder first" in str(caught.value)
    with pytest.raises(BackstopError) as other:
        files.write_atomic(tmp_path, b"x")
    assert "make the folder" not in str(other.value)
