"""Laws of erasure and redaction, for Hypothesis to attack."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from backstop.core import ledgerfile
from backstop.core.canon import canonical
from backstop.core.declaration import Declaration, Namespace
from backstop.core.erasure import Eraser, erase_lines, subject
from backstop.core.events import Event, Header
from backstop.core.fields import KINDS
from backstop.core.identity import identify
from backstop.core.lifecycle import move_of
from backstop.core.redaction import Redaction, RedactionKey
from backstop.errors import IdentityError
from tests.property.test_ledgerfile_laws import TARGETS, VALUES, file_of, ledgers

KEY = RedactionKey(secret=b"a secret of nobody")
SPELLING = sorted(KINDS - {"redact", "override", "volatile", "generated"})


def erased(data: bytes, text: str) -> bytes:
    eraser = Eraser(subject(text, (), key=None))
    return b"".join(erase_lines(lambda: [data], eraser, name="l"))


@given(ledgers(), TARGETS)
def test_an_erased_ledger_holds_and_tells_nothing_of_the_subject(
    ledger: tuple[Header, list[Event]], whom: str
) -> None:
    data = file_of(ledger)
    left = erased(data, whom)
    ledgerfile.verify([left], name="l")
    assert f'"{whom}"' not in left.decode()
    assert erased(left, whom) == left


@given(ledgers(), TARGETS)
def test_what_happened_stays_as_it_was(ledger: tuple[Header, list[Event]], whom: str) -> None:
    before = ledgerfile.read(file_of(ledger), name="l").events
    after = ledgerfile.read(erased(file_of(ledger), whom), name="l").events
    for one, other in zip(before, after, strict=True):
        assert type(one) is type(other)
        assert (one.run, one.at, one.v) == (other.run, other.at, other.v)
        assert move_of(one) == move_of(other)


def key_of(arguments: dict[str, Any], declaration: Declaration) -> str | None:
    try:
        return identify(
            arguments, declaration, namespace=Namespace(agent="a"), run="r", step="s"
        ).key
    except IdentityError:
        return None


@st.composite
def alike(draw: st.DrawFn) -> tuple[Any, Any]:
    """Two values that some kind of field may take for one."""
    one = draw(st.text(max_size=4) | st.lists(st.sampled_from(["a", "A", " b", "b"])) | VALUES)
    if isinstance(one, str):
        edits = (str.upper, str.casefold, lambda text: f" {text}", lambda text: f'"{text}"')
        return one, draw(st.sampled_from(edits))(one)
    if isinstance(one, list):
        return one, draw(st.permutations(one))
    return one, draw(VALUES)


@given(alike(), st.lists(st.sampled_from(SPELLING), max_size=2, unique=True))
def test_tokens_are_equal_exactly_where_keys_were(
    values: tuple[Any, Any], kinds: list[str]
) -> None:
    """What is the same without redaction is the same with it, and nothing else is."""
    one, other = values
    plain = Declaration(tool="t", identity=("x",), fields={"x": tuple(kinds)})
    hidden = Declaration(tool="t", identity=("x",), fields={"x": (*kinds, "redact")})
    redaction = Redaction(key=KEY)
    kept = [dict(redaction.arguments({"x": value}, hidden)) for value in (one, other)]
    same_before = key_of({"x": one}, plain) == key_of({"x": other}, plain)
    assert (key_of(kept[0], hidden) == key_of(kept[1], hidden)) is same_before
    assert canonical(dict(redaction.arguments(kept[0], hidden))) == canonical(kept[0])
