"""``python -m backstop.cli.schemas DIR`` writes the published JSON Schemas to a folder."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from backstop.config import json_schema as config_schema
from backstop.config.waivers import json_schema as waivers_schema
from backstop.reports.document import json_schema as verdict_schema


def write(folder: Path) -> None:
    """Write ``config.schema.json``, ``verdict.schema.json`` and ``waivers.schema.json``."""
    schemas = {"config": config_schema(), "verdict": verdict_schema(), "waivers": waivers_schema()}
    for name, schema in schemas.items():
        text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        (folder / f"{name}.schema.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
