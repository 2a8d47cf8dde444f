"""Made-up ledgers of an agent that orders once a tick: any number of runs, of any length.

Their rows carry no request digests at first: a control replay supplies them, as it does for
an imported ledger, and `with_requests` writes them down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
from google.adk.models.llm_request import LlmRequest
from google.genai import types
from msgspec.structs import replace

from backstop.adk.requests import RequestDigester
from backstop.core.canon import CANON_VERSION
from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import (
    FORMAT,
    AttemptEnded,
    AttemptStarted,
    CursorAdvanced,
    EffectClaimed,
    EffectCommitted,
    Event,
    Header,
    ModelAnswered,
    RequestDigests,
    RunClosed,
    RunOpened,
    StepStarted,
)
from backstop.core.identity import identify
from backstop.core.ledgerfile import Ledger, read
from backstop.core.sealing import seal_lines

AGENTS: Final = Path(__file__).parent / "agents"
EVENTS_A_STEP: Final = 4
"""In the framework's session: the message, the call, its answer, the closing words."""

_START: Final = datetime(2026, 1, 5, 8, 0, 0, tzinfo=UTC)
_ORDER: Final = Declaration(tool="order", identity=("vendor", "number"))


def ledger(agent: str, *, runs: int = 1, events: int) -> Ledger:
    """A sealed ledger of `agent`: `runs` closed runs of `events` session events each."""
    header = Header(
        format=FORMAT,
        agent=agent,
        canon=CANON_VERSION,
        guarded=True,
        tools={_ORDER.tool: _ORDER.digest},
        declarations={_ORDER.digest: _ORDER},
    )
    history = (event for run in range(runs) for event in _run(agent, run, events // EVENTS_A_STEP))
    return _sealed(header, history)


def with_requests(recorded: Ledger, sample: RequestDigests, *, whole: bool) -> Ledger:
    """The ledger with what its models were asked: `sample`, with the contents of each request.

    The contents are those of the turn at hand or, if `whole`, of the conversation so far.
    """
    return _sealed(recorded.header, _asked(recorded.events, sample, whole=whole))


def _asked(events: Iterable[Event], sample: RequestDigests, *, whole: bool) -> Iterator[Event]:
    digester = RequestDigester()
    told: list[types.Content] = []
    for event in events:
        match event:
            case RunOpened():
                told.clear()
            case StepStarted(message=message):
                told = [*(told if whole else ()), types.Content.model_validate_json(bytes(message))]
            case EffectCommitted(result=result):
                answer = {"name": _ORDER.tool, "response": msgspec.json.decode(result)}
                told.append(_content("user", {"function_response": answer}))
            case ModelAnswered(response=response):
                request = LlmRequest(model="", contents=told)
                contents = digester.digest(request).contents
                yield replace(event, request=replace(sample, contents=contents))
                told.append(types.Content.model_validate(msgspec.json.decode(response)["content"]))
                continue
            case _:
                pass
        yield event


def _content(role: str, part: dict[str, Any]) -> types.Content:
    return types.Content.model_validate({"role": role, "parts": [part]})


def _sealed(header: Header, events: Iterator[Event]) -> Ledger:
    return read(b"".join(seal_lines(header, events)), name=f"{header.agent}.jsonl")


def _run(agent: str, number: int, steps: int) -> Iterator[Event]:
    run = f"run-{number:03d}"
    yield RunOpened(run=run, at=_at(number, 0), app=agent, user="ops")
    for step in range(steps):
        yield from _step(agent, run, number, step)
    yield RunClosed(run=run, at=_at(number, steps), status="complete")


def _step(agent: str, run: str, number: int, step: int) -> Iterator[Event]:
    here: dict[str, Any] = {"run": run, "at": _at(number, step), "v": "recorded"}
    stepped: dict[str, Any] = {**here, "step": f"{run}/{step}"}
    args = {"vendor": f"vendor-{step % 7}", "number": step}
    named = identify(args, _ORDER, namespace=Namespace(agent=agent), run=run, step=f"{run}/{step}")
    tick = {"role": "user", "parts": [{"text": f"tick {step}"}]}
    yield StepStarted(**stepped, cursor=step, trigger="tick", message=_raw(tick))
    yield AttemptStarted(**stepped, attempt=1, delivery=f"delivery-{number}-{step}")
    call = {"function_call": {"name": _ORDER.tool, "args": args}}
    yield ModelAnswered(**stepped, agent="clerk", ordinal=0, response=_answer(call))
    yield EffectClaimed(
        **stepped,
        tool=_ORDER.tool,
        key=named.key,
        fingerprint=named.fingerprint,
        agent="clerk",
        decl=_ORDER.digest,
        args=_raw(args),
        owner="worker-1",
    )
    result = {"ordered": args["vendor"], "number": step}
    yield EffectCommitted(**here, key=named.key, result=_raw(result))
    yield ModelAnswered(
        **stepped, agent="clerk", ordinal=1, response=_answer({"text": f"Ordered number {step}."})
    )
    yield AttemptEnded(**stepped, attempt=1, outcome="done")
    yield CursorAdvanced(**stepped, cursor=step + 1, effects=(named.key,))


def _answer(part: dict[str, Any]) -> msgspec.Raw:
    return _raw({"content": {"role": "model", "parts": [part]}, "finish_reason": "STOP"})


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def _at(run: int, step: int) -> str:
    return (_START + timedelta(days=run, minutes=step)).strftime("%Y-%m-%dT%H:%M:%SZ")
