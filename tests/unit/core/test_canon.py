"""The canonical form: one text for equal values, another for every other value."""

from __future__ import annotations

import enum
import json
import numbers
import types
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, SecretStr
from pydantic_core import to_jsonable_python

from backstop.core.canon import NotCanonical, canonical, digest, render, short


class Tone(enum.StrEnum):
    WARM = "warm"


class Level(enum.IntEnum):
    HIGH = 3


class Plain(enum.Enum):
    PAIR = (1, "x")
    INNER = Level.HIGH


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "a lie"


class Whole(int):
    def __repr__(self) -> str:
        return "a lie"


class Real(float):
    def __repr__(self) -> str:
        return "a lie"


class Amount(Decimal):
    pass


@dataclass
class Line:
    sku: str
    count: float = 1.0


@dataclass
class Cart:
    lines: list[Line]
    note: str | None = field(default=None)


class Customer(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    customer_id: str = Field(alias="customerId")


class Order(BaseModel):
    customer: Customer
    placed: date
    total: Decimal
    line: Line


class Tags(RootModel[list[str]]):
    pass


Point = namedtuple("Point", "x y")  # noqa: PYI024  # the untyped spelling is what users have

EQUAL: list[tuple[str, Any, Any]] = [
    ("an integral float is the integer (A28)", 3.0, 3),
    ("a large integral float is the integer", float(2**60), 2**60),
    ("minus zero is zero (K09)", -0.0, 0),
    ("a Decimal minus zero is zero", Decimal("-0.00"), 0),
    ("an exponent is a spelling (K10)", Decimal("1E+6"), 1000000),
    ("a small float is the decimal it prints", 1e-05, Decimal("0.00001")),
    ("a Decimal drops its scale", Decimal("10.50"), Decimal("10.5")),
    ("a float is its shortest decimal", 0.1, Decimal("0.1")),
    ("an exact fraction is its decimal", Fraction(1, 8), Decimal("0.125")),
    ("a whole fraction is the integer", Fraction(6, 3), 2),
    ("NFD is NFC (K12)", "Cafe\u0301", "Caf\u00e9"),
    ("the angstrom sign is a ring (K13)", "\u212b", "\u00c5"),
    ("names are NFC as well", {"Cafe\u0301": 1}, {"Caf\u00e9": 1}),
    ("members are unordered (K02)", {"o": {"x": 1, "y": 2}}, {"o": {"y": 2, "x": 1}}),
    ("a tuple is an array", (1, (2,)), [1, [2]]),
    ("a named tuple is an array", Point(1, 2), [1, 2]),
    ("a set is sorted (K14)", {"z", "x", "y"}, ["x", "y", "z"]),
    ("a set of equal texts has one member", {"e\u0301", "\u00e9"}, ["\u00e9"]),
    ("sets nest", {frozenset({2, 1}), frozenset({3})}, [[1, 2], [3]]),
    ("a str enum is its value", Tone.WARM, "warm"),
    ("an int enum is its value", Level.HIGH, 3),
    ("an enum is its value, rendered", Plain.PAIR, [1, "x"]),
    ("an enum in an enum", Plain.INNER, 3),
    ("an enum names a member", {Tone.WARM: 1}, {"warm": 1}),
    ("a str subclass is its text", Text("x"), "x"),
    ("an int subclass is its number", Whole(7), 7),
    ("a float subclass is its number", Real(0.5), 0.5),
    ("a Decimal subclass is its number", Amount("0.50"), 0.5),
    (
        "a UUID is lower-case text (K03)",
        UUID("ABCDEF00" + "0" * 24),
        "abcdef00-0000-0000-0000-" + "0" * 12,
    ),
    ("a mapping is an object", types.MappingProxyType({"a": 1}), {"a": 1}),
    ("an ordered dict is an object", OrderedDict(b=1, a=2), {"a": 2, "b": 1}),
    ("bytes have a type tag (K16)", b"x", {"$bytes": "eA=="}),
    ("all kinds of bytes are bytes", [bytearray(b"x"), memoryview(b"x")], [b"x", b"x"]),
    ("a dataclass is its fields", Line(sku="A", count=2.0), {"sku": "A", "count": 2}),
    (
        "a dataclass in a dataclass",
        Cart(lines=[Line(sku="A")]),
        {"lines": [{"sku": "A", "count": 1}], "note": None},
    ),
    (
        "a model in a model, by alias",
        Order(
            customer=Customer(customerId="c"),
            placed=date(2026, 1, 2),
            total=Decimal("10.00"),
            line=Line(sku="A"),
        ),
        {
            "customer": {"customerId": "c"},
            "placed": "2026-01-02",
            "total": 10,
            "line": {"sku": "A", "count": 1},
        },
    ),
    ("a root model is its root", Tags(["a"]), ["a"]),
    ("a dict that looks like bytes is those bytes", {"$bytes": "eA=="}, b"x"),
]

DIFFERENT: list[tuple[str, Any, Any]] = [
    ("2**53 + 1 is not 2**53 (K08)", 9007199254740993, 9007199254740992),
    (
        "large decimals keep every digit",
        Decimal("9007199254740993.5"),
        Decimal("9007199254740992.5"),
    ),
    ("true is not 1", True, 1),
    ("false is not 0", False, 0),
    ("null is not absent", {"a": None}, {}),
    ("a number is not its text (K21)", 42, "42"),
    ("a compatibility form is another text", "\ufb01", "fi"),
    ("case counts", "Alice", "alice"),
    ("blanks count (K12)", "a  b", "a b"),
    ("a trailing blank counts", "a ", "a"),
    ("arrays are ordered (K02)", [1, 2], [2, 1]),
    ("bytes are not their repr (K16)", b"x", "b'x'"),
    ("bytes are not their text", b"x", "x"),
    ("a list is not its text (K22)", [], "[]"),
    ("JSON text is text (K01)", '{"a":1,"b":2}', '{"b":2,"a":1}'),
    ("a naive time is not an aware one", datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)),  # noqa: DTZ001
    ("a line separator is not a line feed", "\u2028", "\n"),
    ("a quote is not an escape", '"', '\\"'),
]


