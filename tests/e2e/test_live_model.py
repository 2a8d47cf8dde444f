"""``model: live``: a change of the prompt is judged by what the candidate's own model answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstop.core.verdict import Decision
from tests.e2e.living import as_recorded, change, digest, first
from tests.generating import gemini

pytestmark = pytest.mark.filterwarnings("ignore")


def test_a_reworded_prompt_whose_model_answers_as_before_passes_with_its_cost(
    tmp_path: Path,
) -> None:
    with gemini(as_recorded) as served:
        found = change(tmp_path, served.url).verdict()
    print(found)
    assert found.decision is Decision.PASS, found.why
    assert found.live is not None
    assert (found.live.calls, found.live.tokens_in, found.live.tokens_out) == (5, 50, 25)
    assert found.live.models == ("gemini-3.5-flash",)
    assert found.coverage.drift == "live"
    assert found.coverage.steps_assumed == 0
    assert found.counts["match"] == 2
