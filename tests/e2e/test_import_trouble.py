"""Stores that cannot be imported: one line each, exit 2, and nothing left behind."""

from __future__ import annotations

import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from google.adk.events.event_actions import EventActions

from tests.e2e.command import Ran, backstop
from tests.unit.adapters.importing.test_sessions import stored

CONFIG = """\
version: 1
agents:
  desk:
    path: desk
    ledger: desk.jsonl
    tools:
      pay: {identity: [order]}
      look: {effect: false}
"""
HOLDING = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[2:]:
    held.execute(statement)
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def _server(path: Path, *statements: str) -> Iterator[None]:
    """A process that has the database open."""
    running = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(path), *statements],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with running:
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        try:
            yield
        finally:
            running.stdin.close()


def imported(place: Path | str, folder: Path, kind: str = "adk-session") -> Ran:
    """What came of an import to ``desk.jsonl`` in the folder."""
    config = folder / "backstop.yaml"
    config.write_text(CONFIG)
    command = ("ledger", "import", "--config", config, "--from", kind)
    return backstop(*command, "--out", folder / "desk.jsonl", place)


def refused(place: Path | str, folder: Path, kind: str = "adk-session") -> str:
    """The slug and words of a refusal, which left nothing behind."""
    before = sorted(folder.rglob("*"))
    ran = imported(place, folder, kind)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1, ran.err
    assert len(ran.err) < 600
    assert set(folder.rglob("*")) - set(before) <= {folder / "backstop.yaml"}
    return ran.err.removeprefix("error[")


def _changed(path: Path, *statements: str | tuple[str, Any]) -> Path:
    with closing(sqlite3.connect(path)) as made:
        for one in statements:
            made.execute(*((one,) if isinstance(one, str) else (one[0], (one[1],))))
        made.commit()
    return path


def test_a_store_that_a_server_has_locked_is_refused_and_imported_once_it_is_free(
    tmp_path: Path,
) -> None:
    path = stored(tmp_path, "adk_2_13")
    with _server(path, "BEGIN EXCLUSIVE"):
        assert refused(path, tmp_path).startswith("import-store-locked]: ")
    assert imported(path, tmp_path).code == 0


def test_a_store_in_wal_mode_is_read_while_its_server_writes(tmp_path: Path) -> None:
    path = stored(tmp_path, "adk_2_13")
    late = "UPDATE events SET event_data = 'half' WHERE id = 'e03'"
    with _server(path, "PRAGMA journal_mode = WAL", "BEGIN IMMEDIATE", late):
        ran = imported(path, tmp_path)
        assert (ran.code, ran.err) == (0, "")
        assert "runs: 2" in ran.out


def test_what_a_server_wrote_to_its_wal_only_is_read_as_well(tmp_path: Path) -> None:
    path = stored(tmp_path, "adk_2_13")
    drop = "DELETE FROM events WHERE session_id = 'two'"
    with _server(path, "PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0", drop):
        assert "runs: 1" in imported(path, tmp_path).out
        # A copy without its -wal file is of an earlier moment, whole all the same.
        shutil.copy(path, tmp_path / "copy.db")
    assert "runs: 2" in imported(tmp_path / "copy.db", tmp_path).out


def test_a_wal_without_its_database_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "sessions.db-wal").write_bytes(b"\x37\x7f\x06\x82" + bytes(60))
    assert refused(tmp_path / "sessions.db-wal", tmp_path).startswith("import-not-json]: ")
    assert refused(tmp_path / "sessions.db", tmp_path).startswith("file-missing]: ")


@pytest.mark.parametrize("size", [0, 50, 100, 4096, 5000, 12288, 20_000])
def test_a_store_that_was_written_half_is_refused(size: int, tmp_path: Path) -> None:
    path = stored(tmp_path, "adk_2_13")
    whole = path.read_bytes()
    assert size < len(whole)
    path.write_bytes(whole[:size])
    slug = "import-store-damaged" if size else "import-not-json"
    assert refused(path, tmp_path).startswith(f"{slug}]: ")


def test_what_is_encrypted_or_a_folder_of_nothing_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "sealed.db").write_bytes(bytes(range(256)) * 64)
    assert refused(tmp_path / "sealed.db", tmp_path).startswith("import-not-json]: ")
    (tmp_path / "folder").mkdir()
    assert refused(tmp_path / "folder", tmp_path).startswith("import-no-match]: ")
    assert "sqlite" in refused(f"sqlite:///{tmp_path}/folder", tmp_path) + "sqlite"


