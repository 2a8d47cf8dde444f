"""A sealed file may still say what is not true: keys, fingerprints and declarations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from backstop.core import ledgerfile
from backstop.core.declaration import Declaration, Namespace
from backstop.core.events import CallBlocked, EffectClaimed, Event, Header, ToolRead
from backstop.core.intents import Intent
from backstop.core.keycheck import false_intent
from backstop.errors import LedgerError
from tests.dsl import Scenario, scenario

CALLS = """
agent desk
tool pay identity vendor
tool check reads
tool wipe
run r1
step s1
read check{ref: 7} -> ok
block wipe{all: true}
commit pay{vendor: acme, amount: 10}
commit pay{vendor: other, amount: 10}
commit undeclared{a: 1}
advance
close complete
"""
STRANGE = "f" * 64


def resealed(
    change: Callable[[Event], Event], *, header: Callable[[Header], Header] = lambda header: header
) -> bytes:
    """The calls above, changed, under a seal that holds."""
    made = scenario(CALLS)
    told: Scenario = replace(
        made, header=header(made.header), events=[change(event) for event in made.events]
    )
    return told.sealed()


def refused(data: bytes) -> LedgerError:
    with pytest.raises(LedgerError) as caught:
        ledgerfile.verify((data,), name="L")
    return caught.value


def test_a_ledger_that_is_true_to_itself_holds() -> None:
    assert ledgerfile.verify((resealed(lambda event: event),), name="L").effects == 3


@pytest.mark.parametrize("kind", [EffectClaimed, ToolRead, CallBlocked])
def test_a_key_that_is_not_that_of_its_arguments_is_refused(kind: type[Event]) -> None:
    def change(event: Event) -> Event:
        return msgspec.structs.replace(event, key=STRANGE) if isinstance(event, kind) else event

    fault = refused(resealed(change))
    assert fault.slug == "ledger-key"
    assert "its key 'ffffffffffff' is not that of its arguments" in str(fault)


@pytest.mark.parametrize("kind", [EffectClaimed, CallBlocked])
def test_a_fingerprint_that_is_not_that_of_its_arguments_is_refused(kind: type[Event]) -> None:
    def change(event: Event) -> Event:
        if isinstance(event, kind):
            return msgspec.structs.replace(event, fingerprint=STRANGE)
        return event

    fault = refused(resealed(change))
    assert fault.slug == "ledger-key"
    assert "its fingerprint 'ffffffffffff' is not that of its arguments" in str(fault)


def test_a_blocked_call_need_not_have_a_fingerprint() -> None:
    def change(event: Event) -> Event:
        if isinstance(event, CallBlocked):
            return msgspec.structs.replace(event, fingerprint="")
        return event

    assert ledgerfile.verify((resealed(change),), name="L").effects == 3


def test_arguments_that_make_another_vendor_of_it_are_refused() -> None:
    """Two payments that trade their arguments would each be taken for the other."""

    def change(event: Event) -> Event:
        if isinstance(event, EffectClaimed) and b"acme" in bytes(event.args):
            return msgspec.structs.replace(event, args=msgspec.Raw(b'{"vendor":"ACME"}'))
        return event

    assert refused(resealed(change)).slug == "ledger-key"


@pytest.mark.parametrize("args", [b"[1]", b"null", b'{"vendor":null}', b"{}"])
def test_a_row_whose_arguments_make_no_key_is_refused(args: bytes) -> None:
    def change(event: Event) -> Event:
        if isinstance(event, EffectClaimed):
            return msgspec.structs.replace(event, args=msgspec.Raw(args))
        return event

    fault = refused(resealed(change))
    assert fault.slug == "ledger-key"
    assert "none can be made of its arguments" in str(fault)


def test_a_row_of_another_owner_is_refused() -> None:
    def other(header: Header) -> Header:
        return msgspec.structs.replace(header, tenant="somebody else")

    assert refused(resealed(lambda event: event, header=other)).slug == "ledger-key"


def test_a_declaration_that_is_not_what_its_digest_names_is_refused() -> None:
    def other(header: Header) -> Header:
        changed = {
            named: msgspec.structs.replace(declaration, effect=False)
            for named, declaration in header.declarations.items()
        }
        return msgspec.structs.replace(header, declarations=changed)

    fault = refused(resealed(lambda event: event, header=other))
    assert fault.slug == "ledger-declaration"
    assert "line 1: declaration" in str(fault)


def test_a_tool_that_names_the_declaration_of_another_is_refused() -> None:
    def other(header: Header) -> Header:
        return msgspec.structs.replace(header, tools={**header.tools, "pay": header.tools["check"]})

    fault = refused(resealed(lambda event: event, header=other))
    assert fault.slug == "ledger-declaration"
    assert "tool 'pay' names the declaration of 'check'" in str(fault)


@pytest.mark.parametrize(
    ("kind", "tool", "said"),
    [
        (EffectClaimed, "pay", "stands there as an effect, and is declared a read"),
        (ToolRead, "check", "stands there as a read, and is declared an effect"),
    ],
)
def test_a_row_is_of_the_kind_that_its_declaration_says(
    kind: type[Event], tool: str, said: str
) -> None:
    """An effect that passes for a read would be compared with nothing."""
    turned = Declaration(tool=tool, effect=kind is ToolRead, identity=("vendor",))

    def other(header: Header) -> Header:
        return msgspec.structs.replace(
            header,
            tools={**header.tools, tool: turned.digest},
            declarations={**header.declarations, turned.digest: turned},
        )

    def change(event: Event) -> Event:
        if isinstance(event, kind) and getattr(event, "tool", "") == tool:
            return msgspec.structs.replace(event, decl=turned.digest)
        return event

    fault = refused(resealed(change, header=other))
    assert fault.slug == "ledger-declaration"
    assert said in str(fault)


def test_a_policy_may_block_a_read() -> None:
    made = scenario(
        "agent desk\ntool check reads\nrun r1\nstep s1\nblock check{ref: 7}\nclose complete"
    )
    events = [
        msgspec.structs.replace(event, key=_read_key()) if isinstance(event, CallBlocked) else event
        for event in made.events
    ]
    data = replace(made, events=events).sealed()
    assert ledgerfile.verify((data,), name="L").effects == 0


def _read_key() -> str:
    told = scenario("agent desk\ntool check reads\nrun r1\nstep s1\nread check{ref: 7}")
    (read,) = [event for event in told.events if isinstance(event, ToolRead)]
    return read.key


OWNER = Namespace(agent="desk")


def asked() -> tuple[Intent, dict[str, Declaration]]:
    """An intent, and the declarations that its key was made under."""
    told = scenario(
        "agent desk\ntool pay identity vendor\nrun r1\nstep s1\nintent s1 pay{vendor: a, b: 1}"
    )
    return told.intents[0], told.intents_header.declarations


def test_an_intent_is_held_to_its_arguments_too() -> None:
    intent, declared = asked()
    assert false_intent(intent, declared, OWNER) is None
    wrong = msgspec.structs.replace(intent, key=STRANGE)
    assert "is not that of its arguments" in str(false_intent(wrong, declared, OWNER))
    assert "is not that of its arguments" in str(false_intent(intent, {}, OWNER))


def test_an_intent_whose_key_is_yet_to_be_made_says_nothing_false() -> None:
    intent, declared = asked()
    keyless = msgspec.structs.replace(intent, key="", fingerprint="")
    assert false_intent(keyless, declared, OWNER) is None


@pytest.mark.parametrize("blank", [b" ", b"\t", b"\r"])
def test_a_seal_has_one_spelling(blank: bytes) -> None:
    """The digest covers every byte before the seal, so the seal itself must not vary."""
    data = resealed(lambda event: event)
    seal = data.rindex(b'{"t":"seal"')
    for at in (seal + 1, len(data) - 2, len(data) - 1):
        assert refused(data[:at] + blank + data[at:]).slug == "ledger-tampered"
