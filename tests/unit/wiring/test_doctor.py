"""What doctor makes of the guard's own words, and of servers that are none."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from backstop.adapters.apiserver import ApiServer, NotAnswered
from backstop.errors import BackstopError
from backstop.guard.plugin.health import Health, heard, question
from backstop.wiring.doctor import check_server, checks_of

FINE = Health(backstop="0.1.0", nonce="n", index=0, agent="till", armed=("pay",))


def said(health: Health | None) -> list[tuple[bool, str]]:
    return [(check.ok, check.what) for check in checks_of("till", health)]


def test_all_is_well_where_the_guard_says_so() -> None:
    assert all(ok for ok, _ in said(FINE))


@pytest.mark.parametrize(
    ("health", "word"),
    [
        (None, "did not answer (somebody else answered)"),
        (Health(backstop="0.1.0", nonce="n", index=2), "plugin number 3"),
        (Health(backstop="0.1.0", nonce="n", index=0, why="no store"), "every effect: no store"),
        (Health(backstop="0.1.0", nonce="n", index=0, missed=("odd",)), "cannot stand before: odd"),
    ],
)
def test_each_fault_is_a_red_line(health: Health | None, word: str) -> None:
    assert [word in what for ok, what in said(health) if not ok] == [True]


def test_observing_is_a_note() -> None:
    observing = Health(backstop="0.1.0", nonce="n", index=0, observing=True)
    (note,) = [check for check in checks_of("till", observing) if check.note]
    assert "only observes" in note.what


@pytest.mark.parametrize(
    "events",
    [
        [],
        [{"content": None}],
        [{"content": {"parts": [{"text": None}, {"text": "hello"}, {"text": "{}"}]}}],
        [{"content": {"parts": [{"text": '{"backstop":"0","nonce":"other","index":0}'}]}}],
    ],
)
def test_nobody_but_the_guard_answers_with_the_nonce(events: list[dict[str, Any]]) -> None:
    assert heard(events, nonce="n") is None


class Odd(BaseHTTPRequestHandler):
    """A server that is no server of agents."""

    def do_GET(self) -> None:
        body = {"/list-apps": b'["till"]', "/bad/list-apps": b"<html>"}.get(self.path, b"7")
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.send_response(404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def odd() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Odd)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("path", ["/bad", "/other"])
def test_what_lists_no_apps_is_no_server_of_agents(odd: str, path: str) -> None:
    with pytest.raises(BackstopError, match="does not list its apps") as caught:
        ApiServer(odd + path).apps()
    assert caught.value.slug == "doctor-server"


def test_a_server_that_opens_no_session_is_red(odd: str) -> None:
    (check,) = check_server(odd, app=None, nonce="n")
    assert (check.ok, "HTTP 404 to POST" in check.what) == (False, True)
    with pytest.raises(NotAnswered):
        ApiServer(odd).ask("till", question("n"))


@pytest.mark.parametrize("url", ["ftp://x", "http://", "localhost:8000"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(BackstopError, match="no address of a server"):
        ApiServer(url)
