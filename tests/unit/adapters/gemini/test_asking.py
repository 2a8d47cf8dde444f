"""The real client against a server of our own: what comes of answers, good and bad."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Any

import pytest
from google.adk.models.llm_response import LlmResponse

from backstop.adapters.gemini import GeminiBroker, missing_key
from backstop.core.canon import canonical
from backstop.ports import ModelRequest, ModelSaid, ModelSilent
from tests.generating import KEY, Raw, Script, calls, gemini, of_parts, says

pytestmark = pytest.mark.filterwarnings("ignore")

TOOL = {
    "name": "pay",
    "description": "Pays a vendor.",
    "parameters_json_schema": {"type": "object", "properties": {"vendor": {"type": "string"}}},
}
REQUEST = ModelRequest(
    model="gemini-test",
    body=canonical(
        {
            "contents": [{"role": "user", "parts": [{"text": "Pay acme."}]}],
            "config": {
                "system_instruction": "You pay.",
                "temperature": 0.5,
                "tools": [{"function_declarations": [TOOL]}],
            },
        }
    ).encode(),
)


class Waits:
    """Notes for how long somebody would have slept."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)


@contextmanager
def broker(
    url: str, *, timeout_s: float = 5.0, waits: Waits | None = None, environ: Mapping[str, str] = {}
) -> Iterator[GeminiBroker]:
    found = GeminiBroker(
        {"GOOGLE_API_KEY": KEY, **environ},
        base_url=url,
        timeout_s=timeout_s,
        wait=waits or Waits(),
        now=monotonic,
    )
    try:
        yield found
    finally:
        found.close()


def silent(script: Script, **options: Any) -> ModelSilent:
    with gemini(script) as served, broker(served.url, **options) as asking:
        found = asking.ask(REQUEST)
    assert isinstance(found, ModelSilent), found
    return found


def test_the_answer_is_in_the_framework_s_form_and_the_question_is_the_candidate_s() -> None:
    with (
        gemini(lambda _: calls("pay", vendor="acme", tokens=(20, 7))) as served,
        broker(served.url) as asking,
    ):
        found = asking.ask(REQUEST)
    assert isinstance(found, ModelSaid)
    assert (found.tokens_in, found.tokens_out) == (20, 7)
    content = LlmResponse.model_validate_json(found.response).content
    assert content is not None
    assert content.parts is not None
    assert content.parts[0].function_call is not None
    assert content.parts[0].function_call.args == {"vendor": "acme"}
    (asked,) = served.requests
    assert served.paths == ["/v1beta/models/gemini-test:generateContent"]
    assert asked["contents"] == [{"role": "user", "parts": [{"text": "Pay acme."}]}]
    assert asked["systemInstruction"]["parts"] == [{"text": "You pay."}]
    assert asked["generationConfig"] == {"temperature": 0.5}
    assert asked["tools"][0]["functionDeclarations"][0]["name"] == "pay"
    assert served.headers[0]["x-goog-api-key"] == KEY


def asking_for(**config: Any) -> ModelRequest:
    """The request of a candidate that spells its own configuration, past its harness."""
    return ModelRequest(
        model="gemini-test",
        body=canonical({"contents": [{"parts": [{"text": "Pay."}]}], "config": config}).encode(),
    )


def test_a_request_says_neither_where_it_goes_nor_with_which_headers() -> None:
    """Whoever writes the candidate may write its configuration; the key is not theirs."""
    with (
        gemini(lambda _: says("stolen")) as elsewhere,
        gemini(lambda _: says("done")) as served,
        broker(served.url) as asking,
    ):
        options = {"base_url": elsewhere.url, "headers": {"x-own": "1"}, "timeout": 900_000}
        found = asking.ask(asking_for(http_options=options, should_return_http_response=True))
    assert elsewhere.headers == []
    assert isinstance(found, ModelSaid)
    (headers,) = served.headers
    assert headers["x-goog-api-key"] == KEY
    assert "x-own" not in headers


def test_what_belongs_to_the_key_s_owner_is_not_asked_for() -> None:
    with gemini(lambda _: says("done")) as served, broker(served.url) as asking:
        asking.ask(asking_for(cached_content="cachedContents/theirs", temperature=0.5))
    (asked,) = served.requests
    assert "cachedContent" not in asked
    assert asked["generationConfig"] == {"temperature": 0.5}


def test_a_request_that_has_the_service_call_other_servers_is_not_sent() -> None:
    """What the service calls by itself nobody intercepts, and the conversation leaves for it."""
    server = {"name": "x", "streamable_http_transport": {"url": "https://elsewhere.example"}}
    with gemini(lambda _: says("done")) as served, broker(served.url) as asking:
        found = asking.ask(asking_for(tools=[{"mcp_servers": [server]}]))
    assert served.requests == []
    assert isinstance(found, ModelSilent)
    assert found.why == (
        "the request cannot be sent: it has the model's service call MCP servers by itself"
    )


