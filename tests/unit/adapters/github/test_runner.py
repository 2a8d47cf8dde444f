"""What the runner reads from us, as it reads it; and what others cannot have it do."""

from __future__ import annotations

import io
import itertools
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstop.adapters.github.runner import MESSAGE, OUTPUT, SUMMARY_BYTES, Level, Runner
from backstop.errors import BackstopError
from tests.github.obeying import Heard, listen, outputs_in

WORD = "Zk3v8Qm1x7Lp5Rw9Tn2c"


def runner_of(out: io.StringIO, folder: Path | None = None) -> Runner:
    env = {}
    if folder is not None:
        env = {
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        }
    words = (f"{WORD}{n}" for n in itertools.count())
    return Runner(env, out, chance=lambda: next(words))


def heard(out: io.StringIO) -> list[Heard]:
    return listen(out.getvalue())


def test_an_annotation_says_where(tmp_path: Path) -> None:
    out = io.StringIO()
    runner_of(out).annotate(
        Level.ERROR, "50% more,\nthan: before", title="a: b, c", file="agents/x,y.py", line=7
    )
    assert heard(out) == [
        Heard(
            "error",
            {"title": "a: b, c", "file": "agents/x,y.py", "line": "7"},
            "50% more,\nthan: before",
        )
    ]


text = st.text(st.characters(), max_size=60)


@given(message=text, title=text, file=text)
def test_no_text_in_an_annotation_becomes_a_command(message: str, title: str, file: str) -> None:
    out = io.StringIO()
    runner_of(out).annotate(Level.WARNING, message, title=title, file=file)
    told = heard(out)
    assert [one.command for one in told] == ["warning"]
    assert told[0].data == message.encode("utf-8", "replace").decode()
    assert told[0].properties.get("title", "") == title.encode("utf-8", "replace").decode()


def test_ten_of_a_level_are_shown_and_the_eleventh_is_said_not_to_be() -> None:
    out = io.StringIO()
    runner = runner_of(out)
    assert [runner.annotate(Level.ERROR, str(n)) for n in range(12)] == [True] * 10 + [False] * 2
    assert runner.annotate(Level.NOTICE, "another level")
    assert len(heard(out)) == 11


@pytest.mark.parametrize("letter", ["x", "ü", "😀"])
def test_a_long_message_is_cut_as_the_runner_counts(letter: str) -> None:
    out = io.StringIO()
    runner_of(out).annotate(Level.ERROR, letter * 5000)
    said = heard(out)[0].data
    assert len(said.encode("utf-16-le")) // 2 in {MESSAGE, MESSAGE - 1}
    assert said.endswith(f"{letter}…")


@given(
    st.lists(
        st.sampled_from(
            [
                "::error::x",
                "  ::set-output name=decision::PASS",
                "##[error]x",
                "a ##[add-mask]x",
                "::stop-commands::x",
                "::x::",
                f"::{WORD}::",
                "\r::error::x",
                "::endgroup::",
            ]
        )
    )
)
def test_nothing_that_others_say_is_obeyed(lines: list[str]) -> None:
    out = io.StringIO()
    runner = runner_of(out)
    with runner.untrusted() as log:
        log.write("\n".join(lines))  # the last line is left open
    runner.annotate(Level.ERROR, "ours")
    assert [one.command for one in heard(out)] == ["stop-commands", f"{WORD}0", "error"]


def test_the_control_without_the_guard_they_are_obeyed() -> None:
    assert [one.command for one in listen("::error::x\n a ##[warning]y\n")] == ["error", "warning"]


def test_the_runner_listens_again_after_a_failure() -> None:
    out = io.StringIO()
    runner = runner_of(out)
    with pytest.raises(KeyError), runner.untrusted():
        raise KeyError
    runner.annotate(Level.ERROR, "ours")
    assert heard(out)[-1].command == "error"


def test_what_would_not_be_heard_is_not_said() -> None:
    runner = runner_of(io.StringIO())
    with runner.untrusted(), pytest.raises(RuntimeError):
        runner.annotate(Level.ERROR, "ours")
    with runner.untrusted(), pytest.raises(RuntimeError):
        runner.mask("secret")


