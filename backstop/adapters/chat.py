"""Imports chat-format trajectories (OpenAI style ``tool_calls``) as a ledger.

One run a trajectory, one step a user message, one effect or read a tool call; a call failed
if its answer starts with ``Error``. Times are not told: the n-th message of every
trajectory happens n seconds after `at`, so that an import is the same on every machine.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from backstop.adapters.transcript import Call, ImportRefused, Transcript, imported_header
from backstop.core.canon import Json, NotCanonical, canonical, parse
from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import Event, Header
from backstop.core.literal import literal
from backstop.core.redaction import RedactionKey
from backstop.errors import IdentityError

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
FAILED_PREFIX: Final = "Error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which trajectories to take, and what names their runs.

    `where` maps a field to the text of its value; `run_field` is the field whose value is
    the run's id, the trajectory's place in the file (from 0) where it is None.
    """

    where: Mapping[str, str] = field(default_factory=dict)
    run_field: str | None = None


def import_chat(
    data: bytes,
    *,
    name: str,
    namespace: Namespace,
    declarations: Mapping[str, Declaration],
    selection: Selection,
    at: datetime = EPOCH,
    key: RedactionKey | None = None,
) -> tuple[Header, list[Event]]:
    """The ledger that the trajectories in `data` (JSON: a list of objects) amount to.

    A run is closed as complete unless one of its calls was never answered. Values that are
    declared `redact` become tokens made with `key`. Raises `NoRedactionKey` without one, and
    `ImportRefused`: ``import-not-json``, ``import-shape``, ``import-where``,
    ``import-no-match``, ``import-run-twice``.
    """
    try:
        document = parse(data)
    except NotCanonical as error:
        raise ImportRefused(
            f"{name}: not JSON: {_reason(error)}; give the file of trajectories as it was exported",
            slug="import-not-json",
        ) from error
    known = dict(declarations)
    events: list[Event] = []
    taken: dict[str, int] = {}
    for index, entry in selected(document, name=name, where=selection.where):
        place = f"{name}: trajectory {index}"
        run = run_id(entry, index, selection.run_field, place=place)
        # Two spellings of one text would have the same keys.
        spelled = unicodedata.normalize("NFC", run)
        if spelled in taken:
            raise ImportRefused(
                f"{place} gives run {run!r}, as trajectory {taken[spelled]} does; narrow the "
                "choice with --where, or name another --run-field",
                slug="import-run-twice",
            )
        taken[spelled] = index
        begin = _time(at, 0)
        transcript = Transcript(run=run, namespace=namespace, known=known, at=begin, key=key)
        events += _told(transcript, _messages(entry, place=place), place=place, at=at)
    return imported_header("chat", namespace, known), events


def selected(
    document: Json, *, name: str, where: Mapping[str, str]
) -> Iterator[tuple[int, dict[str, Json]]]:
    """The trajectories of a list that `where` chooses, each with its place.

    Raises `ImportRefused` (``import-shape``, ``import-where``, ``import-no-match``).
    """
    if not isinstance(document, list) or not document:
        raise ImportRefused(f"{name}: not a list of trajectories; chat files hold a JSON list")
    entries: list[dict[str, Json]] = []
    for index, entry in enumerate(document):
        if not isinstance(entry, dict):
            raise ImportRefused(f"{name}: trajectory {index} is not an object; correct the file")
        entries.append(entry)
    for wanted in where:
        if not any(wanted in entry for entry in entries):
            fields = ", ".join(sorted({key for entry in entries for key in entry}))
            raise ImportRefused(
                f"{name}: no trajectory has the field {wanted!r} of --where; they have: {fields}",
                slug="import-where",
            )
    found = [
        (index, entry)
        for index, entry in enumerate(entries)
        if all(key in entry and _says(entry[key], value) for key, value in where.items())
    ]
    if not found:
        chosen = " and ".join(f"{key}={value}" for key, value in where.items())
        raise ImportRefused(
            f"{name}: none of {len(entries)} trajectories has {chosen}; correct --where",
            slug="import-no-match",
        )
    yield from found


def _says(found: Json, wanted: str) -> bool:
    """Is a field what a person wrote? A number may be written in any way: 1 is 1.0."""
    if isinstance(found, str):
        return found == wanted
    try:
        return canonical(found) == canonical(parse(wanted))
    except NotCanonical:
        return False


