"""The canonical text by a short way, for what is flat and plain, as most calls and results are.

Texts, numbers, truths and nulls by name, all in ASCII, are spelled by the canonical form
as by every writer of JSON that sorts its names, so the fastest one does it. All else goes the
long way, and so does what has to be refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

import msgspec

from backstop.core.canon import Json, NotCanonical, canonical
from backstop.core.spelling import MAX_DIGITS
from backstop.core.strict import strict

_PLAIN: Final = frozenset({str, int, bool, type(None)})
_NAMES: Final = frozenset({str})
_SHORT: Final = MAX_DIGITS
"""Bytes of text in which no limit of the canonical form is reached."""

_FRACTION: Final = re.compile(r"-?[0-9]{1,40}\.[0-9]{0,40}[1-9]")
"""Decimals that are no integers and have one spelling."""

_WRITTEN: Final = msgspec.json.Encoder(order="deterministic", decimal_format="number").encode


def text_of(value: object) -> str:
    """``canonical`` of a Python value; raises as it does."""
    return _plain(value) or canonical(value)


def spelled(value: object) -> tuple[str, Json]:
    """``canonical`` of a Python value, and what ``parse`` of that is; raises as they do."""
    text = _plain(value)
    if text is not None and type(value) is dict:
        return text, {name: value[name] for name in sorted(value)}
    text = canonical(value)
    return text, strict(text.encode())


def spelled_members(members: Mapping[str, object]) -> tuple[str, dict[str, Json]]:
    """`spelled` of arguments by name; raises `NotCanonical` also for what has no names."""
    text, value = spelled(members)
    if not isinstance(value, dict):  # what is no mapping has no names to tell arguments by
        raise NotCanonical("arguments that are not an object", slug="opaque-value")
    return text, value


def _plain(value: object) -> str | None:
    """The text of what is flat and plain; None for all else."""
    if type(value) is dict:
        if not _NAMES.issuperset(map(type, value)):
            return None
        if not (_PLAIN.issuperset(map(type, value.values())) or _has_fractions_only(value)):
            return None
    elif type(value) is not str:
        return None
    try:
        text = _WRITTEN(value)
    except ValueError:  # a number of absurd length, half a character
        return None
    return text.decode() if text.isascii() and len(text) < _SHORT else None


def _has_fractions_only(value: Mapping[str, object]) -> bool:
    """Whether all that is not plain are decimals that have one spelling."""
    return all(
        type(item) in _PLAIN or (type(item) is Decimal and _FRACTION.fullmatch(str(item)))
        for item in value.values()
    )
