"""Closed streams, and outputs that lie where the inputs are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.command import CONFIG, EXCERPT, ROOT, excerpt_ledgers, refused


@pytest.fixture
def ledgers(tmp_path: Path) -> tuple[Path, Path]:
    """The excerpt's two trials."""
    return excerpt_ledgers(tmp_path)


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a line in which `backstop` stands for our command."""
    command = line.replace("backstop", f"{sys.executable} -m backstop", 1)
    return subprocess.run(
        ["/bin/sh", "-c", command],
        capture_output=True,
        check=False,
        cwd=ROOT,
        text=True,
        timeout=120,
    )


def test_a_closed_output_is_no_verdict(ledgers: tuple[Path, Path]) -> None:
    """Exit code 1 means BLOCK, so no closed stream may make one of it."""
    one, two = ledgers
    ran = shell(f"backstop diff {one} {two} >&-")
    assert ran.returncode == 2
    assert ran.stderr.startswith("error[output-closed]: ")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
def test_an_error_that_nobody_can_read_keeps_its_exit_code(closed: str) -> None:
    ran = shell(f"backstop ledger verify nowhere.jsonl {closed}")
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", "")


def test_a_verdict_needs_no_error_stream(ledgers: tuple[Path, Path]) -> None:
    one, two = ledgers
    ran = shell(f"backstop diff {one} {two} 2>&-")
    assert ran.returncode == 1
    assert ran.stdout.startswith("compared 1 of 1 run")


@pytest.mark.parametrize("link", ["same", "symbolic", "hard"])
def test_a_report_never_takes_the_place_of_what_it_reports_on(
    ledgers: tuple[Path, Path], link: str, tmp_path: Path
) -> None:
    one, two = ledgers
    before = one.read_bytes()
    output = one if link == "same" else tmp_path / "link"
    if link == "symbolic":
        output.symlink_to(one)
    elif link == "hard":
        output.hardlink_to(one)
    assert "is a file that is read" in refused("usage", "diff", one, two, "--output", output)
    assert one.read_bytes() == before


def test_an_import_never_takes_the_place_of_its_source(tmp_path: Path) -> None:
    source = tmp_path / "chats.json"
    source.write_bytes(EXCERPT.read_bytes())
    config = tmp_path / "backstop.yaml"
    config.write_bytes(CONFIG.read_bytes())
    said = ("ledger", "import", "--config", config, "--from", "chat", source, "--out")
    for output in (source, config):
        assert "name another" in refused("usage", *said, output)
    assert source.read_bytes() == EXCERPT.read_bytes()


def test_a_replay_never_takes_the_place_of_the_ledger_or_the_configuration(tmp_path: Path) -> None:
    (ledger := tmp_path / "l.jsonl").write_text("precious")
    config = tmp_path / "backstop.yaml"
    config.write_text("version: 1\nagents: {desk: {path: ., ledger: l.jsonl}}\n")
    for output in (ledger, config):
        refused("usage", "replay", "--config", config, "--out", output)
        refused("usage", "gate", "--config", config, "--output", output)
    assert ledger.read_text() == "precious"


def test_an_output_that_cannot_be_written_is_refused_before_the_replay(tmp_path: Path) -> None:
    """The ledger is not even looked at: it would be refused with another slug."""
    config = tmp_path / "backstop.yaml"
    config.write_text("version: 1\nagents: {desk: {path: ., ledger: gone.jsonl}}\n")
    (folder := tmp_path / "folder").mkdir()
    for output in (tmp_path / "nowhere" / "x", folder):
        refused("file-unwritable", "replay", "--config", config, "--out", output)
        said = refused("file-unwritable", "gate", "--config", config, "--output", output)
        assert f"{output}: cannot be written" in said
    good = tmp_path / "good"
    refused("ledger-missing", "gate", "--config", config, "--output", good)
    assert sorted(tmp_path.iterdir()) == [config, folder]
