"""The parameters of a tool as a JSON Schema, the same to the guard and to a replay."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

from ..core.canon import NotCanonical, canonical


def schema_of(tool: Any) -> dict[str, Any]:
    """JSON Schema of what a tool takes, with the defaults of its function filled in.

    A tool that cannot say has a schema with ``x-undeclared`` in it, and why.
    """
    try:
        declaration = tool._get_declaration()  # noqa: SLF001 - what the model is told about the tool
    except Exception as error:  # noqa: BLE001 - a user's tool may raise anything here
        return {"x-undeclared": f"{type(error).__name__}: {error}"[:200]}
    if declaration is None:
        return {}
    schema = declaration.parameters_json_schema
    if schema is None and declaration.parameters is not None:
        schema = declaration.parameters.model_dump(mode="json", exclude_none=True)
    if hasattr(schema, "model_dump"):
        schema = schema.model_dump(mode="json", exclude_none=True)
    found: dict[str, Any] = json.loads(json.dumps(schema or {}, default=str))
    function = getattr(tool, "func", None)
    if function is not None:
        _add_defaults(found, function)
    return found


def schema_of_function(function: Callable[..., Any]) -> dict[str, Any]:
    """The schema that a tool made of `function` has."""
    from google.adk.tools.function_tool import FunctionTool

    return schema_of(FunctionTool(function))


def _add_defaults(schema: dict[str, Any], function: Callable[..., Any]) -> None:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return
    for name, member in (schema.get("properties") or {}).items():
        parameter = parameters.get(name)
        if parameter is None or parameter.default is parameter.empty:
            continue
        try:
            member["default"] = json.loads(canonical(parameter.default))
        except NotCanonical:
            continue
        if name in schema.get("required", ()):
            schema["required"].remove(name)
