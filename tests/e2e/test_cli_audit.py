"""``backstop ledger archive`` and ``backstop report audit``: from a file, a store, an archive."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.dsl import sealed
from tests.e2e.command import ROOT, backstop, refused
from tests.e2e.stored import told

STORY = """
agent desk
tool pay identity ref
tool check reads
run r1
step s1
read check{ref: 7} -> {free: true}
commit pay{ref: 1} -> {ok: true}
advance
step s2
commit pay{ref: 3} -> {ok: true}
recorded pay{ref: 1}
advance
"""
LATER = f"""{STORY}
run r2
step t1
commit pay{{ref: 4}} -> {{ok: true}}
advance
run r1
close complete
"""
SPECIMEN = ROOT / "ledgers" / "vendor-onboarding.jsonl"
KINDS = ("parquet", "sqlite")


@pytest.fixture(params=KINDS)
def to(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return {"parquet": f"parquet:{tmp_path}/kept", "sqlite": f"sqlite:///{tmp_path}/kept.db"}[
        request.param
    ]


def written(tmp_path: Path, text: str, name: str = "l.jsonl") -> Path:
    file = tmp_path / name
    file.write_bytes(sealed(text))
    return file


def figures(*where: str | Path) -> dict[str, object]:
    ran = backstop("report", "audit", *where, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    found: dict[str, object] = json.loads(ran.out)
    return found


def test_an_archive_answers_as_the_ledger_that_it_was_filled_from(to: str) -> None:
    assert backstop("ledger", "archive", SPECIMEN, "--to", to).code == 0
    kept, whole = figures(to), figures(SPECIMEN)
    assert (kept["days"], kept["total"]) == (whole["days"], whole["total"])
    total = whole["total"]
    assert isinstance(total, dict)
    assert (total["events"], total["effects"], total["repeats_stopped"]) == (1094, 42, 4)


def test_only_what_is_new_goes_in_and_told_again_nothing_does(to: str, tmp_path: Path) -> None:
    first, later = written(tmp_path, STORY), written(tmp_path, LATER, "later.jsonl")
    assert "15 new events" in backstop("ledger", "archive", first, "--to", to).out
    assert "nothing new" in backstop("ledger", "archive", first, "--to", to).out
    assert " 8 new events" in backstop("ledger", "archive", later, "--to", to).out
    assert figures(to)["total"] == figures(later)["total"]


def test_a_store_is_archived_and_audited_as_its_pulled_ledger_is(to: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    told(url, STORY)
    ran = backstop("ledger", "archive", url, "--to", to, "--agent", "desk")
    assert (ran.code, ran.err) == (0, "")
    assert "holds the ledger of desk" in ran.out
    kept, store = figures(to), figures(url, "--agent", "desk")
    assert (kept["kind"], store["kind"]) == ("archive", "store")
    assert (kept["days"], kept["total"]) == (store["days"], store["total"])


def test_an_older_or_an_edited_past_is_refused_and_nothing_written(to: str, tmp_path: Path) -> None:
    later, first = written(tmp_path, LATER, "later.jsonl"), written(tmp_path, STORY)
    other = written(tmp_path, LATER.replace("ref: 1", "ref: 9"), "other.jsonl")
    backstop("ledger", "archive", later, "--to", to)
    before = figures(to)
    for file in (first, other):
        refused("archive-fork", "ledger", "archive", file, "--to", to)
    assert figures(to) == before


def test_another_agents_ledger_is_refused(to: str, tmp_path: Path) -> None:
    backstop("ledger", "archive", written(tmp_path, STORY), "--to", to)
    other = written(tmp_path, STORY.replace("agent desk", "agent clerk"), "clerk.jsonl")
    refused("ledger-foreign-agent", "ledger", "archive", other, "--to", to)
    refused("archive-foreign", "report", "audit", to, "--agent", "clerk")


def test_an_archive_that_was_cut_at_a_note_is_found_by_its_mark(tmp_path: Path) -> None:
    to, mark = f"parquet:{tmp_path}/kept", tmp_path / "mark"
    first, later = written(tmp_path, STORY), written(tmp_path, LATER, "later.jsonl")
    begun = backstop("ledger", "archive", first, "--to", to, "--high-water", mark)
    assert "which begins here" in begun.out
    backstop("ledger", "archive", later, "--to", to, "--high-water", mark)
    assert figures(to, "--high-water", mark)["end_vouched_for"] is True
    max((tmp_path / "kept").glob("*.parquet")).unlink()
    assert figures(to)["end_vouched_for"] is False, "without its mark nobody can tell, and it says"
    refused("archive-rollback", "report", "audit", to, "--high-water", mark)
    refused("archive-rollback", "ledger", "archive", later, "--to", to, "--high-water", mark)


@pytest.mark.parametrize("lost", [0, 1])
def test_a_file_of_entries_that_is_lost_before_the_last_is_found(tmp_path: Path, lost: int) -> None:
    to = f"parquet:{tmp_path}/kept"
    begun = "run r3\nstep u1\ncommit pay{ref: 5} -> {ok: true}\nadvance\n"
    for text in (STORY, LATER, f"{LATER}{begun}"):
        assert backstop("ledger", "archive", written(tmp_path, text), "--to", to).code == 0
    sorted((tmp_path / "kept").glob("*.parquet"))[lost].unlink()
    refused("archive-gap", "report", "audit", to)


def test_an_archiving_that_is_killed_is_taken_up_again(tmp_path: Path) -> None:
    to, story = f"sqlite:///{tmp_path}/kept.db", [STORY]
    story += [
        f"run x{n}\nstep s\ncommit pay{{ref: {n + 100}}} -> {{ok: true}}\nadvance"
        for n in range(900)
    ]
    file = written(tmp_path, "\n".join(story))
    asked = [sys.executable, "-m", "backstop", "ledger", "archive", str(file), "--to", to]
    for _ in range(3):
        process = subprocess.Popen(asked, cwd=ROOT, stdout=subprocess.DEVNULL)
        place = tmp_path / "kept.db"
        while not place.exists() and process.poll() is None:
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert backstop("ledger", "archive", file, "--to", to).code == 0
    assert figures(to)["total"] == figures(file)["total"]


@pytest.mark.parametrize(
    ("where", "slug"),
    [
        ("parquet:nowhere-at-all", "store-missing"),
        ("sqlite:///nowhere-at-all.db", "store-missing"),
        ("parquet:", "archive-url"),
        ("nowhere.jsonl", "ledger-missing"),
        ("bigquery://only-a-project", "archive-url"),
        ("bigquery://a-project/a_dataset?location=EU", "archive-url"),
        ("firestore://a-project/(default)/audit#today", "archive-url"),
    ],
)
def test_a_place_without_an_archive_is_never_an_empty_one(where: str, slug: str) -> None:
    refused(slug, "report", "audit", where, "--agent", "desk")


def test_an_archive_that_nothing_went_into_is_refused(tmp_path: Path) -> None:
    to = f"parquet:{tmp_path}/kept"
    refused("ledger-missing", "ledger", "archive", tmp_path / "no", "--to", to)
    refused("archive-empty", "report", "audit", to)


@pytest.mark.parametrize("to", ["s3://bucket/kept", "kept", "sqlite://kept.db", "firestore://p/d"])
def test_a_place_of_no_kind_is_refused(to: str) -> None:
    refused("archive-url", "ledger", "archive", SPECIMEN, "--to", to)


def test_a_folder_and_a_file_of_something_else_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    places = {
        f"parquet:{tmp_path}": "store-schema",
        f"sqlite:///{tmp_path}/note.txt": "store-damaged",
    }
    for to, slug in places.items():
        refused(slug, "ledger", "archive", SPECIMEN, "--to", to)
    assert [file.name for file in tmp_path.iterdir()] == ["note.txt"]


def test_a_mark_belongs_to_an_archive_and_apart_from_what_is_read(tmp_path: Path) -> None:
    refused("usage", "report", "audit", SPECIMEN, "--high-water", tmp_path / "m")
    (tmp_path / "m").write_text("{}")
    to = f"parquet:{tmp_path}/kept"
    refused(
        "mark-damaged", "ledger", "archive", SPECIMEN, "--to", to, "--high-water", tmp_path / "m"
    )


def test_the_table_fits_into_80_columns_and_names_are_escaped(tmp_path: Path) -> None:
    hostile = written(tmp_path, STORY.replace("agent desk", 'agent "d\\e[31m"'), "h.jsonl")
    for file in (SPECIMEN, hostile):
        ran = backstop("report", "audit", file)
        table = ran.out.splitlines()[3:]
        assert ran.code == 0
        assert max(map(len, table)) <= 80
        assert "\x1b" not in ran.out


def test_a_ledger_that_was_edited_is_refused_before_anything_is_counted(tmp_path: Path) -> None:
    file = written(tmp_path, STORY)
    file.write_bytes(file.read_bytes().replace(b'"ok":true', b'"ok":null', 1))
    refused("ledger-tampered", "report", "audit", file)
    refused("ledger-tampered", "ledger", "archive", file, "--to", f"parquet:{tmp_path}/kept")
