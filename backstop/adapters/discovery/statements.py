"""What a database's statement does, as far as its text is spelled out somewhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from backstop.adapters.discovery.names import last, root
from backstop.adapters.discovery.vocabulary import Deed

Lookup: TypeAlias = Callable[[ast.expr], Sequence[ast.expr]]
"""All that a name was given, in turn; nothing where nobody can tell."""


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TAKING: Final = _set("""
    exec exec_driver_sql execute execute_query execute_sql fetchrow fetchval fetch_val query raw
    read_gbq read_sql read_sql_query run_query scalar scalars sql stream_scalars
    """)
"""Methods whose first argument is a statement, if they are given one."""

_MAYBE_TAKING: Final = _set("all fetch fetch_all fetch_many fetch_one first iterate one run select")
"""Methods that take one if it is called so."""

_ARGUMENTS: Final = ("sql", "query", "statement", "stmt", "q")
_CALLED_SO: Final = re.compile(r"sql|quer(y|ies)|stmt|statement|cypher")
_WRAPPERS: Final = _set("SQL dedent literal_column sql text")

_READS: Final = re.compile(
    r"\s*\(*\s*(select|with|explain|show|describe|pragma|values)\b", re.IGNORECASE
)
_WRITES: Final = re.compile(
    r"\b(insert|update|delete|merge|drop|alter|create|truncate|call|grant|revoke|into|vacuum"
    r"|replace(?!\s*\())\b",
    re.IGNORECASE,
)
_WRITING: Final = re.compile(
    r"\s*(insert\s+into|update\s+\S+\s+set|delete\s+from|merge\s+into|replace\s+into)\b",
    re.IGNORECASE,
)
_SETS: Final = re.compile(r"\s*pragma\s+[^;]*=", re.IGNORECASE)
_QUOTED: Final = re.compile(r"'(?:[^']|'')*'")
_REMARK: Final = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_CALL: Final = re.compile(r"([A-Za-z_][\w.]*)\s*\(")
_TIGHT: Final = re.compile(r"[A-Za-z_][\w.]*\(")
_NAMED: Final = re.compile(
    r"\b(?:with|recursive|,)\s+\w+\s*\([\w\s,]*\)\s*as\b|\bas\s+\w+\s*\([\w\s,]*\)", re.IGNORECASE
)
_HARMLESS: Final = _set("""
    abs all and any any_value approx_count_distinct array array_agg array_length array_to_string as
    ascii avg between bigint by cast ceil ceiling char char_length coalesce concat concat_ws
    contains_substr cosine_distance count countif cume_dist date date_add date_diff date_format
    date_part date_sub date_trunc datetime datetime_diff dateadd datediff day decimal dense_rank
    distinct exists exp extract filter first_value float floor format format_date from
    generate_series greatest group_concat having hour if ifnull ilike in instr int integer interval
    join json_agg json_build_object json_each json_extract json_extract_scalar json_object
    json_query json_value julianday lag last_value lateral lead least left length like limit ln log
    lower lpad ltrim materialized max median min minute mod month not ntile nullif numeric nvl on or
    order over partition percent_rank percentile_cont position power quarter rank regexp_contains
    regexp_extract regexp_replace repeat replace reverse right round row_number rpad rtrim
    safe_cast safe_divide second select sign split split_part sqrt st_distance st_dwithin
    st_geogpoint starts_with stddev strftime string string_agg struct strpos substr substring sum
    table_info time timestamp timestamp_diff timestamp_sub timestamp_trunc to_char to_date
    to_timestamp translate trim trunc typeof union unnest upper using values varchar variance
    vector_search week when where window with year
    """)
"""What may stand before a bracket in a statement and changes nothing."""


def deed_of_statement(text: str) -> Deed:
    """What a statement does: one that only selects, by functions that are known, reads."""
    plain = _bare(text)
    parts = [part for part in plain.split(";") if part.strip()]
    if not parts or not all(map(_READS.match, parts)):
        return Deed.ACTS
    if _WRITES.search(plain) or any(map(_SETS.match, parts)):
        return Deed.ACTS
    return Deed.UNKNOWN if any(_strange(plain)) else Deed.READS


def deed_of_text(text: str) -> Deed:
    """What a text does, whatever it is handed to; it may be a statement or anything else."""
    if _WRITING.match(text):
        return Deed.ACTS
    is_statement = _READS.match(text) is not None and _TIGHT.search(text) is not None
    return Deed.UNKNOWN if is_statement and any(_strange(_bare(text))) else Deed.NOTHING


def deed_of_taker(call: ast.Call, lookup: Lookup) -> Deed | None:
    """What a call does that takes a statement, by what it is given; None for any other call."""
    name, given = last(call.func), _given(call)
    if name not in _TAKING | _MAYBE_TAKING:
        return None
    if given is None:
        return Deed.UNKNOWN if call.keywords and name in _TAKING else None
    is_called_so = _CALLED_SO.search(last(given).lower()) is not None
    if name in _MAYBE_TAKING and not (is_called_so or _begins(given, lookup)):
        return None
    text = spelled(given, lookup)
    if text is not None:
        return deed_of_statement(text)
    return Deed.READS if _selects(given, lookup, frozenset()) else Deed.UNKNOWN


def spelled(node: ast.expr, lookup: Lookup, depth: int = 0) -> str | None:
    """The text that an expression is, as far as it is spelled out; None for any other."""
    if depth > _DEEP:
        return None
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            found = [spelled(part, lookup, depth + 1) for part in parts]
        case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
            return spelled(inner, lookup, depth + 1)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            found = [spelled(side, lookup, depth + 1) for side in (left, right)]
        case ast.Call(func=func, args=[inner, *_]) if last(func) in _WRAPPERS:
            return spelled(inner, lookup, depth + 1)
        case ast.Call(func=ast.Attribute(attr="strip", value=inner), args=[]):
            return spelled(inner, lookup, depth + 1)
        case ast.Name() | ast.Attribute():
            given = lookup(node)
            return spelled(given[0], lookup, depth + 1) if len(given) == 1 else None
        case _:
            return None
    known = [part for part in found if part is not None]
    return "".join(known) if len(known) == len(found) else None


_DEEP: Final = 8


def _bare(text: str) -> str:
    """A statement without its remarks and the words in quotes."""
    # With a backslash, dialects part over where a quoted word ends: then all of it counts.
    plain = text if "\\" in text else _QUOTED.sub("''", text)
    return _REMARK.sub(" ", plain)


def _strange(plain: str) -> Iterator[str]:
    """Functions that a statement calls and nobody knows."""
    for found in _CALL.finditer(_NAMED.sub(" ", plain)):
        if found[1].lower() not in _HARMLESS:
            yield found[1]


def _begins(node: ast.expr, lookup: Lookup, depth: int = 0) -> bool:
    """Does a text begin like a statement, spelled out to its end or not?"""
    if depth > _DEEP:
        return False
    match node:
        case ast.Constant(value=str() as text):
            return _READS.match(text) is not None or _WRITING.match(text) is not None
        case ast.JoinedStr(values=[first, *_]) | ast.BinOp(left=first):
            return _begins(first, lookup, depth + 1)
        case ast.Call(func=func, args=[inner, *_]) if last(func) in _WRAPPERS:
            return _begins(inner, lookup, depth + 1)
        case ast.Name() | ast.Attribute():
            return any(_begins(given, lookup, depth + 1) for given in lookup(node))
        case _:
            return False


def _selects(node: ast.expr, lookup: Lookup, asked: frozenset[str]) -> bool:
    """Is it a statement that ``select(...)`` made, or a class of what is selected?"""
    while isinstance(node, ast.Call):
        if last(node.func) == "select":
            return True
        if not isinstance(node.func, ast.Attribute):
            return False
        node = node.func.value
    if not isinstance(node, ast.Name):
        return isinstance(node, ast.Attribute) and _CLASS.fullmatch(root(node)) is not None
    if node.id in asked:
        return True  # a statement that grows: what it began as is asked for already
    given = lookup(node)
    if not given:
        return _CLASS.fullmatch(node.id) is not None
    return all(_selects(each, lookup, asked | {node.id}) for each in given)


_CLASS: Final = re.compile(r"(?:[A-Z][a-z0-9]+)+")


def _given(call: ast.Call) -> ast.expr | None:
    """The statement that a call is given, if it is given anything."""
    if call.args:
        return call.args[0]
    told = [key.value for key in call.keywords if key.arg in _ARGUMENTS]
    return told[0] if told else None