@pytest.mark.parametrize(("a", "b"), [c[1:] for c in EQUAL], ids=[c[0] for c in EQUAL])
def test_one_value_has_one_text(a: object, b: object) -> None:
    assert canonical(a) == canonical(b)
    assert canonical(render(a)) == canonical(a)
    assert canonical([{"x": a}]) == canonical([{"x": b}])


@pytest.mark.parametrize(("a", "b"), [c[1:] for c in DIFFERENT], ids=[c[0] for c in DIFFERENT])
def test_two_values_have_two_texts(a: object, b: object) -> None:
    assert canonical(a) != canonical(b)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (-12, "-12"),
        (1e22, "1" + "0" * 22),
        (-1e-7, "-0.0000001"),
        (Decimal("1E+3"), "1000"),
        (Decimal("-1.50E-2"), "-0.015"),
        ('a"\\\n\x01\x7f\u20ac', '"a\\"\\\\\\n\\u0001\x7f\u20ac"'),
        ({"b": [1, "x"], "a": {}}, '{"a":{},"b":[1,"x"]}'),
        ({"\U0001f600": 1, "\uffff": 2}, '{"\uffff":2,"\U0001f600":1}'),
        ((), "[]"),
        (set(), "[]"),
    ],
)
def test_the_text_has_no_blanks_and_is_sorted_by_code_point(value: object, text: str) -> None:
    assert canonical(value) == text


@pytest.mark.parametrize(
    "value",
    [
        datetime(2026, 1, 2, 3, 4, 5),  # noqa: DTZ001  # naive on purpose
        datetime(2026, 1, 2, 3, 4, 5, 100000, tzinfo=UTC),
        datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=2))),
        datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=-3, minutes=-30))),
        date(2026, 1, 2),
        time(1, 2),
        time(1, 2, 3, 5, tzinfo=UTC),
        timedelta(0),
        timedelta(days=1, seconds=3723, microseconds=500000),
        timedelta(days=-1),
        timedelta(seconds=-90.5),
        timedelta(days=400),
        timedelta(days=730, seconds=60),
        timedelta(microseconds=1),
        timedelta(microseconds=-1),
        timedelta(seconds=61, microseconds=10),
        UUID(int=7),
    ],
    ids=repr,
)
def test_times_are_spelled_as_a_pydantic_model_spells_them_in_json(value: object) -> None:
    assert render(value) == to_jsonable_python(value)


class ForeignInteger:
    def __int__(self) -> int:
        return 7


class ForeignFloat:
    def __float__(self) -> float:
        return 2.5


numbers.Integral.register(ForeignInteger)
numbers.Real.register(ForeignFloat)


def test_numbers_of_other_libraries_are_read_by_their_protocol() -> None:
    """What numpy's scalars are: registered as numbers, of no type of Python's own."""
    assert canonical([ForeignInteger(), ForeignFloat()]) == "[7,2.5]"


class Cyclic(BaseModel):
    below: Any = None


class Failing(BaseModel):
    def model_dump(self, **_: object) -> dict[str, Any]:
        raise RuntimeError


class Endless(BaseModel):
    def model_dump(self, **_: object) -> Any:
        return self


def cyclic_list() -> list[Any]:
    value: list[Any] = [0]
    value.append(value)
    return value


def cyclic_dict() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["self"] = {"again": value}
    return value


def cyclic_model() -> Cyclic:
    value = Cyclic()
    value.below = value
    return value


def cyclic_dataclass() -> Cart:
    value = Cart(lines=[])
    value.lines.append(value)  # type: ignore[arg-type]  # that is the hostile part
    return value


def nested(levels: int, of: type) -> Any:
    value: Any = of()
    for _ in range(levels - 1):
        value = {"x": value} if of is dict else of([value])
    return value


