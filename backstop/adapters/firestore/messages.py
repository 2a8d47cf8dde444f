"""What is said to Firestore and what it answers, as plain values and as its own messages.

Its own messages are built by hand: the vendor's wrappers around them cost as much as a call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeAlias

from google.cloud.firestore_v1.types import firestore as calls
from google.cloud.firestore_v1.types.query import StructuredQuery
from google.protobuf.timestamp_pb2 import Timestamp  # type: ignore[import-untyped]

Value: TypeAlias = str | int | bytes | datetime

Commit: Final = calls.CommitRequest.pb()
Committed: Final = calls.CommitResponse.pb()
Get: Final = calls.BatchGetDocumentsRequest.pb()
Got: Final = calls.BatchGetDocumentsResponse.pb()
Query: Final = calls.RunQueryRequest.pb()
Answer: Final = calls.RunQueryResponse.pb()
Rollback: Final = calls.RollbackRequest.pb()

_AT_LEAST: Final = StructuredQuery.FieldFilter.Operator.GREATER_THAN_OR_EQUAL
_AFTER: Final = StructuredQuery.FieldFilter.Operator.GREATER_THAN
_BELOW: Final = StructuredQuery.FieldFilter.Operator.LESS_THAN
_IS: Final = StructuredQuery.FieldFilter.Operator.EQUAL
_IS_ONE_OF: Final = StructuredQuery.FieldFilter.Operator.IN
_AND: Final = StructuredQuery.CompositeFilter.Operator.AND
_RISING: Final = StructuredQuery.Direction.ASCENDING
_NAME: Final = "__name__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document as it was read. Times are the server's, in microseconds since 1970.

    `version` is its `updated` in the server's own form: the condition of the next write.
    """

    path: str
    fields: Mapping[str, Any]
    created: int
    updated: int
    read: int
    version: Timestamp

    @property
    def id(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]

    def text(self, name: str) -> str:
        """The text in a field; empty without one."""
        value: str = self.fields[name].string_value if name in self.fields else ""
        return value

    def number(self, name: str) -> int | None:
        """The whole number in a field; None without one."""
        return int(self.fields[name].integer_value) if name in self.fields else None

    def blob(self, name: str) -> bytes:
        """The bytes in a field; empty without them."""
        value: bytes = self.fields[name].bytes_value if name in self.fields else b""
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One conditional write: without `version` the document must be new, else unchanged since.

    An update sets `fields`, removes those in `dropped`, and leaves all others. What is to be
    `gone` is removed, whatever it is.
    """

    path: str
    fields: Mapping[str, Value]
    version: Timestamp | None = None
    dropped: tuple[str, ...] = ()
    gone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Documents of a collection whose id is in [`first`, `end`); an empty end is none.

    `where` are fields that must equal a text, or be one of several.
    """

    collection: str
    first: str = ""
    end: str = ""
    where: Mapping[str, str | Sequence[str]] = field(default_factory=dict)


def commit_message(database: str, writes: Sequence[Write], transaction: bytes) -> Any:  # noqa: ANN401 - the vendor's
    """All of `writes`, to be applied together or not at all, and in a transaction if it is one."""
    request = Commit(database=database, transaction=transaction)
    for write in writes:
        item = request.writes.add()
        if write.gone:
            item.delete = full(database, write.path)
            continue
        item.update.name = full(database, write.path)
        for name, value in write.fields.items():
            _put(item.update.fields[name], value)
        if write.version is None:
            item.current_document.exists = False
        else:
            item.update_mask.field_paths.extend((*write.fields, *write.dropped))
            item.current_document.update_time.CopyFrom(write.version)
    return request


def get_message(database: str, names: Sequence[str], only: Sequence[str]) -> Any:  # noqa: ANN401
    """The documents of these full names; `only` these fields of them, if any are given."""
    request = Get(database=database, documents=names)
    if only:
        request.mask.field_paths.extend(only)
    return request


def begin_message(database: str, names: Sequence[str], only: Sequence[str]) -> Any:  # noqa: ANN401
    """`get_message`, in a transaction that begins with it."""
    request = get_message(database, names, only)
    request.new_transaction.read_write.SetInParent()
    return request


def query_message(database: str, asked: Range, *, after: str, at: Timestamp | None) -> Any:  # noqa: ANN401
    """What is in the range, in the order of ids, from behind `after`, as it was `at`."""
    place = full(database, asked.collection)
    parent, _, collection = place.rpartition("/")
    request = Query(parent=parent)
    if at is not None:
        request.read_time.CopyFrom(at)
    query = request.structured_query
    query.from_.add().collection_id = collection
    order = query.order_by.add()
    order.field.field_path, order.direction = _NAME, _RISING
    filters = query.where.composite_filter.filters
    for name, wanted in asked.where.items():
        if isinstance(wanted, str):
            _clause(filters, name, _IS).string_value = wanted
        else:
            among = _clause(filters, name, _IS_ONE_OF).array_value.values
            for each in wanted:
                among.add().string_value = each
    if after or asked.first:
        least = _clause(filters, _NAME, _AFTER if after else _AT_LEAST)
        least.reference_value = f"{place}/{after or asked.first}"
    if asked.end:
        _clause(filters, _NAME, _BELOW).reference_value = f"{place}/{asked.end}"
    if filters:
        query.where.composite_filter.op = _AND
    return request


def document(found: Any, read: Timestamp) -> Document:  # noqa: ANN401
    """A document that was found, at this instant of the server."""
    return Document(
        path=found.name.partition("/documents/")[2],
        fields=found.fields,
        created=microseconds(found.create_time),
        updated=microseconds(found.update_time),
        read=microseconds(read),
        version=found.update_time,
    )


def microseconds(instant: Timestamp) -> int:
    """Since 1970."""
    return int(instant.seconds) * 1_000_000 + int(instant.nanos) // 1_000


def full(database: str, path: str) -> str:
    """The name of what is at `path`."""
    return f"{database}/documents/{path}"


def _clause(filters: Any, field_path: str, operator: int) -> Any:  # noqa: ANN401
    clause = filters.add().field_filter
    clause.field.field_path, clause.op = field_path, operator
    return clause.value


def _put(into: Any, value: Value) -> None:  # noqa: ANN401 - a message of the vendor's
    match value:
        case str():
            into.string_value = value
        case int():
            into.integer_value = value
        case bytes():
            into.bytes_value = value
        case datetime():
            into.timestamp_value.FromDatetime(value)
