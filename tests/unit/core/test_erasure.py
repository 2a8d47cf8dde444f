"""A person is taken out of a ledger; the ledger holds, and says that it cannot tell all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import msgspec
import pytest

from backstop.core.declaration import Declaration
from backstop.core.erasure import (
    ERASED,
    Eraser,
    Subject,
    erase_lines,
    is_erased,
    runs_erased,
    subject,
)
from backstop.core.events import (
    EffectClaimed,
    EffectCommitted,
    EffectFailed,
    EffectInDoubt,
    Event,
    Failure,
    ModelAnswered,
    RunOpened,
    StepStarted,
)
from backstop.core.ledgerfile import Ledger, read, verify
from backstop.core.redaction import NoRedactionKey, RedactionKey, token
from backstop.core.sealing import seal, seal_lines
from tests.dsl import Scenario, raw, scenario

KEY = RedactionKey(secret=b"a secret of the desk")
HIDDEN = Declaration(tool="mail", fields={"to": ("email", "redact")})
STORY = """
agent desk
tool mail identity to
tool look reads
run r1
step s1
model mail
read look{who: Ana} -> {found: true}
commit mail{to: ana@example.org} -> {id: 7}
advance
run r2
step s1
commit mail{to: bob@example.org} -> {id: 8}
advance
"""


def erased(source: Scenario, of: Subject) -> Ledger:
    """The ledger of a story without the subject; the strict reader takes it."""
    data = b"".join(erase_lines(lambda: [source.sealed()], Eraser(of), name="l"))
    verify([data], name="l")
    return read(data, name="l")


def whom(
    text: str, *declarations: Declaration, fields: Iterable[str] = (), key: bool = True
) -> Subject:
    return subject(text, declarations, key=KEY if key else None, fields=fields)


def of_kind(events: Iterable[Event], kind: type[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


def test_what_tells_of_the_subject_goes_and_what_holds_the_ledger_together_stays() -> None:
    source = scenario(STORY)
    found = erased(source, whom("ana@example.org"))
    before, after = (of_kind(e, EffectClaimed) for e in (source.events, found.events))
    assert isinstance(before[0], EffectClaimed)
    assert isinstance(after[0], EffectClaimed)
    assert is_erased(after[0].args)
    assert (after[0].key, after[0].fingerprint) == (before[0].key, before[0].fingerprint)
    (done, other) = of_kind(found.events, EffectCommitted)
    assert isinstance(done, EffectCommitted)
    assert is_erased(done.result)  # what settled the call goes with it
    assert isinstance(other, EffectCommitted)
    assert bytes(other.result) == b'{"id":8}'
    assert found.seal.effects == 2
    assert runs_erased(found.events) == {"r1": 2}


def test_a_line_that_a_store_holds_in_two_places_is_one_row() -> None:
    eraser = Eraser(whom("ana@example.org"))
    claimed = next(line for line in scenario(STORY).sealed().split(b"\n") if b"ana@" in line)
    eraser.look(claimed)
    assert eraser.erased(claimed) == eraser.erased(claimed)
    assert sum(eraser.rows.values()) == 1


def test_a_ledger_without_the_subject_is_what_it_was() -> None:
    source = scenario(STORY)
    data = b"".join(erase_lines(lambda: [source.sealed()], Eraser(whom("eve")), name="l"))
    assert data == source.sealed()
    assert runs_erased(source.events) == {}


@pytest.mark.parametrize(
    ("text", "value", "is_meant"),
    [
        ("Ana", "a letter for ANA.", True),
        ("Ana", "Anastasia", False),
        ("Ana", {"to": ["x", {"ANA": 1}]}, True),
        ("ana@example.org", "joana@example.org", False),
        ("José", "JOSE\u0301", True),
        ("42", 42, True),
        ("42", "order 42", True),
        ("42", 421, False),
        ("1", True, False),
        ("null", None, False),
        ("Ana", '{"to": "\\u0041na"}', True),
        ("Ana", '{"to": "\\u0042ob"}', False),
        ("Ana", "{\\no json", False),
    ],
)
def test_a_subject_is_a_word_or_a_value_whatever_its_case(
    text: str,
    value: object,
    is_meant: bool,
) -> None:
    assert whom(text).is_in(value) is is_meant


def test_a_subject_is_found_by_its_token_however_it_was_spelled() -> None:
    found = whom(" Ana@Example.org", HIDDEN)
    assert found.is_in({"to": token("ana@example.org", ("email", "redact"), KEY)})
    assert not found.is_in({"to": token("bob@example.org", ("email", "redact"), KEY)})
    numbers = whom("42", Declaration(tool="t", fields={"n": ("redact",)}))
    assert numbers.is_in(token(42, ("redact",), KEY))
    assert numbers.is_in(token("42", ("redact",), KEY))


def test_without_the_key_of_its_tokens_nothing_is_half_erased() -> None:
    with pytest.raises(NoRedactionKey) as caught:
        whom("ana@example.org", HIDDEN, key=False)
    assert "ana" not in str(caught.value)
    assert whom("ana", key=False).is_in("ana")


def test_only_the_named_fields_count_where_some_are_named() -> None:
    found = whom("ana", fields=["to"])
    assert found.is_in({"args": {"to": [{"name": "ana"}]}})
    assert not found.is_in({"args": {"cc": "ana"}})


def changed(*events: Event) -> Scenario:
    """A story whose first run tells these things too."""
    source = scenario(STORY)
    return replace(source, events=[*source.events, *events])


def test_messages_answers_state_and_reasons_go_too() -> None:
    """Whatever a row tells of, in plain: a redacted field covers the calls only."""
    about = msgspec.Raw(b'{"parts":[{"text":"write to Ana"}]}')
    key = "k" * 64
    source = changed(
        RunOpened(run="r3", at="2026-03-01T00:00:00Z", app="desk", user="ana", state=about),
        StepStarted(run="r3", at="2026-03-01T00:00:01Z", step="s0", cursor=0, message=about),
        ModelAnswered(run="r3", at="2026-03-01T00:00:02Z", step="s0", agent="a", ordinal=0,
                      response=about),
        EffectClaimed(run="r3", at="2026-03-01T00:00:03Z", step="s0", tool="mail", key=key,
                      fingerprint="f", args=raw({"to": "x"}), override='"again"'),
        EffectFailed(run="r3", at="2026-03-01T00:00:04Z", key=key, final=False,
                     error=Failure(type="Gone", message="no ana here")),
        EffectInDoubt(run="r3", at="2026-03-01T00:00:05Z", key="l" * 64, reason="Ana left"),
    )  # fmt: skip
    data = b"".join(seal_lines(source.header, source.events))
    done = b"".join(erase_lines(lambda: [data], Eraser(whom("ana")), name="l"))
    found = read(done, name="l")
    opened, started, answered, claimed, failed, doubt = found.events[-6:]
    assert isinstance(opened, RunOpened)
    assert (opened.app, opened.user, bytes(opened.state)) == ("desk", "erased", bytes(ERASED))
    assert isinstance(started, StepStarted)
    assert is_erased(started.message)
    assert isinstance(answered, ModelAnswered)
    assert is_erased(answered.response)
    assert isinstance(claimed, EffectClaimed)
    assert claimed.override == '"again"'
    assert isinstance(failed, EffectFailed)
    assert failed.error == Failure(type="Gone", message="erased")
    assert isinstance(doubt, EffectInDoubt)
    assert doubt.reason == "erased"
    assert b"Ana" not in done
    assert b"ana" not in done.replace(b"r1", b"").split(b'"r3"', 1)[1]


def test_rows_whose_names_tell_of_the_subject_are_counted_and_stay() -> None:
    source = scenario(STORY.replace("run r1", "run order-of-ana"))
    eraser = Eraser(whom("order-of-ana"))
    data = b"".join(erase_lines(lambda: [source.sealed()], eraser, name="l"))
    assert data == source.sealed()
    assert eraser.named == sum(event.run == "order-of-ana" for event in source.events)


def test_what_is_not_known_is_kept_unless_it_tells_of_the_subject() -> None:
    source = scenario(STORY)
    lines = source.sealed().splitlines()
    # Sealed anew as a later version would: with members that we do not know.
    events = [msgspec.json.decode(line, type=dict[str, object]) for line in lines[1:-1]]
    events[0] |= {"mood": "fine", "friend": {"of": "Ana"}}
    for event in events:
        event.pop("prev", None)
    unsealed = b"\n".join([lines[0], *map(msgspec.json.encode, events)]) + b"\n"
    sealed = b"".join(seal([unsealed], name="l"))
    done = b"".join(erase_lines(lambda: [sealed], Eraser(whom("ana")), name="l"))
    first = msgspec.json.decode(done.splitlines()[1], type=dict[str, object])
    assert (first["mood"], first["friend"]) == ("fine", {"backstop": "erased"})
