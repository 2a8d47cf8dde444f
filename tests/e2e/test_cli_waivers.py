"""`waive` and `baseline write`, as a person uses them, and what a gate makes of it (G16, G19)."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from backstop import clock
from tests.e2e.command import ROOT, Ran, backstop, refused

AGENT = "vendor-onboarding"
SPECIMEN = ROOT / "examples" / "vendor_onboarding"
LEDGER = ROOT / "ledgers" / f"{AGENT}.jsonl"
TOOLS = """    guarded: true
    tools:
      create_purchase_order: {identity: [vendor_id, po_ref], scope: run}
      send_mail: {identity: [to, subject], scope: run}
      request_approval: {identity: [po_ref], scope: run}
      schedule_reminder: {identity: [about], scope: run}
      lookup_vendor: {effect: false}
"""
EVA = ("--author", "eva@example.org")
WHY = ("--reason", "the first order was cancelled")


def checkout(folder: Path, version: str, *, gate: str = "{}") -> Path:
    """The configuration of a checkout with this version of the specimen."""
    folder.mkdir(exist_ok=True)
    file = folder / "backstop.yaml"
    file.write_text(
        f"version: 1\nagents:\n  {AGENT}:\n    path: '{SPECIMEN / version}'\n"
        f"    ledger: '{LEDGER}'\n{TOOLS}gate: {gate}\nsandbox: {{cpus: 1}}\n",
        encoding="utf-8",
    )
    return file


def gated(config: Path, *more: str | Path) -> Ran:
    return backstop("gate", "--config", config, *more)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on v3: three duplicates."""
    folder = tmp_path_factory.mktemp("report")
    ran = gated(checkout(folder, "v3"), "--format", "json", "--output", folder / "v3.json")
    assert ran.code == 1
    return folder / "v3.json"


def prints(report: Path) -> list[str]:
    """The fingerprints in a report."""
    (agent,) = json.loads(report.read_text(encoding="utf-8"))["agents"]
    return [one["fingerprint"] for one in agent["divergences"]]


def test_what_is_waived_one_by_one_passes_in_the_end_and_is_told_on_top(
    tmp_path: Path, report: Path
) -> None:
    """D4: by its whole fingerprint, or by its beginning where the report is at hand."""
    config = checkout(tmp_path, "v3")
    first, second, third = prints(report)
    for name in (first, second[:8]):
        ran = backstop("waive", name, *WHY, *EVA, "--verdict", report, "--config", config)
        assert (ran.code, ran.err) == (0, "")
    ran = backstop("waive", third, *WHY, *EVA, "--config", config)
    assert (ran.code, ran.err) == (0, "")
    ran = gated(config, "--format", "json")
    assert ran.code == 0
    (agent,) = json.loads(ran.out)["agents"]
    assert (agent["counts"]["waived"], agent["counts"]["duplicate"]) == (3, 3)
    assert [(one["standing"], one["author"]) for one in agent["waivers"]] == [
        ("used", "eva@example.org")
    ] * 3
    assert [one["place"] for one in agent["waivers"]] == [
        f"backstop-waivers.yaml:{line}" for line in (3, 9, 15)
    ]


def test_d4_what_a_change_waives_itself_stands_first_and_a_strict_base_does_not_count_it(
    tmp_path: Path, report: Path
) -> None:
    """D4, D1: whether it counts is the base's policy, and the change may not loosen it."""
    head = checkout(tmp_path / "head", "v3")
    base = checkout(tmp_path / "base", "v1", gate="{control: none}")
    for name in prints(report):
        backstop("waive", name, *WHY, *EVA, "--config", head)
    ran = gated(head, "--base", base.parent)
    lines = ran.out.splitlines()
    assert ran.code != 1
    assert lines[1].startswith("this change waives 1 finding: ")
    assert "BLOCKED" not in ran.out
    checkout(tmp_path / "base", "v1", gate="{control: none, waivers: base}")
    ran = gated(head, "--base", base.parent)
    assert ran.code == 1
    assert ran.out.splitlines()[1].startswith("this change waives nothing: ")


def test_g19_a_baseline_lets_a_project_begin_and_the_first_new_finding_blocks(
    tmp_path: Path, report: Path
) -> None:
    """G19: known findings pass, told by count and date in the first lines; a new one does not."""
    config = checkout(tmp_path, "v3")
    written = ("baseline", "write", "--config", config, "--by", "eva")
    ran = backstop(*written)
    assert (ran.code, ran.err) == (0, "")
    assert f"{AGENT}: 3 known findings (3 DUPLICATE)" in ran.out
    ran = gated(config)
    assert ran.code == 0
    assert ran.out.splitlines()[1] == (
        f"3 known findings of the baseline of {clock.now().date()} (eva) do not block"
    )
    file = tmp_path / "backstop-baseline.json"
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    without = [line for line in lines if prints(report)[0] not in line]
    file.write_text("".join(without).replace("},\n   ]", "}\n   ]"), encoding="utf-8")
    ran = gated(config)
    assert ran.code == 1
    assert "\n- 1 DUPLICATE\n" in ran.out
    ran = backstop(*written, "--verdict", report)
    assert "of 2 findings before: 0 gone, 1 new not taken (--add takes them)" in ran.out
    ran = backstop(*written, "--verdict", report, "--add")
    assert "3 known findings" in ran.out
    assert "1 added" in ran.out
    assert prints(report)[0] in file.read_text(encoding="utf-8")


def test_a_baseline_of_what_is_gone_shrinks(tmp_path: Path, report: Path) -> None:
    config = checkout(tmp_path, "v1")
    backstop("baseline", "write", "--config", config, "--by", "eva", "--verdict", report)
    now = tmp_path / "v1.json"
    assert gated(config, "--format", "json", "--output", now).code == 0
    (agent,) = json.loads(now.read_text(encoding="utf-8"))["agents"]
    assert (agent["baseline"]["known"], agent["baseline"]["gone"]) == (0, 3)
    ran = backstop("baseline", "write", "--config", config, "--by", "eva", "--verdict", now)
    assert "of 3 findings before: 3 gone\n" in ran.out
    told = json.loads((tmp_path / "backstop-baseline.json").read_text(encoding="utf-8"))
    assert told["agents"][AGENT]["findings"] == []


def test_g16_a_waiver_without_a_reason_or_a_day_stops_the_gate(
    tmp_path: Path, report: Path
) -> None:
    """G16: exit code 2, with the line; and one that ran out lets nothing pass."""
    config = checkout(tmp_path, "v3")
    file = tmp_path / "backstop-waivers.yaml"
    name = prints(report)[0]
    backstop("waive", name, *WHY, *EVA, "--config", config)
    text = file.read_text(encoding="utf-8")
    for missing in ("reason", "expires"):
        lines = [line for line in text.splitlines(keepends=True) if f" {missing}:" not in line]
        file.write_text("".join(lines), encoding="utf-8")
        told = refused("config-value", "gate", "--config", config)
        assert "backstop-waivers.yaml:3: " in told
    day = (clock.now() + timedelta(days=14)).date().isoformat()
    assert day in text
    file.write_text(text.replace(day, "2020-02-29"), encoding="utf-8")
    ran = gated(config)
    assert ran.code == 1
    assert f"waiver backstop-waivers.yaml:3 ({name}) expired on 2020-02-29" in " ".join(
        ran.out.split()
    )
