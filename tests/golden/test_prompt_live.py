"""The reworded prompt of `examples/prompt_changes`, judged by answers of its own model.

The answers are on a cassette that is committed; the model behind it is a server of our own.
`make golden` records it anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from backstop.gate.request import GateRequest, ReplayRequest
from backstop.wiring.gating import gate
from tests.e2e.command import ROOT, backstop
from tests.generating import KEY, calls, gemini, says
from tests.golden.test_cli import scrubbed

pytestmark = pytest.mark.filterwarnings("ignore")

EXAMPLE = ROOT / "examples/prompt_changes"
CASSETTE = EXAMPLE / "instruction.answers.jsonl"


def warmly(body: dict[str, Any]) -> Mapping[str, Any]:
    """What the model says to the new prompt: as before, and in other words to the customer."""
    parts = [part for content in body["contents"] for part in content["parts"]]
    texts = [part["text"] for part in parts if "text" in part]
    size = len(json.dumps(body)) // 4
    if texts[-1].startswith("Thank"):
        return says("You are most welcome.", tokens=(size, 6))
    order = next(word for word in texts[0].split() if word.startswith("O-"))
    done = sum("functionResponse" in part for part in parts)
    if done == 0:
        return calls("look_up_order", (size, 12), order_id=order)
    if done == 1:
        return calls("refund", (size, 15), order_id=order, amount="49.90")
    if done == 2:
        return calls(
            "send_letter",
            (size, 40),
            to=f"customer-of-{order}@example.org",
            subject=f"Your refund for {order}",
            body="We are so sorry! The whole sum is on its way to you.",
        )
    return says(f"{order} is refunded.", tokens=(size, 8))


def test_the_cassette_of_the_example_is_recorded_anew_byte_for_byte(tmp_path: Path) -> None:
    said = (EXAMPLE / "live.yaml").read_text(encoding="utf-8")
    out = tmp_path / "answers.jsonl"
    with gemini(warmly) as served:
        config = tmp_path / "live.yaml"
        config.write_text(
            said.replace("path: desk", f"path: {EXAMPLE / 'instruction'}")
            .replace("ledger: ", f"ledger: {EXAMPLE}/")
            .replace("live: true", f"live: true, base_url: '{served.url}'")
        )
        gate(
            GateRequest(
                replay=ReplayRequest(config=config, cassette=out, environ={"GOOGLE_API_KEY": KEY})
            )
        )
    if os.environ.get("BACKSTOP_GOLDEN") == "rewrite":
        CASSETTE.write_bytes(out.read_bytes())
    assert out.read_bytes() == CASSETTE.read_bytes()


def test_the_verdict_by_the_model_s_own_answers_is_as_reviewed(
    golden: Callable[[str, str], None],
) -> None:
    """The command of the README: no key, no network, and the refunds stay what they were."""
    ran = backstop(
        *("gate", "--config", EXAMPLE / "live.yaml", "--base", EXAMPLE / "desk"),
        *("--candidate", EXAMPLE / "instruction", "--cassette", CASSETTE, "--offline"),
    )
    assert (ran.code, ran.err.count("its model was asked 0 times")) == (0, 1)
    golden("prompt_changes/live.txt", scrubbed(ran.out))


@pytest.mark.parametrize(
    ("given", "why"), [((), "none is named"), (("--cassette", "gone.jsonl"), "gone.jsonl is not")]
)
def test_offline_without_a_cassette_is_refused(given: tuple[str, ...], why: str) -> None:
    ran = backstop("gate", "--config", EXAMPLE / "live.yaml", "--offline", *given)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error[usage]: --offline")
    assert why in ran.err


def test_the_live_verdict_stands_in_the_readme() -> None:
    told = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    (row,) = [line for line in told.splitlines() if line.startswith("| `live.yaml`")]
    assert "PASS with warnings" in row
