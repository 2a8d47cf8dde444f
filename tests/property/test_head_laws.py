"""The high-water mark over any course of ledgers: it accepts what goes on from it, only that."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from backstop.core.events import Seal
from backstop.core.heads import check_mark, head_of, raised
from backstop.core.sealing import link
from backstop.errors import LedgerError

Past = list[tuple[str, int]]
"""Rows of a ledger: a run, and what happened in it."""

ROWS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 1)), max_size=5)


def chained(past: Past) -> tuple[dict[str, str], set[str]]:
    """The last link of each run, and all links."""
    heads: dict[str, str] = {}
    links: set[str] = set()
    for run, what in past:
        heads[run] = link(f"{run} {what} {heads.get(run, '')}".encode())
        links.add(heads[run])
    return heads, links


def runs(past: Past) -> dict[str, list[int]]:
    return {run: [what for at, what in past if at == run] for run, _ in past}


def goes_on_from(later: Past, earlier: Past) -> bool:
    """Whether every run begins as it did."""
    now = runs(later)
    return all(now.get(run, [])[: len(was)] == was for run, was in runs(earlier).items())


@given(st.lists(ROWS, min_size=1, max_size=4), ROWS)
def test_a_mark_accepts_what_goes_on_from_all_that_it_accepted(
    pasts: list[Past], more: Past
) -> None:
    mark, accepted = None, []
    for past in [*pasts, [*pasts[0], *more]]:
        heads, links = chained(past)
        seal = Seal(events=len(past), effects=0, runs=len(heads), digest="", heads=heads)
        head = head_of(seal, agent="desk", epoch=0, at="")
        if mark is not None:
            holds = all(goes_on_from(past, earlier) for earlier in accepted)
            try:
                check_mark(mark, head, links, name="L")
            except LedgerError as fault:
                assert not holds
                older = fault.slug == "head-rollback"
                assert older == (len(past) < mark.head.size)
                continue
            assert holds
            assert len(past) >= mark.head.size
        accepted.append(past)
        mark = raised(mark, head, heads=heads, keyid="k")
        assert mark.head.size == max(map(len, accepted))
