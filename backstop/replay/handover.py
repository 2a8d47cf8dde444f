"""The session that a step of an open run is handed in production, rebuilt (semantics.md S2).

The new version does not start over: it is handed the state and the conversation that the
old one left. The state is recorded; the conversation is told from the ledger's rows, as
the framework would hold it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from operator import itemgetter
from typing import TypeAlias

import msgspec

from backstop.core.events import ModelAnswered
from backstop.core.history import Outcome, Row
from backstop.core.runs import Call, RecordedRun, Step
from backstop.replay.attempts import began_anew

Told: TypeAlias = dict[str, object]


def session_before(
    run: RecordedRun, step: Step, *, speaker: str, recent: int | None = None
) -> Iterator[Told]:
    """The events of the session before `step`, oldest first, as the framework's own.

    What nobody is recorded to have said was said by `speaker`: to the framework, words of an
    agent that it does not know are words of another agent, retold. With `recent`, that many
    events or more from the end, and whatever before them the framework may look back for.
    """
    before = [earlier for earlier in run.steps if earlier.cursor < step.cursor]
    if recent is not None:
        first = _first_of_recent(before, recent)
        asked = bytes(step.message)
        before = [s for i, s in enumerate(before) if i >= first or _is_looked_back_at(s, asked)]
    for earlier in before:
        yield from _of_step(earlier, speaker)


def _first_of_recent(steps: Sequence[Step], recent: int) -> int:
    """The place of the step from which on there are `recent` events, and an agent spoke."""
    left, spoke = recent, False
    for place in range(len(steps) - 1, -1, -1):
        step = steps[place]
        left -= 1 + len(step.models)
        spoke = spoke or bool(step.models)
        if left <= 0 and spoke:
            return place
    return 0


def _is_looked_back_at(step: Step, asked: bytes) -> bool:
    """Whether a later turn may reach back to this one: for a call, or for what was kept of it."""
    return step.kept is not None or any(
        _result(call) is None or _id(call).encode() in asked for call in step.calls
    )


def _of_step(step: Step, speaker: str) -> Iterator[Told]:
    kept = [] if step.kept is None else msgspec.json.decode(step.kept, type=list[Told])
    message = msgspec.json.decode(step.message)
    if message is not None:
        told = _event(step, "user", message, at=step.at, name=f"{step.id}-message")
        # What was kept is of one invocation with the message that set it off.
        yield {**told, **({"invocation_id": kept[0]["invocation_id"]} if kept else {})}
    if kept:
        yield from kept
        return
    yield from (event for _, event in sorted(_said(step, speaker), key=itemgetter(0)))


def _said(step: Step, speaker: str) -> Iterator[tuple[int, Told]]:
    """What models said and calls answered in a step, each with its place in the ledger.

    Agents that ran side by side spoke in between each other. One that had a session of its
    own, as a tool has, or that a tool's body ran, left nothing in this one.
    """
    start = began_anew(step)
    free = [call for call in step.calls if not _is_blocked(call)]
    for index, answer in step.models:
        content = _content(answer)
        if answer.attempt < start or content is None or answer.apart or answer.within:
            continue
        author = answer.agent or speaker
        results = list(_results(content, index, free))
        told = partial(_event, step, author, at=answer.at, branch=answer.branch)
        yield index, told(content, name=f"event-{index}")
        if results:
            parts = {"role": "user", "parts": [part for _, part in results]}
            last = max(place for place, _ in results)
            yield last, told(parts, name=f"event-{index}-results")


def _event(
    step: Step, author: str, content: object, *, at: str, name: str, branch: str = ""
) -> Told:
    return {
        **({"branch": branch} if branch else {}),
        "id": name,
        "invocation_id": f"recorded-{step.id}",
        "author": author,
        "content": content,
        "timestamp": datetime.fromisoformat(at).timestamp(),
    }


def _content(answer: ModelAnswered) -> Told | None:
    response = msgspec.json.decode(answer.response)
    content = response.get("content") if isinstance(response, dict) else None
    return content if isinstance(content, dict) else None


def _results(content: Told, index: int, free: list[Call]) -> Iterator[tuple[int, Told]]:
    """The answers to the calls in a model's answer, each with its place in the ledger.

    The parts of the model's answer get the calls' recorded ids.
    """
    parts = content.get("parts")
    for part in parts if isinstance(parts, list) else []:
        call = _call_in(part)
        found = None if call is None else _made(call, index, free)
        if call is None or found is None:
            continue
        free.remove(found)
        call["id"] = _id(found)
        result = _result(found)
        if result is not None:
            told = {"id": call["id"], "name": call.get("name"), "response": result}
            yield _answered_at(found), {"function_response": told}


def _call_in(part: object) -> Told | None:
    if not isinstance(part, dict):
        return None
    call = part.get("function_call") or part.get("functionCall")
    return call if isinstance(call, dict) else None


def _made(call: Told, index: int, free: Sequence[Call]) -> Call | None:
    """The recorded call that the model's call became: by id, by arguments, else the next one."""
    later = [made for made in free if made.index > index and _tool(made) == call.get("name")]
    by_id = [made for made in later if call.get("id") and _id(made) == call["id"]]
    alike = [made for made in later if msgspec.json.decode(_args(made)) == call.get("args")]
    return next(iter([*by_id, *alike, *later]), None)


def _tool(call: Call) -> str:
    return call.tool if isinstance(call, Row) else call.event.tool


def _args(call: Call) -> msgspec.Raw:
    return call.args if isinstance(call, Row) else call.event.args


def _answered_at(call: Call) -> int:
    settled = call.settled if isinstance(call, Row) else call.index
    return call.index if settled is None else settled


def _id(call: Call) -> str:
    known = call.call if isinstance(call, Row) else call.event.call
    return known or f"call-{call.index}"


def _result(call: Call) -> Told | None:
    """What the framework put into the session for it; None if there was no answer."""
    error = call.error if isinstance(call, Row) else call.event.error
    if isinstance(call, Row) and call.outcome in {Outcome.OPEN, Outcome.IN_DOUBT}:
        return None
    if error is not None:
        return {"error": error.message}
    result = msgspec.json.decode(call.result if isinstance(call, Row) else call.event.result)
    return result if isinstance(result, dict) else {"result": result}


def _is_blocked(call: Call) -> bool:
    return isinstance(call, Row) and call.outcome is Outcome.BLOCKED