def test_thoughts_and_prompts_of_tools_are_counted() -> None:
    answer = says("Done.")
    answer["usageMetadata"] |= {"thoughtsTokenCount": 90, "toolUsePromptTokenCount": 4}
    with gemini(lambda _: answer) as served, broker(served.url) as asking:
        found = asking.ask(REQUEST)
    assert (found.tokens_in, found.tokens_out) == (14, 95)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Raw(body=b'{"candidates": ['), "its answer cannot be read (JSONDecodeError)"),
        (Raw(body=b"<html>", kind="text/html"), "its answer is no JSON, but 'text/html'"),
        (Raw(body=b"[]"), "it gave no answer at all"),
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "it refused to answer (SAFETY)"),
        ({}, "it gave no answer at all"),
        (of_parts({"text": "no"}, finish="SAFETY"), "it broke off (SAFETY)"),
        (of_parts(finish="MALFORMED_FUNCTION_CALL"), "it broke off (MALFORMED_FUNCTION_CALL)"),
        (
            of_parts({"text": "As I was say"}, finish="MAX_TOKENS"),
            "its answer was cut off at the limit of tokens (MAX_TOKENS)",
        ),
        (Raw(reset=True), "the connection failed (ReadError)"),
        (Raw(status=302, headers={"location": "http://127.0.0.1:9/"}), "a redirect (HTTP 302)"),
        (Raw(body=b" " * (9 << 20)), "its answer is larger than 8 MiB"),
        (
            Raw(body=b"{}", headers={"content-encoding": "gzip"}),
            "its answer is packed, although that was not asked for",
        ),
        (
            Raw(status=400, body=b'{"error": {"code": 400, "message": "no such\\nfield"}}'),
            "it refused the request (HTTP 400: no such field)",
        ),
        (Raw(status=404, body=b"nothing", kind="text/plain"), "(HTTP 404: nothing)"),
    ],
    ids=[
        "cut off",
        "html",
        "list",
        "blocked",
        "empty",
        "unsafe",
        "malformed call",
        "too long",
        "reset",
        "redirect",
        "huge",
        "packed",
        "refused",
        "unknown model",
    ],
)
def test_what_cannot_be_used_is_one_clear_reason(answer: Mapping[str, Any] | Raw, why: str) -> None:
    assert why in silent(lambda _: answer).why


def test_a_refusal_has_cost_what_it_has_cost() -> None:
    answer = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 8}}
    assert silent(lambda _: answer).tokens_in == 8


def test_the_key_is_in_no_reason() -> None:
    error = json.dumps({"error": {"code": 400, "message": f"API key {KEY} is not valid"}}).encode()
    found = silent(lambda _: Raw(status=400, body=error))
    assert "API key *** is not valid" in found.why


def test_a_model_that_is_busy_is_asked_again_after_the_time_it_names() -> None:
    left: list[Any] = [
        Raw(status=429, headers={"retry-after": "3"}),
        Raw(status=503),
        says("Here."),
    ]
    waits = Waits()
    with (
        gemini(lambda _: left.pop(0)) as served,
        broker(served.url, timeout_s=60, waits=waits) as asking,
    ):
        found = asking.ask(REQUEST)
    assert isinstance(found, ModelSaid)
    assert (found.tokens_in, found.tokens_out) == (10, 5)
    assert waits.slept == [3.0, 2.0]


def test_a_model_that_stays_busy_is_given_up() -> None:
    waits = Waits()
    found = silent(lambda _: Raw(status=503), waits=waits, timeout_s=60)
    assert found.why == "it is busy and stays so (HTTP 503)"
    assert waits.slept == [1.0, 2.0]


@pytest.mark.parametrize("after", ["600", "-1", "soon", "nan"])
def test_nobody_waits_longer_than_the_call_may_take(after: str) -> None:
    waits = Waits()
    silent(lambda _: Raw(status=429, headers={"retry-after": after}), waits=waits, timeout_s=1.5)
    assert sum(waits.slept) <= 1.5


def test_silence_ends_with_the_time_of_a_call() -> None:
    over = threading.Event()

    def script(_: dict[str, Any]) -> Raw:
        over.wait(5)
        return Raw(reset=True)

    with gemini(script) as served, broker(served.url, timeout_s=0.3) as asking:
        found = asking.ask(REQUEST)
        over.set()
    assert found == ModelSilent(why="it did not answer within 0.3 s")


def test_an_answer_that_drips_ends_with_the_time_of_a_call() -> None:
    over = threading.Event()
    with (
        gemini(lambda _: Raw(body=b" " * 10_000, drip=over)) as served,
        broker(served.url, timeout_s=0.3) as asking,
    ):
        found = asking.ask(REQUEST)
        over.set()
    assert found == ModelSilent(why="its answer took longer than a call may")


def test_nobody_there_is_a_reason() -> None:
    with broker("http://127.0.0.1:9") as asking:
        found = asking.ask(REQUEST)
    assert found == ModelSilent(why="the connection failed (ConnectError)")


def test_a_request_that_the_client_refuses_is_a_reason() -> None:
    odd = ModelRequest(model="m", body=b'{"config":{"temperature":"hot"}}')
    with broker("http://127.0.0.1:9") as asking:
        found = asking.ask(odd)
    assert isinstance(found, ModelSilent)
    assert found.why.startswith("the request cannot be sent: ")


def test_who_has_no_key_is_told_which() -> None:
    assert missing_key({}) == (
        "no model can be asked: neither GOOGLE_API_KEY nor GEMINI_API_KEY is set"
    )
    assert missing_key({"GEMINI_API_KEY": "k"}) == ""
    assert missing_key({"GOOGLE_GENAI_USE_VERTEXAI": "TRUE"}) == ""
