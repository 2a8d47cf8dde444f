"""Every claim of the threat model names a test that exists."""

from __future__ import annotations

import re

from tests.architecture.source import ROOT

PAGE = ROOT / "docs" / "threat-model.md"


def missing(text: str) -> list[str]:
    """The tests that a text names and that nobody wrote."""
    named = re.findall(r"`(tests/\S+\.py)::(\w+)`", text)
    return [
        f"{file}::{test}"
        for file, test in named
        if not (ROOT / file).is_file()
        or not re.search(rf"^def {test}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    ]


def test_the_tests_that_it_names_exist() -> None:
    assert missing(PAGE.read_text(encoding="utf-8")) == []


def test_every_row_of_claims_names_one() -> None:
    tables = re.findall(
        r"^\| Claim \| Shown by \|\n.*\n((?:\|.*\n)+)", PAGE.read_text(), re.MULTILINE
    )
    rows = [row for table in tables for row in table.splitlines()]
    assert rows
    assert [row for row in rows if "::test_" not in row] == []


def test_a_test_that_nobody_wrote_is_seen() -> None:
    assert missing("`tests/architecture/test_threat_model.py::test_nothing`")
