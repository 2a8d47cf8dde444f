"""`backstop init --import`: a ledger to begin with, and the first gate on it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.adopted import desk, lay
from tests.e2e.command import backstop, refused
from tests.e2e.test_init import CONFIG, done, init

CHAT = Path(__file__).parent / "excerpt.json"


def test_an_import_makes_the_ledger_too_and_the_gate_takes_all_of_it(tmp_path: Path) -> None:
    evalset = {
        "eval_set_id": "s",
        "eval_cases": [
            {
                "eval_id": "one",
                "conversation": [
                    {
                        "invocation_id": "i",
                        "user_content": {"role": "user", "parts": [{"text": "cancel A1"}]},
                        "final_response": {"role": "model", "parts": [{"text": "done"}]},
                        "intermediate_data": {
                            "tool_uses": [
                                {
                                    "id": "c",
                                    "name": "cancel_order",
                                    "args": {"order_id": "A1", "reason": "late"},
                                }
                            ],
                            "intermediate_responses": [],
                        },
                    }
                ],
            }
        ],
    }
    lay(tmp_path, desk("desk"))
    (tmp_path / "s.evalset.json").write_text(json.dumps(evalset))
    out = done(tmp_path, "--import", "evalset", tmp_path / "s.evalset.json")
    assert "wrote ledgers/desk.jsonl: 1 run" in out
    assert backstop("ledger", "verify", tmp_path / "ledgers/desk.jsonl").code == 0
    again = init(tmp_path, "--import", "evalset", tmp_path / "s.evalset.json")
    assert again.code == 2
    assert "error[init-exists]" in again.err
    ran = backstop("gate", "--config", tmp_path / CONFIG)
    assert ran.code in {0, 3}, ran.out + ran.err


def test_a_record_is_one_agents(tmp_path: Path) -> None:
    lay(tmp_path, {**desk("a/one"), **desk("b/two")})
    line = refused("usage", "init", "--root", tmp_path, "--import", "evalset", "x.json")
    assert "Choose one with --agent: one, two" in line


def test_an_import_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    lay(tmp_path, desk("desk"))
    assert init(tmp_path, "--import", "nonsense", "x").code == 2
    assert not (tmp_path / CONFIG).exists()


def test_the_first_gate_passes_when_nothing_is_to_be_compared(tmp_path: Path) -> None:
    lay(tmp_path, desk("desk"))
    done(tmp_path)
    ran = backstop("gate", "--allow-empty", "--config", tmp_path / CONFIG)
    assert ran.code == 0, ran.out + ran.err
