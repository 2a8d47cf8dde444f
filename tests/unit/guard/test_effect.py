"""The mark for plain functions."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from backstop.guard.effect import effect, install


@effect
def send(to: str, *, urgent: bool = False) -> str:
    """Sends."""
    return f"sent to {to}"


@effect
async def send_later(to: str) -> str:
    return f"later to {to}"


class Watcher:
    """Remembers calls, and runs them or answers by itself."""

    def __init__(self, answer: object = None) -> None:
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self.answer = answer

    def call(self, tool: str, arguments: dict[str, Any], run: Callable[[], Any]) -> Any:
        self.seen.append((tool, arguments))
        return self.answer or run()

    async def acall(
        self, tool: str, arguments: dict[str, Any], run: Callable[[], Awaitable[Any]]
    ) -> Any:
        self.seen.append((tool, arguments))
        return self.answer or await run()


@pytest.fixture(autouse=True)
def nobody_watches() -> Iterator[None]:
    yield
    install(None)


def test_without_a_sink_the_function_is_what_it_was() -> None:
    assert send("bob") == "sent to bob"
    assert asyncio.run(send_later("bob")) == "later to bob"


def test_a_sink_sees_arguments_by_name_with_defaults_and_may_let_them_pass() -> None:
    watcher = Watcher()
    install(watcher)
    assert send("bob") == "sent to bob"
    assert asyncio.run(send_later("eve")) == "later to eve"
    assert watcher.seen == [
        ("send", {"to": "bob", "urgent": False}),
        ("send_later", {"to": "eve"}),
    ]


def test_a_sink_may_answer_in_place_of_the_function() -> None:
    install(Watcher(answer="recorded"))
    assert send("bob") == "recorded"
    assert asyncio.run(send_later("bob")) == "recorded"


def test_wrong_arguments_are_the_callers_error_before_anybody_sees_them() -> None:
    watcher = Watcher()
    install(watcher)
    with pytest.raises(TypeError):
        send()  # type: ignore[call-arg]
    assert watcher.seen == []


def test_installing_returns_the_former_sink() -> None:
    first, second = Watcher(), Watcher()
    assert install(first) is None
    assert install(second) is first
    assert install(None) is second


def test_a_decorated_function_carries_the_mark_and_keeps_its_face() -> None:
    assert send.__backstop_effect__ is True  # type: ignore[attr-defined]
    assert send.__doc__ == "Sends."
    assert list(inspect.signature(send).parameters) == ["to", "urgent"]
    assert inspect.iscoroutinefunction(send_later)
