"""A repository in little: one version of the specimen with its ledger and its packages.

``python3 -m tests.action_runner.specimen FOLDER VERSION`` writes one, from a checkout alone.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
AGENT: Final = "agents/vendor_onboarding"
LEDGER: Final = "ledgers/vendor-onboarding.jsonl"
CONFIG: Final = """\
version: 1
agents:
  vendor-onboarding:
    path: agents/vendor_onboarding
    ledger: ledgers/vendor-onboarding.jsonl
    guarded: true
    tools:
      create_purchase_order: {identity: [vendor_id, po_ref], scope: run}
      send_mail: {identity: [to, subject], scope: run}
      request_approval: {identity: [po_ref], scope: run}
      schedule_reminder: {identity: [about], scope: run}
      lookup_vendor: {effect: false}
gate: {fail_on: [duplicate], control: base, max_assumed_steps: 0, allow_empty: false}
"""


def lay_out(folder: Path, version: str) -> Path:
    """Write the checkout of `version` (``v1`` wrote the ledger) into `folder`, and give it back."""
    shutil.copytree(
        ROOT / "examples" / "vendor_onboarding" / version,
        folder / AGENT,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (folder / LEDGER).parent.mkdir(parents=True)
    shutil.copyfile(ROOT / LEDGER, folder / LEDGER)
    shutil.copyfile(
        ROOT / "examples" / "vendor_onboarding" / "requirements.txt", folder / "requirements.txt"
    )
    (folder / "backstop.yaml").write_text(CONFIG)
    return folder


if __name__ == "__main__":
    lay_out(Path(sys.argv[1]), sys.argv[2])
