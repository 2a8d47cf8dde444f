"""Strict JSON by a short way, for what leaves no doubt; all else goes the long way, by `canon`.

The fastest reader keeps the last of two members of one name, in silence. So what it read is
written again: a member that was dropped is missing then. Where texts are spelled so that this
could not be seen, and where names could be equal in NFC only, the strict parser decides.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

import msgspec

from backstop.core.canon import Json, parse
from backstop.core.spelling import MAX_DEPTH, MAX_DIGITS

_NAMED: Final = b'":'
"""Ends a name, or stands in a text, where both writers spell it alike: an escaped quote."""

_OTHERWISE: Final = (b"\\u0022", b"\\u003")
"""Spellings of quotes and colons that only one of the writers uses."""

_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+":?')
_LONG_NUMBER: Final = re.compile(rb"(?<![0-9])[0-9]{%d}" % (MAX_DIGITS + 1))
_SHORT: Final = 40
"""Signs of a number that no limit is near to."""


def strict(data: bytes) -> Json:
    """``canon.parse`` of a text in UTF-8; raises `NotCanonical` as it does."""
    value = _read(data)
    return parse(data) if value is msgspec.UNSET else value


def _number(literal: str) -> Json:
    # Without an exponent it has a fraction, and is no integer if that ends in another digit than 0.
    if literal[-1] > "0" and len(literal) < _SHORT and "e" not in literal and "E" not in literal:
        return Decimal(literal)
    return parse(literal)


_DECODER: Final = msgspec.json.Decoder(float_hook=_number)
_WRITTEN: Final = msgspec.json.Encoder(decimal_format="number").encode


def _read(data: bytes) -> Json | msgspec.UnsetType:
    """What the text says; UNSET where only the long way can tell."""
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH:
        return msgspec.UNSET
    if b"\\" in data and any(spelling in data for spelling in _OTHERWISE):
        return msgspec.UNSET
    if len(data) > MAX_DIGITS and _LONG_NUMBER.search(data):
        return msgspec.UNSET
    try:
        value: Json = _DECODER.decode(data)
        again = _WRITTEN(value)
        compact = msgspec.json.format(data, indent=-1)
    except (ValueError, RecursionError):
        return msgspec.UNSET
    if again != compact and again.count(_NAMED) != compact.count(_NAMED):
        return msgspec.UNSET
    if not (again.isascii() or _are_ascii_names(again)):
        return msgspec.UNSET
    return value


def _are_ascii_names(text: bytes) -> bool:
    return all(found.isascii() for found in _STRING.findall(text) if found.endswith(b":"))
