"""A session and an evalset of a public sample agent, as they were published."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from backstop.core.ledgerfile import Ledger, read
from tests.e2e.command import backstop

CONFIG = """\
version: 1
agents:
  desk: {path: desk, ledger: desk.jsonl, tools: {access_cart_information: {effect: false}}}
"""


def imported(kind: str, place: Path, folder: Path) -> tuple[str, Ledger]:
    """What the command said, and the ledger, which stood up to the strict reader."""
    (folder / "backstop.yaml").write_text(CONFIG)
    out = folder / "desk.jsonl"
    command = ("ledger", "import", "--config", folder / "backstop.yaml", "--from", kind)
    ran = backstop(*command, "--out", out, place)
    assert (ran.code, ran.err) == (0, "")
    assert backstop("ledger", "verify", out).code == 0
    return ran.out, read(out.read_bytes(), name="desk.jsonl")


def counted(ledger: Ledger) -> Counter[tuple[str, str]]:
    """Effects by tool and outcome."""
    return Counter((row.tool, row.outcome.value) for row in ledger.history.rows)


def kinds(ledger: Ledger) -> Counter[object]:
    """Events by kind."""
    return Counter(one.__struct_config__.tag for one in ledger.events)


def test_a_published_session_is_a_whole_history(shared: Path, tmp_path: Path) -> None:
    place = shared / "data/adk-samples/customer-service-123.session.json"
    said, ledger = imported("adk-session", place, tmp_path)
    assert "runs: 1, events: 39, side effects: 3\n" in said
    assert "incomplete" not in said
    assert counted(ledger) == {
        ("check_product_availability", "committed"): 1,
        ("modify_cart", "committed"): 2,
    }
    told = kinds(ledger)
    assert (told["step_started"], told["model"], told["read"]) == (11, 17, 3)


def test_a_published_evalset_is_what_was_expected(shared: Path, tmp_path: Path) -> None:
    place = shared / "data/adk-samples/customer-service-full_conversation.test.json"
    said, ledger = imported("evalset", place, tmp_path)
    assert "runs: 1, events: 33, side effects: 0, incomplete: run " in said
    assert counted(ledger) == {
        ("generate_qr_code", "open"): 1,
        ("get_product_recommendations", "open"): 1,
        ("send_care_instructions", "open"): 2,
    }
    told = kinds(ledger)
    assert (told["step_started"], told["model"]) == (10, 16)


@pytest.mark.parametrize("kind", ["evalset", "adk-session"])
def test_a_published_file_of_the_other_kind_is_refused(
    shared: Path, tmp_path: Path, kind: str
) -> None:
    name = "123.session.json" if kind == "evalset" else "full_conversation.test.json"
    (tmp_path / "backstop.yaml").write_text(CONFIG)
    ran = backstop(
        *("ledger", "import", "--config", tmp_path / "backstop.yaml", "--from", kind, "--out"),
        *(tmp_path / "desk.jsonl", shared / f"data/adk-samples/customer-service-{name}"),
    )
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert not (tmp_path / "desk.jsonl").exists()
