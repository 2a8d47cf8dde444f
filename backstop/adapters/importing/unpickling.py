"""Reads the pickles that ADK 1.x kept of an event's actions, without unpickling them.

The opcodes that spell plain values and the fields of known data classes are followed here, one
by one; no class is looked up, nothing is called, and every other opcode is refused. So whoever
can write to a session database can make an import fail, and no more than that.
"""

from __future__ import annotations

import base64
import io
import pickletools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, Never
from uuid import UUID

from backstop.adapters.importing.opcodes import OPCODES, Machine, Thing
from backstop.adapters.told import ImportRefused
from backstop.core.canon import Json, render

MAX_BYTES: Final = 1 << 24
"""Bytes of the largest pickle that is read."""

MAX_VALUES: Final = 1 << 18
"""How many values one pickle may unfold to; a memo can spell an exponential number in few bytes."""

MAX_DEPTH: Final = 100

_MODELS: Final = {
    "google.adk.events.event_actions": {"EventActions", "EventCompaction"},
    "google.adk.events.ui_widget": {"UiWidget"},
    "google.adk.tools.tool_confirmation": {"ToolConfirmation"},
    "google.adk.auth.auth_tool": {"AuthConfig", "AuthToolArguments"},
    "google.adk.auth.auth_credential": {
        "AuthCredential",
        "HttpAuth",
        "HttpCredentials",
        "OAuth2Auth",
        "ServiceAccount",
        "ServiceAccountCredential",
    },
    "google.adk.auth.auth_schemes": {"ExtendedOAuth2", "OpenIdConnectWithConfig"},
    "fastapi.openapi.models": {
        "APIKey",
        "HTTPBase",
        "HTTPBearer",
        "OAuth2",
        "OAuthFlow",
        "OAuthFlowAuthorizationCode",
        "OAuthFlowClientCredentials",
        "OAuthFlowImplicit",
        "OAuthFlowPassword",
        "OAuthFlows",
        "OpenIdConnect",
        "SecurityBase",
    },
    "google.genai.types": {
        "Blob",
        "CodeExecutionResult",
        "Content",
        "ExecutableCode",
        "FileData",
        "FunctionCall",
        "FunctionResponse",
        "Part",
        "VideoMetadata",
    },
    "uuid": {"UUID"},
}
"""Data classes by module: an object of one is its fields."""

_ENUMS: Final = {
    "fastapi.openapi.models": {"APIKeyIn", "SecuritySchemeType"},
    "google.adk.auth.auth_credential": {"AuthCredentialTypes"},
    "google.adk.auth.auth_schemes": {"OAuthGrantType"},
    "google.genai.types": {"Language", "Outcome"},
}
"""Enums by module: a member is its value."""


def _only(*given: Any) -> Any:  # noqa: ANN401 - a pickle holds anything
    (value,) = given
    if not isinstance(value, str | int):
        raise TypeError("it has no plain value")
    return value


def _zone(offset: timedelta, *_: object) -> timezone:
    return timezone(offset)


def _listed(*given: list[Any]) -> list[Any]:
    (items,) = given or ([],)
    return list(items)


def _encoded(text: str, how: str) -> bytes:
    if how != "latin1":
        raise ValueError("bytes are spelled in an unknown way")
    return text.encode("latin1")


def _mapped(*given: Any) -> dict[Any, Any]:  # noqa: ANN401 - a pickle holds anything
    if given and not all(isinstance(pairs, list) for pairs in given):
        raise TypeError("it is made of no pairs")
    return dict(given[0]) if given else {}


_MAKERS: Final[dict[tuple[str, str], Callable[..., Any]]] = {
    ("_codecs", "encode"): _encoded,  # how old protocols spell bytes
    ("builtins", "set"): _listed,
    ("builtins", "frozenset"): _listed,
    ("collections", "OrderedDict"): _mapped,
    ("datetime", "date"): date,
    ("datetime", "datetime"): datetime,
    ("datetime", "time"): time,
    ("datetime", "timedelta"): timedelta,
    ("datetime", "timezone"): _zone,
    ("decimal", "Decimal"): Decimal,
    **{(module, name): _only for module, names in _ENUMS.items() for name in names},
}
"""Values that are made of plain ones; each of these functions only computes."""


