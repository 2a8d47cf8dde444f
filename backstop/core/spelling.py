"""One plain value for each Python value, and the limits of what has a canonical form.

The lower half of `backstop.core.canon`, which says the rules; copied next to the replay
harness with it. Standard library only.
"""

from __future__ import annotations

import base64
import dataclasses
import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Context, Decimal, Inexact
from enum import Enum
from fractions import Fraction
from numbers import Integral, Real
from typing import Final, Self
from uuid import UUID

MAX_DEPTH: Final = 100
"""Arrays and objects inside each other; a value nested deeper is refused."""

MAX_DIGITS: Final = 4000
"""Digits of one number. Below Python's own limit for turning text into an integer."""

MAX_SIZE: Final = 1 << 24
"""Characters of a value, each member counted as `MEMBER` more. No line of a ledger is longer."""

MEMBER: Final = 16
"""What a member weighs besides its text. It costs time even where it is nearly no text."""

MAX_MARKS: Final = 1000
"""Accents and the like upon one letter. Putting more in order takes quadratic time."""

INT_LIMIT: Final = 10**MAX_DIGITS
"""The smallest integer that is too long."""

_EXACTLY: Final = Context(prec=MAX_DIGITS, traps=[Inexact])


class NotCanonical(ValueError):
    """A value has no canonical form; ``str(error)`` is one line that says what and where.

    `pointer` is the JSON Pointer of the offending place, empty for the whole value.
    """

    def __init__(self, what: str, *, slug: str) -> None:
        super().__init__(what)
        self.what = what
        self.slug = slug
        self.pointer = ""

    def __str__(self) -> str:
        return f"{self.what}, at {self.pointer}" if self.pointer else self.what

    def inside(self, token: str | int) -> Self:
        """Say that the place lies under this member or index; the same error, for raising on."""
        self.pointer = f"/{pointer_token(token)}{self.pointer}"
        return self


def pointer_token(token: str | int) -> str:
    """A member name or index as one token of a JSON Pointer (RFC 6901, section 3)."""
    return str(token).replace("~", "~0").replace("/", "~1")


def too_deep() -> NotCanonical:
    """The refusal of a value nested beyond `MAX_DEPTH`."""
    what = f"a value nested more than {MAX_DEPTH} deep, or inside itself"
    return NotCanonical(what, slug="too-deep")


def too_long() -> NotCanonical:
    """The refusal of a number beyond `MAX_DIGITS`."""
    return NotCanonical(f"a number of more than {MAX_DIGITS} digits", slug="number-too-long")


def too_large() -> NotCanonical:
    """The refusal of a value beyond `MAX_SIZE`."""
    what = "a value that is too large when written out: more than 16 million characters or so"
    return NotCanonical(what, slug="too-large")


class Room:
    """How much of a value there may still be. What it holds many times over counts each time.

    Twenty lists of one list twice are a million lists when written out.
    """

    __slots__ = ("left",)

    def __init__(self, size: int) -> None:
        self.left = size

    def take(self, size: int) -> None:
        """Use up `size`. Raises `NotCanonical` once there is no more."""
        self.left -= size
        if self.left < 0:
            raise too_large()


def normal(text: str) -> str:
    """The text in NFC. Raises `NotCanonical` for half a surrogate pair, and for too many marks."""
    if text.isascii():
        return text
    if len(text) > MAX_MARKS:
        _check_marks(text)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotCanonical("text with half a surrogate pair", slug="lone-surrogate") from None
    return unicodedata.normalize("NFC", text)


def _check_marks(text: str) -> None:
    run = 0
    for sign in text:
        # The voicing marks of half width are letters, and marks in compatibility form.
        run = run + 1 if unicodedata.category(sign)[0] == "M" or sign in "\uff9e\uff9f" else 0
        if run > MAX_MARKS:
            what = f"text with more than {MAX_MARKS} accents or the like upon one letter"
            raise NotCanonical(what, slug="too-many-marks")