def run_id(entry: Mapping[str, Json], index: int, run_field: str | None, *, place: str) -> str:
    """What names a trajectory's run. Raises `ImportRefused` where its field cannot."""
    if run_field is None:
        return str(index)
    if run_field not in entry:
        raise ImportRefused(
            f"{place} lacks the field {run_field!r} of --run-field; it has: "
            f"{', '.join(sorted(entry))}"
        )
    value = entry[run_field]
    if isinstance(value, list | dict) or value is None or value == "":
        raise ImportRefused(
            f"{place}: {run_field!r} of --run-field is no text or number; name another field"
        )
    return _text(value)


def _messages(entry: Mapping[str, Json], *, place: str) -> list[dict[str, Json]]:
    messages = entry.get("traj", entry.get("messages"))
    if not isinstance(messages, list):
        raise ImportRefused(f"{place} has no list of messages under 'traj' or 'messages'")
    checked: list[dict[str, Json]] = []
    for number, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise ImportRefused(f"{place}, message {number} is no object with a 'role'")
        checked.append(message)
    return checked


def _told(
    transcript: Transcript, messages: list[dict[str, Json]], *, place: str, at: datetime
) -> list[Event]:
    """The events of one trajectory."""
    for number, message in enumerate(messages):
        try:
            _tell(transcript, message, at=_time(at, number))
        except (ImportRefused, IdentityError) as error:
            raise ImportRefused(f"{place}, message {number}: {error}", slug=error.slug) from error
    transcript.close(at=_time(at, max(len(messages) - 1, 0)))
    return transcript.events


def _tell(transcript: Transcript, message: Mapping[str, Json], *, at: str) -> None:
    match message["role"]:
        case "system" | "developer":
            pass  # the instruction belongs to the version, not to the record
        case "user":
            transcript.user(_words(message), at=at)
        case "assistant":
            calls = [_call(call) for call in _calls(message)]
            transcript.model(_words(message), calls, at=at)
        case "tool":
            _answer(transcript, message, at=at)
        case role:
            raise ImportRefused(
                f"unknown role {role!r}; known are system, developer, user, assistant and tool"
            )


def _answer(transcript: Transcript, message: Mapping[str, Json], *, at: str) -> None:
    answer = _words(message)
    wanted, tool = message.get("tool_call_id"), message.get("name")
    joined = transcript.answer(
        answer,
        call=None if wanted is None else _call_id(wanted),
        tool=tool if isinstance(tool, str) else None,
        failed=answer.startswith(FAILED_PREFIX),
        at=at,
    )
    if not joined:
        raise ImportRefused(
            f"answers call {wanted or tool or 'without an id'!r}, which nobody asked for or which "
            "is answered already; import the whole trajectory, uncompacted"
        )


def _calls(message: Mapping[str, Json]) -> list[Json]:
    if message.get("function_call") is not None:
        raise ImportRefused("a legacy 'function_call'; export the chat with 'tool_calls'")
    calls = message.get("tool_calls")
    if calls is None:
        return []
    if not isinstance(calls, list):
        raise ImportRefused("'tool_calls' is not a list; export the chat in OpenAI's form")
    return calls


def _call(call: Json) -> Call:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict):
        raise ImportRefused("a tool call without 'function'; export the chat in OpenAI's form")
    tool, text = function.get("name"), function.get("arguments")
    if not isinstance(tool, str) or not tool:
        raise ImportRefused("a tool call without a name; export the chat in OpenAI's form")
    try:
        # No text at all is how a call without arguments is often written.
        given = {} if text is None or text == "" else text
        arguments = parse(given) if isinstance(given, str) else given
    except NotCanonical as error:
        raise ImportRefused(f"the arguments of {tool} are not JSON: {_reason(error)}") from error
    if not isinstance(arguments, dict):
        raise ImportRefused(f"the arguments of {tool} are no JSON object; correct the file")
    return Call(id=_call_id(call.get("id")), tool=tool, arguments=arguments)


def _call_id(given: Json) -> str:
    """A call's id as text; some exports number their calls."""
    return "" if given is None else _text(given)


def _words(message: Mapping[str, Json]) -> str:
    """The text of a message: a string, or a list of text parts."""
    match message.get("content"):
        case None:
            return ""
        case str(text):
            return text
        case [*parts]:
            texts = [part.get("text") for part in parts if isinstance(part, dict)]
            if len(texts) == len(parts) and all(isinstance(text, str) for text in texts):
                return "".join(map(str, texts))
        case _:
            pass
    raise ImportRefused("its content is neither text nor a list of text parts")


def _text(value: Json) -> str:
    return value if isinstance(value, str) else literal(value)


def _time(began: datetime, seconds: int) -> str:
    moment = (began + timedelta(seconds=seconds)).astimezone(UTC)
    return moment.isoformat().replace("+00:00", "Z")


def _reason(error: NotCanonical) -> str:
    return str(error).removeprefix("not JSON: ")
