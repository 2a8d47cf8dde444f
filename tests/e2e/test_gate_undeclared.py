"""A tool that nobody declared is never called in a replay (G27)."""

from __future__ import annotations

import re
from pathlib import Path

from backstop import run_gate
from tests.action_runner.specimen import AGENT, lay_out

BODIES = 5


def test_g27_a_tool_without_a_declaration_is_never_called(tmp_path: Path) -> None:
    """G27: no tool is listed, and each body ends the process: all runs come to their end."""
    folder = lay_out(tmp_path / "checkout", "v1")
    config = folder / "backstop.yaml"
    text = config.read_text()
    config.write_text(text[: text.index("    tools:")] + text[text.index("gate:") :])
    agent = folder / AGENT / "agent.py"
    live, bodies = re.subn(
        r"SIDE_EFFECTS\.append\(.*\)", "__import__('os')._exit(9)", agent.read_text()
    )
    agent.write_text(live)
    assert bodies == BODIES  # the control: what would be called would not come back
    (verdict,) = run_gate(config, sandbox="process").agents
    assert verdict.coverage.runs_compared == verdict.coverage.runs_total
    assert verdict.counts["match"] == verdict.ledger.effects
