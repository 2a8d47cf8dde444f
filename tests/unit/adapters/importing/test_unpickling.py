"""Pickles of ADK 1.x become plain values, and hostile ones one line."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import struct
from collections import OrderedDict, defaultdict
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from google.adk.events.event_actions import EventActions, EventCompaction
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from backstop.adapters.importing.unpickling import MAX_BYTES, plain_actions
from backstop.adapters.told import ImportRefused

STATE: dict[str, Any] = {
    "number": 3,
    "large": 2**70,
    "price": 1.5,
    "list": [1, "two", None, True, (3, 4)],
    "set": {1},
    "frozen": frozenset({1}),
    "ordered": OrderedDict(a=1),
    "when": datetime(2026, 1, 2, 3, tzinfo=UTC),
    "exact": Decimal("1.10"),
    "name": UUID(int=7),
    "bytes": b"\x00\xff",
    "text": "tschüß " * 60,
}
PLAIN = {
    "number": 3,
    "large": 2**70,
    "price": Decimal("1.5"),
    "list": [1, "two", None, True, [3, 4]],
    "set": [1],
    "frozen": [1],
    "ordered": {"a": 1},
    "when": "2026-01-02T03:00:00+00:00",
    "exact": "1.10",
    "name": "00000000-0000-0000-0000-000000000007",
    "bytes": "AP8=",
    "text": "tschüß " * 60,
}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_what_the_framework_pickles_becomes_plain_values(protocol: int) -> None:
    content = types.Content(role="model", parts=[types.Part(text="short")])
    actions = EventActions(
        state_delta=STATE,
        transfer_to_agent="payer",
        requested_tool_confirmations={"k": ToolConfirmation(hint="sure?")},
        compaction=EventCompaction(start_timestamp=1, end_timestamp=2, compacted_content=content),
    )
    found: Any = plain_actions(pickle.dumps(actions, protocol))
    assert found["state_delta"] == PLAIN
    assert found["transfer_to_agent"] == "payer"
    assert found["requested_tool_confirmations"]["k"]["hint"] == "sure?"
    assert found["compaction"]["compacted_content"]["parts"][0]["text"] == "short"


class Hostile:
    """Runs a command when it is unpickled by anybody who looks functions up."""

    def __init__(self, deed: Any, *given: Any) -> None:
        self.deed, self.given = deed, given

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.deed, self.given


@pytest.mark.parametrize("protocol", range(6))
def test_a_hostile_pickle_is_refused_and_does_nothing(protocol: int, tmp_path: Path) -> None:
    hostile = Hostile(os.system, f"touch {tmp_path / 'there'}")
    with pytest.raises(ImportRefused) as refused:
        plain_actions(pickle.dumps({"state_delta": [{"deep": hostile}]}, protocol))
    assert refused.value.slug in {"import-foreign-class", "import-pickle"}
    assert list(tmp_path.iterdir()) == []
    # The control: it would have done it.
    pickle.loads(pickle.dumps(hostile, protocol))  # noqa: S301
    assert [one.name for one in tmp_path.iterdir()] == ["there"]


@pytest.mark.parametrize(
    "foreign",
    [
        Hostile(eval, "1"),
        Hostile(getattr, "x", "upper"),
        Hostile(bytearray, 1 << 40),
        Hostile(defaultdict, list),
        print,
        Path("x"),
        OSError("x"),
        Hostile(pickle.loads, pickle.dumps(Hostile(eval, "1"))),
    ],
    ids=["eval", "getattr", "memory", "factory", "function", "path", "error", "nested"],
)
def test_a_foreign_class_is_named_in_one_line(foreign: Any) -> None:
    with pytest.raises(ImportRefused, match="which is no plain data") as refused:
        plain_actions(pickle.dumps(EventActions(state_delta={"x": foreign})))
    assert refused.value.slug == "import-foreign-class"
    assert "\n" not in str(refused.value)


class _Persistent(pickle.Pickler):
    def persistent_id(self, obj: Any) -> Any:
        return "outside" if obj == "x" else None


def _persistent(protocol: int) -> bytes:
    out = io.BytesIO()
    _Persistent(out, protocol).dump({"a": "x"})
    return out.getvalue()


def _laughs(levels: int) -> bytes:
    """A list of ten times the list before it, and so on: 10 ** levels values in few bytes."""
    data = b"\x80\x04}X\x01\x00\x00\x00a]\x94"
    for level in range(levels):
        again = b"h" + bytes([level])
        data += b"0](" + again * 10 + b"e\x94"
    return data + b"s."


@pytest.mark.parametrize(
    "hostile",
    [
        _persistent(0),
        _persistent(4),
        b"\x82\x01.",  # EXT1
        b"\x83\x01\x00.",  # EXT2
        b"\x84\x01\x00\x00\x00.",  # EXT4
        b"(ios\nsystem\n.",  # INST
        b"(cbuiltins\nset\no.",  # OBJ
        b"\x97.",  # NEXT_BUFFER
        b"}(" + b"]" * 100_000 + b".",  # marks and lists without end
        b"\x80\x04}X\x01\x00\x00\x00a" + b"]" * 5000 + b"a" * 4999 + b"s.",  # deep
        b"}r" + struct.pack("<I", 2**32 - 1) + b"j" + struct.pack("<I", 5) + b".",  # huge memo
        b"]\x94h\x00a.",  # a list that holds itself
        b"\x80\x04}X\x01\x00\x00\x00a]\x94h\x00as.",  # in a mapping
        _laughs(9),
        b"\x8e" + struct.pack("<Q", 1 << 60) + b"x.",  # more bytes than there are
        b"}" + b"\x94" * 10,
        b"",
        b"K\x01.",
        b"].",
        b"}}.",
        b"0.",
        b"}(s.",
        b"(.",
        b"L" + b"9" * 10_000 + b"L\n.",
        b"\x80\x04cbuiltins\nset\n(I1\ntR.",
        b"}X\x01\x00\x00\x00aG\x7f\xf8\x00\x00\x00\x00\x00\x00s.",  # no number
        b"}K\x01K\x02s.",  # a name that is no text
        b"}]K\x02s.",  # a name that does not hash
        b"}K\x01b.",  # fields of what has none
        b"cuuid\nUUID\n.",  # a class itself
        b"cdatetime\ndatetime\n(I1\nI2\ntR.",
        b"\x80\x04\x8c\x08datetime\x8c\x04date\x93)R.",
        b"not a pickle",
    ],
    ids=lambda data: data[:12].hex(),
)
def test_what_plain_data_never_needs_is_refused(hostile: bytes) -> None:
    with pytest.raises(ImportRefused) as refused:
        plain_actions(hostile)
    assert refused.value.slug == "import-pickle"
    assert len(str(refused.value)) < 400


def test_a_pickle_that_is_cut_off_anywhere_is_refused() -> None:
    whole = pickle.dumps(EventActions(state_delta={"a": [1, 2]}))
    assert plain_actions(whole)["state_delta"] == {"a": [1, 2]}
    for size in range(len(whole)):
        with pytest.raises(ImportRefused):
            plain_actions(whole[:size])


def test_a_pickle_beyond_the_limit_is_refused_unread() -> None:
    with pytest.raises(ImportRefused, match="is the limit"):
        plain_actions(b"}" + b"\x00" * MAX_BYTES)


def test_every_opcode_of_pickle_was_decided_on() -> None:
    from backstop.adapters.importing.opcodes import OPCODES

    known = {one.name for one in pickletools.opcodes}
    refused = {
        *("EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID", "INST", "OBJ", "NEWOBJ_EX"),
        *("NEXT_BUFFER", "READONLY_BUFFER", "STRING", "BINSTRING", "SHORT_BINSTRING"),
        *("POP", "POP_MARK", "DUP", "STOP"),
    }
    assert known == set(OPCODES) | refused
    assert not set(OPCODES) & refused
