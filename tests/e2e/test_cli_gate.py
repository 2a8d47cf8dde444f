"""`gate` and `replay`, as a person runs them; what each version does is told elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import backstop as api
from backstop.core.verdict import Decision
from backstop.errors import BackstopError
from tests.e2e.command import ROOT, backstop, refused

ON = ("--config", ROOT / "backstop.yaml", "--agent", "vendor-onboarding", "--sandbox", "process")
V3 = ROOT / "examples" / "vendor_onboarding" / "v3"
LEDGER = ROOT / "ledgers" / "vendor-onboarding.jsonl"


def configured(folder: Path, text: str) -> Path:
    file = folder / "backstop.yaml"
    file.write_text("version: 1\nagents:\n" + text, encoding="utf-8")
    return file


def test_a_relabelling_version_is_blocked_and_its_intents_say_the_same(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    ran = backstop("gate", *ON, "--candidate", V3, "--format", "json", "--output", report)
    assert (ran.code, ran.err) == (1, "")
    told = json.loads(report.read_text(encoding="utf-8"))
    counts = told["agents"][0]["counts"]
    assert {name: count for name, count in counts.items() if count} == {
        "match": 39,
        "duplicate": 3,
    }
    assert told["timing_ms"]["replay"] > 0
    out = tmp_path / "v3.intents.jsonl"
    ran = backstop("replay", *ON, "--candidate", V3, "--out", out)
    assert (ran.code, ran.err) == (0, "")
    assert "replayed 7 of 7 runs" in ran.out
    assert "0 model calls" in ran.out
    for named in ((), ("--config", ROOT / "backstop.yaml", "--agent", "vendor-onboarding")):
        ran = backstop("diff", LEDGER, out, "--format", "json", *named)
        assert ran.code == 1
        assert json.loads(ran.out)["agents"][0]["counts"] == counts


def test_an_agent_without_a_ledger_is_never_green_by_accident(tmp_path: Path) -> None:
    config = configured(tmp_path, "  a: {path: .}\n")
    ran = backstop("gate", "--config", config)
    assert ran.code == 3
    assert ran.out.startswith("compared 0 of 0 runs\n")
    assert backstop("gate", "--config", config, "--allow-empty").code == 0


@pytest.mark.parametrize(
    ("agent", "slug"),
    [
        (f"  vendor-onboarding: {{ledger: '{LEDGER}', path: nowhere}}\n", "agent-missing"),
        (f"  vendor-onboarding: {{ledger: '{LEDGER}'}}\n", "config-agent"),
        (f"  other: {{ledger: '{LEDGER}', path: .}}\n", "ledger-foreign-agent"),
        ("  a: {ledger: gone.jsonl, path: .}\n", "ledger-missing"),
        ("  a: {ledger: 'sqlite:///x', path: .}\n", "store-missing"),
        ("  a: {ledger: 'bigtable://x', path: .}\n", "store-url"),
    ],
)
def test_what_cannot_be_gated_is_an_error_not_a_verdict(
    tmp_path: Path, agent: str, slug: str
) -> None:
    config = configured(tmp_path, agent)
    refused(slug, "gate", "--config", config)
    refused(slug, "replay", "--config", config, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_options_are_checked_before_anything_runs(tmp_path: Path) -> None:
    refused("config-missing", "gate", "--config", tmp_path / "gone.yaml")
    refused("config-agent", "gate", "--agent", "nobody")
    refused("usage", "gate", "--sandbox", "podman")
    refused("usage", "gate", "--format", "xml")
    refused("usage", "gate", *ON, "--fail-on", "everything")
    refused("usage", "replay", *ON)
    refused("usage", "gate", *ON, "--runtime", "podman")
    refused("usage", "gate", *ON[:4], "--sandbox", "docker", "--runtime", "none")


def test_the_gate_can_be_run_from_python(tmp_path: Path) -> None:
    config = configured(tmp_path, "  a: {path: .}\n")
    verdict = api.run_gate(config)
    assert (verdict.decision, verdict.exit_code) == (Decision.INCONCLUSIVE, 3)
    assert api.run_gate(config, allow_empty=True, fail_on=["duplicate"]).exit_code == 0
    with pytest.raises(BackstopError):
        api.run_gate(tmp_path / "gone.yaml")
    with pytest.raises(ValueError, match="EVERYTHING"):
        api.run_gate(config, fail_on=["everything"])
