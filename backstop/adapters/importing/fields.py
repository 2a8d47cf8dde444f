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


def text(record: Mapping[str, Json], name: str) -> str:
    """A member that is text; empty where there is none. Raises `ImportRefused`."""
    found = member(record, name)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise ImportRefused(f"its {name} is no text; give the record as it was stored")
    return found


def members(record: Mapping[str, Json], name: str) -> dict[str, Json]:
    """A member that is an object; empty where there is none. Raises `ImportRefused`."""
    found = member(record, name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ImportRefused(f"its {name} is no object; give the record as it was stored")
    return found


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


def instant(record: Mapping[str, Json], name: str) -> str:
    """A member that is a time in seconds since 1970, as RFC 3339. Raises `ImportRefused`."""
    found = member(record, name)
    if isinstance(found, bool) or not isinstance(found, int | Decimal) or not 0 <= found <= _LATEST:
        raise ImportRefused(f"its {name} is no time in seconds; give the record as it was stored")
    return spelled_at(datetime.fromtimestamp(float(found), UTC))


def spelled_at(moment: datetime) -> str:
    """A moment as ledgers spell it."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
