"""`waive`: what it writes, what it says, and what it will not put its name to."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from backstop.cli.author import author
from backstop.cli.waiving import Asked, waive
from backstop.config.waivers import load
from backstop.core.divergence import Kind
from backstop.core.verdict import Verdict
from backstop.errors import BackstopError, UsageError
from backstop.reports.document import render_json
from tests.verdicts import CHANGED, RELABELLED, agent_verdict

ONE, TWO = "ab" * 16, "abababab" + "0" * 24
NOW = datetime(2026, 11, 30, 23, 30, tzinfo=UTC)
VERDICT = Verdict(
    agents=(
        agent_verdict(
            replace(RELABELLED, fingerprint=ONE),
            replace(RELABELLED, fingerprint=ONE),
            replace(CHANGED, fingerprint=TWO),
            agent="desk",
        ),
    )
)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "backstop.yaml"
    file.write_text("version: 1\nagents: {desk: {}}\ngate: {max_waiver_days: 30}\n")
    return file


@pytest.fixture
def report(tmp_path: Path) -> Path:
    file = tmp_path / "out.json"
    file.write_text(render_json(VERDICT, timing_ms={}), encoding="utf-8")
    return file


def asked(fingerprint: str = TWO, **said: Any) -> Asked:
    usual = Asked(fingerprint=fingerprint, reason="agreed", author="eva", days=14, count=1)
    return replace(usual, **said)


def refused(wanted: Asked, config: Path) -> tuple[str, str]:
    """The slug and words of what is refused; nothing is written then."""
    with pytest.raises(BackstopError) as caught:
        waive(wanted, config=config, now=NOW)
    assert not (config.parent / "backstop-waivers.yaml").exists()
    return caught.value.slug, str(caught.value)


def test_a_finding_of_a_report_is_waived_by_its_first_eight_letters(
    config: Path, report: Path
) -> None:
    """Two begin with the same eight; one letter more tells them apart."""
    told = waive(asked(TWO[:9], verdict=report), config=config, now=NOW)
    (one,) = load(config.parent / "backstop-waivers.yaml")
    assert (one.about, one.kind, one.agent) == (TWO, Kind.MUTATED, "desk")
    assert (one.reason, one.author, one.expires) == ("agreed", "eva", date(2026, 12, 14))
    lines = told.splitlines()
    assert lines[0].endswith("backstop-waivers.yaml: one more waiver, until 2026-12-14, by eva")
    assert lines[1] == f"  MUTATED {TWO} of desk"
    assert lines[2].startswith("  run r1, step s1: It would call pay")
    assert lines[-1].startswith("next: ")


def test_without_a_report_the_whole_fingerprint_is_needed(config: Path) -> None:
    assert "is no fingerprint" in refused(asked(TWO[:9]), config)[1]
    assert "is no fingerprint" in refused(asked("g" * 32), config)[1]
    told = waive(asked(TWO, kind="mutated"), config=config, now=NOW)
    assert f"  MUTATED {TWO} of desk\n" in told
    (one,) = load(config.parent / "backstop-waivers.yaml")
    assert one.kind is Kind.MUTATED


def test_a_finding_that_the_report_does_not_have_is_not_waived(config: Path, report: Path) -> None:
    for name in ("0" * 32, "0" * 8, "abab", "RELABELLED"):
        slug, told = refused(asked(name, verdict=report), config)
        assert slug == "waiver-unknown"
        assert "has no finding" in told
    slug, told = refused(asked("abababab", verdict=report), config)
    assert (slug, "has 2 findings" in told) == ("waiver-unknown", True)


def test_what_is_there_more_often_than_is_waived_is_said(config: Path, report: Path) -> None:
    told = waive(asked(ONE, verdict=report), config=config, now=NOW)
    assert "but it is there 2 times, and a waiver of 1 waives none" in told
    other = config.with_name("other")
    other.mkdir()
    (other / "backstop.yaml").write_bytes(config.read_bytes())
    told = waive(asked(ONE, verdict=report, count=2), config=other / "backstop.yaml", now=NOW)
    assert "but it is there" not in told


def test_what_is_waived_already_is_not_waived_twice_unless_it_ran_out(config: Path) -> None:
    waive(asked(), config=config, now=NOW)
    file = config.parent / "backstop-waivers.yaml"
    before = file.read_bytes()
    with pytest.raises(UsageError) as caught:
        waive(asked(), config=config, now=NOW)
    assert caught.value.slug == "waiver-known"
    assert "backstop-waivers.yaml:3: " in str(caught.value)
    assert file.read_bytes() == before
    waive(asked(), config=config, now=NOW.replace(year=2027))
    assert len(load(file)) == 2


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"reason": "  "}, "--reason: is blank"),
        ({"reason": "x" * 501}, "--reason: longer than 500"),
        ({"reason": "fine\u202eenif"}, "--reason: has characters that cannot be seen"),
        ({"days": 0}, "--days: 0 is not within 1 and 30"),
        ({"days": 31}, "--days: 31 is not within 1 and 30 (gate.max_waiver_days)"),
        ({"count": 0}, "--count: 0 is not within 1 and 10000"),
        ({"count": 10_001}, "--count: 10001 is not within 1 and 10000"),
        ({"kind": "twice"}, "--kind: 'twice' is no kind of finding"),
        ({"agent": "other"}, "has no agent 'other'"),
    ],
)
def test_what_nobody_should_sign_is_refused(said: dict[str, Any], words: str, config: Path) -> None:
    assert words in refused(asked(**said), config)[1]


@pytest.mark.parametrize("said", [{"kind": "extra"}, {"agent": "other"}])
def test_what_contradicts_the_report_is_refused(
    said: dict[str, Any], config: Path, report: Path
) -> None:
    assert "but the report says" in refused(asked(verdict=report, **said), config)[1]
    told = waive(asked(verdict=report, kind="mutated", agent="desk"), config=config, now=NOW)
    assert TWO in told


def test_a_report_that_was_edited_is_none(config: Path, report: Path) -> None:
    text = report.read_text(encoding="utf-8")
    report.write_text(text.replace(f'"{TWO}"', f'"{"0" * 32}"'), encoding="utf-8")
    assert refused(asked("0" * 32, verdict=report), config)[0] == "verdict-damaged"


def test_a_reason_is_one_line(config: Path) -> None:
    waive(asked(reason=" two\n  lines "), config=config, now=NOW)
    assert load(config.parent / "backstop-waivers.yaml")[0].reason == "two lines"


def test_who_answers_for_it_is_said_or_known_or_asked_for(tmp_path: Path) -> None:
    """`tmp_path` is no repository, so git says what it says everywhere, if anything."""
    nobody = {"USER": ""}
    assert author(" Eva  M ", option="--author", folder=tmp_path, environ=nobody) == "Eva M"
    with pytest.raises(UsageError, match="cannot be seen"):
        author("eva\u200b", option="--author", folder=tmp_path, environ=nobody)
    known = author(None, option="--author", folder=tmp_path / "gone", environ={"USER": "eva"})
    assert known == "eva"
    with pytest.raises(UsageError, match="say who with --by"):
        author(None, option="--by", folder=tmp_path / "gone", environ={})
