"""A command line that is wrong: one line says what would be right, and where more stands."""

from __future__ import annotations

import pytest

from backstop.cli import run
from backstop.cli.init import incomplete


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(list(arguments)) == 2
    told = capsys.readouterr()
    assert told.out == ""
    return told.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("init", "--import", "evalset"), "--import takes KIND FILE|URL (2 words)"),
        (("init", "--agent"), "--agent takes AGENT"),
        (("ledger", "erase", "x", "--subject"), "--subject takes VALUE"),
    ],
)
def test_an_option_that_is_given_too_little_says_what_it_takes_and_whose_help_to_see(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = " ".join(word for word in arguments if word in {"init", "ledger", "erase"})
    told = refusal(capsys, *arguments)
    assert told == f"error[usage]: {said}; see `backstop {command} --help`\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("init", "--import", "evalset", "--diff"), "evalset is given, and --diff is no FILE|URL"),
        (
            ("init", "--import", "csv", "x.csv"),
            "'csv' cannot be imported; this version knows: chat",
        ),
    ],
)
def test_an_import_that_names_no_record_is_refused_before_anything_is_looked_at(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An option in the place of a file would be lost, and with --diff files would be written."""
    assert f"error[usage]: --import: {said}" in refusal(capsys, *arguments)


@pytest.mark.parametrize("arguments", [("frob",), ("ledger", "frob"), ("gate", "--frob")])
def test_what_there_is_not_points_to_the_help_of_what_there_is(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    told = refusal(capsys, *arguments)
    path = " ".join(word for word in arguments if "frob" not in word)
    assert told.endswith(f"see `{f'backstop {path}'.strip()} --help`\n")


def test_gaps_of_a_record_are_told_whole_and_the_rest_is_counted() -> None:
    """What is cut in a word says less than that there is more."""
    assert incomplete([]) == ""
    assert incomplete(["no requests"]) == "; incomplete: no requests"
    told = incomplete(
        [f"gap {number} of a record that lacks a lot of things" for number in range(9)]
    )
    assert told.endswith("gap 4 of a record that lacks a lot of things; and 4 more")
    assert len(incomplete(["x" * 900])) < 300
