"""A store's header, as one process after another registers what it knows."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from backstop.core.canon import CANON_VERSION
from backstop.core.declaration import Declaration
from backstop.core.events import FORMAT, Header
from backstop.core.header import merged
from backstop.errors import LedgerError


def header(**about: Any) -> Header:
    base = Header(format=FORMAT, agent="desk", canon=CANON_VERSION, app="shop", guarded=True)
    return msgspec.structs.replace(base, **about)


PAY, MAIL = Declaration(tool="pay"), Declaration(tool="mail")
PAID = Declaration(tool="pay", identity=("to",))


def test_the_newest_word_on_each_tool_stands_and_what_rows_name_is_kept() -> None:
    old = header(
        tools={"pay": "p1", "mail": "m1"},
        code={"pay": "c1", "mail": "c2"},
        declarations={"p1": PAY, "m1": MAIL},
        versions={"v1": "one"},
    )
    new = header(
        tools={"pay": "p2"}, code={"pay": "c3"}, declarations={"p2": PAID}, versions={"v2": "two"}
    )
    assert merged(old, new) == header(
        tools={"pay": "p2", "mail": "m1"},
        code={"pay": "c3", "mail": "c2"},
        declarations={"p1": PAY, "m1": MAIL, "p2": PAID},
        versions={"v1": "one", "v2": "two"},
    )


def test_registering_again_what_is_known_changes_nothing() -> None:
    known = header(tools={"pay": "p1"}, declarations={"p1": PAY}, versions={"v1": "one"})
    assert merged(known, known) == known
    assert merged(merged(known, header()), known) == known


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("registered", [True, False])
def test_a_ledger_is_guarded_if_all_its_writers_are(known: bool, registered: bool) -> None:
    both = merged(header(guarded=known), header(guarded=registered))
    assert both.guarded is (known and registered)


@pytest.mark.parametrize("other", [{"agent": "clerk"}, {"app": "mall"}, {"tenant": "acme"}])
def test_one_store_does_not_take_two_ledgers(other: dict[str, Any]) -> None:
    with pytest.raises(LedgerError, match="name another store") as caught:
        merged(header(), header(**other))
    assert caught.value.slug == "store-foreign-agent"


@pytest.mark.parametrize("other", [{"canon": CANON_VERSION + 1}, {"format": FORMAT + 1}])
def test_one_store_does_not_take_two_ways_of_making_keys(other: dict[str, Any]) -> None:
    with pytest.raises(LedgerError, match="run one version") as caught:
        merged(header(), header(**other))
    assert caught.value.slug == "store-canon"
    for name, value in other.items():
        assert name[:5] in str(caught.value)
        assert str(value) in str(caught.value)


def test_processes_with_two_redaction_keys_do_not_share_a_store() -> None:
    """Neither would find what the other did, and both would do it."""
    assert merged(header(), header(redaction="a")).redaction == "a"
    assert merged(header(redaction="a"), header()).redaction == "a"
    assert merged(header(redaction="a"), header(redaction="a")).redaction == "a"
    with pytest.raises(LedgerError, match="another redaction key") as caught:
        merged(header(redaction="a"), header(redaction="b"))
    assert caught.value.slug == "store-redaction-key"


def test_a_header_without_a_redaction_key_is_spelled_as_ever() -> None:
    assert b"redaction" not in msgspec.json.encode(header())


def test_the_newest_listing_of_each_toolset_stands() -> None:
    one, two = [{"name": "a"}], [{"name": "b"}]
    known, registered = header(toolsets={"x": one, "y": one}), header(toolsets={"y": two})
    assert merged(known, registered).toolsets == {"x": one, "y": two}
    assert merged(known, header()).toolsets == known.toolsets
    assert merged(header(), known).toolsets == known.toolsets
    assert merged(header(), header()).toolsets is msgspec.UNSET
