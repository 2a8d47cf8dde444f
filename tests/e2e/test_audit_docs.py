"""The commands and the query of docs/audit.md, run as they stand there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import duckdb

from tests.e2e.command import ROOT, in_a_process

PAGE = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ backstop (.*?) +# exits ([0-9])$", PAGE, re.MULTILINE)
TABLE = re.findall(r"^```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0]
QUERY = re.findall(r"^```sql\n(.*?'kept/.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0]


def here(command: str, folder: Path) -> list[str]:
    """The words of a command, with the places in them put into `folder`."""
    text = command.replace("kept.mark", f"{folder}/kept.mark")
    text = text.replace("parquet:kept", f"parquet:{folder}/kept")
    text = text.replace("sqlite:///kept", f"sqlite:///{folder}/kept")
    return shlex.split(text)


def test_each_command_ends_as_the_page_says_and_the_table_is_what_it_prints(
    tmp_path: Path,
) -> None:
    assert len(COMMANDS) == 6
    told: list[str] = []
    for command, code in COMMANDS:
        ran = in_a_process(*here(command, tmp_path))
        assert ran.code == int(code), (command, ran.out, ran.err)
        told.append(ran.out.replace(f"{tmp_path}/", ""))
    shown = [line for line in TABLE.splitlines() if line != "..."]
    assert set(shown) <= set(told[1].splitlines())


def test_the_query_shows_a_gap_and_nothing_where_there_is_none(tmp_path: Path) -> None:
    command, _ = COMMANDS[0]
    assert in_a_process(*here(command, tmp_path)).code == 0
    (file,) = (tmp_path / "kept").glob("*.parquet")
    query = QUERY.replace("kept/", f"{tmp_path}/kept/")
    with duckdb.connect() as db:
        assert db.execute(query).fetchall() == []
        db.execute(f"CREATE TABLE t AS SELECT * FROM '{file}' WHERE seq <> 7")  # noqa: S608
        db.execute(f"COPY t TO '{file}' (FORMAT parquet)")
        assert db.execute(query).fetchall() == [(8,)]