def unwrapped(value: object) -> object:
    """The value in the plain types, its members still as they are."""
    for _ in range(MAX_DEPTH):  # an enum may hold an enum; nothing sane does it often
        if type(value) in _PLAIN:
            return value
        value = _unwrap(value)
    raise too_deep()


def _unwrap(value: object) -> object:
    for kinds, spelling in _SPELLINGS:
        if isinstance(value, kinds):
            return spelling(value)
    if hasattr(type(value), "model_dump"):
        return _dumped(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    raise _opaque(value)


def _opaque(value: object) -> NotCanonical:
    what = f"a {type(value).__name__}, which has no canonical form: pass plain values"
    return NotCanonical(what, slug="opaque-value")


def _dumped(model: object) -> object:
    # By its methods, not by its class: the candidate's pydantic is not ours to import.
    try:
        return model.model_dump(mode="python", by_alias=True)  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001  # a model's own serializer may raise anything
        raise _opaque(model) from None


def _from_float(value: float) -> int | Decimal:
    check_range(value)
    return int(value) if value.is_integer() else Decimal(float.__repr__(value))


def _from_fraction(value: Fraction) -> Decimal:
    try:
        return _EXACTLY.divide(Decimal(value.numerator), Decimal(value.denominator))
    except Inexact:
        what = "a fraction that no decimal spells exactly"
        raise NotCanonical(what, slug="opaque-value") from None


def check_range(size: float) -> None:
    """Raises `NotCanonical` for NaN, infinities and what overflowed to one."""
    if not math.isfinite(size):
        raise NotCanonical("a number that is not finite, or overflows a double", slug="not-finite")


def underflow() -> NotCanonical:
    """The refusal of a number that a double can only take for zero."""
    return NotCanonical("a number that is not zero, but underflows a double", slug="underflow")


def exact(value: Decimal) -> int | Decimal:
    """The integer that a Decimal equals, or itself; refuses what a double cannot hold at all."""
    check_range(math.nan if value.is_snan() else float(value))
    if len(value.as_tuple().digits) > MAX_DIGITS:
        raise too_long()
    if value == value.to_integral_value():
        return int(value)
    if float(value) == 0:
        raise underflow()
    return value


def _iso(value: datetime | time) -> str:
    return re.sub(r"\+00:00$", "Z", value.isoformat())


def _duration(value: timedelta) -> str:
    """ISO 8601 as pydantic writes it: years of 365 days, no weeks, the sign in front."""
    size = abs(value)
    years, days = divmod(size.days, 365)
    minutes, seconds = divmod(size.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    rest = (
        f"{seconds}.{size.microseconds:06d}".rstrip("0").rstrip(".")
        if size.microseconds
        else seconds
    )
    day = "".join(f"{n}{unit}" for n, unit in ((years, "Y"), (days, "D")) if n)
    clock = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M"), (rest, "S")) if n)
    sign = "-" if value < timedelta(0) else ""
    return f"{sign}P{day}T{clock}" if clock else f"{sign}P{day or 'T0S'}"


def _bytes(value: bytes | bytearray | memoryview) -> dict[str, str]:
    return {"$bytes": base64.b64encode(value).decode("ascii")}


_PLAIN: Final = frozenset({str, int, bool, type(None), Decimal, dict, list, tuple, set, frozenset})
# The first that fits decides: an enum may be a str, a datetime is a date, a bool an int.
_SPELLINGS: Final[tuple[tuple[type | tuple[type, ...], Callable[..., object]], ...]] = (
    (float, _from_float),
    (Enum, lambda value: value.value),
    (str, str.__str__),
    (int, int.__index__),
    (Decimal, Decimal),
    ((datetime, time), _iso),
    (date, date.isoformat),
    (timedelta, _duration),
    (UUID, str),
    ((bytes, bytearray, memoryview), _bytes),
    (Mapping, dict),
    ((list, tuple), list),
    ((set, frozenset), frozenset),
    (Integral, int),
    (Fraction, _from_fraction),
    (Real, lambda value: _from_float(float(value))),
)
