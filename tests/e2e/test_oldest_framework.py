"""The oldest framework that is supported says the same of the specimen as the newest.

It lives in `.venv-oldest`, an environment of its own that `make test` sets up from the lock
file, as a user's agents live in theirs: the configuration names the interpreter.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from backstop.adapters.process import ProcessSandbox
from backstop.replay.bundle import MODULE, write_bundle
from backstop.replay.driver import Driver
from tests.e2e.command import ROOT, backstop

OLDEST = ROOT / ".venv-oldest/bin/python"
SPECIMEN = ROOT / "examples/vendor_onboarding"


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's configuration, with another interpreter for its agents."""
    text = (ROOT / "backstop.yaml").read_text(encoding="utf-8")
    text = text.replace("ledger: ledgers/", f"ledger: {ROOT}/ledgers/")
    text = text.replace("{kind: process,", f"{{kind: process, python: {OLDEST},")
    path = tmp_path_factory.mktemp("oldest") / "backstop.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def gated(config: Path, version: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and what the gate says of the specimen."""
    ran = backstop(
        *("gate", "--config", config, "--agent", "vendor-onboarding"),
        *("--candidate", SPECIMEN / version, "--format", "json"),
    )
    assert not ran.err
    agent: dict[str, Any] = json.loads(ran.out)["agents"][0]
    return ran.code, agent


def test_it_is_the_oldest_that_the_package_allows() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    sandbox = ProcessSandbox(bundle=write_bundle, module=MODULE, python=str(OLDEST))
    driver = Driver(sandbox.start(SPECIMEN / "v1"))
    try:
        assert driver.ready().adk == "2.11.0"
    finally:
        driver.quit()
    assert '"google-adk>=2.11,<3"' in project
    assert '"google-adk==2.11.0"' in project


def test_the_version_that_wrote_the_ledger_passes_there_too(config: Path) -> None:
    code, agent = gated(config, "v1")
    assert (code, agent["counts"]["match"], agent["divergences"]) == (0, 42, [])
    assert agent["coverage"]["drift"] == "none"


def test_the_relabelled_vendor_is_blocked_there_too(config: Path) -> None:
    code, agent = gated(config, "v3")
    assert (code, agent["counts"]["match"], agent["counts"]["duplicate"]) == (1, 39, 3)
    assert {found["reason"] for found in agent["divergences"]} == {"relabelled"}
