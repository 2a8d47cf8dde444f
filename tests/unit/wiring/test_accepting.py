"""Whose waivers and baseline count, and which of them a change brings itself (D4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstop.config import Config, load
from backstop.core import baseline as baselines
from backstop.core.accepted import Accepted
from backstop.core.divergence import Comparison
from backstop.core.verdict import Coverage, LedgerFacts, Policy, decide
from backstop.core.waivers import Standing
from backstop.errors import BackstopError, ConfigError
from backstop.wiring.accepting import BASELINE, accepting, baselines_in
from tests.accepting import TODAY, baseline
from tests.verdicts import CHANGED, DROPPED, NEW, RELABELLED

ENTRY = """  - fingerprint: {name}
    agent: {agent}
    reason: agreed
    author: eva
    expires: {expires}
"""


def entry(digit: str, *, agent: str = "a", expires: str = "2026-12-14") -> str:
    return ENTRY.format(name=f"'{digit * 32}'", agent=agent, expires=expires)


def checkout(folder: Path, *entries: str, gate: str = "{}", held: object = None) -> Config:
    """A checkout with a configuration, these waivers, and a baseline of agent ``a``."""
    folder.mkdir()
    text = f"version: 1\nagents: {{a: {{path: .}}, b: {{path: .}}}}\ngate: {gate}\n"
    (folder / "backstop.yaml").write_text(text, encoding="utf-8")
    if entries:
        waivers = "version: 1\nwaivers:\n" + "".join(entries)
        (folder / "backstop-waivers.yaml").write_text(waivers, encoding="utf-8")
    if isinstance(held, baselines.AgentBaseline):
        (folder / BASELINE).write_bytes(baselines.write({"a": held}))
    return load(folder / "backstop.yaml")


def counted(accepted: Accepted) -> list[tuple[str, bool]]:
    """The waivers that count, by first digit, and whether the change brings them."""
    return [(one.about[0], one.added) for one in accepted.waivers]


def test_d4_the_heads_waivers_count_and_those_that_it_adds_are_marked(tmp_path: Path) -> None:
    """D4: the default; wherever in the file they stand."""
    base = checkout(tmp_path / "base", entry("1"), entry("2"))
    head = checkout(tmp_path / "head", entry("3"), entry("2"))
    both = accepting(head, base).of("a", today=TODAY)
    assert counted(both) == [("3", True), ("2", False)]
    assert both.proposed == ()
    assert counted(accepting(head, None).of("a", today=TODAY)) == [("3", False), ("2", False)]
    assert counted(accepting(head, base).of("b", today=TODAY)) == []


def test_d4_a_waiver_that_is_prolonged_or_written_twice_is_one_that_is_added(
    tmp_path: Path,
) -> None:
    """D4: what was agreed to was the shorter one, once."""
    base = checkout(tmp_path / "base", entry("1"), entry("2"))
    head = checkout(tmp_path / "head", entry("1", expires="2027-01-14"), entry("2"), entry("2"))
    told = accepting(head, base).of("a", today=TODAY)
    assert counted(told) == [("1", True), ("2", False), ("2", True)]


@pytest.mark.parametrize("where", ["head", "base"])
def test_d4_strict_shops_count_the_bases_waivers_whoever_of_both_is_strict(
    tmp_path: Path, where: str
) -> None:
    """D4, D1: `gate.waivers: base` is policy, so the change cannot take it out."""
    strict = "{waivers: base}"
    base = checkout(
        tmp_path / "base", entry("1"), entry("2"), gate=strict if where == "base" else "{}"
    )
    head = checkout(
        tmp_path / "head", entry("2"), entry("3"), gate=strict if where == "head" else "{}"
    )
    told = accepting(head, base).of("a", today=TODAY)
    assert counted(told) == [("1", False), ("2", False)]
    assert [one.about[0] for one in told.proposed] == ["3"]
    # Without a base at hand there is nothing else to go by: what is merged is reviewed.
    assert counted(accepting(head, None).of("a", today=TODAY)) == [("2", False), ("3", False)]


def test_d4_what_does_not_count_yet_is_reported(tmp_path: Path) -> None:
    base = checkout(tmp_path / "base", gate="{waivers: base}")
    head = checkout(tmp_path / "head", entry("3"))
    policy = Policy(accepted=accepting(head, base).of("a", today=TODAY))
    nothing = Comparison(divergences=())
    verdict = decide(
        "a", nothing, Coverage(runs_compared=1, runs_total=1), policy, ledger=LedgerFacts()
    )
    (use,) = verdict.waivers
    assert (use.standing, use.waiver.added) == (Standing.NOT_COUNTED, True)


def test_a_base_without_a_configuration_has_accepted_nothing(tmp_path: Path) -> None:
    """A change that brings Backstop: its configuration stands in for the base's."""
    head = checkout(tmp_path / "head", entry("1"), gate="{waivers: base}")
    told = accepting(head, head).of("a", today=TODAY)
    assert (counted(told), len(told.proposed)) == ([], 1)


