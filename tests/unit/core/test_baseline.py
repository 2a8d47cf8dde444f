"""The baseline: what was known at adoption, by an identity that survives refactoring (G19)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from msgspec import structs

from backstop.core import baseline as baselines
from backstop.core.baseline import grown, read, shrunk, taken, write
from backstop.core.divergence import Divergence
from backstop.core.verdict import Coverage, Decision
from backstop.errors import ConfigError
from tests.accepting import NOW, baseline, decided, known, waiver
from tests.verdicts import CHANGED, DROPPED, NEW, RELABELLED

FORTY = [replace(RELABELLED, fingerprint=f"{place:032x}", run=f"r{place}") for place in range(40)]
FRESH = replace(RELABELLED, fingerprint="f" * 32)


def test_g19_forty_known_findings_do_not_block_and_one_new_one_does() -> None:
    """G19: a project with 40 findings can begin, and the first new one stops the deploy."""
    assert decided(FORTY).decision is Decision.BLOCK
    held = baseline(FORTY)
    verdict = decided(FORTY, held=held)
    assert verdict.decision is Decision.PASS
    assert (verdict.counts["known"], verdict.counts["duplicate"]) == (40, 40)
    told = verdict.baseline
    assert told is not None
    assert (told.findings, told.known, told.gone, told.date) == (40, 40, 0, "2026-11-30")
    worse = decided([*FORTY, FRESH], held=held)
    assert (worse.decision, worse.why) == (Decision.BLOCK, ("1 DUPLICATE",))


def test_g19_one_more_of_a_known_finding_is_new() -> None:
    """G19: by count, or what was there once would let it happen every day."""
    held = baseline([RELABELLED, RELABELLED])
    assert decided([RELABELLED] * 2, held=held).decision is Decision.PASS
    verdict = decided([RELABELLED] * 3, held=held)
    assert verdict.why == ("1 DUPLICATE",)
    assert verdict.counts["known"] == 2


def test_what_is_known_no_more_is_told_as_gone() -> None:
    verdict = decided(FORTY[:37], held=baseline(FORTY))
    assert verdict.baseline is not None
    assert (verdict.baseline.known, verdict.baseline.gone) == (37, 3)


def test_of_a_run_that_was_not_replayed_nothing_is_gone_and_nothing_passes() -> None:
    gaps = Coverage(runs_compared=39, runs_total=40, not_replayable={"r39": "it hangs"})
    verdict = decided(FORTY[:39], held=baseline(FORTY), coverage=gaps)
    assert verdict.decision is Decision.INCONCLUSIVE
    assert verdict.baseline is not None
    assert verdict.baseline.gone == 0


def test_what_does_not_count_anyway_uses_up_no_known_finding_and_is_not_gone() -> None:
    assumed = replace(RELABELLED, assumed=True)
    verdict = decided([assumed, RELABELLED], held=baseline([RELABELLED]))
    assert verdict.decision is Decision.PASS
    assert [one.known for one in verdict.judged] == [False, True]
    alone = decided([assumed], held=baseline([RELABELLED]))
    assert alone.baseline is not None
    assert (alone.baseline.known, alone.baseline.gone) == (0, 0)


def test_a_baseline_is_read_as_it_was_written_and_one_finding_is_one_line() -> None:
    held = {"b": baseline([RELABELLED, CHANGED, RELABELLED]), "a": baseline([])}
    data = write(held)
    assert read(data, name="F") == held
    assert data.count(b'"fingerprint"') == 2
    assert all(line.count(b"fingerprint") <= 1 for line in data.splitlines())
    assert json.loads(data)["format"] == "backstop.baseline/1"
    assert list(json.loads(data)["agents"]) == ["a", "b"]


def test_the_order_of_findings_does_not_show_in_the_file() -> None:
    found = [RELABELLED, CHANGED, DROPPED, NEW]
    assert write({"a": baseline(found)}) == write({"a": baseline(found[::-1])})


def test_g24_a_baseline_holds_no_value_of_an_argument() -> None:
    """G24: it is committed; names and digests are enough."""
    data = write({"a": baseline([RELABELLED, DROPPED])}).decode()
    assert "acme" not in data.lower()
    assert "example.org" not in data


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("}\n}\n", "}\n"),
        ('"backstop.baseline/1"', '"backstop.baseline/2"'),
        ('"count":2', '"count":0'),
        ('"count":2', '"count":"2"'),
        ('"count":2', '"count":2,"note":"x"'),
        ('"2026-11-30T18:00:00+00:00"', '"yesterday"'),
        ('"2026-11-30T18:00:00+00:00"', '"2026-11-30T18:00:00"'),
        ('"by": "eva",', ""),
        ('"kind":"MUTATED"', '"kind":"MUTATED","kind":"EXTRA"'),
        (f'"{CHANGED.fingerprint}"', f'"{RELABELLED.fingerprint}"'),
    ],
)
def test_a_baseline_that_nobody_wrote_is_refused(was: str, becomes: str) -> None:
    """Its control is the same text unchanged, which is read."""
    text = write({"a": baseline([RELABELLED, RELABELLED, CHANGED])}).decode()
    assert read(text.encode(), name="F")
    assert was in text
    with pytest.raises(ConfigError) as caught:
        read(text.replace(was, becomes).encode(), name="F")
    assert caught.value.slug == "baseline-damaged"
    assert str(caught.value).startswith("F: ")


def test_a_baseline_of_absurd_size_is_refused() -> None:
    with pytest.raises(ConfigError, match="larger than"):
        read(b" " * ((1 << 26) + 1), name="F")


def test_a_time_with_another_offset_is_the_day_of_utc() -> None:
    late = structs.replace(baseline([]), at="2026-12-01T00:30:00+02:00")
    assert baselines.day(late) == "2026-11-30"


def held_of(*found: tuple[Divergence, int]) -> baselines.AgentBaseline:
    return taken(
        (known(one, count=count) for one, count in found), at=NOW, by="old", ledger="sha256:0"
    )


def test_a_baseline_shrinks_to_what_is_still_there() -> None:
    before = held_of((RELABELLED, 3), (CHANGED, 1), (DROPPED, 1))
    now = held_of((RELABELLED, 2), (NEW, 1), (DROPPED, 5))
    after = baselines.counts(shrunk(before, now))
    assert after == {RELABELLED.fingerprint: 2, DROPPED.fingerprint: 1}


def test_a_baseline_grows_only_when_told_to() -> None:
    before, now = held_of((RELABELLED, 3), (CHANGED, 1)), held_of((RELABELLED, 4), (NEW, 1))
    assert baselines.counts(grown(before, now)) == {
        RELABELLED.fingerprint: 4,
        NEW.fingerprint: 1,
    }


def test_what_is_held_of_a_run_that_was_not_replayed_stays() -> None:
    """It was not seen, which is not the same as gone."""
    before, now = held_of((FORTY[1], 1), (FORTY[2], 1)), held_of((FORTY[3], 1))
    left = baselines.counts(shrunk(before, now, ["r1"]))
    assert left == {FORTY[1].fingerprint: 1}
    more = baselines.counts(grown(before, now, ["r1"]))
    assert more == {FORTY[1].fingerprint: 1, FORTY[3].fingerprint: 1}


def test_what_a_change_adds_to_a_baseline_is_counted() -> None:
    base = held_of((RELABELLED, 1), (CHANGED, 1))
    head = held_of((RELABELLED, 3), (NEW, 1))
    assert baselines.added(head, base) == 3
    assert baselines.added(head, None) == 4
    assert baselines.added(None, base) == 0


def test_a_waiver_and_a_baseline_serve_side_by_side() -> None:
    verdict = decided([RELABELLED, CHANGED], waiver(CHANGED), held=baseline([RELABELLED]))
    assert verdict.decision is Decision.PASS
    assert (verdict.counts["known"], verdict.counts["waived"]) == (1, 1)