REFUSED: list[tuple[str, Any, str]] = [
    ("NaN (K10)", float("nan"), "not-finite"),
    ("an infinity", float("-inf"), "not-finite"),
    ("a Decimal NaN", Decimal("NaN"), "not-finite"),
    ("a signalling NaN", Decimal("sNaN"), "not-finite"),
    ("a Decimal infinity", Decimal("Infinity"), "not-finite"),
    ("beyond a double", Decimal("1E+400"), "not-finite"),
    ("an absurd exponent", Decimal("1E+999999999"), "not-finite"),
    ("below a double (K09)", Decimal("1E-400"), "underflow"),
    ("an integer too long", 10**4000, "number-too-long"),
    ("a negative integer too long", -(10**4000), "number-too-long"),
    ("a decimal too long", Decimal("0." + "1" * 4001), "number-too-long"),
    ("a fraction without a decimal", Fraction(1, 3), "opaque-value"),
    ("half a surrogate pair", "\ud800", "lone-surrogate"),
    ("half a pair in a name", {"\udc00": 1}, "lone-surrogate"),
    ("an int name (K19)", {1: "x", "2": "y"}, "non-text-name"),
    ("a null name", {None: 1}, "non-text-name"),
    ("a bytes name", {b"x": 1}, "non-text-name"),
    ("names equal in NFC", {"\u00e9": 1, "e\u0301": 2}, "duplicate-member"),
    ("an object", object(), "opaque-value"),
    ("a class", Line, "opaque-value"),
    ("a model class", Order, "opaque-value"),
    ("a complex number", 1j, "opaque-value"),
    ("a function", len, "opaque-value"),
    ("a generator", iter([1]), "opaque-value"),
    ("a secret in a model", RootModel[SecretStr](SecretStr("s")), "opaque-value"),
    ("a model that cannot be dumped", Failing(), "opaque-value"),
    ("a model that dumps to itself", Endless(), "too-deep"),
    ("a list in itself", cyclic_list(), "too-deep"),
    ("a dict in itself", cyclic_dict(), "too-deep"),
    ("a dataclass in itself", cyclic_dataclass(), "too-deep"),
    ("a model in itself", cyclic_model(), "too-deep"),
    ("101 lists", nested(101, list), "too-deep"),
    ("101 dicts", nested(101, dict), "too-deep"),
    ("101 sets", nested(101, frozenset), "too-deep"),
    ("100,000 lists", nested(100_000, list), "too-deep"),
]


@pytest.mark.parametrize(("value", "slug"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
@pytest.mark.parametrize("spell", [canonical, render])
def test_what_has_no_canonical_form_is_refused(spell: Any, value: object, slug: str) -> None:
    with pytest.raises(NotCanonical) as refused:
        spell(value)
    assert refused.value.slug == slug
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("of", [list, dict, frozenset, tuple])
def test_a_hundred_levels_are_canonical(of: type) -> None:
    value = nested(100, of)
    assert canonical(render(value)) == canonical(value)


@pytest.mark.parametrize("spell", [canonical, render])
def test_a_refusal_points_at_the_place(spell: Any) -> None:
    with pytest.raises(NotCanonical) as refused:
        spell({"a/b": [0, {"c~d": float("nan")}]})
    assert refused.value.pointer == "/a~1b/1/c~0d"
    assert str(refused.value).endswith(", at /a~1b/1/c~0d")


def test_a_refusal_of_the_whole_value_names_no_place() -> None:
    with pytest.raises(NotCanonical) as refused:
        canonical(object())
    assert refused.value.pointer == ""
    assert str(refused.value) == "a object, which has no canonical form: pass plain values"


def test_rendering_keeps_the_text_as_it_is() -> None:
    """K13: the raw text is kept; only its canonical form is NFC."""
    assert render({"\u212b": "\u212b"}) == {"\u212b": "\u212b"}


def test_rendering_gives_plain_types_only() -> None:
    """K16, K03: what comes out is JSON, whatever went in."""
    rendered = render([Tone.WARM, Level.HIGH, 2.0, 0.5, {Text("k"): Text("v")}, b"x", {1}])
    assert rendered == ["warm", 3, 2, Decimal("0.5"), {"k": "v"}, {"$bytes": "eA=="}, [1]]
    assert isinstance(rendered, list)
    assert [type(item) for item in rendered[:4]] == [str, int, int, Decimal]
    assert [type(name) for name in rendered[4]] == [str]  # type: ignore[union-attr]  # a dict


def test_the_value_is_copied_before_anyone_can_change_it() -> None:
    """F32, K06: what is edited after the claim does not reach what was claimed."""
    arguments = {"cust": {"id": 1}}
    claimed = render(arguments)
    arguments["cust"]["id"] = 2
    assert claimed == {"cust": {"id": 1}}


def test_a_canonical_text_is_json() -> None:
    value = {"b": [1, 2.5, None, True], "a": '\u2028"\\'}
    assert json.loads(canonical(value)) == value


def test_a_digest_is_sha256_of_utf_8() -> None:
    assert digest("abc") == digest(b"abc")
    assert digest("abc").startswith("ba7816bf8f01cfea414140de5dae2223")
    assert len(digest("\u00e9")) == 64


def test_a_short_digest_is_the_first_half_of_a_digest_or_of_a_text() -> None:
    assert short("abc") == short(b"abc") == short(digest("abc")) == digest("abc")[:32]
    assert short("A" * 64) == digest("A" * 64)[:32]  # upper case is no digest of ours
