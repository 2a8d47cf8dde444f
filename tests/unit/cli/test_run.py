"""Whatever goes wrong is one line with a slug and the right exit code."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout

import pytest
import typer

from backstop.cli import run
from backstop.core.canon import NotCanonical, parse
from backstop.errors import LedgerError


def ran(error: BaseException, *, debug: bool = False) -> tuple[int, str]:
    def broken(_: Sequence[str]) -> int:
        raise error

    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(["anything"], debug=debug, command=broken)
    assert out.getvalue() == ""
    return code, err.getvalue()


def not_canonical() -> NotCanonical:
    with pytest.raises(NotCanonical) as caught:
        parse('{"a": NaN}')
    return caught.value


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (
            LedgerError("l: gone\n\x1b[2J", slug="ledger-missing"),
            2,
            "ledger-missing]: l: gone \\u{1",
        ),
        (not_canonical(), 2, "not-finite]: "),
        (FileNotFoundError(2, "No such file", "x.json"), 2, "system]: x.json: No such file"),
        (OSError(28, "No space left on device"), 2, "system]: No space left on device"),
        (OSError("odd"), 2, "system]: odd"),
        (MemoryError(), 2, "system]: out of memory"),
        (KeyboardInterrupt(), 130, "interrupted]: "),
        (typer.BadParameter("what?"), 2, "usage]: "),
        (RecursionError("too deep"), 2, "bug]: RecursionError: too deep; please report"),
        (ZeroDivisionError("1/0\n  2"), 2, "bug]: ZeroDivisionError: 1/0 2; please report"),
    ],
)
def test_an_error_is_one_line(error: BaseException, code: int, line: str) -> None:
    found, err = ran(error)
    assert found == code
    assert err.startswith(f"error[{line}")
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_the_traceback_is_shown_where_it_is_asked_for() -> None:
    code, err = ran(ZeroDivisionError("x"), debug=True)
    assert code == 2
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("error[bug]: ZeroDivisionError: x")


@pytest.mark.parametrize("code", [0, 1, 2, 3])
def test_the_code_of_a_command_is_the_code_of_the_process(code: int) -> None:
    assert run([], command=lambda _: code) == code


def test_the_streams_are_left_usable() -> None:
    assert run(["--version"]) == 0
    assert not sys.stdout.closed
