"""Session stores as ADK wrote them, and stores that are none."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from backstop.adapters.importing import sqlite
from backstop.adapters.told import ImportRefused
from backstop.core.canon import parse
from backstop.core.events import RunOpened, StepStarted
from backstop.core.history import Outcome
from backstop.errors import BackstopError
from tests.unit.adapters.importing.sessions import answer, at, call, event, numbered

STORES = Path(__file__).parent / "stores"
SAID = numbered(
    event("user", "pay 7"),
    event("desk", call("pay", "c", order=7)),
    event("desk", answer("pay", "c", paid=7)),
)


def database(folder: Path, script: str) -> Path:
    path = folder / "sessions.db"
    with closing(sqlite3.connect(path)) as made:
        made.executescript(script)
    return path


def stored(folder: Path, name: str) -> Path:
    """A store that a version of ADK wrote."""
    return database(folder, (STORES / f"{name}.sql").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["adk_1_20", "adk_2_13"])
def test_a_store_of_either_form_tells_the_same(name: str, tmp_path: Path) -> None:
    found = at(stored(tmp_path, name))
    assert [one.run for one in found.of(RunOpened)] == ["one", "two"]
    assert [one.user for one in found.of(RunOpened)] == ["ann", "bob"]
    assert parse(bytes(found.of(RunOpened)[0].state)) == {"app:shop": "north", "limit": 50}
    assert found.of(RunOpened)[0].at == "2025-11-26T04:50:51Z"
    assert [(tool, result) for tool, _, result in found.paid] == [
        ("pay", {"ok": 7}),
        ("pay", {"ok": 8}),
        ("refund", {"refunded": 7}),
        ("approve", None),
    ]
    assert [row.tool for row in found.ledger.history.rows if row.outcome is Outcome.OPEN] == [
        "ship"
    ]
    assert len(found.of(StepStarted)) == 5
    assert found.gaps == []


def test_both_forms_amount_to_one_ledger(tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("adk_1_20", "adk_2_13")}
    for folder in folders.values():
        folder.mkdir()
    old, new = (at(stored(folder, name)) for name, folder in folders.items())
    assert old.events == new.events


def test_a_url_of_sqlite_is_its_file_whatever_driver_it_names(tmp_path: Path) -> None:
    path = stored(tmp_path, "adk_2_13")
    for url in (f"sqlite:///{path}", f"sqlite+aiosqlite:///{path}"):
        assert at(url).events == at(path).events


def test_sessions_are_chosen_by_user_app_and_id(tmp_path: Path) -> None:
    path = stored(tmp_path, "adk_2_13")
    assert [one.run for one in at(path, user_id="bob").of(RunOpened)] == ["two"]
    with pytest.raises(ImportRefused, match="no conversation to import"):
        at(path, id="three")
    with pytest.raises(ImportRefused, match="they have: app_name, id, user_id") as refused:
        at(path, colour="red")
    assert refused.value.slug == "import-where"


def test_sessions_of_several_apps_are_not_mixed(tmp_path: Path) -> None:
    for app in ("desk", "till"):
        told = {"app_name": app, "user_id": "ann", "id": app, "events": SAID}
        (tmp_path / f"{app}.json").write_text(json.dumps(told))
    with pytest.raises(ImportRefused, match="--where app_name=NAME") as refused:
        at(tmp_path)
    assert refused.value.slug == "import-apps"
    assert len(at(tmp_path, app_name="till").paid) == 1


def test_a_session_file_may_be_spelled_in_camel_case(tmp_path: Path) -> None:
    path = tmp_path / "one.session.json"
    text = json.dumps({"appName": "desk", "userId": "ann", "events": SAID})
    for name in ("function_call", "function_response", "invocation_id"):
        first, second = name.split("_")
        text = text.replace(name, first + second.capitalize())
    path.write_text(text)
    found = at(path)
    assert found.paid == [("pay", {"order": 7}, {"paid": 7})]
    assert [(one.run, one.user) for one in found.of(RunOpened)] == [("one", "ann")]


@pytest.mark.parametrize(
    ("content", "slug"),
    [
        ("", "import-not-json"),
        ('{"events": [', "import-not-json"),
        ('{"events": [], "events": []}', "import-not-json"),
        ("[" * 100_000, "import-not-json"),
        ("{}", "import-shape"),
        ("3", "import-shape"),
        ('{"events": [3]}', "import-shape"),
        ('{"events": [], "state": 3}', "import-shape"),
        ('{"events": [], "user_id": 3}', "import-shape"),
        ("[]", "import-no-match"),
        ('{"events": []}', "import-no-match"),
    ],
)
def test_a_file_that_is_no_session_is_refused(content: str, slug: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(ImportRefused) as refused:
        at(path)
    assert refused.value.slug == slug
    assert "\n" not in str(refused.value)


def test_a_place_where_nothing_is_is_said_to_be_empty(tmp_path: Path) -> None:
    for place in (tmp_path / "none", f"sqlite:///{tmp_path}/none.db"):
        with pytest.raises(BackstopError) as refused:
            at(place)
        assert refused.value.slug == "file-missing"
    with pytest.raises(ImportRefused, match=r"holds no \.json file"):
        at(tmp_path)
    with pytest.raises(ImportRefused, match="names no file"):
        at("sqlite://")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("CREATE TABLE other (x)", "there is no such table"),
        ("CREATE TABLE events (id, name)", "they have id, name"),
        (
            "CREATE TABLE adk_internal_metadata AS SELECT 'schema_version' AS key, '7' AS value",
            "of version '7'",
        ),
    ],
)
def test_a_database_of_another_form_is_refused(script: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match=why) as refused:
        at(database(tmp_path, script))
    assert refused.value.slug == "import-store-schema"


@pytest.mark.parametrize(
    ("event_data", "slug"),
    [
        ("NULL", "import-shape"),
        ("'{'", "import-not-json"),
        ("'[]'", "import-shape"),
        ("'{\"author\": NaN}'", "import-not-json"),
        ("X'ff'", "import-not-json"),
        ("7", "import-shape"),
    ],
)
def test_an_event_that_was_written_half_is_refused_with_its_place(
    event_data: str, slug: str, tmp_path: Path
) -> None:
    path = stored(tmp_path, "adk_2_13")
    with closing(sqlite3.connect(path)) as made:
        made.execute(f"UPDATE events SET event_data = {event_data} WHERE id = 'e03'")  # noqa: S608
        made.commit()
    with pytest.raises(ImportRefused, match="session one of user ann, event e03") as refused:
        at(path)
    assert refused.value.slug == slug


def test_a_hostile_pickle_in_a_store_is_refused_with_its_place(tmp_path: Path) -> None:
    path = stored(tmp_path, "adk_1_20")
    with closing(sqlite3.connect(path)) as made:
        made.execute(
            "UPDATE events SET actions = ? WHERE id = 'e03'", (b"cos\nsystem\n(S'x'\ntR.",)
        )
        made.commit()
    with pytest.raises(ImportRefused, match=r"event e03: .* hold a os\.system") as refused:
        at(path)
    assert refused.value.slug == "import-foreign-class"


def test_a_database_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = stored(tmp_path, "adk_2_13")
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(ImportRefused) as refused:
        at(path)
    assert refused.value.slug == "import-store-damaged"


def test_a_database_that_a_server_has_locked_is_refused(tmp_path: Path) -> None:
    path = stored(tmp_path, "adk_2_13")
    with closing(sqlite3.connect(path, isolation_level=None)) as server:
        server.execute("BEGIN EXCLUSIVE")
        with (
            pytest.raises(ImportRefused, match="a running server has it locked") as refused,
            sqlite.opened(path, patience_s=0) as tables,
        ):
            tables.columns("events")
        assert refused.value.slug == "import-store-locked"
    assert at(path).paid


def test_reading_a_store_leaves_it_as_it_is(tmp_path: Path) -> None:
    path = stored(tmp_path, "adk_2_13")
    before = path.read_bytes()
    at(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["sessions.db"]