@pytest.mark.parametrize(
    ("statement", "slug"),
    [
        ("DROP TABLE events", "import-store-schema"),
        ("ALTER TABLE events DROP COLUMN event_data", "import-store-schema"),
        ("UPDATE adk_internal_metadata SET value = '9'", "import-store-schema"),
        ("UPDATE events SET event_data = '{\"author\": NaN}' WHERE id = 'e03'", "import-not-json"),
        (
            "UPDATE events SET event_data = '{\"id\":1,\"id\":2}' WHERE id = 'e03'",
            "import-not-json",
        ),
        ("UPDATE events SET event_data = substr(event_data, 1, 90)", "import-not-json"),
        ("UPDATE sessions SET state = '{\"a\": Infinity}'", "import-not-json"),
        ("UPDATE events SET timestamp = 'soon', event_data = '{\"author\":\"x\"}'", "import-shape"),
        ("DELETE FROM events", "import-no-match"),
    ],
)
def test_a_store_of_another_form_is_refused(statement: str, slug: str, tmp_path: Path) -> None:
    path = _changed(stored(tmp_path, "adk_2_13"), statement)
    assert refused(path, tmp_path).startswith(f"{slug}]: ")


class Deed:
    """Makes a folder when it is unpickled."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.place),)


def _nested(levels: int) -> bytes:
    return b"\x80\x04}X\x01\x00\x00\x00a" + b"]" * levels + b"a" * (levels - 1) + b"s."


def _bomb() -> bytes:
    data = b"\x80\x04}X\x01\x00\x00\x00a]\x94"
    for level in range(12):
        data += b"0](" + (b"h" + bytes([level])) * 10 + b"e\x94"
    return data + b"s."


@pytest.mark.parametrize(
    ("hostile", "slug"),
    [
        (
            lambda place: pickle.dumps(EventActions(state_delta={"x": Deed(place)})),
            "import-foreign-class",
        ),
        (lambda place: pickle.dumps(Deed(place), 0), "import-foreign-class"),
        (lambda _: b"cposix\nsystem\n(S'x'\ntR.", "import-foreign-class"),
        (lambda _: _bomb(), "import-pickle"),
        (lambda _: _nested(5000), "import-pickle"),
        (lambda _: pickle.dumps({"state_delta": {"x": "y" * (1 << 24)}}), "import-pickle"),
        (lambda _: pickle.dumps({"state_delta": {"x": 10**4100}}), "import-pickle"),
        (lambda _: pickle.dumps({"state_delta": {"x": "\ud800"}}), "import-pickle"),
        (lambda _: pickle.dumps({"state_delta": {"x": float("nan")}}), "import-pickle"),
    ],
    ids=["deed", "bare", "global", "bomb", "deep", "huge", "digits", "half", "nan"],
)
def test_a_hostile_pickle_does_nothing_and_is_refused(
    hostile: Any, slug: str, tmp_path: Path
) -> None:
    place = tmp_path / "made"
    statement = "UPDATE events SET actions = ? WHERE id = 'e03'"
    path = _changed(stored(tmp_path, "adk_1_20"), (statement, hostile(place)))
    assert refused(path, tmp_path).startswith(f"{slug}]: ")
    assert not place.exists()


def test_the_control_of_the_hostile_pickle_would_have_done_it(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Deed(tmp_path / "made")))  # noqa: S301
    assert (tmp_path / "made").exists()


def test_an_evalset_with_tools_that_are_gone_is_imported_and_passes_nothing(tmp_path: Path) -> None:
    """Nobody asks for it again: its call stays in doubt, and the verdict is no pass."""
    place = tmp_path / "old.test.json"
    place.write_text(
        '[{"query": "pay", "expected_tool_use": [{"tool_name": "gone", "tool_input": {"a": 1}}],'
        ' "reference": "Paid."}]'
    )
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk/__init__.py").touch()
    (tmp_path / "desk/agent.py").write_text(AGENT)
    ran = imported(place, tmp_path, "evalset")
    assert ran.code == 0, ran.err
    expected = "run old: it expects gone, of which the configuration says nothing"
    assert expected in " ".join(ran.out.split())
    verdict = backstop("gate", "--config", tmp_path / "backstop.yaml", "--sandbox", "process")
    assert verdict.code == 3, verdict.out + verdict.err
    assert "1 recorded call in doubt" in verdict.out
    told = " ".join(verdict.out.split())
    assert "1 of its tool uses are what an evaluation" in told
    assert expected in told
    assert "gone is no tool of this version; calls of it are in doubt in run old" in told


AGENT = '''
from google.adk.agents import LlmAgent


def pay(order: str) -> str:
    """Pays an order."""
    return ""


root_agent = LlmAgent(name="desk", model="gemini-2.5-flash", tools=[pay])
'''
