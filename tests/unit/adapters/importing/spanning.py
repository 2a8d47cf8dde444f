"""Spans as OTLP JSON spells them, for the tests of traces."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

T0 = 1_780_000_000_000_000_000
SECOND = 1_000_000_000


def value(given: Any) -> dict[str, Any]:
    match given:
        case bool():
            return {"boolValue": given}
        case int():
            return {"intValue": str(given)}
        case str():
            return {"stringValue": given}
        case list():
            return {"arrayValue": {"values": [value(one) for one in given]}}
        case dict():
            return {"kvlistValue": {"values": pairs(given)}}
        case other:
            raise AssertionError(other)


def pairs(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value(one)} for key, one in given.items()]


def span(
    name: str,
    start: float,
    end: float,
    *,
    own: str,
    parent: str = "",
    trace: str = "t1",
    status: Mapping[str, Any] | None = None,
    **attributes: Any,
) -> dict[str, Any]:
    return {
        "traceId": trace,
        "spanId": own,
        **({"parentSpanId": parent} if parent else {}),
        "name": name,
        "startTimeUnixNano": str(T0 + int(start * SECOND)),
        "endTimeUnixNano": str(T0 + int(end * SECOND)) if end else "0",
        "attributes": pairs({key.replace("__", "."): one for key, one in attributes.items()}),
        "status": status or {},
    }


def invoked(
    start: float, end: float, own: str = "i", conversation: str = "c1", **more: Any
) -> dict[str, Any]:
    return span(
        "invoke_agent till",
        start,
        end,
        own=own,
        gen_ai__operation__name="invoke_agent",
        gen_ai__agent__name="till",
        gen_ai__conversation__id=conversation,
        **more,
    )


def asked(start: float, *calls: tuple[str, str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    parts = [
        {"type": "tool_call", "id": name, "name": tool, "arguments": given}
        for name, tool, given in calls
    ]
    told = [
        {"role": "assistant", "parts": parts or [{"type": "text", "content": "Done"}]},
    ]
    seen = [{"role": "user", "parts": [{"type": "text", "content": "Pay 7"}]}]
    return span(
        "chat m",
        start,
        start + 0.5,
        **{
            "own": f"m{start}",
            "parent": "i",
            "gen_ai__operation__name": "chat",
            "gen_ai__input__messages": json.dumps(seen),
            "gen_ai__output__messages": json.dumps(told),
            **more,
        },
    )


def ran(
    tool: str, start: float, end: float, *, name: str = "a", order: str = "7", **more: Any
) -> dict[str, Any]:
    return span(
        f"execute_tool {tool}",
        start,
        end,
        **{
            "own": f"{tool}{start}",
            "parent": "i",
            "gen_ai__operation__name": "execute_tool",
            "gen_ai__tool__name": tool,
            "gen_ai__tool__call__id": name,
            "gen_ai__tool__call__arguments": json.dumps({"order": order}),
            "gen_ai__tool__call__result": '{"result": "ok"}',
            **more,
        },
    )


def without(given: dict[str, Any], *keys: str) -> dict[str, Any]:
    kept = [one for one in given["attributes"] if one["key"] not in keys]
    return {**given, "attributes": kept}


def export(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}
