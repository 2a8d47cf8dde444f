"""Every schedule of up to three deliveries and two crashes: our protocol holds, others do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from tests.property.interleavings.model import (
    KEYED,
    NONE,
    PROBE,
    Protocol,
    Search,
    hasty,
    reclaiming,
)

OURS: Final[dict[str, Protocol]] = {
    "none": NONE,
    "none, and a person": replace(NONE, person=True),
    "none, by lease": replace(NONE, sees_owners=False),
    "none, by lease, and a person": replace(NONE, sees_owners=False, person=True),
    "probe": PROBE,
    "probe, by lease, and a person": replace(PROBE, sees_owners=False, person=True),
    "keyed": KEYED,
    "keyed, by lease": replace(KEYED, sees_owners=False),
}

WRONG: Final[dict[str, tuple[Protocol, str]]] = {
    "look, run, record": (Protocol(claims=False), "DUP"),
    "blocked means advance": (replace(NONE, advances_when_blocked=True), "SKIP"),
    "reclaim, by lock": (replace(NONE, resolve=reclaiming), "DUP"),
    "reclaim, by lease": (replace(NONE, resolve=reclaiming, sees_owners=False), "DUP"),
    "keyed, of a provider that forgets": (replace(KEYED, once_downstream=False), "DUP"),
    "probe that does not wait": (replace(PROBE, resolve=hasty), "DUP"),
    "probe by lease that does not wait": (
        replace(PROBE, resolve=hasty, sees_owners=False),
        "DUP",
    ),
}


@pytest.mark.parametrize(("deliveries", "crashes"), [(1, 2), (2, 2), (3, 2)])
@pytest.mark.parametrize("protocol", OURS.values(), ids=list(OURS))
def test_i5_i6_no_schedule_sends_twice_skips_or_gets_stuck(
    protocol: Protocol, deliveries: int, crashes: int
) -> None:
    """I5, I6: and what nobody can decide is listed as in doubt."""
    assert Search(protocol, deliveries, crashes).violations() == {}


@pytest.mark.parametrize(("protocol", "kind"), WRONG.values(), ids=list(WRONG))
def test_the_search_bites_where_a_protocol_is_wrong(protocol: Protocol, kind: str) -> None:
    found = Search(protocol, deliveries=2, crashes=2).violations()
    assert kind in found
    assert found[kind].startswith("0 ")


def test_a_lookup_alone_cannot_decide_where_nobody_sees_the_owner() -> None:
    """The doubt stays, and a person has to say: sending again would be a guess."""
    found = Search(replace(PROBE, sees_owners=False), deliveries=2, crashes=1).violations()
    assert set(found) == {"STUCK"}
