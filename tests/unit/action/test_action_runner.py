"""The runner of the tests reads a step's log as GitHub's runner does."""

from __future__ import annotations

import pytest

from tests.action_runner.commands import read_log, read_pairs


def test_a_command_is_obeyed_at_the_start_of_a_line_only() -> None:
    log = read_log("::error file=a.py,line=3,title=Stop%2C now::one%0Atwo\nsaid ::error::no\n")
    (found,) = log.commands
    assert found.properties == {"file": "a.py", "line": "3", "title": "Stop, now"}
    assert found.data == "one\ntwo"
    assert log.lines == ["said ::error::no"]


def test_an_older_command_is_obeyed_anywhere_in_a_line() -> None:
    assert read_log("text ##[warning]look out").annotations[0].data == "look out"


def test_nothing_is_obeyed_between_a_stop_and_its_token() -> None:
    """The control of every test on untrusted output: without the stop the lines are obeyed."""
    planted = "::error::planted\n##[error]planted\n::add-mask::x\n"
    assert len(read_log(planted).commands) == 3
    log = read_log(f"::stop-commands::t0k\n{planted}::t0k::\n::notice::after\n")
    assert [command.name for command in log.commands] == ["stop-commands", "notice"]


def test_outputs_are_read_in_both_forms() -> None:
    assert read_pairs("a=1\nb<<X\ntwo\nlines\nX\nc=\n") == {"a": "1", "b": "two\nlines", "c": ""}
    with pytest.raises(ValueError, match="delimiter"):
        read_pairs("b<<X\nnever ends\n")
