"""The strict parser: nothing that two parsers read differently gets through."""

from __future__ import annotations

import time
from decimal import Decimal

import pytest

from backstop.core.canon import NotCanonical, canonical, parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None),
        (b' {"a": [1, true, "x"]}\r\n', {"a": [1, True, "x"]}),
        ("9007199254740993", 9007199254740993),
        ("1" * 4000, int("1" * 4000)),
        ("-" + "1" * 4000, -int("1" * 4000)),
        ("1.50", Decimal("1.50")),
        ("9007199254740993.0", 9007199254740993),
        ("1e3", 1000),
        ("1E308", 10**308),
        ("-0", 0),
        ("-0.0", 0),
        ("0e99999999999999999999", 0),
        ("0.000", 0),
        ("5e-324", Decimal("5e-324")),
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"\u00e9\/"', "\u00e9/"),
        ("[" * 100 + "]" * 100, None),
        ('"' + "[" * 500 + '"', "[" * 500),
        (r'["\"[", ' + "[" * 99 + "]" * 99 + "]", None),
        ('{"\u00e9":1,"e":2}', {"\u00e9": 1, "e": 2}),
    ],
)
def test_json_is_read_exactly(text: str | bytes, value: object) -> None:
    read = parse(text)
    if value is not None or text == "null":
        assert canonical(read) == canonical(value)


def test_a_decimal_is_as_written() -> None:
    assert str(parse("1.50")) == "1.50"
    assert type(parse("2.0")) is int


@pytest.mark.parametrize(
    ("text", "slug", "pointer"),
    [
        ('{"a":1,"a":2}', "duplicate-member", "/a"),
        ('{"x":[0,{"a":1,"a":1}]}', "duplicate-member", "/x/1/a"),
        (r'{"a":1,"\u0061":2}', "duplicate-member", "/a"),
        ('{"\u00e9":1,"e\u0301":2}', "duplicate-member", "/e\u0301"),
        ('{"a":1,"a":2} x', "duplicate-member", ""),
        ('{"a":NaN}', "not-finite", "/a"),
        ("[Infinity]", "not-finite", "/0"),
        ("-Infinity", "not-finite", ""),
        ('{"a":[1,1e999]}', "not-finite", "/a/1"),
        ("1e99999999999999999999", "not-finite", ""),
        ("[-1e-400]", "underflow", "/0"),
        ("1e-99999999999999999999", "underflow", ""),
        ("0." + "0" * 400 + "1", "underflow", ""),
        ("[" + "1" * 4001 + "]", "number-too-long", "/0"),
        ("1" * 5000, "number-too-long", ""),
        ("0." + "1" * 4001, "number-too-long", ""),
        (r'{"a":["\ud800"]}', "lone-surrogate", "/a/0"),
        (r'{"\uDC00":1}', "lone-surrogate", ""),
        ('"\ud800"', "not-utf-8", ""),
        (b'"\xff"', "not-utf-8", ""),
        (b'"\xed\xa0\x80"', "not-utf-8", ""),
        (b"\xef\xbb\xbf1", "not-utf-8", ""),
        ("\ufeff1", "not-utf-8", ""),
        ('"a"'.encode("utf-16-le"), "not-json", ""),
        ("[" * 101 + "]" * 101, "too-deep", ""),
        ('{"a":' * 101 + "1" + "}" * 101, "too-deep", ""),
        ("[" * 1_000_000, "too-deep", ""),
        ("", "not-json", ""),
        ("1 2", "not-json", ""),
        ("{}{}", "not-json", ""),
        ("[1,]", "not-json", ""),
        ("{'a':1}", "not-json", ""),
        ("01", "not-json", ""),
        ("+1", "not-json", ""),
        (".5", "not-json", ""),
        ("1.", "not-json", ""),
        ("0x10", "not-json", ""),
        ("\u0661", "not-json", ""),
        ("1\u0661", "not-json", ""),
        ("1_000", "not-json", ""),
        ('"a\nb"', "not-json", ""),
        (r'"\x41"', "not-json", ""),
        ("// c\n1", "not-json", ""),
        ("\u00a01", "not-json", ""),
        ("True", "not-json", ""),
        ('"open', "not-json", ""),
    ],
)
def test_what_parsers_disagree_about_is_refused(text: str | bytes, slug: str, pointer: str) -> None:
    """K09, K10: duplicate members, odd numbers, broken text; each with its place."""
    with pytest.raises(NotCanonical) as refused:
        parse(text)
    assert (refused.value.slug, refused.value.pointer) == (slug, pointer)
    assert "\n" not in str(refused.value)


def test_hostile_quotes_cost_linear_time() -> None:
    text = "[" * 101 + '"' + '\\"' * 500_000
    start = time.perf_counter()
    with pytest.raises(NotCanonical):
        parse(text)
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize("text", ["", " \r\n", b""])
def test_of_nothing_it_is_said_that_nothing_is_there(text: str | bytes) -> None:
    """Whoever exported to an empty file looks for a comma that is missing, else."""
    with pytest.raises(NotCanonical) as refused:
        parse(text)
    assert str(refused.value) == "not JSON: nothing is there, it is empty"
    with pytest.raises(NotCanonical) as other:
        parse("x")
    assert str(other.value) == "not JSON: expecting value (character 0)"