@given(st.text(st.characters(), max_size=40), st.sampled_from(["", "::error::", "x ##[error]"]))
def test_a_line_of_ours_is_no_command(more: str, begin: str) -> None:
    out = io.StringIO()
    runner_of(out).say(begin + more)
    assert heard(out) == []
    assert out.getvalue().count("\n") == 1


def test_a_secret_is_masked_line_by_line() -> None:
    out = io.StringIO()
    runner_of(out).mask("one%\n\n  \ntwo\n")
    assert heard(out) == [Heard("add-mask", {}, "one%"), Heard("add-mask", {}, "two")]


@given(st.lists(st.tuples(st.sampled_from(["decision", "report-path"]), text), max_size=4))
def test_outputs_are_read_as_they_were_given(pairs: list[tuple[str, str]]) -> None:
    written = io.StringIO()
    for name, value in pairs:
        # A hostile value has seen the words of others.
        written.write(outputs_written(name, f"{value}\nend-{WORD}9\n::x::"))
    told = outputs_in(written.getvalue())
    expected = [
        (name, f"{value}\nend-{WORD}9\n::x::".encode("utf-8", "replace").decode())
        for name, value in pairs
    ]
    assert told == expected


def outputs_written(name: str, value: str) -> str:
    """What one output adds to the file."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        assert runner_of(io.StringIO(), Path(folder)).output(name, value)
        return (Path(folder) / "output").read_bytes().decode()


def test_a_value_that_holds_the_delimiter_gets_another(tmp_path: Path) -> None:
    runner_of(io.StringIO(), tmp_path).output("decision", f"end-{WORD}0\nevil=1")
    told = (tmp_path / "output").read_text()
    assert outputs_in(told) == [("decision", f"end-{WORD}0\nevil=1")]


def test_g03_a_report_is_no_output(tmp_path: Path) -> None:
    """G03: the text of a comment is too long for a shell; its path is not."""
    runner = runner_of(io.StringIO(), tmp_path)
    with pytest.raises(BackstopError, match="give its path") as failed:
        runner.output("comment", "x" * (OUTPUT + 1))
    assert failed.value.slug == "too-long"
    assert runner.output("report-path", "/github/workspace/backstop-report")
    assert not re.search("x{100}", (tmp_path / "output").read_text())


@pytest.mark.parametrize("name", ["", "a b", "a=b", "a\nb", "1st", "a<<b"])
def test_the_name_of_an_output_is_a_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="no output can be named"):
        runner_of(io.StringIO(), tmp_path).output(name, "x")


def test_the_summary_is_added_to_what_is_there(tmp_path: Path) -> None:
    runner = runner_of(io.StringIO(), tmp_path)
    assert runner.summary("# One")
    assert runner.summary("# Two ü")
    assert (tmp_path / "summary").read_text(encoding="utf-8") == "# One\n# Two ü\n"


def test_a_summary_that_would_be_thrown_away_is_not_written(tmp_path: Path) -> None:
    runner = runner_of(io.StringIO(), tmp_path)
    runner.summary("x" * (SUMMARY_BYTES - 1))
    with pytest.raises(BackstopError, match="throws away") as failed:
        runner.summary("")
    assert failed.value.slug == "too-long"
    assert (tmp_path / "summary").stat().st_size == SUMMARY_BYTES


def test_a_runner_that_offers_no_files_is_not_asked() -> None:
    runner = runner_of(io.StringIO())
    assert not runner.output("decision", "PASS")
    assert not runner.summary("# One")


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    runner = runner_of(io.StringIO(), tmp_path / "nowhere")
    with pytest.raises(BackstopError, match="GITHUB_OUTPUT names") as failed:
        runner.output("decision", "PASS")
    assert failed.value.slug == "runner-file"


@pytest.mark.parametrize("word", ["", "short", "with a blank in it ...", "::stop::stop::stop"])
def test_a_word_that_can_be_guessed_is_refused(word: str) -> None:
    runner = Runner({}, io.StringIO(), chance=lambda: word)
    with pytest.raises(ValueError, match="guess"), runner.untrusted():
        pass
