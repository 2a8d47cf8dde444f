"""Session databases that ADK's own `DatabaseSessionService` wrote: SQLite and PostgreSQL.

Both forms of tables: the framework still writes the older one, with its pickles, to a database
that has it.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from google.adk.events.event import Event
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.schemas.v0 import Base as Older
from sqlalchemy.ext.asyncio import create_async_engine

from backstop.adapters.importing import sqlalchemy as adapter
from backstop.adapters.importing.tables import sessions
from backstop.adapters.told import ImportRefused
from backstop.core.canon import parse
from backstop.core.events import RunOpened
from tests.e2e.command import backstop
from tests.postgres import missing, server
from tests.unit.adapters.importing.sessions import Told, answer, at, call, event, ledger

CONFIG = """\
version: 1
agents:
  desk:
    path: desk
    ledger: desk.jsonl
    tools:
      pay: {identity: [order]}
"""
SAID = [
    event("user", "Zahl 7, für Jürgen Ⅷ 😀", id="a"),
    event("desk", "Gern.", call("pay", "c", order="№ 7", amount=12.50, n=2**53 + 1), id="b"),
    event("desk", answer("pay", "c", paid=1e-7, deep=[{"x": None}]), id="c"),
    # Of one moment: the answer was appended after the call, and its id comes after as well.
    event("desk", call("pay", "d", order="8"), id="d1", timestamp=1_764_132_700.5),
    event("desk", answer("pay", "d", ok=True), id="d2", timestamp=1_764_132_700.5),
    event("desk", "Done.", id="e", actions={"state_delta": {"user:vip": True, "last": "8"}}),
]


async def _written(url: str, *, older: bool) -> None:
    if older:
        engine = create_async_engine(url)
        async with engine.begin() as connection:
            await connection.run_sync(Older.metadata.create_all)
        await engine.dispose()
    service = DatabaseSessionService(url)
    state = {"app:shop": "Nord", "limit": 50}
    for session in ("one", "two"):
        kept = await service.create_session(
            app_name="desk", user_id="ann", session_id=session, state=state
        )
        for number, one in enumerate(SAID):
            placed: dict[str, Any] = {"timestamp": 1_764_132_650 + number * 20.25, **one}
            if session == "two":
                placed["id"] = f"two-{placed['id']}"
            await service.append_event(kept, Event.model_validate(placed))
    await service.close()


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    if why := missing():
        pytest.skip(why)
    with server() as url:
        yield url


@pytest.fixture(scope="module", params=[False, True], ids=["now", "older"])
def stores(
    request: pytest.FixtureRequest, postgres: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str]:
    """One and the same sessions, in a SQLite file and in a PostgreSQL database."""
    older = bool(request.param)
    file = tmp_path_factory.mktemp("store") / "sessions.db"
    asyncio.run(_written(f"sqlite+aiosqlite:///{file}", older=older))
    named = "older" if older else "now"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE DATABASE older" if older else "CREATE DATABASE now")
    url = postgres.replace("/postgres?", f"/{named}?").replace("postgresql", "postgresql+psycopg")
    asyncio.run(_written(url, older=older))
    return file, url


def _through_sqlalchemy(url: str) -> Told:
    with adapter.opened(url) as tables:
        return ledger(list(_taken(tables)))


def _taken(tables: adapter.SqlTables) -> Iterator[Any]:
    from dataclasses import replace

    for one in sessions(tables):
        yield replace(one, events=list(one.events))


def test_every_way_to_a_database_tells_the_same(stores: tuple[Path, str]) -> None:
    file, url = stores
    found = at(file)
    assert [one.run for one in found.of(RunOpened)] == ["one", "two"]
    # What changed later is not known to have been there; the older form says so as well.
    opened = parse(bytes(found.of(RunOpened)[0].state))
    assert opened == {"app:shop": "Nord", "limit": 50}
    assert [tool for tool, _, _ in found.paid] == ["pay"] * 4
    assert found.paid[0][1] == parse('{"order": "№ 7", "amount": 12.5, "n": 9007199254740993}')
    assert found.gaps == []
    for other in (
        at(url),
        _through_sqlalchemy(url),
        _through_sqlalchemy(f"sqlite+pysqlite:///{file}"),
        _through_sqlalchemy(f"sqlite:///{file}"),
    ):
        assert other.paid == found.paid
        assert [(one.run, one.at) for one in other.events] == [
            (one.run, one.at) for one in found.events
        ]
        assert other.gaps == []


def test_an_asynchronous_driver_gives_way_to_one_that_is_installed(
    stores: tuple[Path, str],
) -> None:
    _, url = stores
    assert at(url.replace("+psycopg", "+asyncpg")).paid == at(url).paid
    assert at(url.replace("+psycopg", "+psycopg_async")).paid == at(url).paid


def test_the_command_imports_from_a_url(stores: tuple[Path, str], tmp_path: Path) -> None:
    _, url = stores
    (tmp_path / "backstop.yaml").write_text(CONFIG)
    out = tmp_path / "desk.jsonl"
    command = ("ledger", "import", "--config", tmp_path / "backstop.yaml", "--from", "adk-session")
    ran = backstop(*command, "--out", out, url)
    assert (ran.code, ran.err) == (0, "")
    assert "runs: 2" in ran.out
    assert "side effects: 4" in ran.out
    assert backstop("ledger", "verify", out).code == 0


@pytest.mark.parametrize(
    "change",
    [
        ("postgresql+psycopg", "postgresql+nosuch"),
        ("/now", "/absent"),
        ("/older", "/absent"),
        ("ann@", "bob:secret@"),
        ("postgresql+psycopg://ann@", "mysql+aiomysql://ann:secret@127.0.0.1:1"),
    ],
    ids=["driver", "database", "database too", "user", "another"],
)
def test_a_database_that_cannot_be_reached_is_told_of_in_one_line(
    stores: tuple[Path, str], change: tuple[str, str]
) -> None:
    _, url = stores
    broken = url.replace(*change)
    if broken == url:
        return
    with pytest.raises(ImportRefused) as refused:
        at(broken)
    assert refused.value.slug == "import-store-unreachable"
    line = str(refused.value)
    assert "\n" not in line
    assert "secret" not in line


def test_a_file_that_is_copied_while_its_server_runs_misses_nothing(
    stores: tuple[Path, str], tmp_path: Path
) -> None:
    file, _ = stores
    shutil.copy(file, tmp_path / "copy.db")
    assert at(tmp_path / "copy.db").events == at(file).events
