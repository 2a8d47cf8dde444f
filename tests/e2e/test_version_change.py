"""A change of nothing but packages: the same ledger, the same code, another framework.

Each version is replayed with the packages that it comes with: here those of two environments.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.command import Ran, backstop
from tests.e2e.constructs.recorded import FRAMEWORKS, recorded
from tests.e2e.constructs.scripts import CONSTRUCTS, Construct

STOPS: Final = (
    """root_agent = LlmAgent(
""",
    """def stops(callback_context, llm_request):
    parts = [part for said in llm_request.contents for part in said.parts or ()]
    answers = [part.function_response for part in parts if part.function_response]
    if __version__ != "2.11.0" and len(answers) >= 2:
        return LlmResponse(content=types.Content(role="model", parts=[types.Part(text="Enough.")]))


root_agent = LlmAgent(
    before_model_callback=stops,
""",
)
_IMPORTS: Final = """from google.adk.models.llm_response import LlmResponse
from google.adk.tools import LongRunningFunctionTool
from google.adk.version import __version__
from google.genai import types
"""
NEEDS: Final = ("from google.adk.tools import LongRunningFunctionTool\n", _IMPORTS)
"""Stands for a framework whose newer version never comes back from the second answer."""

LOCK: Final = """version = 1

[[package]]
name = "desk"
version = "1.{own}"
source = {{ editable = "." }}

[[package]]
name = "google-adk"
version = "{adk}"
"""


def of(*names: str) -> list[Construct]:
    """The constructs of these names."""
    return [one for one in CONSTRUCTS if one.name in names]


def python(framework: str) -> Path:
    """The interpreter of an environment."""
    return FRAMEWORKS[framework] / "bin/python"


def checkout(folder: Path, name: str, *, adk: str, own: int = 0) -> Path:
    """A checkout of what was recorded in `folder`, whose lock file names a framework."""
    top = folder / name
    top.mkdir()
    for agent in (folder / "v1").iterdir():
        shutil.copytree(agent, top / "v1" / agent.name)
        shutil.copy(folder / f"{agent.name}.jsonl", top)
    shutil.copy(folder / "backstop.yaml", top)
    (top / "uv.lock").write_text(LOCK.format(adk=adk, own=own), encoding="utf-8")
    return top


def gated(base: Path, head: Path, *options: str | Path) -> tuple[Ran, dict[str, dict[str, Any]]]:
    """What the gate says of each agent of `head`."""
    ran = backstop(
        *("gate", "--config", head / "backstop.yaml", "--base", base, "--format", "json"), *options
    )
    assert ran.out, ran
    return ran, {agent["agent"]: agent for agent in json.loads(ran.out)["agents"]}


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [("oldest", "newest", ("mcp_sheet", "workflow")), ("newest", "oldest", ("mcp_sheet",))],
    ids=["up", "down"],
)
def test_one_ledger_speaks_for_the_same_code_on_another_framework(
    before: str, after: str, names: tuple[str, ...], tmp_path: Path
) -> None:
    recorded(tmp_path, python(before), of(*names))
    base = checkout(tmp_path, "base", adk=before)
    head = checkout(tmp_path, "head", adk=after)
    _, found = gated(
        base, head, "--base-python", python(before), "--candidate-python", python(after)
    )
    for one in of(*names):
        verdict = found[one.name]
        assert (verdict["decision"], verdict["counts"]["match"]) == ("PASS", one.effects), verdict
        assert verdict["coverage"]["drift"] == "none", verdict


def test_a14_a_change_of_the_lock_file_alone_drops_what_the_newer_framework_never_asks_for(
    tmp_path: Path,
) -> None:
    """A14: `--changed-only` judges it, each version on its own packages: MISSING."""
    recorded(tmp_path, python("oldest"), of("long_running"), NEEDS, STOPS)
    base = checkout(tmp_path, "base", adk="2.11.0")
    head = checkout(tmp_path, "head", adk="2.13.0")
    ran, found = gated(base, head, "--changed-only", "--candidate-python", python("newest"))
    assert "long_running: concerned, since uv.lock changed" in ran.err
    verdict = found["long_running"]
    assert [(d["kind"], d["tool"]) for d in verdict["divergences"]] == [("MISSING", "finish")]
    assert verdict["counts"]["match"] == 2

    # On one interpreter nobody can know what the new packages do: that is no pass.
    _, found = gated(base, head)
    (why,) = found["long_running"]["coverage"]["uncovered"]
    assert why.startswith("uv.lock changed, and both versions ran with the packages of one")
    assert found["long_running"]["decision"] == "INCONCLUSIVE"

    # The project's own number is no package.
    renumbered = checkout(tmp_path, "renumbered", adk="2.11.0", own=1)
    _, found = gated(base, renumbered)
    assert found["long_running"]["decision"] == "PASS"


def test_no_interpreter_is_named_for_containers(tmp_path: Path) -> None:
    shutil.copy(FRAMEWORKS["newest"].parent / "backstop.yaml", tmp_path)
    ran = backstop(
        *("gate", "--config", tmp_path / "backstop.yaml", "--agent", "vendor-onboarding"),
        *("--candidate", tmp_path, "--sandbox", "docker", "--base-python", "python3"),
    )
    assert ran.code == 2
    assert "--base-python: a container is made of what its version's own files name" in ran.err
