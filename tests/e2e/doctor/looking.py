"""Prints what each specimen and its control show, as JSON: for whichever framework runs this."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from google.adk.version import __version__

from backstop.replay.harness.candidate import load
from backstop.replay.harness.escapes import escapes
from backstop.replay.harness.survey import Survey
from tests.e2e.doctor.specimens import PAIRS, code


def look(text: str, folder: Path) -> list[dict[str, Any]]:
    """What an agent of this code shows; the line is told with its text."""
    folder.mkdir(parents=True)
    (folder / "agent.py").write_text(code(text, name=folder.name), encoding="utf-8")
    before = frozenset(sys.modules)
    candidate = load(folder, start=Path.cwd(), links=folder.parent / "links", adk=__version__)
    seen = Survey(root=candidate.root, plugins=candidate.plugins, folder=candidate.folder)
    lines = (folder / "agent.py").read_text(encoding="utf-8").splitlines()
    return [
        {**found, "line": lines[int(found["at"].rpartition(":")[2]) - 1] if found["at"] else ""}
        for found in escapes(seen, candidate.app, before=before)
        if not found.get("quiet")
    ]


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        told = {
            way.value: [
                look(text, Path(place) / f"{kind}_{way.name.lower()}")
                for kind, text in (("specimen", pair.specimen), ("control", pair.control))
            ]
            for way, pair in PAIRS.items()
        }
    sys.stdout.write("\n" + json.dumps({"adk": __version__, "told": told}))


if __name__ == "__main__":
    main()
