"""The mark for plain functions."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from backstop.guard.effect import (
    MADE_KEY,
    declarations,
    declared_by,
    effect,
    install,
    passing,
    serving,
)


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


def take_back(to: str) -> None:
    """Undoes."""


@effect(
    name="post.send",
    identity=("to",),
    scope="agent",
    key=["request", lambda arguments: f"{arguments['to']}-1"],
    undo=take_back,
    no_effect_on=(ConnectionRefusedError,),
    lease="0s",
)
def post(to: str, request: str | None = None, tool_context: Any = None) -> str:
    return f"posted to {to}"


def test_a_decoration_is_kept_word_for_word_and_found_by_the_home_of_its_function() -> None:
    declared = declared_by(post)
    assert declared is not None
    assert declared in set(declarations())
    assert (declared.tool, declared.identity, declared.scope) == ("post.send", ("to",), "agent")
    assert declared.key == ("request", MADE_KEY)
    assert declared.no_effect_on == (ConnectionRefusedError,)
    assert declared.lease == "0s"
    assert declared.undo_name == f"{__name__}.take_back"
    assert declared.home == f"{__name__}.post"
    assert declared_by(test_installing_returns_the_former_sink) is None
    plain = declared_by(send)
    assert plain is not None
    assert (plain.identity, plain.key, plain.undo_name) == (None, (), "")


def test_a_key_that_the_callers_function_makes_travels_as_an_argument() -> None:
    watcher = Watcher()
    install(watcher)
    post("bob", request="r1")
    assert watcher.seen == [("post.send", {"to": "bob", "request": "r1", MADE_KEY: "bob-1"})]


def test_what_the_framework_puts_into_a_parameter_is_no_argument() -> None:
    class Context:
        pass

    Context.__module__ = "google.adk.agents.context"

    @effect
    def typed(to: str, ctx: Context | None = None, within: Any = None) -> str:
        return to

    @effect
    def spelled(to: str, tool: ToolContext | None = None) -> str:  # type: ignore[name-defined]  # noqa: F821 - text, as a user's annotation may be
        return to

    watcher = Watcher()
    install(watcher)
    typed("bob", Context(), within=Context())
    spelled("eve")
    assert watcher.seen == [("typed", {"to": "bob"}), ("spelled", {"to": "eve"})]


def test_keyword_only_and_positional_only_parameters_are_bound_by_name() -> None:
    @effect
    def both(to: str, /, *, copies: int = 2) -> str:
        return f"{copies} to {to}"

    watcher = Watcher()
    install(watcher)
    assert both("bob") == "2 to bob"
    assert watcher.seen == [("both", {"to": "bob", "copies": 2})]


def test_a_static_method_is_a_function_like_any_other() -> None:
    class Desk:
        @staticmethod
        @effect
        def stamp(what: str) -> str:
            return what

    watcher = Watcher()
    install(watcher)
    assert Desk.stamp("letter") == "letter"
    assert watcher.seen == [("stamp", {"what": "letter"})]


class Mailer:
    def method(self, to: str) -> str:
        return to


def many(*to: str) -> None:
    """Mails many."""


def options(**more: str) -> None:
    """Mails somehow."""


def one_by_one(to: str) -> Iterator[str]:
    yield to


async def slowly(to: str) -> Any:
    yield to


@pytest.mark.parametrize(
    ("thing", "why"),
    [
        (Mailer.method, "a method's object holds cannot be part of a key"),
        (many, "name no target"),
        (options, "name no target"),
        (one_by_one, "a generator has no one result"),
        (slowly, "a generator has no one result"),
        (lambda to: to, "no name"),
        (staticmethod(many), "guards functions, not a staticmethod"),
        (print, "guards functions, not a builtin"),
        (Mailer, "guards functions, not a type"),
    ],
)
def test_what_cannot_be_guarded_is_refused_where_it_is_decorated(thing: Any, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        effect(thing)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"identity": ("whom",)}, "identity names 'whom'"),
        ({"key": "request"}, "key names 'request'"),
        ({"key": [str, str]}, "give one function"),
        ({"scope": "week"}, "scope is one of run, step, agent"),
    ],
)
def test_a_declaration_that_means_nothing_is_refused(said: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):

        @effect(**said)
        def send(to: str) -> None: ...


def test_no_effect_on_takes_exceptions_only() -> None:
    with pytest.raises(TypeError, match="exception classes"):

        @effect(no_effect_on=(KeyboardInterrupt,))  # type: ignore[arg-type]
        def send(to: str) -> None: ...


def test_the_sink_of_a_context_answers_before_the_one_of_the_process() -> None:
    ours, theirs = Watcher(answer="ours"), Watcher(answer="theirs")
    install(theirs)

    async def go() -> tuple[str, str]:
        with serving(ours):
            within = await asyncio.create_task(send_later("bob"))
        return within, await send_later("bob")

    assert asyncio.run(go()) == ("ours", "theirs")


def test_a_call_that_its_tool_has_guarded_goes_straight_through_once() -> None:
    watcher = Watcher()
    install(watcher)
    with passing(send):
        asyncio.run(send_later("eve"))  # another one is guarded as ever
        assert send("bob") == "sent to bob"
        send("bob")
    assert [tool for tool, _ in watcher.seen] == ["send_later", "send"]
