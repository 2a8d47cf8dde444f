"""The broker's books: asked once, paid once, and nothing that the base does not allow."""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec
import pytest

from backstop.core.canon import canonical
from backstop.core.cassette import Answer, Place
from backstop.core.spending import Limits
from backstop.errors import WireError
from backstop.ports import ModelRequest, ModelSaid, ModelSilent
from backstop.replay.broker import Broker
from backstop.replay.live import Live, LiveAsking
from backstop.replay.wire import ModelAsked, ModelGiven

USUAL = frozenset({"m"})
REQUEST = ModelRequest(model="m", body=b"{}")


class Model:
    """Answers by a function, and counts."""

    def __init__(
        self, said: Callable[[ModelRequest], ModelSaid | ModelSilent] | None = None
    ) -> None:
        self.asked = 0
        self._said = said or (
            lambda _: ModelSaid(response=b'{"content":null}', tokens_in=10, tokens_out=5)
        )

    def ask(self, request: ModelRequest) -> ModelSaid | ModelSilent:
        self.asked += 1
        return self._said(request)


def asked(
    broker: Broker, *, run: str = "r1", nth: int = 0, usual: frozenset[str] = USUAL
) -> Answer:
    return broker.ask(REQUEST, run=run, repeat=1, digest="d", nth=nth, usual=usual)


def test_the_same_request_of_one_repeat_is_asked_and_paid_once() -> None:
    """The second pass with other stand-ins asks again what the first one asked."""
    model = Model()
    broker = Broker("clerk", Limits(), model)
    assert asked(broker) == asked(broker)
    assert asked(broker, nth=1).why == ""
    assert (model.asked, broker.use.calls, broker.use.tokens_in) == (2, 2, 20)


def test_every_new_answer_is_kept_failures_too() -> None:
    kept: list[Answer] = []
    broker = Broker(
        "clerk", Limits(), Model(lambda _: ModelSilent(why="no", tokens_in=3)), keep=kept.append
    )
    assert asked(broker).why == "no"
    assert [(one.why, one.calls, one.tokens_in) for one in kept] == [("no", 1, 3)]


def test_a_kept_failure_is_asked_anew_where_somebody_can_be_asked() -> None:
    kept: list[Answer] = []
    asked(Broker("clerk", Limits(), Model(lambda _: ModelSilent(why="busy")), keep=kept.append))
    offline = Broker("clerk", Limits(), None, unasked="offline", kept=kept)
    assert asked(offline).why == "busy"
    assert asked(offline, nth=1).why == "offline"
    assert asked(Broker("clerk", Limits(), Model(), kept=kept)).why == ""


def test_what_a_failure_has_cost_stays_on_the_account_when_it_is_asked_anew() -> None:
    """However often it fails, and also where there is no room left to ask."""
    kept: dict[Place, Answer] = {}

    def broker(model: Model, calls: int = 9) -> Broker:
        def keep(answer: Answer) -> None:
            kept[answer.place] = answer

        known = list(kept.values())
        return Broker("clerk", Limits(calls=calls), model, kept=known, keep=keep)

    busy = Model(lambda _: ModelSilent(why="busy", tokens_in=3))
    for _ in range(2):
        asked(broker(busy))
    full = broker(Model(), calls=2)
    assert asked(full).why == "the budget of 2 model calls is used up"
    last = broker(Model())
    assert asked(last).why == ""
    assert (last.use.calls, last.use.tokens_in, last.use.tokens_out) == (3, 16, 5)
    again = broker(Model(), calls=3)
    assert asked(again).why == ""
    assert asked(again, nth=1).why == "the budget of 3 model calls is used up"
    assert again.use.calls == 3


def test_what_a_cassette_has_cost_counts_against_the_budget() -> None:
    kept: list[Answer] = []
    asked(Broker("clerk", Limits(calls=1), Model(), keep=kept.append))
    again = Broker("clerk", Limits(calls=1), Model(), kept=kept)
    assert asked(again).why == ""
    assert asked(again, nth=1).why == "the budget of 1 model calls is used up"
    assert again.use.calls == 1


def test_answers_of_another_agent_are_not_taken() -> None:
    kept: list[Answer] = []
    asked(Broker("clerk", Limits(), Model(), keep=kept.append))
    assert asked(Broker("desk", Limits(), None, unasked="offline", kept=kept)).why == "offline"


def test_an_answer_that_exceeds_the_budget_is_paid_and_not_played() -> None:
    dear = Model(lambda _: ModelSaid(response=b"{}", tokens_in=1, tokens_out=20_000))
    broker = Broker("clerk", Limits(tokens=10_000), dear)
    answer = asked(broker)
    assert answer.why == "this answer exceeds the budget of 10,000 tokens"
    assert (bytes(answer.response), broker.use.tokens_out) == (b"null", 20_000)


