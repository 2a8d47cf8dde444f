"""What is declared of a tool that nobody declared: a read only where all that there is says so."""

from __future__ import annotations

from typing import Any

import pytest

from backstop.core.proposing import Evidence, Proposal, Seen, acting_word, propose, words

CLEAN = Evidence(is_whole=True, reads=("tools.py:3 calls requests.get",))
PURE = Evidence(is_whole=True)
TEXT = {"type": "string"}


def proposed(
    name: str, *, said: str = "", evidence: Evidence = CLEAN, takes: object = None
) -> Proposal:
    parameters = takes if isinstance(takes, dict) else {}
    return propose(Seen(name=name, parameters=parameters, described=said, evidence=evidence))


@pytest.mark.parametrize(
    "name",
    [
        "get_order",
        "listInvoices",
        "lookup_vendor",
        "crm_search_customers",
        "is_open",
        "flight_status_check",
        "get_purchase_history",
        "get_return_policy",
    ],
)
def test_a_read_by_name_and_by_code_is_a_read(name: str) -> None:
    found = proposed(name, said="Returns what is known. Sends nothing.")
    assert not found.effect
    assert "requests.get" in found.why
    assert not proposed(name, evidence=PURE).effect


@pytest.mark.parametrize(
    "name",
    [
        "send_mail",
        "get_or_create_customer",
        "fetch_and_forward",
        "read_then_archive",
        "check_in",
        "check_out_guest",
        "search_and_hover",
        "github_create_issue",
        "book_flight",
        "orderPizza",
        "update_get",
    ],
)
def test_a_name_that_acts_is_an_effect_whatever_the_code_shows(name: str) -> None:
    found = proposed(name)
    assert found.effect
    assert "name says" in found.why


@pytest.mark.parametrize(
    "name", ["weather", "flight_agent", "do", "", "0", "данные", "payments", "handle"]
)
def test_a_name_that_says_nothing_is_an_effect(name: str) -> None:
    assert proposed(name).effect


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("Sends the link", "sends"),
        ("Looks up a vendor and notifies it.", "notifies"),
        ("Deleting what is there", "deleting"),
        ("Publishes it", "publishes"),
        ("Placing... Updating", None),
        ("Creating it", "creating"),
    ],
)
def test_a_description_that_acts_is_an_effect(said: str, word: str | None) -> None:
    found = proposed("get_link", said=said)
    assert found.effect is (word is not None)
    if word is not None:
        assert f'"{word}"' in found.why


def test_code_that_acts_or_cannot_be_seen_is_an_effect_whatever_the_name_says() -> None:
    acts = Evidence(is_whole=True, acts=("a.py:4 calls smtplib.SMTP",))
    unknown = Evidence(is_whole=True, unknown=("a.py:4 calls f",))
    assert "smtplib" in proposed("get_order", evidence=acts).why
    assert 'says "send", and' in proposed("send_order", evidence=acts).why
    assert "a.py:4 calls f" in proposed("get_order", evidence=unknown).why
    assert "cannot be seen" in proposed("get_order", evidence=Evidence()).why
    for evidence in (acts, unknown, Evidence()):
        assert proposed("get_order", evidence=evidence).effect


def test_a_harmless_tool_of_the_framework_is_a_read() -> None:
    assert not propose(Seen(name="google_search", is_harmless=True)).effect


