"""Digests of a model request: instruction, tools, contents, settings (semantics.md A4, A5).

Recorder and replay use the same code, so that equal requests have equal digests. Ids and
thought signatures change from run to run and are left out; so are labels, transport
options and cache hints, which are not what the model is asked.

A request repeats the whole conversation. The digest of a part is therefore remembered
under what the part *holds* (its text, or its payload marshalled), never under an object's
identity alone: callbacks may change a part in place, and then it is another key.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from operator import countOf
from typing import Any, Final, NamedTuple

from ..core.canon import NotCanonical, canonical, parse, short
from .retold import Told, is_told_again, told

_REMEMBERED: Final = 65_536
"""Entries in the memory of digests, after which it starts anew."""

_VOICES: Final = 16
"""Agents whose last request is remembered, told apart by their tools."""

_NOT_SETTINGS: Final = {
    "abort_signal",
    "cached_content",
    "http_options",
    "labels",
    "response_json_schema",
    "response_schema",
    "system_instruction",
    "tools",
}


class Digests(NamedTuple):
    """Short digests of the four parts of one request."""

    instruction: str
    tools: str
    contents: str
    settings: str


class Counterparts:
    """Calls that were answered by the record of another call: digested as that one (A5).

    Calls are known by what they ask, since the framework strips ids from requests. A call
    that was rewritten after the model asked for it appears in the contents as the model
    asked it, matches nothing here, and needs no counterpart.
    """

    def __init__(self) -> None:
        self._recorded: dict[tuple[str, str], list[tuple[str, Mapping[str, Any]]]] = {}
        self._spelled: list[tuple[str, str, str, str]] = []

    def __bool__(self) -> bool:
        return bool(self._recorded)

    def add(
        self,
        *,
        name: str,
        args: Mapping[str, Any],
        recorded_name: str,
        recorded_args: Mapping[str, Any],
    ) -> None:
        """The call `name(args)` was answered as if it had been the recorded one."""
        recorded = (recorded_name, dict(recorded_args))
        self._recorded.setdefault((name, _safe(dict(args))), []).append(recorded)
        self._spelled.append((name, _spell(args), recorded_name, _spell(recorded_args)))

    def of(self, name: str, args: str, nth: int) -> tuple[str, Mapping[str, Any]] | None:
        """The recorded call in place of the `nth` call of this content; the last one serves on."""
        found = self._recorded.get((name, args))
        return found[min(nth, len(found) - 1)] if found else None

    def in_text(self, text: str) -> str:
        """Text in which the framework retells another agent's calls, told as recorded."""
        if "called tool `" in text or "` tool returned result" in text:
            for name, args, recorded_name, recorded_args in self._spelled:
                if f"`{name}`" in text:
                    text = text.replace(args, recorded_args)
                    text = text.replace(f"`{name}`", f"`{recorded_name}`")
        return text


class RequestDigester:
    """Digests requests of one process, remembering what it has digested before."""

    def __init__(self) -> None:
        self._parts: dict[tuple[object, ...], str] = {}
        self._contents: dict[tuple[object, ...], str] = {}
        self._before: dict[str, list[Told | None]] = {}
        self._texts: dict[tuple[str, ...], str] = {}

    def digest(self, request: Any, counterparts: Counterparts | None = None) -> Digests:
        """The four digests of an `LlmRequest`, at a cost that grows with what is new in it."""
        config = request.config
        tools = self._tools(config)
        return Digests(
            instruction=self._instruction(config),
            tools=tools,
            # Agents take turns; instructions change with the state, tools hardly ever.
            contents=self._all_contents(request.contents or (), counterparts, tools),
            settings=self._settings(request.model, config),
        )

    def part(self, part: Any) -> str:
        """Short digest of one part of a content, ids and thought signatures apart."""
        held = part.__dict__
        text = held.get("text")
        if text is not None and countOf(held.values(), None) == len(held) - 1:
            # Words and nothing else, as most parts are: nothing has to be sorted out.
            digest = self._parts.get(("text", text))
            if digest is not None:
                return digest
        return self._part(part, None)

    def _instruction(self, config: Any) -> str:
        instruction = getattr(config, "system_instruction", None)
        if instruction is None or isinstance(instruction, str):
            return self._of_text("instruction", instruction or "")
        return short(_safe(_plain(instruction)))

    def _tools(self, config: Any) -> str:
        tools = getattr(config, "tools", None) or ()
        return self._of_texts("tools", [_tool_text(tool) for tool in tools])

    def _settings(self, model: str | None, config: Any) -> str:
        if config is None:
            return self._of_texts("settings", [model or ""])
        try:
            text = config.model_dump_json(exclude_none=True, exclude=_NOT_SETTINGS)
        except (TypeError, ValueError):
            # A user's own object in the configuration, which pydantic cannot spell.
            text = _safe(_plain(config, exclude=_NOT_SETTINGS))
        schema = getattr(config, "response_schema", None)
        plain = getattr(config, "response_json_schema", None)
        return self._of_texts(
            "settings", [model or "", text, _schema_text(schema), _schema_text(plain)]
        )

    def _of_text(self, label: str, text: str) -> str:
        return self._of_texts(label, [text])

    def _of_texts(self, label: str, texts: Sequence[str]) -> str:
        key = (label, *texts)
        digest = self._texts.get(key)
        if digest is None:
            digest = short(canonical([label, *(_reread(text) for text in texts)]))
            _remember(self._texts, key, digest)
        return digest

    def _all_contents(
        self, contents: Sequence[Any], counterparts: Counterparts | None, whose: str
    ) -> str:
        if counterparts:
            retelling = _Retelling(counterparts)
            digests = [self._content(content, retelling) for content in contents]
        else:
            if len(self._before) > _VOICES:
                self._before.clear()
            digests = self._told_again(contents, self._before.setdefault(whose, []))
        # The comma keeps two digests from looking like one long digest.
        return short(",".join(digests))

    def _told_again(self, contents: Sequence[Any], before: list[Told | None]) -> list[str]:
        """The digests of contents that mostly stand where they stood in the request `before`."""
        before += [None] * (len(contents) - len(before))
        digests = []
        for place, content in enumerate(contents):
            known = before[place]
            if known is not None and is_told_again(known, content):
                digests.append(known.digest)
                continue
            digest = self._content(content, None)
            before[place] = told(content, digest)
            digests.append(digest)
        return digests

    def _content(self, content: Any, told: _Retelling | None) -> str:
        parts = [self._part(part, told) for part in content.parts or ()]
        key = (content.role, *parts)
        digest = self._contents.get(key)
        if digest is None:
            digest = short(canonical([content.role, *parts]))
            _remember(self._contents, key, digest)
        return digest

    def _part(self, part: Any, told: _Retelling | None) -> str:
        if told is not None:
            part = told.part(part)
        key = _part_key(part)
        if key is None:
            return short(_safe(part_form(part)))
        digest = self._parts.get(key)
        if digest is None:
            digest = short(_safe(part_form(part)))
            _remember(self._parts, key, digest)
        return digest


