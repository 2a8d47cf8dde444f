"""``backstop mesh``: what a person sees of a run in which trust broke, and does about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from backstop.core.checkpoint import Checkpoint, StepKind
from backstop.core.events import Checkpointed, Recovered
from backstop.mesh.judging import look
from tests.e2e.command import ROOT, Ran, backstop, in_a_process, refused
from tests.e2e.mesh.fleet import ACTION, CODE, RUN, Fleet
from tests.e2e.mesh.rerunning import URL, opened

WIDE = 80


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    made = opened(tmp_path)
    made.begins()
    made.anchors(tmp_path)
    return made


def options(folder: Path) -> list[str]:
    return [
        *("--store", URL.format(folder)),
        *("--agent", "clerk"),
        *("--anchors", str(folder / "backstop-mesh.yaml")),
    ]


def mesh(folder: Path, *words: str) -> Ran:
    return backstop("mesh", *words, *options(folder))


def document(folder: Path, *words: str) -> dict[str, Any]:
    ran = mesh(folder, *words, "--format", "json")
    assert ran.err == ""
    told: dict[str, Any] = json.loads(ran.out)
    assert told["schema"] == "backstop.mesh/1"
    return told


def broken(folder: Path) -> None:
    ran = mesh(folder, "break", "--step", "s0/history", "--reason", "poisoned", "--by", "ada")
    assert (ran.code, ran.err) == (0, "")


@pytest.mark.usefixtures("fleet")
def test_a_run_in_which_all_holds_is_code_0(tmp_path: Path) -> None:
    ran = mesh(tmp_path, "status")
    assert ran.code == 0
    assert "7 VERIFIED" in ran.out
    assert ran.out.endswith("next: nothing\n")
    assert mesh(tmp_path, "plan").code == 0
    assert mesh(tmp_path, "why", "s0/skeptic#0").code == 0


@pytest.mark.usefixtures("fleet")
def test_a_break_is_code_1_from_then_on_and_why_names_the_culprit(tmp_path: Path) -> None:
    broken(tmp_path)
    ran = mesh(tmp_path, "status")
    assert ran.code == 1
    assert "2 VERIFIED, 1 INVALIDATED, 3 RECOMPUTE, 1 BLOCKED" in ran.out
    assert "frozen: 5 steps" in ran.out
    assert "SUSPECT" in ran.out
    ran = mesh(tmp_path, "why", "s0/skeptic#0")
    assert ran.code == 1
    states = [line.split()[:2] for line in ran.out.splitlines() if line.startswith("  ")]
    assert states[:3] == [
        ["RECOMPUTE", "s0/skeptic#0"],
        ["RECOMPUTE", "s0/statistician#0"],
        ["INVALIDATED", "s0/history"],
    ]
    assert "broken in epoch 1 by person:ada: poisoned" in ran.out
    told = document(tmp_path, "why", "s0/skeptic#0")
    assert (told["culprit"], told["links"][-1]["step"]) == ("s0/history", "s0/history")


@pytest.mark.usefixtures("fleet")
def test_a_plan_is_exact_and_changes_nothing(tmp_path: Path, fleet: Fleet) -> None:
    broken(tmp_path)
    before = list(fleet.store.read())
    ran = mesh(tmp_path, "plan")
    assert ran.code == 1
    receipt = [line.strip() for line in ran.out.partition("receipt\n")[2].splitlines()[:4]]
    assert receipt == [
        "spent so far (measured):   0 calls / 0 input tokens",
        "at most to be spent:       3 calls / 1,358 input tokens",
        "avoided (recorded usage):  1 call / 423 input tokens",
        "a restart, as recorded:    4 calls / 1,781 input tokens",
    ]
    told = document(tmp_path, "plan")
    assert told["runs"][0]["plan"] == {
        "rerun": ["s0/history", "s0/statistician#0", "s0/skeptic#0", "s0/orchestrator#0"],
        "reuse": ["s0/user", "s0/scout#0"],
        "hold": [ACTION],
        "frozen": [ACTION],
        "unknown": [],
    }
    assert told["runs"][0]["receipt"]["spent_measured"]["input_tokens"] == 0
    assert list(fleet.store.read()) == before


def test_apply_runs_again_what_does_not_hold_and_takes_back_what_nobody_wants(
    tmp_path: Path, fleet: Fleet
) -> None:
    broken(tmp_path)
    ran = mesh(tmp_path, "apply")
    assert ran.code == 1
    assert "s0/history is to be run again, and nobody here can" in ran.out
    ran = in_a_process(
        *("mesh", "apply", "--with", "tests.e2e.mesh.rerunning:fleet"),
        *options(tmp_path),
        FLEET=str(tmp_path),
    )
    # Another process's undo is not this one's: the action that is out goes to a person.
    assert ran.code == 1, ran.err
    assert "spent (measured):          3 calls / 1,358 input tokens" in ran.out
    assert "avoided (recorded usage):  1 call / 423 input tokens" in ran.out
    assert "ESCALATE" in ran.out.upper()
    assert ran.err.splitlines()[:2] == ["leased", "planned"]
    assert set(fleet.states().values()) == {"V"}


def test_apply_with_the_same_answer_leaves_nothing_to_do(tmp_path: Path, fleet: Fleet) -> None:
    broken(tmp_path)
    fleet.makes("s0/history")
    ran = mesh(tmp_path, "apply")
    assert (ran.code, ran.out.splitlines()[0]) == (0, f"run {RUN}: recovered")
    assert mesh(tmp_path, "status").code == 0
    assert mesh(tmp_path, "apply").out == "nothing to do\n"


@pytest.mark.usefixtures("fleet")
def test_apply_leaves_a_run_to_the_worker_that_recovers_it(tmp_path: Path, fleet: Fleet) -> None:
    broken(tmp_path)
    fleet.store.lease(RUN, "worker-9", lease_s=60)
    assert "recovered now by worker-9, fence 1" in mesh(tmp_path, "status").out
    ran = mesh(tmp_path, "apply")
    assert ran.code == 1
    assert "worker-9 recovers it" in ran.out


@pytest.mark.parametrize(
    ("named", "steps"),
    [
        (["--input", "evidence/history"], 5),
        (["--producer", "recorder"], 7),
        (["--producer", "recorder", "--seq", "2..2"], 6),
        (["--policy", "publishing"], 5),
    ],
)
@pytest.mark.usefixtures("fleet")
def test_what_a_break_may_name(tmp_path: Path, named: list[str], steps: int) -> None:
    ran = mesh(tmp_path, "break", *named, "--reason", "bad")
    assert ran.code == 0
    assert f"{steps} steps frozen in 1 run" in ran.out
    assert mesh(tmp_path, "status").code == 1


@pytest.mark.parametrize(
    "named",
    [
        [],
        ["--step", "s0/history", "--policy", "publishing"],
        ["--input", "evidence/nobody"],
        ["--input", "evidence/history/" + "0" * 64],
        ["--producer", "nobody"],
        ["--producer", "recorder", "--seq", "900..901"],
        ["--policy", "nothing"],
    ],
)
@pytest.mark.usefixtures("fleet")
def test_a_break_that_names_nothing_is_refused_in_one_line(
    tmp_path: Path, named: list[str]
) -> None:
    refused("trust-break", "mesh", "break", *named, "--reason", "bad", *options(tmp_path))
    assert mesh(tmp_path, "status").code == 0


@pytest.mark.parametrize(
    "words",
    [
        ["break", "--step", "s0/nothing", "--reason", "bad"],
        ["break", "--step", "s0/history", "--reason", " "],
        ["break", "--step", "s0/history", "--reason", "x" * 501],
        ["break", "--step", "s0/history", "--seq", "1..2", "--reason", "bad"],
        ["break", "--input", "history", "--reason", "bad"],
        ["break", "--producer", "recorder", "--seq", "1-2", "--reason", "bad"],
        ["why", "s0/nothing"],
        ["status", "--high-water", "mark"],
        ["apply", "--with", "nowhere"],
        ["apply", "--with", "no.such.module:name"],
        ["apply", "--with", "tests.e2e.mesh.rerunning:nothing"],
    ],
)
@pytest.mark.usefixtures("fleet")
def test_what_makes_no_sense_is_refused(tmp_path: Path, words: list[str]) -> None:
    refused("usage", "mesh", *words, *options(tmp_path))


def test_a_run_that_is_not_there_is_refused(tmp_path: Path, fleet: Fleet) -> None:
    assert fleet.ran == []
    refused("run-unknown", "mesh", "status", "--run", "r9", *options(tmp_path))


def test_a_step_of_two_runs_has_to_be_told_apart(tmp_path: Path, fleet: Fleet) -> None:
    made = look(fleet.store, fleet.mind, RUN).graph["s0/history"]
    other = msgspec.structs.replace(made, run="r2")
    body = msgspec.Raw(msgspec.json.encode(other))
    fleet.store.append(Checkpointed(run="r2", at="", step=other.step, body=body))
    why = refused("usage", "mesh", "why", "s0/history", *options(tmp_path))
    assert "a step of 2 runs" in why
    mesh(tmp_path, "break", "--step", "s0/history", "--run", "r2", "--reason", "bad")
    told = document(tmp_path, "status")
    assert {run["run"]: run["clean"] for run in told["runs"]} == {RUN: True, "r2": False}


def test_without_anchors_nothing_is_judged(tmp_path: Path, fleet: Fleet) -> None:
    (tmp_path / "backstop-mesh.yaml").unlink()
    assert fleet.ran == []
    told = refused("config-missing", "mesh", "status", *options(tmp_path))
    assert "docs/mesh.md" in told
    assert "And error" not in told


@pytest.mark.parametrize("command", [("status",), ("why", "s0/user"), ("plan",), ("apply",)])
def test_all_that_is_missing_is_said_at_once(tmp_path: Path, command: tuple[str, ...]) -> None:
    named = ("--anchors", tmp_path / "trust.yaml", "--config", tmp_path / "agents.yaml")
    told = refused("config-missing", "mesh", *command, *named)
    assert "trust.yaml: there is no such file" in told
    assert "And error[config-missing]" in told
    assert "agents.yaml: there is no such file" in told
    told = refused("config-missing", "mesh", *command, *options(tmp_path))
    assert "And error[store-missing]" in told


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"outputs": {"scout": {"maximum": 3}}}, "'maximum' is not known"),
        ({"outputs": {"scout": {"type": "object"}}, "payloads": None}, "without `payloads`"),
        ({"producers": []}, "at least one"),
        ({"rules": {"publishing": {"digest": "short"}}}, "rules.publishing.digest"),
    ],
)
def test_anchors_that_cannot_be_meant_are_refused(
    tmp_path: Path, fleet: Fleet, change: dict[str, object], told: str
) -> None:
    file = fleet.anchors(tmp_path)
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    assert told in refused("config-value", "mesh", "status", *options(tmp_path))


def test_outputs_that_nobody_looks_at_are_said(tmp_path: Path, fleet: Fleet) -> None:
    file = fleet.anchors(tmp_path)
    file.write_text(json.dumps({**json.loads(file.read_text()), "payloads": None}))
    ran = mesh(tmp_path, "status")
    assert "outputs are not looked at" in ran.out
    assert document(tmp_path, "status")["remarks"]


def test_a_payload_that_is_gone_or_another_is_not_verified(tmp_path: Path, fleet: Fleet) -> None:
    made = look(fleet.store, fleet.mind, RUN).graph["s0/scout#0"].output
    file = tmp_path / "payloads" / made[:2] / made
    file.write_bytes(b"{}")
    ran = mesh(tmp_path, "status")
    assert ran.code == 1
    assert "output missing" in ran.out
    file.unlink()
    assert mesh(tmp_path, "status").code == 1


def sealed(folder: Path) -> Path:
    file = folder / "run.jsonl"
    where = ("--store", URL.format(folder), "--agent", "clerk")
    assert (
        backstop("ledger", "pull", URL.format(folder), "--agent", "clerk", "--out", file).code == 0
    )
    assert where
    return file


def test_a_ledger_file_is_judged_and_only_read(tmp_path: Path) -> None:
    made = opened(tmp_path)
    made.begins(act=False)
    made.anchors(tmp_path)
    broken(tmp_path)
    file = sealed(tmp_path)
    anchors = ("--anchors", tmp_path / "backstop-mesh.yaml")
    ran = backstop("mesh", "status", file, *anchors)
    assert ran.code == 1
    assert "2 VERIFIED, 1 INVALIDATED, 3 RECOMPUTE" in ran.out
    assert "frozen: 4 steps" in ran.out
    assert "who wrote it is not checked" in ran.out
    assert backstop("mesh", "why", "s0/skeptic#0", file, *anchors).code == 1
    ran = backstop("mesh", "plan", file, *anchors)
    assert ran.code == 1
    assert ran.out.endswith("next: `backstop mesh apply --store URL --with MODULE:NAME`\n")
    refused("usage", "mesh", "status", file, "--store", URL.format(tmp_path), *anchors)
    text = file.read_text()
    file.write_text(text.replace("s0/skeptic#0", "s0/skeptic#1"))
    ran = backstop("mesh", "status", file, *anchors)
    assert ran.code == 2
    assert ran.err.startswith("error[ledger-")


@pytest.mark.parametrize("body", [b"null", b'{"run":"r1"}', b'"torn"', b"[1,2]"])
def test_a_torn_record_blocks_its_step_and_says_so(
    tmp_path: Path, fleet: Fleet, body: bytes
) -> None:
    fleet.store.append(Checkpointed(run=RUN, at="", step="s0/scout#0", body=msgspec.Raw(body)))
    ran = mesh(tmp_path, "status")
    assert ran.code == 1
    assert ["BLOCKED", "s0/scout#0", "schema"] in [line.split() for line in ran.out.splitlines()]


def test_what_cannot_be_read_of_a_recovery_is_an_error(tmp_path: Path, fleet: Fleet) -> None:
    fleet.store.append(Recovered(run=RUN, at="", body=msgspec.Raw(b'{"type":"what"}')))
    refused("mesh-record", "mesh", "status", *options(tmp_path))


def test_a_step_from_another_agent_cannot_write_on_the_terminal(
    tmp_path: Path, fleet: Fleet
) -> None:
    made = Checkpoint(
        run=RUN,
        step="s0/\x1b[2J" + "long/" * 30,
        kind=StepKind.INPUT,
        output="x",
        producer="\x1b[2J",
        observed_at=0.0,
    )
    fleet.record(made)
    for ran in (mesh(tmp_path, "status"), mesh(tmp_path, "plan"), mesh(tmp_path, "why", made.step)):
        assert ran.code == 1
        assert "\x1b" not in ran.out
        words = max(len(word) for word in ran.out.split())
        lines = [line for line in ran.out.splitlines() if "backstop mesh" not in line]
        assert all(len(line) <= max(WIDE, words + 40) for line in lines)


def test_a_moved_definition_is_told_with_both_digests(tmp_path: Path, fleet: Fleet) -> None:
    file = fleet.anchors(tmp_path)
    told = json.loads(file.read_text())
    told["pins"]["code"][CODE[1]] = "e" * 64
    file.write_text(json.dumps(told))
    ran = mesh(tmp_path, "why", ACTION)
    assert ran.code == 1
    assert f"now  {'e' * 64}" in ran.out


def test_of_many_runs_only_those_with_something_to_do_are_told(
    tmp_path: Path, fleet: Fleet
) -> None:
    for number in range(30):
        name = f"run-{number}"
        made = Checkpoint(
            run=name,
            step="s0/user",
            kind=StepKind.INPUT,
            output=fleet.outputs()["s0/user"],
            producer="nobody" if number == 7 else "recorder",
            observed_at=0.0,
        )
        body = msgspec.Raw(msgspec.json.encode(made))
        fleet.store.append(Checkpointed(run=name, at="", step=made.step, body=body))
    ran = mesh(tmp_path, "status")
    assert ran.code == 1
    assert [line for line in ran.out.splitlines() if line.startswith("run ")] == ["run run-7"]
    assert "and 30 runs more; --format json has all" in ran.out
    assert "and 30 runs more" in mesh(tmp_path, "plan").out
    assert len(document(tmp_path, "status")["runs"]) == 31


def test_a_ledger_without_a_mesh_is_no_mesh_that_holds(tmp_path: Path, fleet: Fleet) -> None:
    anchors = fleet.anchors(tmp_path)
    ledger = ROOT / "ledgers" / "vendor-onboarding.jsonl"
    for command in ("status", "plan"):
        ran = backstop("mesh", command, ledger, "--anchors", anchors)
        assert ran.code == 1
        assert ran.out.endswith("next: nothing is on record: see docs/mesh.md\n")