def plain_actions(data: bytes) -> dict[str, Json]:
    """The members of a pickled `EventActions` (or dict), as JSON values.

    Times become text in ISO form, bytes base64, sets lists. Raises `ImportRefused`:
    ``import-foreign-class`` for a class that is not known to be plain data,
    ``import-pickle`` for a pickle that is cut off, too large, too deep, or uses opcodes that
    plain data never needs.
    """
    return dict(_read(data)) if len(data) <= _SMALL else _unfold(data)


_SMALL: Final = 2048
"""Bytes of the largest pickle that is remembered."""


@lru_cache(maxsize=512)  # most events change nothing, and pickle alike
def _read(data: bytes) -> dict[str, Json]:
    return _unfold(data)


def _unfold(data: bytes) -> dict[str, Json]:
    if len(data) > MAX_BYTES:
        _refuse(f"it has {len(data):,} bytes, and {MAX_BYTES:,} is the limit")
    machine = Machine(resolve=_resolve, make=_make)
    try:
        for opcode, argument, _ in pickletools.genops(io.BytesIO(data)):
            if opcode.name == "STOP":
                break
            step = OPCODES.get(opcode.name)
            if step is None:
                _refuse(f"plain data needs no {opcode.name}")
            step(machine, argument)
        value = render(_Unfolding().plain(machine.result()))
    except ImportRefused:
        raise
    except (ValueError, TypeError, ArithmeticError, LookupError, RecursionError) as error:
        _refuse(f"it is damaged: {str(error) or type(error).__name__}")
    if not isinstance(value, dict):
        _refuse("it holds no actions")
    return value


def _resolve(module: str, name: str) -> Thing:
    module = {"__builtin__": "builtins"}.get(module, module)  # its name in old protocols
    if name in _MODELS.get(module, ()) or (module, name) in _MAKERS:
        return Thing(module=module, name=name)
    raise ImportRefused(
        f"its pickled actions hold a {module[:80]}.{name[:80]}, which is no plain data: nothing of "
        "it was loaded; if you trust the database, convert it with `adk migrate session`",
        slug="import-foreign-class",
    )


def _make(thing: Thing, arguments: tuple[Any, ...]) -> Any:  # noqa: ANN401 - a pickle holds anything
    maker = _MAKERS.get((thing.module, thing.name))
    if maker is not None:
        return maker(*arguments)
    if arguments:
        raise TypeError(f"{thing.name} takes no arguments")
    return Thing(module=thing.module, name=thing.name, fields={})


@dataclass(slots=True)
class _Unfolding:
    """Values as JSON; counts what a memo repeats."""

    left: int = field(default=MAX_VALUES)

    def plain(self, value: Any, depth: int = 0) -> Json:  # noqa: ANN401 - a pickle holds anything
        """What `value` says in JSON. Raises `ValueError` and `TypeError`."""
        self.left -= 1
        if self.left < 0:
            raise ValueError(f"it unfolds to more than {MAX_VALUES:,} values")
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
        match value:
            case None | bool() | int() | str():
                return value
            case Thing(module="uuid", fields={"int": int(number)}):
                return str(UUID(int=number))
            case Thing(fields=dict() as fields):
                return self._members(fields, depth)
            case dict():
                return self._members(value, depth)
            case list() | tuple():
                return [self.plain(item, depth + 1) for item in value]
            case _:
                return _scalar(value)

    def _members(self, members: dict[Any, Any], depth: int) -> dict[str, Json]:
        return dict(self._each(members, depth))

    def _each(self, members: dict[Any, Any], depth: int) -> Iterator[tuple[str, Json]]:
        for name, value in members.items():
            if not isinstance(name, str):
                raise TypeError("a name in it is no text")
            yield name, self.plain(value, depth + 1)


def _scalar(value: Any) -> Json:  # noqa: ANN401 - a pickle holds anything
    match value:
        case float():
            number = Decimal(repr(value))
            if not number.is_finite():
                raise ValueError("it holds a number that is none")
            return number
        case Decimal():
            return str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return Decimal(str(value.total_seconds()))
        case bytes() | bytearray():
            return base64.b64encode(value).decode()
        case _:
            raise TypeError(f"a {getattr(value, 'name', type(value).__name__)} is no plain data")


def _refuse(why: str) -> Never:
    raise ImportRefused(
        f"its pickled actions are refused: {why}; nothing of them was loaded",
        slug="import-pickle",
    )