def test_the_shorter_of_two_bounds_counts(tmp_path: Path) -> None:
    base = checkout(tmp_path / "base", gate="{max_waiver_days: 30}")
    head = checkout(tmp_path / "head", gate="{max_waiver_days: 60}")
    assert accepting(head, base).of("a", today=TODAY).max_days == 30
    assert accepting(base, head).of("a", today=TODAY).max_days == 30
    assert accepting(head, None).of("a", today=TODAY).max_days == 60


def test_a_waiver_of_an_agent_that_nobody_knows_is_an_error(tmp_path: Path) -> None:
    """Nobody would see that it is unused."""
    head = checkout(tmp_path / "head", entry("1", agent="zzz"))
    with pytest.raises(ConfigError) as caught:
        accepting(head, None)
    assert caught.value.slug == "waiver-agent"
    assert str(caught.value).startswith("backstop-waivers.yaml:3: ")


def test_a_baseline_that_a_change_edits_is_counted_as_added(tmp_path: Path) -> None:
    base = checkout(tmp_path / "base", held=baseline([RELABELLED, CHANGED]))
    head = checkout(tmp_path / "head", held=baseline([RELABELLED, RELABELLED, DROPPED, NEW]))
    told = accepting(head, base).of("a", today=TODAY)
    assert (told.added, told.strict) == (3, False)
    assert baselines.counts(told.baseline)[RELABELLED.fingerprint] == 2
    assert accepting(head, None).of("a", today=TODAY).added == 0


def test_a_strict_shop_knows_what_the_base_knows(tmp_path: Path) -> None:
    base = checkout(tmp_path / "base", held=baseline([CHANGED]), gate="{waivers: base}")
    head = checkout(tmp_path / "head", held=baseline([RELABELLED]))
    told = accepting(head, base).of("a", today=TODAY)
    assert (told.added, told.strict) == (1, True)
    assert list(baselines.counts(told.baseline)) == [CHANGED.fingerprint]


def test_a_strict_shop_is_told_of_a_first_baseline_that_does_not_count_yet(tmp_path: Path) -> None:
    base = checkout(tmp_path / "base", gate="{waivers: base}")
    head = checkout(tmp_path / "head", held=baseline([RELABELLED]))
    told = accepting(head, base).of("a", today=TODAY)
    assert told.added == 1
    assert told.baseline is not None
    assert (told.baseline.findings, told.baseline.by) == ((), "eva")


def test_a_baseline_that_cannot_be_read_is_not_one_that_is_missing(tmp_path: Path) -> None:
    assert baselines_in(tmp_path / BASELINE) == {}
    (tmp_path / BASELINE).symlink_to(tmp_path / "gone")
    with pytest.raises(BackstopError, match="no such file"):
        baselines_in(tmp_path / BASELINE)
