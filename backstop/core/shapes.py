"""The form that an output must have: a small part of JSON Schema, checked without a library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}
KEYWORDS: Final = frozenset({"type", "required", "properties", "items", "enum"})
_DEEPEST: Final = 32


def faults(shape: object, *, depth: int = 0) -> Iterator[str]:
    """What is wrong with a shape itself: nothing of it may be passed over when it is checked."""
    if not isinstance(shape, Mapping) or depth > _DEEPEST:
        yield "a shape is a mapping, not too deep"
        return
    for word in sorted(set(shape) - KEYWORDS):
        yield f"{word!r} is not known; known are {', '.join(sorted(KEYWORDS))}"
    if shape.get("type", "object") not in _TYPES:
        yield f"{shape['type']!r} is no type; types are {', '.join(sorted(_TYPES))}"
    for word in ("required", "enum"):
        if not isinstance(shape.get(word, []), list):
            yield f"{word!r} is a list"
    properties = shape.get("properties", {})
    if not isinstance(properties, Mapping):
        yield "'properties' is a mapping"
        return
    below = [*properties.values(), *([shape["items"]] if "items" in shape else [])]
    for one in below:
        yield from faults(one, depth=depth + 1)


def fits(value: Any, shape: Mapping[str, Any]) -> bool:  # noqa: ANN401 - any JSON
    """Whether a JSON value has the form of a `shape` without `faults`."""
    if "type" in shape and not _is(value, shape["type"]):
        return False
    if "enum" in shape and value not in shape["enum"]:
        return False
    if isinstance(value, dict):
        below = shape.get("properties", {})
        return all(name in value for name in shape.get("required", ())) and all(
            fits(value[name], one) for name, one in below.items() if name in value
        )
    if isinstance(value, list) and "items" in shape:
        return all(fits(one, shape["items"]) for one in value)
    return True


def _is(value: object, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES[name])
