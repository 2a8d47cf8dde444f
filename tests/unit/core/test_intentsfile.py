"""Intents files: written, read, and refused when they are not as they were sealed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstop.core import intentsfile
from backstop.core.intents import Answered, Intent, IntentsHeader, Pass, RunReplayed
from backstop.core.lines import MAX_LINE
from tests.dsl import raw, scenario, sealed

STORY = """
tool pay identity to
run r
step s
intent s pay{to: a, amount: 1.5}
intent t pay{to: "Zoë"}
run q
"""


@pytest.fixture
def good() -> bytes:
    made = scenario(STORY)
    return intentsfile.write(made.intents_header, [*made.intents, *made.runs])


def refusal(data: bytes, **options: str) -> intentsfile.IntentsError:
    with pytest.raises(intentsfile.IntentsError) as caught:
        intentsfile.read(data, name="I.jsonl", **options)
    assert str(caught.value).startswith("I.jsonl")
    assert "\n" not in str(caught.value)
    return caught.value


def test_intents_come_back_as_they_were_written(good: bytes) -> None:
    made = scenario(STORY)
    back = intentsfile.read(good, name="I", expect_agent="desk")
    assert (back.header, back.intents, back.runs) == (made.intents_header, made.intents, made.runs)
    assert intentsfile.write(back.header, [*back.intents, *back.runs]) == good
    assert len(back.digest) == 64


def test_every_field_of_an_intent_survives() -> None:
    header = IntentsHeader(format=1, agent="d", canon=1, guarded=("pay",), uncovered=("x.py",))
    intent = Intent(
        run="r",
        step="s",
        cursor=3,
        tool="pay",
        key="k",
        fingerprint="f",
        args=raw({"to": [1, {"a": None}]}),
        agent="clerk",
        answered=Answered.SUBSTITUTED,
        answered_by=7,
        assumed=True,
        holes=("/to/0",),
        override="asked twice",
        replay=Pass.HANDOVER,
    )
    run = RunReplayed(run="r", steps_total=2, drift="drifted", drifted={"s": ("tools",)})
    back = intentsfile.read(intentsfile.write(header, [intent, run]), name="I")
    assert back.intents == [intent]
    assert back.runs == [run]


def test_a_payload_may_hold_line_breaks_but_must_be_strict_json(good: bytes) -> None:
    made = scenario(STORY)
    pretty = msgspec.structs.replace(made.intents[0], args=msgspec.Raw(b'{\n"to": "a"}'))
    back = intentsfile.read(intentsfile.write(made.intents_header, [pretty]), name="I")
    assert msgspec.json.decode(back.intents[0].args) == {"to": "a"}
    twice = msgspec.structs.replace(pretty, args=msgspec.Raw(b'{"a":1,"a":1}'))
    with pytest.raises(intentsfile.IntentsError, match="line 2: not strict JSON") as caught:
        intentsfile.write(made.intents_header, [twice])
    assert caught.value.slug == "intents-format"


@given(st.data())
def test_any_single_change_is_refused(data: st.DataObject) -> None:
    made = scenario(STORY)
    whole = intentsfile.write(made.intents_header, [*made.intents, *made.runs])
    at = data.draw(st.integers(0, len(whole) - 1))
    flip = data.draw(st.integers(1, 255))
    for changed in (
        whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :],
        whole[:at] + whole[at + 1 :],
        whole[:at],
    ):
        refusal(changed)


def test_each_fault_has_its_name(good: bytes) -> None:
    rows = good.splitlines(keepends=True)
    assert refusal(b"").slug == "intents-empty"
    assert refusal(b"hello\n").slug == "intents-format"
    assert refusal(b"\0\xff\xfe\n\n").slug == "intents-format"
    assert refusal(rows[0]).slug == "intents-unsealed"
    assert refusal(b"".join(rows[:-1])).slug == "intents-unsealed"
    assert refusal(good[:-9]).slug == "intents-unsealed"
    assert refusal(good.replace(b'"format":1', b'"format":2')).slug == "intents-format"
    assert refusal(good.replace(b'"canon":1', b'"canon":7')).slug == "intents-format"
    assert refusal(b"".join([rows[0], rows[2], rows[1], *rows[3:]])).slug == "intents-tampered"
    assert refusal(b"".join([rows[0], *rows[2:]])).slug == "intents-tampered"
    assert refusal(good.replace(b'"intents":2', b'"intents":3')).slug == "intents-tampered"
    assert refusal(good, expect_agent="clerk").slug == "intents-foreign-agent"
    assert "a ledger" in str(refusal(sealed(STORY)))


def test_a_kind_of_row_that_is_unknown_is_refused(good: bytes) -> None:
    made = scenario(STORY)
    whole = intentsfile.write(made.intents_header, made.intents)
    body = whole[: whole.rindex(b'{"t":"intents_seal"')].replace(b'"t":"intent"', b'"t":"wish"')
    seal = b'{"t":"intents_seal","intents":2,"runs":0,"digest":"%s"}\n' % (
        hashlib.sha256(body).hexdigest().encode()
    )
    fault = refusal(body + seal)
    assert fault.slug == "intents-format"
    assert "wish" in str(fault)


def test_counts_that_do_not_fit_are_refused(good: bytes) -> None:
    assert refusal(good.replace(b'"runs":2', b'"runs":1')).slug == "intents-tampered"


def test_a_line_that_is_far_too_long_is_refused(good: bytes) -> None:
    rows = good.splitlines(keepends=True)
    rows.insert(1, b'"' + b"a" * MAX_LINE + b'"\n')
    fault = refusal(b"".join(rows))
    assert fault.slug == "intents-line-too-long"
    assert "line 2" in str(fault)


def test_many_short_lines_are_read_whole() -> None:
    made = scenario(STORY)
    long = msgspec.structs.replace(made.intents[0], args=raw({"to": "a" * 90_000}))

    def many() -> Iterator[Intent]:
        for _ in range(200):
            yield long

    whole = intentsfile.write(made.intents_header, many())
    assert len(whole) > MAX_LINE
    assert len(intentsfile.read(whole, name="I").intents) == 200
