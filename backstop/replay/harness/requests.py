"""A model request as a whole, in JSON, for whoever asks the model in the candidate's place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter

from ...core.canon import NotCanonical, canonical
from .channel import Message, Raw

_NOT_ASKED: Final = {
    "abort_signal",
    "automatic_function_calling",
    "cached_content",
    "http_options",
    "labels",
    "response_schema",
    "should_return_http_response",
    "tools",
}
"""Parts of a configuration that are no part of the question, or are told apart below."""


def whole(model: Any, request: Any, *, of: int, limit: int) -> Message:
    """The message that hands over `request`, asked as `of`; or says why it cannot be sent."""
    given: Message = {"t": "model_given", "of": of}
    try:
        text = canonical(_told(model, request), size=limit)
    except NotCanonical as fault:
        return {**given, "refused": f"its request cannot be sent: {fault}"}
    except (TypeError, ValueError) as error:
        why = f"its request cannot be sent: {type(error).__name__}: {error}"
        return {**given, "refused": why[:300]}
    return {**given, "request": Raw(text)}


def _told(model: Any, request: Any) -> Mapping[str, Any]:
    # What the framework's own client adds where the last word is not the user's.
    asked = request.model_copy(update={"contents": list(request.contents or ())})
    if (complete := getattr(model, "_maybe_append_user_content", None)) is not None:
        complete(asked)
    return {
        "model": asked.model or "",
        "contents": [_plain(content) for content in asked.contents],
        "config": _config(asked.config),
    }


def _config(config: Any) -> dict[str, Any]:
    if config is None:
        return {}
    told: dict[str, Any] = config.model_dump(mode="json", exclude_none=True, exclude=_NOT_ASKED)
    if tools := getattr(config, "tools", None):
        told["tools"] = [_plain(tool) for tool in tools]
    schema = getattr(config, "response_schema", None)
    if schema is not None and hasattr(schema, "model_dump") and not isinstance(schema, type):
        told["response_schema"] = _plain(schema)
    elif isinstance(schema, Mapping):
        told["response_schema"] = dict(schema)
    elif schema is not None:
        told["response_json_schema"] = TypeAdapter(schema).json_schema()
    return told


def _plain(value: Any) -> Any:
    if not hasattr(value, "model_dump"):
        raise TypeError(f"{type(value).__name__} has no JSON form")
    return value.model_dump(mode="json", exclude_none=True)
