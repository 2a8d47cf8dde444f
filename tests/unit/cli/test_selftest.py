"""The selftest finds what it planted, and is red where the comparer is broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from backstop.cli.faults import SelftestFailed
from backstop.cli.selftest import selftest
from backstop.core.divergence import Comparison, Kind, compare
from backstop.core.history import History
from backstop.core.intents import Intent
from backstop.core.keying import Rules

Change = Callable[[Comparison], Comparison]


def changed(change: Change) -> Callable[[History, list[Intent], Rules], Comparison]:
    """The real comparer, whose answer then goes through `change`."""
    return lambda history, intents, rules: change(compare(history, intents, rules))


def without(kind: Kind) -> Change:
    return lambda found: replace(
        found, divergences=tuple(one for one in found.divergences if one.kind is not kind)
    )


def all_as(kind: Kind) -> Change:
    return lambda found: replace(
        found, divergences=tuple(replace(one, kind=kind) for one in found.divergences)
    )


def test_what_is_planted_is_found() -> None:
    assert "all found" in selftest()


def test_a_comparer_that_was_stubbed_out_is_noticed() -> None:
    with pytest.raises(SelftestFailed, match="found no divergence and 0 matches"):
        selftest(lambda history, intents, rules: Comparison(divergences=()))


@pytest.mark.parametrize(
    "change",
    [
        *[without(kind) for kind in Kind],
        *[all_as(kind) for kind in Kind],
        lambda found: replace(found, divergences=found.divergences * 2),
        lambda found: replace(found, matched=2),
        lambda found: replace(found, matched=0),
    ],
)
def test_a_comparer_that_is_wrong_in_one_kind_is_noticed(change: Change) -> None:
    with pytest.raises(SelftestFailed, match="trust no verdict"):
        selftest(changed(change))


def test_the_unchanged_comparer_passes_the_same_way() -> None:
    assert selftest(changed(lambda found: found)) == selftest()
