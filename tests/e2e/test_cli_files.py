"""`ledger`, `diff`, `canon` and `selftest`, as a person runs them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.command import (
    CONFIG,
    EXCERPT,
    IMPORT,
    ROOT,
    backstop,
    excerpt_ledgers,
    in_a_process,
    refused,
)


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return excerpt_ledgers(tmp_path_factory.mktemp("excerpt"))


def test_an_import_says_what_came_of_it(tmp_path: Path) -> None:
    ran = backstop(*IMPORT, EXCERPT, "--where", "trial=0", "--out", tmp_path / "l.jsonl.zst")
    assert "imported. runs: 1, events: 13, side effects: 2" in ran.out
    assert backstop("ledger", "verify", tmp_path / "l.jsonl.zst").code == 0


def test_which_kinds_block_can_be_chosen(ledgers: tuple[Path, Path]) -> None:
    assert backstop("diff", *ledgers, "--fail-on", "extra").code == 0
    assert backstop("diff", *ledgers, "--fail-on", "mutated, EXTRA").code == 1
    assert "choose from duplicate" in refused("usage", "diff", *ledgers, "--fail-on", "all")
    assert "''" in refused("usage", "diff", *ledgers, "--fail-on", "")


def test_a_report_is_written_to_a_file_too(ledgers: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    ran = backstop("diff", *ledgers, "--format", "json", "--output", out)
    assert out.read_text(encoding="utf-8") == ran.out
    missing = tmp_path / "no" / "report.json"
    assert backstop("diff", *ledgers, "--output", missing).code == 2


def test_show_can_be_narrowed(ledgers: tuple[Path, Path]) -> None:
    only = backstop("ledger", "show", ledgers[0], "--effects", "--run", "t1").out
    assert only.count("effect_claimed") == only.count("effect_committed") == 2
    assert "model" not in only


def test_a_run_that_the_ledger_does_not_have_is_an_error(ledgers: tuple[Path, Path]) -> None:
    ran = backstop("ledger", "show", ledgers[0], "--run", "t2")
    assert ran.code == 2
    assert ran.err.startswith("error[run-unknown]: ")
    assert "no run 't2'; it has 1 run: t1" in ran.err


@pytest.mark.parametrize("command", ["verify", "stats", "show"])
def test_every_command_names_a_damaged_file_and_says_damaged(
    ledgers: tuple[Path, Path], command: str, tmp_path: Path
) -> None:
    """A key with a flipped bit looks like a strange effect; the digest says what it is."""
    whole = ledgers[0].read_bytes()
    at = whole.index(b'"key":"', whole.index(b"effect_committed")) + len('"key":"')
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    ran = backstop("ledger", command, bad)
    assert ran.code == 2
    assert ran.err.startswith(f"error[ledger-tampered]: {bad}, line"), ran.err


@pytest.mark.parametrize("command", ["verify", "stats", "show"])
def test_a_ledger_that_lacks_only_its_seal_has_one_name(
    ledgers: tuple[Path, Path], command: str, tmp_path: Path
) -> None:
    bare = tmp_path / "bare.jsonl"
    bare.write_bytes(b"".join(ledgers[0].read_bytes().splitlines(keepends=True)[:-1]))
    assert backstop("ledger", command, bare).err.startswith(f"error[ledger-unsealed]: {bare}, ")


def test_an_unsealed_ledger_is_sealed_in_place(ledgers: tuple[Path, Path], tmp_path: Path) -> None:
    whole = ledgers[0].read_bytes()
    file = tmp_path / "open.jsonl"
    file.write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    assert backstop("ledger", "verify", file).code == 2
    ran = backstop("ledger", "seal", file)
    assert ran.code == 0
    assert "holds" in ran.out
    assert file.read_bytes() == whole
    refused("ledger-sealed", "ledger", "seal", file)
    assert file.read_bytes() == whole


def test_sealing_elsewhere_leaves_the_file_alone(
    ledgers: tuple[Path, Path], tmp_path: Path
) -> None:
    file = tmp_path / "open.jsonl"
    opened = b"".join(ledgers[0].read_bytes().splitlines(keepends=True)[:-1])
    file.write_bytes(opened)
    assert backstop("ledger", "seal", file, "--out", tmp_path / "sealed.jsonl").code == 0
    assert file.read_bytes() == opened


def test_a_changed_ledger_is_refused_everywhere(ledgers: tuple[Path, Path], tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(ledgers[0].read_bytes().replace(b'"amount":50', b'"amount":60'))
    for command in (
        ("ledger", "verify", bad),
        ("diff", bad, ledgers[1]),
        ("diff", ledgers[1], bad),
    ):
        assert "line 1" in refused("ledger-tampered", *command)


@pytest.mark.parametrize(
    ("content", "slug"),
    [(b"", "ledger-empty"), (b"\x00\xff\xfe", "ledger-not-text"), (b"{}\n", "ledger-format")],
)
def test_what_is_no_ledger_is_refused(tmp_path: Path, content: bytes, slug: str) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(content)
    refused(slug, "ledger", "verify", file)


def test_the_ledger_of_another_agent_is_refused(ledgers: tuple[Path, Path]) -> None:
    refused("ledger-foreign-agent", "ledger", "verify", ledgers[0], "--agent", "other")
    specimen = ROOT / "ledgers" / "vendor-onboarding.jsonl"
    refused("ledger-foreign-agent", "diff", specimen, ledgers[0])
    refused("ledger-foreign-agent", "diff", *ledgers, "--agent", "vendor-onboarding")
    refused("config-agent", "diff", *ledgers, "--agent", "nobody")


def test_files_that_are_not_there_are_named(tmp_path: Path, ledgers: tuple[Path, Path]) -> None:
    gone = tmp_path / "gone"
    refused("ledger-missing", "ledger", "verify", gone)
    refused("ledger-missing", "diff", gone, ledgers[0])
    refused("intents-missing", "diff", ledgers[0], gone)
    refused("file-missing", *IMPORT, gone, "--out", tmp_path / "o")
    refused("config-missing", *IMPORT, EXCERPT, "--out", tmp_path / "o", "--config", gone)
    assert list(tmp_path.iterdir()) == []


def test_an_import_that_fails_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "o.jsonl"
    out.write_text("before", encoding="utf-8")
    refused("import-no-match", *IMPORT, EXCERPT, "--where", "trial=9", "--out", out)
    refused("import-where", *IMPORT, EXCERPT, "--where", "x=9", "--out", out)
    refused("import-run-twice", *IMPORT, EXCERPT, "--run-field", "task", "--out", out)
    refused("usage", *IMPORT, EXCERPT, "--where", "trial", "--out", out)
    refused("usage", *IMPORT, EXCERPT, "--where", "a=1", "--where", "a=2", "--out", out)
    refused("usage", *IMPORT, EXCERPT, "--at", "yesterday", "--out", out)
    refused("usage", *IMPORT, EXCERPT, "--at", "2026-01-01T00:00:00", "--out", out)
    pigeon = ("--config", CONFIG, "--from", "carrier-pigeon")
    refused("usage", "ledger", "import", *pigeon, EXCERPT, "--out", out)
    assert out.read_text(encoding="utf-8") == "before"


def test_a_key_follows_the_declaration() -> None:
    call = ("--tool", "send_certificate", "--args", '{"amount": 50.0, "user_id": "jo\\u0301"}')
    ran = backstop("canon", "key", *call, "--config", CONFIG)
    assert 'identity     {"user_id":"jó"}' in ran.out
    assert "tool         send_certificate (effect)" in ran.out
    assert "run          (none; name it with --run)" in ran.out
    named = backstop("canon", "key", *call, "--config", CONFIG, "--run", "t1")
    assert "run          t1\n" in named.out
    undeclared = backstop("canon", "key", *call)
    assert "tool         send_certificate (not declared)" in undeclared.out


@pytest.mark.parametrize(
    ("args", "slug"),
    [
        ('{"a": NaN}', "not-finite"),
        ('{"a": 1, "a": 2}', "duplicate-member"),
        ("[1]", "usage"),
        ("{", "not-json"),
        ("{}", "no-identity"),
    ],
)
def test_a_call_without_a_key_is_told_why(args: str, slug: str) -> None:
    said = refused(slug, "canon", "key", "--tool", "t", "--args", args)
    assert said.count("not JSON") == (slug == "not-json")


def test_a_key_of_a_tool_without_a_name_is_refused() -> None:
    assert "--tool" in refused("usage", "canon", "key", "--tool", "", "--args", '{"a": 1}')


def test_a_value_out_of_a_choice_is_told_plainly(ledgers: tuple[Path, Path]) -> None:
    said = refused("usage", "ledger", "stats", ledgers[0], "--format", "xml")
    assert "'--format': 'xml' is not one of" in said


def test_an_import_of_no_json_says_so_once(tmp_path: Path) -> None:
    (source := tmp_path / "chats.json").write_text("{", encoding="utf-8")
    said = refused("import-not-json", *IMPORT, source, "--out", tmp_path / "o")
    assert said.count("not JSON") == 1


def test_a_configuration_without_agents_is_told_plainly(tmp_path: Path) -> None:
    (config := tmp_path / "backstop.yaml").write_text("version: 1\nagents: {}\n")
    said = refused("config-value", "gate", "--config", config)
    assert "agents: is empty; it needs at least one" in said


def test_the_selftest_is_green() -> None:
    ran = in_a_process("selftest")
    assert (ran.code, ran.err) == (0, "")
    assert "all found" in ran.out


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("frob",),
        ("diff",),
        ("diff", "a"),
        ("diff", "a", "b", "--frob"),
        ("ledger",),
        ("canon",),
    ],
)
def test_a_wrong_command_is_one_line_that_points_to_help(arguments: tuple[str, ...]) -> None:
    assert "--help`" in refused("usage", *arguments)


@pytest.mark.parametrize(
    "arguments",
    [(), ("gate",), ("replay",), ("diff",), ("selftest",), ("ledger",), ("ledger", "import")],
)
def test_help_is_never_an_error(arguments: tuple[str, ...]) -> None:
    ran = backstop(*arguments, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert "Usage: backstop" in ran.out


def test_the_version_can_be_asked_for() -> None:
    assert backstop("--version").out.startswith("backstop 0.")


def test_help_loads_no_vendor_library() -> None:
    """What is slow to load is loaded by the command that needs it."""
    code = (
        "import sys\n"
        "from backstop.cli import run\n"
        "assert run(['--help']) == 0\n"
        "print(sorted({'google', 'rich', 'pydantic', 'yaml', 'zstandard'} & set(sys.modules)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, cwd=ROOT, text=True
    )
    assert ran.stdout.splitlines()[-1] == "[]"


def _without_reader(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command whose output goes to a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return subprocess.run(
            [sys.executable, "-m", "backstop", *map(str, arguments)],
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
            cwd=ROOT,
            text=True,
        )
    finally:
        os.close(writing)


def test_a_reader_that_goes_away_never_looks_like_a_verdict(ledgers: tuple[Path, Path]) -> None:
    """Exit code 1 means BLOCK; a verdict that nobody read is an error."""
    ran = _without_reader("diff", *ledgers)
    assert ran.returncode == 2
    assert ran.stderr.startswith("error[output-closed]: ")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["show", "stats"])
def test_a_listing_ends_quietly_when_its_reader_has_seen_enough(
    ledgers: tuple[Path, Path], command: str
) -> None:
    ran = _without_reader("ledger", command, ledgers[0])
    assert (ran.returncode, ran.stderr) == (0, "")


def test_ctrl_c_is_one_line(tmp_path: Path) -> None:
    fifo = tmp_path / "never.jsonl"
    os.mkfifo(fifo)
    # Where the tests run in a background job, Ctrl-C is ignored and that is inherited.
    listening = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from backstop.cli import main; main()"
    )
    command = [sys.executable, "-c", listening, "ledger", "verify", str(fifo)]
    # Opening the writing end succeeds once the command waits for bytes.
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE, cwd=ROOT, text=True) as running,
        fifo.open("wb"),
    ):
        time.sleep(0.2)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=30)
    assert running.returncode == 130
    assert err.startswith("error[interrupted]: ")
    assert err.count("\n") == 1


def test_a_full_disk_is_one_line() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "backstop", "selftest"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            cwd=ROOT,
            text=True,
        )
    assert ran.returncode == 2
    assert ran.stderr.startswith("error[system]: ")


def test_a_terminal_without_unicode_still_gets_the_report(ledgers: tuple[Path, Path]) -> None:
    ran = in_a_process("diff", *ledgers, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert ran.code == 1
    assert ran.out.startswith("compared 1 of 1 run")
