"""What the live broker adds to a call: a model that answers at once, asked with and without it.

    python -m benchmarks.replay.bench_broker [CALLS]

Both ask a server on the loopback with the very same client. Directly, the request is at hand as
the client's own values; through the broker it comes as the harness's line, is read strictly,
digested, looked up, reserved, asked, settled, checked, kept on a cassette and sent back.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import monotonic, perf_counter, process_time, sleep
from typing import Any, Final, TypeAlias

import msgspec
from google import genai
from google.genai import types

from backstop.adapters.cassette import Cassette
from backstop.adapters.gemini import GeminiBroker
from backstop.core.canon import canonical
from backstop.core.spending import Limits
from backstop.replay.broker import Broker
from backstop.replay.live import Live, LiveAsking
from backstop.replay.reader import read_message
from backstop.replay.wire import ModelAsked, ModelGiven, ModelReply
from tests.generating import KEY, calls, gemini

GOAL_MS: Final = 5.0
TURNS: Final = (4, 60)
"""Turns of the conversation that is sent with each request."""

_MODEL: Final = "gemini-bench"


def main() -> int:
    """Print a table; 1 if the goal is missed."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    print(f"load average {os.getloadavg()[0]:.1f}, {len(os.sched_getaffinity(0))} cores")
    print(
        f"{number} calls each, in turn; medians in ms, of wall time and of CPU time of all threads"
    )
    print(f"{'request':>12} {'':>5} {'direct':>8} {'broker':>8} {'added':>8} {'ratio':>7}")
    missed = False
    with gemini(lambda _: calls("pay", vendor="acme")) as served:
        for turns in TURNS:
            size, direct, through = _measured(served.url, turns, number)
            for nth, kind in enumerate(("wall", "CPU")):
                one, other = (
                    statistics.median(spent[nth] for spent in both) for both in (direct, through)
                )
                missed |= other - one > GOAL_MS
                print(
                    f"{size:>10,} B {kind:>5} {one:>8.2f} {other:>8.2f} {other - one:>8.2f} "
                    f"{other / one:>6.2f}x"
                )
    print(f"goal: at most {GOAL_MS:g} ms added: {'missed' if missed else 'met'}")
    return int(missed)


_Spent: TypeAlias = tuple[float, float]
"""Milliseconds of wall time and of CPU time."""


def _measured(url: str, turns: int, number: int) -> tuple[int, list[_Spent], list[_Spent]]:
    direct: list[_Spent] = []
    through: list[_Spent] = []
    client = genai.Client(vertexai=False, api_key=KEY, http_options=types.HttpOptions(base_url=url))
    with tempfile.TemporaryDirectory() as folder:
        cassette = Cassette.at(Path(folder) / "answers.jsonl")
        asking = GeminiBroker({"GOOGLE_API_KEY": KEY}, base_url=url, wait=sleep, now=monotonic)
        limits = Limits(calls=number + 10, tokens=10**12, models=(_MODEL,))
        broker = Broker("bench", limits, asking, keep=cassette.keep)
        live = LiveAsking(run="r1", live=Live(broker=broker))
        size = 0
        for nth in range(number):
            # A conversation grows: what was said before is repeated, and something is new.
            asked = _request(turns, nth)
            line = _line(asked)
            size = len(line)
            direct.append(_timed(partial(_directly, client, _read(asked))))
            through.append(_timed(partial(_through, live, line)))
        cassette.save()
        asking.close()
    client.close()
    return size, direct, through


def _timed(call: Callable[[], object]) -> _Spent:
    wall, cpu = perf_counter(), process_time()
    call()
    return 1000 * (perf_counter() - wall), 1000 * (process_time() - cpu)


def _read(asked: dict[str, Any]) -> dict[str, Any]:
    config = types.GenerateContentConfig.model_validate(asked["config"])
    config.automatic_function_calling = types.AutomaticFunctionCallingConfig(disable=True)
    contents = [types.Content.model_validate(one) for one in asked["contents"]]
    return {"contents": contents, "config": config}


def _directly(client: genai.Client, asked: dict[str, Any]) -> object:
    return client.models.generate_content(model=_MODEL, **asked)


def _through(live: LiveAsking, line: bytes) -> bytes:
    given = read_message(line)
    assert isinstance(given, ModelGiven)  # noqa: S101  # the line is ours
    live.want(_ASKED, None)
    live.taken(given)
    answer = live.answer(given)
    assert not isinstance(answer, str), answer  # noqa: S101  # a benchmark of failures is none
    return msgspec.json.encode(ModelReply(id=given.id, response=answer.response))


_ASKED: Final = ModelAsked(
    id=1, agent="clerk", ordinal=0, instruction="", tools="", contents="", settings=""
)


def _line(asked: dict[str, Any]) -> bytes:
    text = canonical({"model": _MODEL, **asked})
    return msgspec.json.encode(ModelGiven(id=2, of=1, request=msgspec.Raw(text.encode())))


def _request(turns: int, nth: int) -> dict[str, Any]:
    contents: list[dict[str, Any]] = []
    for turn in range(turns):
        args = {"vendor": f"vendor-{turn}", "amount": turn, "note": "as agreed by letter " * 4}
        contents += [
            {"role": "user", "parts": [{"text": f"tick {turn}: what is due? " * 4}]},
            {"role": "model", "parts": [{"function_call": {"name": "pay", "args": args}}]},
            {
                "role": "user",
                "parts": [{"function_response": {"name": "pay", "response": {"ok": True, **args}}}],
            },
        ]
    contents.append({"role": "user", "parts": [{"text": f"question {nth}"}]})
    pay = {
        "name": "pay",
        "description": "Pays a vendor.",
        "parameters_json_schema": {
            "type": "object",
            "properties": {"vendor": {"type": "string"}},
            "required": ["vendor"],
        },
    }
    config = {"system_instruction": "You pay. " * 50, "tools": [{"function_declarations": [pay]}]}
    return {"contents": contents, "config": config}


if __name__ == "__main__":
    raise SystemExit(main())
