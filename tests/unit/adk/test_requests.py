"""Digests of model requests: what counts, what does not, and what they cost."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from google.adk.models.llm_request import LlmRequest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from backstop.adk.requests import Counterparts, Digests, RequestDigester

pytestmark = pytest.mark.filterwarnings("ignore")


def text(said: str, role: str = "user") -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=said)])


def call(name: str, **args: Any) -> types.Content:
    made = types.FunctionCall(id=f"adk-{len(args)}", name=name, args=args)
    return types.Content(role="model", parts=[types.Part(function_call=made)])


def answer(name: str, **result: Any) -> types.Content:
    made = types.FunctionResponse(name=name, response=result)
    return types.Content(role="user", parts=[types.Part(function_response=made)])


def request(*contents: types.Content, model: str = "gemini", **config: Any) -> LlmRequest:
    return LlmRequest(
        model=model, contents=list(contents), config=types.GenerateContentConfig(**config)
    )


def digest(asked: LlmRequest, counterparts: Counterparts | None = None) -> Digests:
    return RequestDigester().digest(asked, counterparts)


BASE = request(text("go"), system_instruction="be good", temperature=0.5)


def test_equal_requests_have_equal_digests() -> None:
    assert digest(BASE) == digest(BASE.model_copy(deep=True))


def parts_that_differ(changed: LlmRequest) -> set[str]:
    before, after = digest(BASE)._asdict(), digest(changed)._asdict()
    return {name for name in before if before[name] != after[name]}


def changed(**config: Any) -> LlmRequest:
    return request(text("go"), **{"system_instruction": "be good", "temperature": 0.5, **config})


TOOL = types.Tool(function_declarations=[types.FunctionDeclaration(name="pay")])


class Answer(BaseModel):
    amount: int


@pytest.mark.parametrize(
    ("asked", "differs"),
    [
        (changed(system_instruction="be better"), {"instruction"}),
        (changed(system_instruction=types.Content(parts=[types.Part(text="x")])), {"instruction"}),
        (changed(tools=[TOOL]), {"tools"}),
        (changed(tools=[len]), {"tools"}),
        (changed(temperature=0.7), {"settings"}),
        (changed(tool_config=types.ToolConfig()), {"settings"}),
        (changed(response_schema=Answer), {"settings"}),
        (changed(response_schema=list[Answer]), {"settings"}),
        (changed(response_schema={"type": "OBJECT"}), {"settings"}),
        (changed(response_json_schema={"type": "object"}), {"settings"}),
        (changed(safety_settings=[types.SafetySetting()]), {"settings"}),
        (
            request(text("go"), text("on"), system_instruction="be good", temperature=0.5),
            {"contents"},
        ),
        (changed(labels={"team": "a"}), set()),
        (changed(http_options=types.HttpOptions(timeout=7)), set()),
        (changed(cached_content="somewhere"), set()),
    ],
)
def test_a4_each_part_of_a_request_is_digested_apart(asked: LlmRequest, differs: set[str]) -> None:
    """A4: instruction, tools, contents and settings, each by itself."""
    assert parts_that_differ(asked) == differs


def test_a4_the_models_name_is_a_setting() -> None:
    """A4: another model is another request."""
    other = request(text("go"), model="other", system_instruction="be good", temperature=0.5)
    assert parts_that_differ(other) == {"settings"}


def test_ids_and_thought_signatures_do_not_count() -> None:
    one, two = call("pay", amount=1), call("pay", amount=1)
    assert two.parts is not None
    assert two.parts[0].function_call is not None
    two.parts[0].function_call.id = "other"
    two.parts[0].thought_signature = b"signed"
    assert digest(request(one)) == digest(request(two))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (text("a"), text("b")),
        (text("a"), text("a", role="model")),
        (call("pay", amount=1), call("pay", amount=True)),
        (call("pay", amount=1), call("pay", amount="1")),
        (call("pay", amount=1), call("buy", amount=1)),
        (answer("pay", ok=1), answer("pay", ok=2)),
        (answer("pay", ok=1), call("pay", ok=1)),
        (
            types.Content(parts=[types.Part(text="a", thought=True)]),
            types.Content(parts=[types.Part(text="a")]),
        ),
        (
            types.Content(parts=[types.Part(inline_data=types.Blob(data=b"1", mime_type="a/b"))]),
            types.Content(parts=[types.Part(inline_data=types.Blob(data=b"2", mime_type="a/b"))]),
        ),
        (
            types.Content(parts=[types.Part(text="a"), types.Part(text="b")]),
            types.Content(parts=[types.Part(text="ab")]),
        ),
    ],
)
def test_contents_that_differ_have_other_digests(one: types.Content, two: types.Content) -> None:
    assert digest(request(one)).contents != digest(request(two)).contents
    assert digest(request(one)).contents != digest(request(one, two)).contents
    assert digest(request(one, two)).contents != digest(request(two, one)).contents


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("function_call", {"will_continue": True}),
        ("function_call", {"name": None}),
        ("function_call", {"args": None}),
        ("function_response", {"will_continue": True}),
        ("function_response", {"scheduling": types.FunctionResponseScheduling.SILENT}),
        ("function_response", {"parts": [types.FunctionResponsePart()]}),
        ("function_response", {"response": None}),
    ],
)
def test_what_else_a_call_or_an_answer_says_counts_in_a_memory_full_of_plain_ones(
    field: str, change: dict[str, Any]
) -> None:
    plain = call("pay") if field == "function_call" else answer("pay")
    assert plain.parts is not None
    payload = getattr(plain.parts[0], field).model_copy(update=change)
    other = types.Content(role=plain.role, parts=[types.Part(**{field: payload})])
    digester = RequestDigester()
    known = digester.digest(request(plain)).contents
    found = digester.digest(request(other)).contents
    assert found != known
    assert found == digest(request(other)).contents


def test_two_contents_are_not_mistaken_for_one_long_digest() -> None:
    three = [digest(request(text("a"), text(said))).contents for said in ("b", "c")]
    assert len(set(three)) == 2


def test_numbers_are_told_apart_by_value_not_by_type() -> None:
    assert digest(request(call("pay", a=1))) == digest(request(call("pay", a=1.0)))
    assert digest(request(answer("pay", a=Decimal("12.50")))) == digest(
        request(answer("pay", a=12.5))
    )


def test_what_a_callback_changes_in_place_is_digested_anew() -> None:
    digester = RequestDigester()
    content = call("pay", amount=1, to={"name": "a"})
    asked = request(text("go"), content)
    before = digester.digest(asked)
    assert content.parts is not None
    assert content.parts[0].function_call is not None
    assert content.parts[0].function_call.args is not None
    content.parts[0].function_call.args["to"]["name"] = "b"
    after = digester.digest(asked)
    assert after.contents != before.contents
    assert after == RequestDigester().digest(asked)
    asked.contents[0].parts[0].text = "stop"  # type: ignore[index]
    assert digester.digest(asked).contents != after.contents


@pytest.mark.parametrize(
    ("before", "after"),
    [(1, True), (2, True), (0, False), ("a", "b"), ([1], [True]), ([2], [3]), (5, "5"), (2, None)],
)
def test_one_value_put_in_place_of_another_is_digested_anew(before: object, after: object) -> None:
    """Also where Python takes the two for equal."""
    digester = RequestDigester()
    content = call("pay", amount=before, to="bo")
    asked = request(content)
    known = [digester.digest(asked), digester.digest(asked)]
    assert content.parts is not None
    assert content.parts[0].function_call is not None
    assert content.parts[0].function_call.args is not None
    content.parts[0].function_call.args["amount"] = after
    assert known[0] == known[1] != digester.digest(asked)
    assert digester.digest(asked) == digest(asked)


def test_a_conversation_told_again_in_copies_is_recognised_wherever_it_moved() -> None:
    digester = RequestDigester()
    signed = call("pay", amount=7)
    assert signed.parts is not None
    signed.parts[0].thought_signature = b"signed"
    turns = [text("go"), signed, answer("pay", ok="yes"), text("done", role="model")]

    def copies(contents: list[types.Content]) -> list[types.Content]:
        """As the framework hands them over: shallow, sharing what they hold."""
        return [
            one.model_copy(update={"parts": [part.model_copy() for part in one.parts or ()]})
            for one in contents
        ]

    for told in (turns, turns, [text("before"), *turns], turns[2:], turns[::-1], turns):
        asked = request(*copies(told))
        assert digester.digest(asked) == digest(asked)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.decimals(-9, 9, places=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
CONTENTS = st.lists(
    st.one_of(
        st.builds(text, st.text(max_size=4), st.sampled_from(["user", "model"])),
        st.dictionaries(st.text(max_size=3), PLAIN, max_size=3).map(
            lambda args: types.Content(
                role="model",
                parts=[types.Part(function_call=types.FunctionCall(name="f", args=args))],
            )
        ),
    ),
    max_size=5,
)


@given(st.lists(CONTENTS, max_size=4))
def test_remembering_never_changes_a_digest(turns: list[list[types.Content]]) -> None:
    digester = RequestDigester()
    for contents in turns:
        asked = request(*contents)
        assert digester.digest(asked) == digest(asked)


def relabelled() -> Counterparts:
    counterparts = Counterparts()
    counterparts.add(
        name="order",
        args={"vendor": "ACME Corp", "qty": 1},
        recorded_name="order",
        recorded_args={"vendor": "acme-corp", "qty": 1},
    )
    return counterparts


def test_a5_a_substituted_call_is_digested_as_its_counterpart() -> None:
    """A5: a relabelled call is one finding, not a drift of all that follows."""
    recorded = request(call("order", vendor="acme-corp", qty=1), answer("order", po=7))
    replayed = request(call("order", vendor="ACME Corp", qty=1.0), answer("order", po=7))
    assert digest(replayed) != digest(recorded)
    assert digest(replayed, relabelled()) == digest(recorded)


def test_a5_other_calls_and_the_request_itself_stay_as_they_are() -> None:
    """A5: only what was substituted is told otherwise."""
    other = request(call("order", vendor="umbrella", qty=1), text("ACME Corp"))
    before = other.model_copy(deep=True)
    assert digest(other, relabelled()) == digest(other)
    replayed = request(call("order", vendor="ACME Corp", qty=1))
    digest(replayed, relabelled())
    assert replayed.contents[0].parts[0].function_call.args == {"vendor": "ACME Corp", "qty": 1}  # type: ignore[index,union-attr]
    assert other == before


def test_a5_a_renamed_tool_is_told_by_its_recorded_name_call_and_answer() -> None:
    """A5: the answer of a renamed call bears the recorded name too."""
    counterparts = Counterparts()
    counterparts.add(name="buy", args={"a": 1}, recorded_name="order", recorded_args={"a": 1})
    replayed = request(call("buy", a=1), answer("buy", ok=1), call("buy", a=2), answer("buy", ok=2))
    recorded = request(
        call("order", a=1), answer("order", ok=1), call("buy", a=2), answer("buy", ok=2)
    )
    assert digest(replayed, counterparts) == digest(recorded)


def test_a5_two_equal_calls_take_their_counterparts_in_turn() -> None:
    """A5: the first is the first recorded one, the second the second, later ones the last."""
    counterparts = Counterparts()
    for vendor in ("a", "b"):
        counterparts.add(
            name="order", args={"v": "X"}, recorded_name="order", recorded_args={"v": vendor}
        )
    replayed = request(*[call("order", v="X")] * 3)
    recorded = request(call("order", v="a"), call("order", v="b"), call("order", v="b"))
    assert digest(replayed, counterparts) == digest(recorded)


def test_a5_a_call_retold_to_another_agent_is_told_as_recorded() -> None:
    """A5: the framework spells other agents' calls out in text."""

    def retold(args: str) -> LlmRequest:
        return request(text(f"[buyer] called tool `order` with parameters:\n{args}"))

    replayed = retold(str(dict(sorted({"vendor": "ACME Corp", "qty": 1}.items()))))
    recorded = retold(str(dict(sorted({"vendor": "acme-corp", "qty": 1}.items()))))
    assert digest(replayed) != digest(recorded)
    assert digest(replayed, relabelled()) == digest(recorded)


def test_a_value_without_a_canonical_form_has_a_digest_all_the_same() -> None:
    nan = request(answer("pay", rate=float("nan")))
    assert digest(nan) == digest(nan)
    assert digest(nan) != digest(request(answer("pay", rate=0)))
