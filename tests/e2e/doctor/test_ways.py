"""Every way past interception is found where it is, and only there, on either framework."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from backstop.adk.escapes import Way
from backstop.replay.escapes import RULES, Ruling, rule_of
from tests.e2e.command import ROOT
from tests.e2e.doctor.specimens import PAIRS

PAGE = (ROOT / "docs/doctor.md").read_text(encoding="utf-8")
FRAMEWORKS = {"newest": sys.executable, "oldest": str(ROOT / ".venv-oldest/bin/python")}

Told = Mapping[str, list[list[dict[str, Any]]]]


@pytest.fixture(scope="module", params=sorted(FRAMEWORKS))
def told(request: pytest.FixtureRequest) -> Told:
    """What each pair shows, on a framework: one process looks at all of them."""
    ran = subprocess.run(
        [FRAMEWORKS[request.param], ROOT / "tests/e2e/appended.py", "tests.e2e.doctor.looking"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    said = json.loads(ran.stdout.splitlines()[-1])
    assert (said["adk"] == "2.11.0") is (request.param == "oldest")
    found: Told = said["told"]
    return found


@pytest.mark.parametrize("way", list(Way))
def test_a16_a17_every_way_is_found_and_placed(told: Told, way: Way) -> None:
    """A16, A17: what no plugin sees is named, with the line where it lies in one."""
    specimen, _ = told[way]
    found = [one for one in specimen if one["kind"] == way]
    assert found
    assert all(one["where"] for one in found)
    seen = PAIRS[way].seen
    assert any(seen in one["line"] for one in found)
    assert all(one["at"].startswith("agent.py:") for one in found if seen)


@pytest.mark.parametrize("way", list(Way))
def test_an_agent_that_does_the_like_and_is_met_shows_nothing(told: Told, way: Way) -> None:
    _, control = told[way]
    assert control == []


def sections() -> dict[str, str]:
    """The page's sections about ways, by their headings."""
    parts = re.split(r"^### `([\w-]+)`$", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_page_tells_of_every_way_and_of_no_other() -> None:
    assert list(sections()) == [way.value for way in Way]


@pytest.mark.parametrize("way", list(Way))
def test_the_page_tells_the_ruling_and_the_remedy_of_each_way(way: Way) -> None:
    rule, section = RULES[way], sections()[way.value]
    assert f"Ruling: {rule.ruling}." in section
    assert f"Remedy: {rule.remedy}." in section


def test_a_way_that_nobody_knows_is_never_covered() -> None:
    assert rule_of("time-travel").ruling is Ruling.UNSEEN
    assert set(RULES) == set(Way) == set(PAIRS)
