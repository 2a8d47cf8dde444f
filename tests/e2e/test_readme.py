"""The README says what the program does."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest

from backstop import config
from backstop.core import intentsfile
from tests.dsl import scenario
from tests.e2e.command import ROOT, in_a_process

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_help_in_the_readme_is_the_programs() -> None:
    ran = in_a_process("--help", COLUMNS="80")
    assert ran.out.strip() in [block.strip() for block in blocks("text")]


@pytest.mark.parametrize(
    "group", [(), ("ledger",), ("canon",), ("effects",), ("baseline",), ("mesh",)]
)
def test_no_line_of_help_is_cut_off(group: tuple[str, ...]) -> None:
    assert "..." not in in_a_process(*group, "--help", COLUMNS="80").out.partition("Commands:")[2]


def test_the_report_in_the_readme_is_one_that_the_program_prints() -> None:
    printed = (ROOT / "tests" / "golden" / "cli" / "diff.txt").read_text(encoding="utf-8")
    assert printed in blocks("text")


def test_the_configuration_in_the_readme_is_read() -> None:
    _workflow, text = blocks("yaml")
    found = config.loads(text, name="README.md", root=Path("/project"))
    assert found.agent(None).declarations["send_mail"].fields["to"] == ("email",)


@pytest.mark.parametrize("code", blocks("python"))
def test_the_python_in_the_readme_runs_and_prints_what_it_says(
    code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replayed(tmp_path)
    with contextlib.chdir(tmp_path):
        exec(compile(code, "README.md", "exec"), {})  # noqa: S102  # our own example
    promised = re.findall(r"print\(.*\)  # (.+)$", code, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == promised


def replayed(folder: Path) -> None:
    """A ledger, and the intents of a version that writes a name in another way."""
    told = scenario(
        "tool pay identity to\nrun r1\nstep s1\ncommit pay{to: acme}\nintent s1 pay{to: ACME}"
    )
    (folder / "ledger.jsonl").write_bytes(told.sealed())
    rows: list[intentsfile.Row] = [*told.intents, *told.runs]
    (folder / "intents.jsonl").write_bytes(intentsfile.write(told.intents_header, rows))