def test_workers_at_the_same_time_never_exceed_the_calls() -> None:
    together = threading.Barrier(4, timeout=10)
    model = Model()
    broker = Broker("clerk", Limits(calls=5), model)

    def work(name: str) -> None:
        together.wait()
        for nth in range(5):
            asked(broker, run=name, nth=nth)

    workers = [threading.Thread(target=work, args=(f"r{number}",)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert (model.asked, broker.use.calls) == (5, 5)


def test_nobody_is_asked_after_an_interruption() -> None:
    model = Model()
    broker = Broker("clerk", Limits(), model)
    broker.stop()
    assert asked(broker).why == "it was interrupted"
    assert model.asked == 0


@pytest.mark.parametrize(
    ("models", "usual", "why"),
    [
        ((), frozenset({"m"}), ""),
        (("m",), frozenset(), ""),
        ((), frozenset(), "nobody says that model m may be asked"),
        ((), frozenset({"other"}), "model m may not be asked"),
        (("other",), frozenset({"m"}), "model m may not be asked"),
    ],
    ids=["usual", "named", "unknown", "unusual", "left out"],
)
def test_a_model_is_asked_if_it_is_named_or_else_if_the_base_asks_it(
    models: tuple[str, ...], usual: frozenset[str], why: str
) -> None:
    model = Model()
    found = asked(Broker("clerk", Limits(models=models), model), usual=usual).why
    assert found.startswith(why)
    assert model.asked == (not why)


def test_a_model_that_the_base_does_not_ask_is_told_where_there_is_a_base() -> None:
    broker = Broker("clerk", Limits(models=("m",)), Model())
    asked(broker, usual=frozenset())
    assert not broker.use.unusual
    asked(broker, nth=1, usual=frozenset({"other"}))
    assert broker.use.unusual == ("m",)


TOOL = {
    "name": "pay",
    "parameters": {
        "type": "OBJECT",
        "properties": {
            "vendor": {"type": "STRING"},
            "lines": {"type": "ARRAY"},
            "note": {"type": "STRING", "nullable": True},
            "amount": {"type": "NUMBER"},
        },
        "required": ["vendor"],
    },
}
ASKED = ModelAsked(
    id=1, agent="clerk", ordinal=0, instruction="", tools="", contents="", settings=""
)


def answered(response: object, *, body: object = None, refused: str = "") -> Answer | str:
    """What the asking gives for a model's answer."""
    told = body or {"model": "m", "config": {"tools": [{"function_declarations": [TOOL]}]}}
    said = ModelSaid(response=canonical(response).encode(), tokens_in=1, tokens_out=1)
    broker = Broker("clerk", Limits(models=("m",)), Model(lambda _: said))
    live = LiveAsking(run="r1", live=Live(broker=broker))
    assert live.want(ASKED, None).send > 0
    given = ModelGiven(id=2, of=1, request=msgspec.Raw(canonical(told).encode()), refused=refused)
    assert live.taken(given) == (ASKED, None)
    return live.answer(given)


def call(name: object, args: object) -> dict[str, object]:
    return {"content": {"parts": [{"function_call": {"name": name, "args": args}}]}}


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"vendor": "acme"}, ""),
        ({"vendor": "acme", "lines": [1], "note": None, "amount": "12.5", "more": 1}, ""),
        ({"vendor": "acme", "lines": "[1]"}, ""),
        ({}, "it calls 'pay' without 'vendor', which it requires"),
        ({"vendor": ["acme"]}, "it calls 'pay' with a value of another type at 'vendor'"),
        ({"vendor": "acme", "lines": "many"}, "with a value of another type at 'lines'"),
        ([], "it calls 'pay' with arguments that are no object"),
    ],
    ids=["right", "spelled otherwise", "as text", "left out", "list", "no list", "no object"],
)
def test_arguments_have_to_be_what_the_tool_declares(args: object, why: str) -> None:
    found = answered(call("pay", args))
    assert why in found if isinstance(found, str) else not why


def test_a_tool_that_was_not_offered_is_not_called() -> None:
    found = answered(call("launch\n", {}))
    assert found == "it calls 'launch\\n', which is no tool that it was offered"


def test_words_need_no_tool() -> None:
    found = answered({"content": {"parts": [{"text": "Done."}]}})
    assert isinstance(found, Answer)


def test_what_the_harness_will_not_send_or_sends_wrong_is_a_reason() -> None:
    assert answered({}, refused="too large") == "too large"
    assert "cannot be read" in str(answered({}, body={"config": {}}))


def test_a_request_that_nobody_wanted_ends_the_conversation() -> None:
    live = LiveAsking(run="r1", live=None)
    given = ModelGiven(id=2, of=1)
    with pytest.raises(WireError):
        live.taken(given)
    assert live.answer(given) == "no model may be asked"