@pytest.mark.parametrize(
    ("name", "parameters", "identity"),
    [
        ("create_purchase_order", ("vendor_id", "po_ref", "amount"), ("vendor_id", "po_ref")),
        ("send_mail", ("to", "subject", "body"), ("to", "subject")),
        ("send_mail", ("to", "body"), ()),
        ("send_link", ("phone_number",), ()),
        ("notify", ("subject", "about"), ()),
        ("cancel_reservation", ("reservation_id", "payment_id"), ("reservation_id",)),
        ("create_order", ("customer_id", "items"), ()),
        ("book_room", ("room_id", "guest", "nights"), ()),
        ("cancel_room", ("room_id", "guest"), ("room_id",)),
        ("modify_cart", ("customer_id", "items"), ()),
        ("update_customer", ("customer_id", "name"), ("customer_id",)),
        ("deactivate_users", ("user_ids",), ("user_ids",)),
        ("pay", ("invoice_number", "amount", "currency"), ("invoice_number",)),
        ("memorize", ("key", "value"), ()),
        ("save_document", ("content_key", "title"), ()),
        ("release", ("order_key", "value"), ("order_key",)),
        ("copy_and_replace_document", ("original_document_id", "words"), ()),
        ("replace_document", ("document_id", "words"), ("document_id",)),
        ("import_agent", ("object_name", "target_project_id", "target_engine_id"), ()),
        ("tag", ("element_id",), ("element_id",)),
        ("apply_discount", ("promo_code", "country_code"), ("promo_code",)),
        ("send_invite", ("attendees", "title"), ("attendees", "title")),
        ("send_note", ("email_address", "order_id"), ("email_address", "order_id")),
        ("reset", ("username", "created_date"), ()),
        ("pay", ("amount", "timestamp", "reason", ""), ()),
    ],
)
def test_identity_is_what_names_the_thing_and_never_the_party_alone(
    name: str, parameters: tuple[str, ...], identity: tuple[str, ...]
) -> None:
    found = proposed(name, takes=dict.fromkeys(parameters, TEXT))
    assert found.effect
    assert found.identity == identity
    assert found.why_identity


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ({"type": "string"}, True),
        ({"type": "integer"}, True),
        ({}, True),
        (True, True),
        ({"type": ["string", "null"]}, True),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
        ({"anyOf": [{"type": "object"}, "odd"]}, False),
        ({"type": "array", "items": {"type": "string"}}, True),
        ({"type": "array"}, False),
        ({"type": "number"}, False),
        ({"type": "boolean"}, False),
        ({"type": "object"}, False),
        ({"type": "string", "default": None}, False),
    ],
)
def test_an_identity_is_text_or_a_whole_number_that_is_always_there(
    schema: Any, names: bool
) -> None:
    assert bool(proposed("cancel_order", takes={"order_id": schema}).identity) is names


def test_the_callers_own_key_goes_before_an_identity() -> None:
    found = proposed("pay", takes={"invoice_id": TEXT, "idempotency_key": TEXT})
    assert (found.key, found.identity) == (("idempotency_key",), ())


def test_a_tool_without_arguments_says_that_it_happens_once() -> None:
    assert "scope: step" in proposed("restart_server").why_identity


def test_hints_are_told_and_not_proposed() -> None:
    found = proposed(
        "send_order", takes=dict.fromkeys(("order_id", "request_id", "body", "now", ""), TEXT)
    )
    assert [hint.partition(" ")[0] for hint in found.hints] == ["request_id", "body", "now"]
    assert "volatile" in found.hints[0]
    assert "generated" in found.hints[1]


def test_names_come_apart_into_words() -> None:
    assert words("getVendor_byID2") == ["get", "vendor", "by", "id", "2"]
    assert words("APIKey") == ["api", "key"]
    assert acting_word("") == ""


def test_arguments_that_nobody_knows_name_nothing_and_are_not_called_none() -> None:
    found = propose(Seen(name="write_file", parameters=None))
    assert found.effect
    assert (found.identity, found.hints) == ((), ())
    assert "nobody knows" in found.why_identity


@pytest.mark.parametrize(
    ("parameters", "bare"),
    [
        ({}, True),
        (None, True),
        ({"why": {"type": "string", "default": None}}, True),
        ({"text": {"type": "string"}}, False),
        ({"order_id": {"type": "string"}}, False),
    ],
    ids=["none", "unknown", "all left out", "one needed", "identity"],
)
def test_an_effect_that_may_be_called_without_arguments_is_known(
    parameters: dict[str, Any] | None, bare: bool
) -> None:
    assert propose(Seen(name="restart_x", parameters=parameters)).may_be_bare is bare
