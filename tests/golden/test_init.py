"""What `backstop init` proposes for the specimen, as reviewed; `make golden` rewrites the files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from backstop.reports.proposal import table
from backstop.wiring.initializing import CONFIG, plan
from backstop.wiring.surveying import Search

Golden = Callable[[str, str], None]
SPECIMEN = Path(__file__).parents[2] / "examples" / "vendor_onboarding"


def test_the_specimens_first_version_as_init_sees_it(golden: Golden) -> None:
    found = plan(Search(root=SPECIMEN, agents=["v1"]))
    golden("cli/init.yaml", found.files[CONFIG])
    golden("cli/init.txt", "\n".join(table(found.surveyed.agents)) + "\n")