class _Retelling:
    """One walk through the contents, with substituted calls told as their recorded counterparts."""

    def __init__(self, counterparts: Counterparts) -> None:
        self._counterparts = counterparts
        self._seen: dict[tuple[str, str], int] = {}
        self._names: dict[str, list[str]] = {}

    def part(self, part: Any) -> Any:
        if part.function_call is not None:
            return self._call(part)
        if part.function_response is not None:
            return self._response(part)
        if part.text:
            text = self._counterparts.in_text(part.text)
            return part if text is part.text else part.model_copy(update={"text": text})
        return part

    def _call(self, part: Any) -> Any:
        call = part.function_call
        name, args = call.name or "", _safe(call.args or {})
        nth = self._seen.get((name, args), 0)
        self._seen[name, args] = nth + 1
        recorded = self._counterparts.of(name, args, nth)
        self._names.setdefault(name, []).append(recorded[0] if recorded else name)
        if recorded is None:
            return part
        told = call.model_copy(update={"name": recorded[0], "args": dict(recorded[1])})
        return part.model_copy(update={"function_call": told})

    def _response(self, part: Any) -> Any:
        response = part.function_response
        waiting = self._names.get(response.name or "")
        name = waiting.pop(0) if waiting else response.name
        if name == response.name:
            return part
        told = response.model_copy(update={"name": name})
        return part.model_copy(update={"function_response": told})


def _part_key(part: Any) -> tuple[object, ...] | None:
    """What a plain part holds, as a dictionary key; None for a part that is not plain."""
    live = [name for name, value in vars(part).items() if value is not None]
    if "thought_signature" in live:
        live.remove("thought_signature")
    if len(live) != 1:
        return None
    field = live[0]
    try:
        if field == "text":
            return (field, part.text)
        if field == "function_call":
            call = part.function_call
            if getattr(call, "partial_args", None) or getattr(call, "will_continue", None):
                return None
            return (field, call.name, marshal.dumps(call.args, 2))
        if field == "function_response":
            response = part.function_response
            if response.will_continue is not None or response.scheduling or response.parts:
                return None
            return (field, response.name, marshal.dumps(response.response, 2))
    except ValueError:
        pass  # a Decimal, a model, an enum: marshal knows only the plain types
    return None


def part_form(part: Any) -> dict[str, Any]:
    """What a part holds, by field, ids and thought signatures apart: what its digest is of."""
    form: dict[str, Any] = {}
    for name, value in vars(part).items():
        if value is None or name == "thought_signature":
            continue
        form[name] = _without_id(value) if hasattr(value, "model_dump") else value
    return form


def _without_id(value: Any) -> dict[str, Any]:
    # Field by field: a payload may hold objects that only the canonical form can spell.
    return {k: v for k, v in vars(value).items() if v is not None and k != "id"}


def _plain(value: Any, **options: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="python", exclude_none=True, **options)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _tool_text(tool: Any) -> str:
    if hasattr(tool, "model_dump_json"):
        return str(tool.model_dump_json(exclude_none=True))
    module, name = getattr(tool, "__module__", ""), getattr(tool, "__qualname__", "")
    return f"{module}.{name}" if name else type(tool).__qualname__


def _schema_text(schema: Any) -> str:
    if schema is None:
        return ""
    if hasattr(schema, "model_dump_json") and not isinstance(schema, type):
        return str(schema.model_dump_json(exclude_none=True))
    if isinstance(schema, Mapping):
        return _safe(dict(schema))
    from pydantic import TypeAdapter

    return _safe(TypeAdapter(schema).json_schema())


def _reread(text: str) -> Any:
    """JSON text as its value, so that member order does not count; other text as it is."""
    if text[:1] in {"{", "["}:
        try:
            return parse(text)
        except NotCanonical:
            return text
    return text


def _safe(value: Any) -> str:
    """Canonical text; for what has none, its `repr`, which then matches nothing by accident."""
    try:
        return canonical(value)
    except NotCanonical:
        return f"!{value!r}"


def _spell(args: Mapping[str, Any]) -> str:
    """How the framework spells a call's arguments when it retells them in text."""
    return str(dict(sorted(args.items())))


def _remember(memory: dict[Any, str], key: Any, digest: str) -> None:
    if len(memory) >= _REMEMBERED:
        memory.clear()
    memory[key] = digest
