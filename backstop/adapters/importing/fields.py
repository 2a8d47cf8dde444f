"""Members of ADK's records, which are spelled with underscores or in camel case."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Final

from backstop.adapters.told import ImportRefused
from backstop.core.canon import Json

_LATEST: Final = 253402300799  # the last second of the year 9999


def member(record: Mapping[str, Json], name: str) -> Json:
    """The member of that `name`, given with underscores; None where there is none."""
    if name in record:
        return record[name]
    return record.get(_camel(name))


@lru_cache(maxsize=256)  # the names are ours, and few
def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


_IN_CAMEL_CASE: Final = {
    _camel(name): name
    for name in (
        *("invocation_id", "node_info", "error_code", "error_message", "long_running_tool_ids"),
        *("input_transcription", "output_transcription", "live_session_id"),
        *("live_session_resumption_update", "state_delta", "rewind_before_invocation_id"),
        *("end_of_agent", "skip_summarization", "transfer_to_agent"),
        *("requested_tool_confirmations", "function_call", "function_response"),
        *("executable_code", "tool_call", "tool_response", "partial_args", "will_continue"),
    )
}
"""What is asked for in an event, its actions, its parts and their calls."""

_SPELLINGS: Final = frozenset(_IN_CAMEL_CASE)


def spelled_out(record: Mapping[str, Json]) -> Mapping[str, Json]:
    """An event, its actions, a part or a call with the names that are asked for as ADK has them."""
    if _SPELLINGS.isdisjoint(record):
        return record
    return {_IN_CAMEL_CASE.get(name, name): value for name, value in record.items()} | {
        name: value for name, value in record.items() if name not in _SPELLINGS
    }


def text(record: Mapping[str, Json], name: str) -> str:
    """A member that is text; empty where there is none. Raises `ImportRefused`."""
    return as_text(member(record, name), name)


def as_text(found: Json, name: str) -> str:
    """The text under a `name`; empty for none. Raises `ImportRefused`."""
    if isinstance(found, str):
        return found
    if found is None:
        return ""
    raise ImportRefused(f"its {name} is no text; give the record as it was stored")


def members(record: Mapping[str, Json], name: str) -> dict[str, Json]:
    """A member that is an object; empty where there is none. Raises `ImportRefused`."""
    return as_object(member(record, name), name)


def as_object(found: Json, name: str) -> dict[str, Json]:
    """The object under a `name`; empty for none. Raises `ImportRefused`."""
    if isinstance(found, dict):
        return found
    if found is None:
        return {}
    raise ImportRefused(f"its {name} is no object; give the record as it was stored")


def objects(record: Mapping[str, Json], name: str) -> list[dict[str, Json]]:
    """A member that is a list of objects; empty where there is none. Raises `ImportRefused`."""
    found = member(record, name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise ImportRefused(f"its {name} is no list; give the record as it was stored")
    checked = [item for item in found if isinstance(item, dict)]
    if len(checked) < len(found):
        raise ImportRefused(f"its {name} holds what is no object; give the record as it was stored")
    return checked


def instant(found: Json, name: str) -> str:
    """The time under a `name`, in seconds since 1970, as RFC 3339. Raises `ImportRefused`."""
    if isinstance(found, bool) or not isinstance(found, int | Decimal) or not 0 <= found <= _LATEST:
        raise ImportRefused(f"its {name} is no time in seconds; give the record as it was stored")
    return f"{datetime.fromtimestamp(float(found), UTC).isoformat()[:-6]}Z"  # without its +00:00


def spelled_at(moment: datetime) -> str:
    """A moment as ledgers spell it."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
