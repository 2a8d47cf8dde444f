"""The guard under the real `adk api_server`, without a change to the agent's code."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from backstop.adapters.apiserver import ApiServer
from backstop.core.events import CallAnswered, CursorAdvanced, EffectClaimed, RunOpened
from backstop.wiring.stores import find_store
from tests.e2e.command import ROOT, backstop

AGENTS = ROOT / "tests/agents"
CONFIG = """\
version: 1
agents:
  till:
    path: {agents}/till
    store: sqlite:///{store}
    tools:
      pay: {{identity: [order]}}
      look: {{effect: false}}
"""
ASK = build_opener(ProxyHandler({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server of one agent, and what its tools and models did."""

    url: str
    folder: Path

    def say(self, session: str, text: str) -> list[dict[str, Any]]:
        """The events that come of a message."""
        message = {"role": "user", "parts": [{"text": text}]}
        asked = {"app_name": "till", "user_id": "u", "session_id": session, "new_message": message}
        events: list[dict[str, Any]] = self.post("/run", asked)
        return events

    def post(self, path: str, body: object) -> Any:
        request = Request(  # noqa: S310 - our own server
            self.url + path,
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with ASK.open(request, timeout=30) as answer:
            return json.loads(answer.read())

    def out(self, word: str) -> list[str]:
        file = self.folder / "out"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [line for line in lines if line.startswith(word)]


@contextmanager
def serving(folder: Path, *options: str, **environment: str) -> Iterator[Server]:
    """`adk api_server` in a process of its own, for as long as it takes."""
    (folder / "backstop.yaml").write_text(
        CONFIG.format(agents=AGENTS, store=folder / "guard.db"), encoding="utf-8"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = Server(url=f"http://127.0.0.1:{port}", folder=folder)
    command = [
        *(sys.executable, "-m", "google.adk.cli", "api_server", "--port", str(port)),
        *(*options, str(folder / "agents")),
    ]
    shutil.copytree(AGENTS / "till", folder / "agents" / "till")
    environment = {
        **os.environ,
        "TILL_OUT": str(folder / "out"),
        "PYTHONPATH": str(ROOT),
        **environment,
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        until = time.monotonic() + 60
        while True:
            try:
                ASK.open(f"{server.url}/list-apps", timeout=5).close()
                break
            except (URLError, OSError):
                assert process.poll() is None, (folder / "log").read_text(encoding="utf-8")
                assert time.monotonic() < until
                time.sleep(0.1)
        yield server
    finally:
        process.terminate()
        process.wait(timeout=20)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("guarded")
    with serving(folder, "--extra_plugins", "backstop.Plugin") as server:
        yield server


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The same with a plugin that cannot be loaded: the server starts all the same."""
    folder = tmp_path_factory.mktemp("bare")
    with serving(folder, "--extra_plugins", "backstop.NoSuchPlugin") as server:
        yield server


def told(events: list[dict[str, Any]]) -> list[Any]:
    parts = [part for event in events for part in event["content"]["parts"]]
    return [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]


def test_a_repeated_payment_goes_out_once(guarded: Server) -> None:
    guarded.post("/apps/till/users/u/sessions/c1", {})
    first, second = (guarded.say("c1", "pay 7 10") for _ in range(2))
    assert told(first) == told(second) == [{"paid": "7", "amount": 10}]
    assert guarded.out("pay") == ["pay 7 10"]
    events = list(find_store(f"sqlite:///{guarded.folder / 'guard.db'}", agent="till").read())
    assert [e.run for e in events if isinstance(e, RunOpened)] == ["till:u:c1"]
    assert [e.tool for e in events if isinstance(e, EffectClaimed)] == ["pay"]
    assert [e.how for e in events if isinstance(e, CallAnswered)] == ["recorded"]
    assert [e.cursor for e in events if isinstance(e, CursorAdvanced)] == [1, 2]


def test_doctor_finds_the_guard_of_a_server_and_leaves_nothing_behind(guarded: Server) -> None:
    asked = len(guarded.out("model"))
    ran = backstop("doctor", "--live", guarded.url)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "ok   till: the guard is loaded, backstop 0.1.0",
        "ok   till: it stands first among the plugins",
        "ok   till: it guards agent till, and its store answers",
        "ok   till: tools that it stands before: pay, look",
    ]
    assert len(guarded.out("model")) == asked
    assert ApiServer(guarded.url)._asked("GET", "/apps/till/users/backstop-doctor/sessions") == []  # noqa: SLF001 - what it left
    events = find_store(f"sqlite:///{guarded.folder / 'guard.db'}", agent="till").read()
    assert not [event for event in events if "doctor" in event.run]


def test_doctor_is_red_where_the_plugin_did_not_load_and_asks_no_model(bare: Server) -> None:
    ran = backstop("doctor", "--live", bare.url)
    assert ran.code == 1
    assert ran.out.startswith("FAIL till: the guard did not answer (HTTP 500 to POST /run)")
    assert bare.out("model") == []
    bare.post("/apps/till/users/u/sessions/c1", {})
    bare.say("c1", "pay 7 10")
    assert bare.out("pay") == ["pay 7 10"]  # it really is unguarded


def test_doctor_names_an_app_that_the_server_does_not_have(bare: Server) -> None:
    ran = backstop("doctor", "--live", bare.url, "--app", "desk")
    assert (ran.code, ran.out) == (1, "FAIL desk: the server has no such app; it has: till\n")


def test_doctor_says_so_where_nobody_listens() -> None:
    ran = backstop("doctor", "--live", "http://127.0.0.1:1")
    assert ran.code == 2
    assert ran.err.startswith("error[doctor-server]: http://127.0.0.1:1 cannot be reached")


def test_a_server_with_a_bad_configuration_refuses_effects_and_says_why(tmp_path: Path) -> None:
    with serving(
        tmp_path, "--extra_plugins", "backstop.Plugin", BACKSTOP_CONFIG="/none.yaml"
    ) as server:
        server.post("/apps/till/users/u/sessions/c1", {})
        (answer,) = told(server.say("c1", "pay 7 10"))
        assert answer["backstop"] == "refused"
        assert "config-missing" in answer["reason"]
        assert server.out("pay") == []
        ran = backstop("doctor", "--live", server.url)
        assert ran.code == 1
        assert "FAIL till: it refuses every effect: /none.yaml" in ran.out
    log = (tmp_path / "log").read_text(encoding="utf-8")
    assert log.count("backstop refuses effects: /none.yaml") == 1
