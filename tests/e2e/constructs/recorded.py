"""Constructs, recorded by our plugin in a process of a framework's own and configured to gate."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.e2e.command import ROOT, backstop
from tests.e2e.constructs.scripts import Construct

AGENTS: Final = ROOT / "tests/e2e/constructs/agents"
RECORD: Final = "tests.e2e.constructs.record"
FRAMEWORKS: Final = {"oldest": ROOT / ".venv-oldest", "newest": ROOT / ".venv"}


def recorded(
    folder: Path,
    python: Path,
    these: Sequence[Construct],
    *changes: tuple[str, str],
) -> None:
    """Record constructs in `folder`, and pull their ledgers.

    `changes` are texts to be replaced in their code beforehand.
    """
    for one in these:
        agent = folder / "v1" / one.name
        shutil.copytree(AGENTS / one.name, agent, ignore=shutil.ignore_patterns("__pycache__"))
        text = (agent / "agent.py").read_text(encoding="utf-8")
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (agent / "agent.py").write_text(text, encoding="utf-8")
    configured(folder, "v1", python, these)
    shutil.copy(folder / "v1.yaml", folder / "backstop.yaml")
    subprocess.run(
        [
            *map(str, (python, "-W", "ignore", ROOT / "tests/e2e/appended.py")),
            RECORD,
            folder,
            *(one.name for one in these),
        ],
        check=True,
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "CONSTRUCTS_OUT": str(folder / "out")},
    )
    for one in these:
        pulled = backstop(
            *("ledger", "pull", f"sqlite:///{folder}/{one.name}.db", "--agent", one.name),
            *("--out", folder / f"{one.name}.jsonl"),
        )
        assert pulled.code == 0, pulled


def configured(folder: Path, version: str, python: Path, these: Sequence[Construct]) -> None:
    """Write the configuration of a version of all agents that there are of it."""
    lines = ["version: 1", f"sandbox: {{kind: process, python: {python}}}", "agents:"]
    lines += [
        f"  {one.name}: {{path: {version}/{one.name}, store: 'sqlite:///{folder}/{one.name}.db', "
        f"ledger: {one.name}.jsonl, guarded: true, tools: {{count_rows: {{effect: false}}}}}}"
        for one in these
        if (folder / version / one.name).is_dir()
    ]
    (folder / f"{version}.yaml").write_text("\n".join(lines), encoding="utf-8")
